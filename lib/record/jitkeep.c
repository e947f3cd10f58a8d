/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/jitkeep.h"
#include "base/clock.h"
#include "record/filetab.h"
#include "record/jitwatch.h"
#include "record/mapfile.h"
#include "symbols/jit.h"

#include <errno.h>
#include <string.h>

#define ADDRS_MAX (4u << 20)
#define UNSEEN (UINT32_MAX - 1) /* a process that could not be looked at */
#define STORIES_MAX 16

/* A user stack that has frames in such memory: `n` addresses from `first` on. */
struct jitted {
	uint32_t first, n;
};

struct wanted {
	uint32_t proc;
	uint64_t addr;
};

struct jitkeep {
	struct jitwatches watches;
	struct idmap by_proc; /* process in the capture -> watch, UNSEEN */
	struct idmap stacks; /* identity -> jitted */
	struct jitted *jitted;
	size_t n_jitted, cap_jitted;
	uint64_t *addrs; /* of all in `jitted` */
	size_t n_addrs, cap_addrs;
	struct idmap pairs; /* (process, jitted) that are in `wanted` */
	struct idmap known; /* (process, address) that are */
	struct wanted *wanted;
	size_t n_wanted, cap_wanted;
	unsigned int stories;
	struct jitkeep_stats stats;
};

int jitkeep_new(struct jitkeep **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e, "the names of JIT code");
	jitwatch_init(&(*ret)->watches);
	return 0;
}

void jitkeep_free(struct jitkeep *k)
{
	if (!k)
		return;
	jitwatch_free(&k->watches);
	free(k->jitted);
	free(k->addrs);
	free(k->wanted);
	idmap_free(&k->by_proc);
	idmap_free(&k->stacks);
	idmap_free(&k->pairs);
	idmap_free(&k->known);
	free(k);
}

void jitkeep_opener(struct jitkeep *k, struct opener *o)
{
	if (k)
		k->watches.opener = o;
}

void jitkeep_event(struct jitkeep *k, const struct proctab *procs, const struct procevent *ev)
{
	if (k)
		jitwatch_event(&k->watches, ev, proctab_tracks(procs, ev->pid));
}

void jitkeep_look(struct jitkeep *k, uint64_t now_ns)
{
	if (k)
		jitwatch_look(&k->watches, now_ns);
}

/* --- which addresses --- */

/* Memory that the file PATH of a mapping names no code of. */
static bool names_no_code(const char *path)
{
	static const char *const prefixes[] = { "/memfd:", "/dev/zero", "/dev/shm/", "/SYSV",
		"/anon_hugepage" };
	const char *base = strrchr(path, '/');

	if (mapfile_is_pseudo(path))
		return strcmp(path, "[vdso]") != 0 && strcmp(path, "[vsyscall]") != 0 &&
		       strcmp(path, "[uprobes]") != 0;
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return base && strncmp(base, "/jit-", 5) == 0;
}

static bool may_be_jit(const struct pastmap *past, const struct image *im, uint64_t addr, uint64_t time_ns)
{
	const struct mapping *m = mapset_then(im->maps, addr, time_ns);

	return !m || m->file == UINT32_MAX || names_no_code(filetab_path(past->files, m->file));
}

/* The byte that frame I of S executes. */
static uint64_t byte_of(const struct cap_stack *s, uint32_t i, uint32_t *exact)
{
	while (*exact < s->n_exact && s->exact[*exact] < i)
		++*exact;
	if (!i || !s->frames[i] || (*exact < s->n_exact && s->exact[*exact] == i))
		return s->frames[i];
	return s->frames[i] - 1;
}

/* Note the addresses of the stack ID, S, which is seen for the first time, in IM. */
static void note_stack(struct jitkeep *k, const struct offcpu_stack_id *id, const struct cap_stack *s,
	const struct pastmap *past, const struct image *im, uint64_t time_ns)
{
	size_t first = k->n_addrs;
	uint32_t exact = 0;

	for (uint32_t i = 0; i < s->len; i++) {
		uint64_t addr = byte_of(s, i, &exact);

		if (!may_be_jit(past, im, addr, time_ns))
			continue;
		if (k->n_addrs == ADDRS_MAX ||
			base_grow(&k->addrs, &k->cap_addrs, k->n_addrs + 1, sizeof(*k->addrs)) != 0)
			k->stats.cut++;
		else
			k->addrs[k->n_addrs++] = addr;
	}
	if (k->n_addrs == first ||
		base_grow(&k->jitted, &k->cap_jitted, k->n_jitted + 1, sizeof(*k->jitted)) != 0 ||
		idmap_put(&k->stacks, id->hi, id->lo, (uint32_t)k->n_jitted, NULL) == UINT32_MAX)
		return;
	k->jitted[k->n_jitted++] =
		(struct jitted){ .first = (uint32_t)first, .n = (uint32_t)(k->n_addrs - first) };
}

/* The addresses of J are wanted of PROC. */
static void want(struct jitkeep *k, uint32_t proc, const struct jitted *j)
{
	for (uint32_t i = 0; i < j->n; i++) {
		uint64_t addr = k->addrs[j->first + i];
		bool added = false;

		if (k->n_wanted == ADDRS_MAX ||
			base_grow(&k->wanted, &k->cap_wanted, k->n_wanted + 1, sizeof(*k->wanted)) != 0) {
			k->stats.cut++;
			return;
		}
		idmap_put(&k->known, proc, addr, 0, &added);
		if (added)
			k->wanted[k->n_wanted++] = (struct wanted){ proc, addr };
	}
}

