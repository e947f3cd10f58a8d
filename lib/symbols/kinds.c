/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/kinds.h"
#include "base/hash.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>

/* The table, a string for each line. */
static const char own_table[] = ""
#include <kinds.h>
	;

#define TABLE_BYTES_MAX ((size_t)1 << 20) /* of a file of rules */
#define PATTERNS_MAX 4096
#define CALL "call"

enum subject { SUBJECT_SYSCALL, SUBJECT_KERNEL, SUBJECT_USER, SUBJECT_MODULE, SUBJECTS };
static const char *const subjects[SUBJECTS] = { "syscall", "kernel", "user", "module" };

/* A name, in which each '*' stands for anything. */
struct pattern {
	const char *text; /* from its first byte that is not '*' */
	uint16_t next; /* the next one in the same list, plus one; 0 = none */
};

/* Most names match no pattern, so patterns are in lists by their first byte; the numbers are those of the
   first ones, plus one. */
struct pattern_lists {
	uint16_t whole[UCHAR_MAX + 1];
	uint16_t anywhere[UCHAR_MAX + 1]; /* '*' comes first */
};

/* One of the patterns [first, first + n). */
struct condition {
	uint16_t first, n;
};

#define CONDITIONS_MAX 8

struct rule {
	const char *kind;
	const char *states; /* letters, NULL = any */
	uint32_t flags; /* of enum cap_sample_flags, all of which a wait must have */
	bool call, once, kthread, loop, interrupt;
	uint8_t n;
	struct condition conditions[CONDITIONS_MAX];
};

struct kinds {
	char *texts[2]; /* the tables, cut into words; rules point into them */
	struct pattern *patterns;
	size_t n_patterns, patterns_cap;
	struct pattern_lists lists[SUBJECTS];
	struct rule *rules;
	size_t n_rules, rules_cap;
};

const char *kinds_text(void)
{
	return own_table;
}

void kinds_free(struct kinds *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < ARRAY_LEN(k->texts); i++)
		free(k->texts[i]);
	free(k->patterns);
	free(k->rules);
	free(k);
}

/* --- the table --- */

static bool is_kind(const char *word)
{
	for (const char *p = word; *p; p++)
		if (!islower((unsigned char)*p) && !isdigit((unsigned char)*p) && *p != '-')
			return false;
	return *word && strlen(word) <= 32;
}

static int add_pattern(struct kinds *k, enum subject subject, const char *name, struct err *e)
{
	const char *text = name + strspn(name, "*");
	struct pattern_lists *l = &k->lists[subject];
	uint16_t *list = &(text == name ? l->whole : l->anywhere)[(unsigned char)*text];

	if (k->n_patterns == PATTERNS_MAX)
		return err_set(e, -EINVAL, "there are more than %d names", PATTERNS_MAX);
	if (base_grow(&k->patterns, &k->patterns_cap, k->n_patterns + 1, sizeof(*k->patterns)) != 0)
		return err_nomem(e, "rules");
	if (!*text)
		return err_set(e, -EINVAL, "a name is missing");
	k->patterns[k->n_patterns] = (struct pattern){ .text = text, .next = *list };
	*list = (uint16_t)++k->n_patterns;
	return 0;
}

static int add_condition(struct kinds *k, struct rule *r, enum subject subject, char *names, struct err *e)
{
	struct condition *c = &r->conditions[r->n];
	char *name, *rest = names;
	int rc = 0;

	if (r->n == CONDITIONS_MAX)
		return err_set(e, -EINVAL, "a rule has at most %d conditions", CONDITIONS_MAX);
	if ((subject == SUBJECT_MODULE) != r->call && subject != SUBJECT_USER)
		return err_set(e, -EINVAL, "'%s=' does not go with '%s'", subjects[subject], r->kind);
	c->first = (uint16_t)k->n_patterns;
	while (rc == 0 && (name = strsep(&rest, "|")))
		rc = add_pattern(k, subject, name, e);
	c->n = (uint16_t)(k->n_patterns - c->first);
	r->n++;
	return rc;
}

