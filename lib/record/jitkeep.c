/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "jitkeep.h"
#include "filetab.h"
#include "imagetab.h"
#include "jitchild.h"
#include "jitfile.h"
#include "mapfile.h"
#include "now.h"
#include "pastmap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define WATCHES_MAX 4096
#define FDS_MAX 256 /* files that are kept open for processes that live */
#define LOOK_NS UINT64_C(100000000)
#define ADDRS_MAX (4u << 20)
#define STORIES_MAX 16

/* A process that makes code, or may. */
struct watch {
	struct jitfile_owner owner;
	uint64_t since_ns; /* it was there then, as this image */
	uint32_t proc; /* in the capture; CAP_NONE = no sample yet */
	bool over; /* ended, or another image by now */
	int map, dump; /* descriptors, -1 = none */
	struct stat dump_st;
};

/* A user stack that has frames in such memory: `n` addresses from `first` on. */
struct jitted {
	uint32_t first, n;
};

struct wanted {
	uint32_t proc;
	uint64_t addr;
};

struct jitkeep {
	struct watch *watches;
	size_t n_watches, cap_watches;
	struct idmap by_tgid, by_proc; /* the newest watch of a tgid; that of a process in the capture */
	size_t n_fds;
	uint64_t look_ns;
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
	return *ret ? 0 : err_nomem(e, "the names of JIT code");
}

static void close_fd(struct jitkeep *k, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	k->n_fds--;
}

void jitkeep_free(struct jitkeep *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n_watches; i++) {
		close_fd(k, &k->watches[i].map);
		close_fd(k, &k->watches[i].dump);
	}
	free(k->watches);
	free(k->jitted);
	free(k->addrs);
	free(k->wanted);
	idmap_free(&k->by_tgid);
	idmap_free(&k->by_proc);
	idmap_free(&k->stacks);
	idmap_free(&k->pairs);
	idmap_free(&k->known);
	free(k);
}

/* --- who makes code --- */

static struct watch *watch_of(const struct jitkeep *k, uint32_t tgid)
{
	const struct idmap_slot *s = idmap_find(&k->by_tgid, 0, tgid);

	return s && !k->watches[s->value].over ? &k->watches[s->value] : NULL;
}

/* A new one for the process that is TGID now, if it is there; NULL. */
static struct watch *add_watch(struct jitkeep *k, uint32_t tgid, uint64_t now_ns)
{
	struct watch w = { .since_ns = now_ns, .proc = CAP_NONE, .map = -1, .dump = -1 };
	struct idmap_slot *s;

	if (k->n_watches == WATCHES_MAX || !jitfile_owner(tgid, &w.owner) ||
		base_grow(&k->watches, &k->cap_watches, k->n_watches + 1, sizeof(w)) != 0)
		return NULL;
	idmap_put(&k->by_tgid, 0, tgid, 0, NULL);
	s = idmap_find(&k->by_tgid, 0, tgid);
	if (!s)
		return NULL;
	s->value = (uint32_t)k->n_watches;
	k->watches[k->n_watches] = w;
	return &k->watches[k->n_watches++];
}

/* Keep FD for W in *SLOT, in place of what is there; it is closed where there is no room. */
static void keep_fd(struct jitkeep *k, int *slot, int fd)
{
	if (fd < 0)
		return;
	close_fd(k, slot);
	if (k->n_fds == FDS_MAX) {
		close(fd);
		return;
	}
	*slot = fd;
	k->n_fds++;
}

static void take_dump(struct jitkeep *k, struct watch *w, const struct procmap *m)
{
	if (w->dump < 0 && jitfile_is_dump(&w->owner, m->path))
		keep_fd(k, &w->dump, mapfile_open(w->owner.pid, m, &w->dump_st));
}

static bool is_anonymous(const char *path)
{
	return !*path || strcmp(path, "//anon") == 0 || strncmp(path, "[anon", 5) == 0 ||
	       strncmp(path, "/memfd:", 7) == 0;
}

static void on_code(struct jitkeep *k, const struct proctab *procs, const struct procevent *ev)
{
	const char *base = strrchr(ev->text, '/');
	bool dump = base && strncmp(base, "/jit-", 5) == 0;
	struct watch *w;

	if (!dump && !is_anonymous(ev->text))
		return;
	w = watch_of(k, ev->pid);
	if (!w && proctab_tracks(procs, ev->pid))
		w = add_watch(k, ev->pid, ev->time_ns);
	if (w && dump)
		take_dump(k, w,
			&(struct procmap){ .start = ev->start,
				.end = ev->end,
				.inode = ev->inode,
				.dev_major = ev->dev_major,
				.dev_minor = ev->dev_minor,
				.path = ev->text });
}

/* W is another image from TIME_NS on, or none. */
static void end_watch(struct watch *w, uint64_t time_ns)
{
	if (!w)
		return;
	w->over = true;
	w->owner.end_ns = time_ns;
}

void jitkeep_event(struct jitkeep *k, const struct proctab *procs, const struct procevent *ev)
{
	if (ev->type == PROCEVENT_MMAP && (ev->prot & PROT_EXEC))
		on_code(k, procs, ev);
	else if (ev->type == PROCEVENT_EXEC || (ev->type == PROCEVENT_FORK && ev->pid != ev->parent) ||
		 (ev->type == PROCEVENT_EXIT && ev->tid == ev->pid))
		end_watch(watch_of(k, ev->pid), ev->time_ns);
}