static void bind(struct jitkeep *k, uint32_t proc, const struct pastmap *past, const struct image *im,
	uint64_t time_ns)
{
	uint32_t at;

	if (idmap_find(&k->by_proc, 0, proc))
		return;
	k->stats.processes++;
	at = jitwatch_bind(&k->watches, proc, past, im, time_ns);
	k->stats.unseen += at == UINT32_MAX;
	idmap_put(&k->by_proc, 0, proc, MIN(at, UNSEEN), NULL);
}

void jitkeep_see(struct jitkeep *k, struct proctab *procs, const struct stacktab *stacks,
	const struct offcpu_key *key, uint32_t proc, uint64_t first_ns)
{
	const struct image *im;
	const struct idmap_slot *slot;
	struct pastmap past;
	struct cap_stack s;
	bool fresh = k && stacktab_user(stacks, &key->user, &s), added = false;

	if (!k || (!fresh && !idmap_find(&k->stacks, key->user.hi, key->user.lo)))
		return;
	im = proc == CAP_NONE ? NULL : proctab_image(procs, key);
	if (!im)
		return;
	proctab_past(procs, &past);
	if (fresh)
		note_stack(k, &key->user, &s, &past, im, first_ns);
	slot = idmap_find(&k->stacks, key->user.hi, key->user.lo);
	if (!slot)
		return;
	bind(k, proc, &past, im, first_ns);
	idmap_put(&k->pairs, proc, slot->value, 0, &added);
	if (added)
		want(k, proc, &k->jitted[slot->value]);
}

/* --- at the end --- */

static void tell(struct jitkeep *k, struct capwrite *w, const struct jitwatch *of, const char *what,
	const struct err *e)
{
	char text[1200];

	if (k->stories++ >= STORIES_MAX)
		return;
	snprintf(text, sizeof(text), "%s of process %u: %s", what, of->owner.pid, e->msg);
	capwrite_option(w, &(struct cap_option){ "jit", text });
}

static void tell_refusal(struct jitkeep *k, struct capwrite *w, const struct jitwatch *of, const char *what,
	const struct err *e)
{
	if (e->code == -EPERM || e->code == -EMEDIUMTYPE)
		k->stats.refused++;
	else if (e->code == -ESTALE)
		k->stats.stale++;
	else
		k->stats.failed++;
	tell(k, w, of, what, e);
}

/* Ask of file FD of W for ADDRS, and write what it names. */
static int read_file(struct jitkeep *k, const struct jitwatch *of, const struct jitchild_question *q,
	struct capwrite *w, struct err *e)
{
	struct jitchild_answer a;
	struct stat st;
	int rc = fstat(q->fd, &st) == 0 ? 0 : err_sys(e, -errno, "cannot look at it");

	rc = rc ? rc : jitfile_check(&of->owner, &st, e);
	rc = rc ? rc : jitchild_ask(q, &a, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < a.n; i++) {
		a.jits[i].proc = of->proc;
		capwrite_jit(w, &a.jits[i]);
	}
	k->stats.maps_read++;
	k->stats.entries_kept += a.n;
	k->stats.bad_lines += a.bad;
	k->stats.cut += a.cut;
	jitchild_free(&a);
	return 0;
}

static void write_proc(
	struct jitkeep *k, struct jitwatch *of, const uint64_t *addrs, size_t n, struct capwrite *w)
{
	struct err e = { 0 };

	if (jitwatch_reopen(&k->watches, of) != 0) {
		err_set(&e, -EMEDIUMTYPE, "it is not a regular file");
		tell_refusal(k, w, of, "the perf map", &e);
	} else if (of->map >= 0 &&
		   read_file(k, of,
			   &(struct jitchild_question){
				   .fd = of->map, .kind = CAP_JIT_PERFMAP, .addrs = addrs, .n = n },
			   w, &e) != 0) {
		tell_refusal(k, w, of, "the perf map", &e);
	}
	if (of->dump >= 0 &&
		read_file(k, of,
			&(struct jitchild_question){
				.fd = of->dump, .kind = CAP_JIT_JITDUMP, .addrs = addrs, .n = n },
			w, &e) != 0)
		tell_refusal(k, w, of, "the jitdump file", &e);
	k->stats.unseen += of->no_room;
	jitwatch_close(&k->watches, of);
}

static int wanted_cmp(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->proc != y->proc ? CMP(x->proc, y->proc) : CMP(x->addr, y->addr);
}

void jitkeep_write(struct jitkeep *k, struct capwrite *w)
{
	_cleanup_free_ uint64_t *addrs = NULL;
	size_t n;

	if (!k || !k->n_wanted)
		return;
	addrs = malloc(k->n_wanted * sizeof(*addrs));
	if (!addrs) {
		k->stats.cut += k->n_wanted;
		return;
	}
	jitwatch_settle(&k->watches, now_ns());
	qsort(k->wanted, k->n_wanted, sizeof(*k->wanted), wanted_cmp);
	for (size_t i = 0; i < k->n_wanted; i += n) {
		const struct idmap_slot *s = idmap_find(&k->by_proc, 0, k->wanted[i].proc);

		for (n = 0; i + n < k->n_wanted && k->wanted[i + n].proc == k->wanted[i].proc; n++)
			addrs[n] = k->wanted[i + n].addr;
		if (s && s->value != UNSEEN)
			write_proc(k, &k->watches.all[s->value], addrs, n, w);
	}
	k->n_wanted = 0;
}

void jitkeep_stats(const struct jitkeep *k, struct jitkeep_stats *ret)
{
	*ret = k ? k->stats : (struct jitkeep_stats){ 0 };
}