static int take_word(struct kinds *k, struct rule *r, char *word, struct err *e)
{
	char *value = strchr(word, '=');

	if (value) {
		*value++ = '\0';
		if (strcmp(word, "state") == 0 && *value) {
			r->states = value;
			return 0;
		}
		for (int i = 0; i < SUBJECTS; i++)
			if (strcmp(word, subjects[i]) == 0)
				return add_condition(k, r, (enum subject)i, value, e);
	}
	if (!value && strcmp(word, "preempted") == 0)
		r->flags |= CAPTURE_SAMPLE_PREEMPTED;
	else if (!value && strcmp(word, "throttled") == 0)
		r->flags |= CAPTURE_SAMPLE_THROTTLED;
	else if (!value && strcmp(word, "timed") == 0)
		r->flags |= CAPTURE_SAMPLE_TIMED;
	else if (!value && strcmp(word, "no-descriptors") == 0)
		r->flags |= CAPTURE_SAMPLE_NO_DESCRIPTORS;
	else if (!value && strcmp(word, "once") == 0)
		r->once = true;
	else if (!value && strcmp(word, "kthread") == 0)
		r->kthread = true;
	else if (!value && strcmp(word, "loop") == 0)
		r->loop = true;
	else if (!value && strcmp(word, "interrupt") == 0)
		r->interrupt = true;
	else
		return err_set(e, -EINVAL, "'%s' is not a condition", word);
	return 0;
}

static int take_line(struct kinds *k, char *line, struct err *e)
{
	static const char blanks[] = " \t\r";
	struct rule r = { 0 };
	char *comment = strchr(line, '#'), *save, *word;
	int rc = 0;

	if (comment)
		*comment = '\0';
	word = strtok_r(line, blanks, &save);
	if (!word)
		return 0;
	if (!is_kind(word))
		return err_set(e, -EINVAL, "'%s' is not a kind: small letters, digits and '-'", word);
	r.kind = word;
	r.call = strcmp(word, CALL) == 0;
	while (rc == 0 && (word = strtok_r(NULL, blanks, &save)))
		rc = take_word(k, &r, word, e);
	if (rc)
		return rc;
	if (!r.n && !r.states && !r.flags && !r.once && !r.kthread && !r.loop && !r.interrupt)
		return err_set(e, -EINVAL, "'%s' has no condition", r.kind);
	if (base_grow(&k->rules, &k->rules_cap, k->n_rules + 1, sizeof(*k->rules)) != 0)
		return err_nomem(e, "rules");
	k->rules[k->n_rules++] = r;
	return 0;
}

/* TEXT, which is changed, has the table NAME (for messages). */
static int take_table(struct kinds *k, char *text, const char *name, struct err *e)
{
	char *line, *rest = text;
	unsigned int number = 0;
	struct err why;
	int rc;

	while ((line = strsep(&rest, "\n"))) {
		number++;
		rc = take_line(k, line, &why);
		if (rc == -ENOMEM)
			return err_nomem(e, "rules");
		if (rc == 0)
			continue;
		err_set(e, rc, "line %u of '%s': %s", number, name, why.msg);
		err_hint(e, "a line is KIND CONDITION...; 'symbolize --print-kinds' shows the usual rules");
		return rc;
	}
	return 0;
}

/* Read all of PATH. */
static int read_table(const char *path, char **ret, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t len;
	int rc;

	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", path);
	rc = base_read(fd, TABLE_BYTES_MAX, ret, &len);
	if (rc == -EFBIG)
		return err_set(e, rc, "'%s' is larger than 1 MiB: not a table of rules", path);
	if (rc)
		return err_sys(e, rc, "cannot read '%s'", path);
	if (memchr(*ret, '\0', len))
		return err_set(e, -EINVAL, "'%s' is not a table of rules: it has a NUL", path);
	return 0;
}

int kinds_load(const char *file, struct kinds **ret, struct err *e)
{
	struct kinds *k = calloc(1, sizeof(*k));
	int rc = k ? 0 : err_nomem(e, "rules");

	if (rc == 0 && file)
		rc = read_table(file, &k->texts[0], e);
	if (rc == 0 && file)
		rc = take_table(k, k->texts[0], file, e);
	if (rc == 0) {
		k->texts[1] = strdup(own_table);
		rc = k->texts[1] ? take_table(k, k->texts[1], "kinds.table", e) : err_nomem(e, "rules");
	}
	if (rc) {
		kinds_free(k);
		return rc;
	}
	*ret = k;
	return 0;
}