void jitkeep_look(struct jitkeep *k, uint64_t now_ns)
{
	struct stat st;

	if (now_ns < k->look_ns)
		return;
	k->look_ns = now_ns + LOOK_NS;
	for (size_t i = 0; i < k->n_watches; i++) {
		struct watch *w = &k->watches[i];

		if (!w->over && w->map < 0 && k->n_fds < FDS_MAX)
			keep_fd(k, &w->map, jitfile_map(&w->owner, &st));
	}
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

/* Its jitdump file may have been mapped before the recording. */
static void find_dump(struct jitkeep *k, struct watch *w, const struct pastmap *past, const struct image *im)
{
	for (size_t i = 0; im->maps && i < im->maps->n; i++) {
		const struct mapping *m = &im->maps->maps[i];
		struct procmap pm = { .start = m->start, .end = m->end, .offset = m->offset };

		if (filetab_place(past->files, m->file, &pm))
			take_dump(k, w, &pm);
	}
}

/* The watch of image IM, which is PROC; one that is known from its events, else a new one; NULL. */
static struct watch *find_watch(struct jitkeep *k, const struct image *im, uint64_t time_ns)
{
	for (size_t i = k->n_watches; i-- > 0;) {
		struct watch *w = &k->watches[i];

		if (w->owner.pid == im->tgid && w->proc == CAP_NONE && w->since_ns >= im->begin_ns &&
			w->since_ns < im->end_ns)
			return w;
	}
	return im->end_ns == UINT64_MAX ? add_watch(k, im->tgid, time_ns) : NULL;
}

static void bind(struct jitkeep *k, uint32_t proc, const struct pastmap *past, const struct image *im,
	uint64_t time_ns)
{
	struct watch *w;

	if (idmap_find(&k->by_proc, 0, proc))
		return;
	k->stats.processes++;
	w = find_watch(k, im, time_ns);
	idmap_put(&k->by_proc, 0, proc, w ? (uint32_t)(w - k->watches) : UINT32_MAX - 1, NULL);
	if (!w)
		return;
	w->proc = proc;
	w->owner.start_boot_ns = im->start_boot_ns;
	find_dump(k, w, past, im);
}

void jitkeep_see(struct jitkeep *k, struct proctab *procs, const struct stacktab *stacks,
	const struct offcpu_key *key, uint32_t proc, uint64_t first_ns)
{
	const struct image *im;
	const struct idmap_slot *slot;
	struct pastmap past;
	struct cap_stack s;
	bool fresh = stacktab_user(stacks, &key->user, &s), added = false;

	if (!fresh && !idmap_find(&k->stacks, key->user.hi, key->user.lo))
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

static void tell(
	struct jitkeep *k, struct capwrite *w, const struct watch *of, const char *what, const struct err *e)
{
	char text[1200];

	if (k->stories++ >= STORIES_MAX)
		return;
	snprintf(text, sizeof(text), "%s of process %u: %s", what, of->owner.pid, e->msg);
	capwrite_option(w, &(struct cap_option){ "jit", text });
}

static void tell_refusal(
	struct jitkeep *k, struct capwrite *w, const struct watch *of, const char *what, const struct err *e)
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
static int read_file(struct jitkeep *k, const struct watch *of, const struct jitchild_question *q,
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

/* The map by its name, which may be another file by now, else the one that was found before. */
static int open_map(struct jitkeep *k, struct watch *of)
{
	struct stat st;
	int fd;

	/* whoever is gone may have had a successor of the same PID in the same /tmp: its file is the one of
	 * then */
	if (of->owner.end_ns && of->map >= 0)
		return 0;
	fd = jitfile_map(&of->owner, &st);
	if (fd == -EMEDIUMTYPE || fd == -ELOOP)
		return -EMEDIUMTYPE;
	if (fd >= 0 && of->map < 0)
		k->n_fds++;
	else if (fd >= 0)
		close(of->map);
	if (fd >= 0)
		of->map = fd;
	return 0;
}

static void write_proc(
	struct jitkeep *k, struct watch *of, const uint64_t *addrs, size_t n, struct capwrite *w)
{
	struct err e = { 0 };

	if (open_map(k, of) != 0) {
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
	close_fd(k, &of->map);
	close_fd(k, &of->dump);
}

static int wanted_cmp(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->proc != y->proc ? CMP(x->proc, y->proc) : CMP(x->addr, y->addr);
}

/* An exit is told later than it is seen in /proc. */
static void note_ends(struct jitkeep *k, uint64_t now_ns)
{
	for (size_t i = 0; i < k->n_watches; i++) {
		struct jitfile_owner now = { 0 };

		if (!k->watches[i].over && !jitfile_owner(k->watches[i].owner.pid, &now))
			end_watch(&k->watches[i], now_ns);
	}
}

void jitkeep_write(struct jitkeep *k, struct capwrite *w)
{
	_cleanup_free_ uint64_t *addrs = malloc((k->n_wanted + 1) * sizeof(*addrs));
	size_t n;

	if (!addrs || !k->n_wanted)
		return;
	note_ends(k, now_ns());
	qsort(k->wanted, k->n_wanted, sizeof(*k->wanted), wanted_cmp);
	for (size_t i = 0; i < k->n_wanted; i += n) {
		const struct idmap_slot *s = idmap_find(&k->by_proc, 0, k->wanted[i].proc);

		for (n = 0; i + n < k->n_wanted && k->wanted[i + n].proc == k->wanted[i].proc; n++)
			addrs[n] = k->wanted[i + n].addr;
		if (s && s->value < k->n_watches)
			write_proc(k, &k->watches[s->value], addrs, n, w);
	}
	k->n_wanted = 0;
}

void jitkeep_stats(const struct jitkeep *k, struct jitkeep_stats *ret)
{
	*ret = k->stats;
}