/* --- names --- */

/* Is NAME, of LEN bytes, of the form TEXT? After a '*' the shortest part that fits is tried first. */
static bool matches(const char *text, const char *name, size_t len)
{
	const char *star = NULL, *end = name + len, *from = NULL;

	while (name < end) {
		if (*text == '*') {
			star = text++;
			from = name;
		} else if (*text == *name) {
			text++;
			name++;
		} else if (star) {
			text = star + 1;
			name = ++from;
		} else {
			return false;
		}
	}
	return !text[strspn(text, "*")];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The system call whose function in the kernel is NAME, or NULL. In mode procfs the kernel names it. */
static const char *syscall_of(const char *name, size_t *len)
{
	static const char *const starts[] = { "__x64_sys_", "__ia32_sys_", "__ia32_compat_sys_",
		"__arm64_sys_", "__arm64_compat_sys_", "__do_sys_", "__se_sys_", "[syscall " };

	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		const size_t n = strlen(starts[i]);

		if (strncmp(name, starts[i], n) != 0)
			continue;
		*len = strlen(name + n);
		if (starts[i][0] == '[' && *len)
			--*len;
		return name + n;
	}
	return NULL;
}

/* In mode procfs a kernel stack may be "[wait channel FUNCTION]". */
static const char *kernel_name(const char *name, size_t *len)
{
	static const char start[] = "[wait channel ";

	*len = strlen(name);
	if (strncmp(name, start, sizeof(start) - 1) != 0)
		return name;
	*len -= sizeof(start) - 1;
	if (*len)
		--*len;
	return name + sizeof(start) - 1;
}

/* --- which patterns a frame matches --- */

typedef uint64_t word;
#define WORD_BITS 64

#define RECENT_MAX 4096

/* One set of patterns for each frame, made when it is needed. */
struct names {
	const struct kinds *k;
	struct resolve *r;
	size_t words; /* of a set */
	word *sets;
	bool *known; /* by frame number */
	uint8_t *calls; /* 0 = not known, 1 = no, 2 = it only waits for its caller */
	uint32_t recent[RECENT_MAX]; /* by name: a frame with that name whose set is made, plus one */
};

static void names_free(struct names *n)
{
	free(n->sets);
	free(n->known);
	free(n->calls);
}

static void match_list(const struct names *n, word *set, uint16_t next, const char *name, size_t len)
{
	while (next) {
		const size_t i = next - 1U;

		if (matches(n->k->patterns[i].text, name, len))
			set[i / WORD_BITS] |= (word)1 << i % WORD_BITS;
		next = n->k->patterns[i].next;
	}
}

static void match_name(const struct names *n, word *set, enum subject subject, const char *name, size_t len)
{
	const struct pattern_lists *l = &n->k->lists[subject];

	if (len)
		match_list(n, set, l->whole[(unsigned char)*name], name, len);
	for (size_t i = 0; i < len; i++)
		match_list(n, set, l->anywhere[(unsigned char)name[i]], name + i, len - i);
}

static void match_frame(const struct names *n, word *set, const struct frame *f)
{
	const char *name;
	size_t len;

	for (uint32_t i = 0; i < f->n_inlined; i++)
		if (f->inlined[i].name)
			match_name(n, set, f->kernel ? SUBJECT_KERNEL : SUBJECT_USER, f->inlined[i].name,
				strlen(f->inlined[i].name));
	if (!f->kernel && f->module)
		match_name(n, set, SUBJECT_MODULE, base_name(f->module), strlen(base_name(f->module)));
	if (!f->name)
		return;
	if (!f->kernel) {
		match_name(n, set, SUBJECT_USER, f->name, strlen(f->name));
		return;
	}
	name = syscall_of(f->name, &len);
	if (name)
		match_name(n, set, SUBJECT_SYSCALL, name, len);
	name = kernel_name(f->name, &len);
	match_name(n, set, SUBJECT_KERNEL, name, len);
}

/* Frames of one function share their strings. */
static bool same_names(const struct frame *a, const struct frame *b)
{
	return a->name == b->name && a->module == b->module && a->kernel == b->kernel && !a->n_inlined &&
	       !b->n_inlined;
}

static void make_set(struct names *n, word *set, uint32_t id)
{
	const struct frame *f = resolve_frame(n->r, id);
	uint32_t *recent = &n->recent[hash_mul((uintptr_t)f->name, HASH_K0) % RECENT_MAX];

	if (*recent && same_names(f, resolve_frame(n->r, *recent - 1)))
		memcpy(set, n->sets + (*recent - 1) * n->words, n->words * sizeof(*set));
	else
		match_frame(n, set, f);
	*recent = id + 1;
}

static const word *set_of(struct names *n, uint32_t frame)
{
	word *set = n->sets + frame * n->words;

	if (!n->known[frame]) {
		n->known[frame] = true;
		make_set(n, set, frame);
	}
	return set;
}

static bool has_one(const word *set, const struct condition *c)
{
	for (size_t i = c->first; i < (size_t)c->first + c->n; i++)
		if (set[i / WORD_BITS] >> i % WORD_BITS & 1)
			return true;
	return false;
}

static bool has_all(const struct rule *r, const word *set)
{
	for (uint8_t i = 0; i < r->n; i++)
		if (!has_one(set, &r->conditions[i]))
			return false;
	return true;
}

/* Does FRAME only wait for what its caller waits for? */
static bool is_call(struct names *n, uint32_t frame)
{
	const word *set;

	if (n->calls[frame])
		return n->calls[frame] == 2;
	set = set_of(n, frame);
	n->calls[frame] = 1;
	for (size_t i = 0; i < n->k->n_rules; i++)
		if (n->k->rules[i].call && has_all(&n->k->rules[i], set))
			n->calls[frame] = 2;
	return n->calls[frame] == 2;
}

/* --- loops --- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Is it the same function, wherever in it? */
static bool same_function(const struct resolve *r, uint32_t x, uint32_t y)
{
	const struct frame *a = resolve_frame(r, x), *b = resolve_frame(r, y);

	if (x == y)
		return true;
	if (a->name || b->name)
		return same_text(a->name, b->name) && same_text(a->module, b->module);
	return a->source == FRAME_FDE && b->source == FRAME_FDE && same_text(a->module, b->module) &&
	       a->module_address - a->offset == b->module_address - b->offset;
}

static bool has_end(const struct cap_reader *c, const struct wait_printer_record *r)
{
	const struct cap_stack *s = &c->stacks[r->sample->ustack];

	return r->user.len && !capture_stopped(s->verdict, s->reason) &&
	       !capture_truncated(s->verdict, s->reason);
}

/* How many of their outermost functions two stacks of N and LEN frames, leaf first, have in common. */
static uint32_t common(
	const struct resolve *r, const uint32_t *a, uint32_t n, const uint32_t *b, uint32_t len, uint32_t max)
{
	uint32_t i = 0;

	while (i < n && i < len && i < max && same_function(r, a[n - 1 - i], b[len - 1 - i]))
		i++;
	return i;
}

/* Set `loop` and `once` of the waits of one thread. */
static void find_loops(struct names *n, const struct cap_reader *c, const struct stackids *s,
	struct wait_printer_record **waits, size_t count)
{
	const struct wait_printer_record *first = NULL;
	uint32_t shared = 0;
	uint64_t n_waits = 0;

	for (size_t i = 0; i < count; i++) {
		if (!(waits[i]->sample->flags & (CAPTURE_SAMPLE_ON_CPU | CAPTURE_SAMPLE_PREEMPTED)))
			n_waits += MIN(waits[i]->sample->count, (uint64_t)2);
		if (!has_end(c, waits[i]))
			continue;
		if (!first) {
			first = waits[i];
			shared = first->user.len;
		} else if (waits[i]->user.first != first->user.first) {
			shared = common(n->r, stackids_at(s, &first->user), first->user.len,
				stackids_at(s, &waits[i]->user), waits[i]->user.len, shared);
		}
	}
	for (size_t i = 0; i < count; i++) {
		const uint32_t *ids = stackids_at(s, &waits[i]->user);
		uint32_t inner = 0;

		waits[i]->once = n_waits == 1;
		if (!has_end(c, waits[i]))
			continue;
		while (inner < waits[i]->user.len && is_call(n, ids[inner]))
			inner++;
		waits[i]->loop = inner < waits[i]->user.len && waits[i]->user.len - inner <= shared;
	}
}

static int by_thread(const void *a, const void *b)
{
	const struct cap_sample *x = (*(struct wait_printer_record *const *)a)->sample,
				*y = (*(struct wait_printer_record *const *)b)->sample;
	int c = CMP(x->proc, y->proc);

	return c ? c : CMP(x->tid, y->tid);
}

static int find_all_loops(struct names *n, const struct cap_reader *c, const struct stackids *s,
	struct wait_printer_record *records, size_t count, struct err *e)
{
	_cleanup_free_ struct wait_printer_record **order =
		calloc(count + 1, sizeof(struct wait_printer_record *));

	if (!order)
		return err_nomem(e, "waits");
	for (size_t i = 0; i < count; i++)
		order[i] = &records[i];
	qsort(order, count, sizeof(struct wait_printer_record *), by_thread);
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && by_thread(&order[i], &order[next]) == 0;)
			next++;
		find_loops(n, c, s, order + i, next - i);
	}
	return 0;
}

/* --- kinds --- */

/* Its kind; SET is that of all frames of its stacks. */
static const char *kind_of(const struct kinds *k, const struct cap_reader *c,
	const struct wait_printer_record *w, const word *set)
{
	char text[16];
	const char *letters = capture_state_letter(w->sample->state, text);

	for (size_t i = 0; i < k->n_rules; i++) {
		const struct rule *r = &k->rules[i];

		if (r->call || r->interrupt || (r->loop && !w->loop) || (r->once && !w->once) ||
			(w->sample->flags & r->flags) != r->flags ||
			(r->kthread && !(c->procs[w->sample->proc].flags & CAPTURE_PROC_KTHREAD)) ||
			(r->states && !strpbrk(letters, r->states)) || !has_all(r, set))
			continue;
		return r->kind;
	}
	return KIND_UNKNOWN;
}

static void add_sets(struct names *n, const struct stackids *s, const struct stackids_span *span, word *set)
{
	const uint32_t *ids = stackids_at(s, span);

	for (uint32_t i = 0; i < span->len; i++) {
		const word *of = set_of(n, ids[i]);

		for (size_t j = 0; j < n->words; j++)
			set[j] |= of[j];
	}
}

/* Of an interrupt with the patterns of SET. NULL: no rule holds. */
static const char *interrupt_kind(const struct kinds *k, const word *set)
{
	for (size_t i = 0; i < k->n_rules; i++)
		if (k->rules[i].interrupt && has_all(&k->rules[i], set))
			return k->rules[i].kind;
	return NULL;
}

int kinds_find(const struct kinds *k, const struct wait_printer *p, struct err *e)
{
	const size_t frames = resolve_count(p->r) + 1;
	CLEANUP(names_free) struct names n = { .k = k, .r = p->r, .words = k->n_patterns / WORD_BITS + 1 };
	_cleanup_free_ word *set = calloc(n.words, sizeof(*set));
	int rc;

	n.sets = calloc(frames * n.words, sizeof(*n.sets));
	n.known = calloc(frames, sizeof(*n.known));
	n.calls = calloc(frames, sizeof(*n.calls));
	if (!set || !n.sets || !n.known || !n.calls)
		return err_nomem(e, "names");
	rc = find_all_loops(&n, p->c, p->stacks, p->records, p->n_records, e);
	for (size_t i = 0; i < p->n_records && rc == 0; i++) {
		memset(set, 0, n.words * sizeof(*set));
		add_sets(&n, p->stacks, &p->records[i].kernel, set);
		add_sets(&n, p->stacks, &p->records[i].user, set);
		p->records[i].kind = kind_of(k, p->c, &p->records[i], set);
	}
	for (size_t i = 0; i < p->c->n_wakers && rc == 0; i++) {
		if (!(p->c->wakers[i].flags & CAPTURE_WAKER_INTERRUPT))
			continue;
		memset(set, 0, n.words * sizeof(*set));
		add_sets(&n, p->stacks, &p->wakers[i].kernel, set);
		p->wakers[i].kind = interrupt_kind(k, set);
	}
	return rc;
}
