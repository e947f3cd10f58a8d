/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/resolve.h"
#include "base/intern.h"
#include "base/search.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define STEPS_MAX 4096 /* no recorder writes a capture with more overlapping pieces */

struct jitnames {
	const struct cap_reader *c;
	uint64_t *reach; /* highest end of the process's code up to this piece */
};

int jitnames_new(const struct cap_reader *c, struct jitnames **ret, struct err *e)
{
	struct jitnames *n = calloc(1, sizeof(*n));
	uint64_t *reach = malloc((c->n_jits + 1) * sizeof(*reach));

	if (!n || !reach) {
		free(n);
		free(reach);
		return err_nomem(e, "the names of JIT code");
	}
	for (size_t i = 0; i < c->n_jits; i++) {
		bool first = i == 0 || c->jits[i - 1].proc != c->jits[i].proc;

		reach[i] = first ? c->jits[i].end : MAX(reach[i - 1], c->jits[i].end);
	}
	*n = (struct jitnames){ .c = c, .reach = reach };
	*ret = n;
	return 0;
}

void jitnames_free(struct jitnames *n)
{
	if (!n)
		return;
	free(n->reach);
	free(n);
}

/* The number of pieces that start up to ADDR of PROC. */
static size_t pieces_until(const struct cap_reader *c, uint32_t proc, uint64_t addr)
{
	size_t low = PARTITION_POINT(0, c->n_jits, mid,
		c->jits[mid].proc < proc || (c->jits[mid].proc == proc && c->jits[mid].start <= addr));

	return low;
}

/* Is A better than B (NULL = nothing): the code at FIRST_NS, or else the first one after it? */
static bool is_better(const struct cap_jit *a, const struct cap_jit *b, uint64_t first_ns)
{
	if (!b)
		return true;
	if (a->from_ns > first_ns && b->from_ns > first_ns)
		return a->from_ns < b->from_ns;
	/* the newest at FIRST_NS */
	return a->from_ns <= first_ns && (b->from_ns > first_ns || a->from_ns > b->from_ns);
}

/* The best piece of KIND that covers ADDR and existed at some time of the sample; *FOUND counts them. */
static const struct cap_jit *find_jit(const struct jitnames *n, uint8_t kind, uint32_t proc, uint64_t addr,
	uint64_t first_ns, uint64_t last_ns, size_t *found)
{
	const struct cap_jit *best = NULL, *all = n->c->jits;
	size_t at = pieces_until(n->c, proc, addr), steps = 0;

	*found = 0;
	while (at-- > 0 && all[at].proc == proc && n->reach[at] > addr) {
		const struct cap_jit *j = &all[at];

		if (++steps > STEPS_MAX)
			return NULL;
		if (j->kind != kind || j->end <= addr || j->to_ns <= first_ns || j->from_ns > last_ns)
			continue;
		++*found;
		if (is_better(j, best, first_ns))
			best = j;
	}
	return best;
}

const struct cap_jit *jitnames_find(const struct jitnames *n, uint32_t proc, uint64_t addr, uint64_t first_ns,
	uint64_t last_ns, bool *unsure)
{
	const struct cap_jit *best;
	size_t found;

	best = find_jit(n, CAPTURE_JIT_JITDUMP, proc, addr, first_ns, last_ns, &found);
	if (!best)
		best = find_jit(n, CAPTURE_JIT_PERFMAP, proc, addr, first_ns, last_ns, &found);
	if (unsure)
		*unsure = best && (found > 1 || best->to_ns <= last_ns);
	return best;
}

static const char no_map[] = "no mapping is recorded at this address";
static const char no_file[] = "anonymous memory: no file has its symbols";
static const char not_run[] = "its file was not searched";
static const char no_ksym[] = "the recording has no symbol for this address";
static const char other_code[] = "other code was at this address at some time of these waits";
static const char changed[] = "another file was mapped here at some time of these waits";

/* When the addresses of a process change their meaning. */
struct timeline {
	bool overlaps;
	bool jit; /* there is JIT code */
	bool jit_times; /* JIT code has times: addresses change their meaning */
	uint64_t last_map_ns; /* when the last mapping was made */
	char *jit_module; /* the file name that perf would use, NULL = not needed yet */
};

/*
 * The identity of a frame is its address and a key: a process (steady), a mapping or a piece of JIT
 * code, with flags.
 */
enum {
	KEY_EXACT = 1,
	KEY_UNSURE = 2,
	KEY_MAP = 4,
	KEY_KERNEL = 8,
	KEY_JIT = KEY_MAP | KEY_KERNEL,
	KEY_SCRIPT = KEY_KERNEL | KEY_EXACT,
	KEY_SHIFT = 4,
	KEY_IDS_MAX = 1 << (32 - KEY_SHIFT)
};

struct resolve {
	const struct cap_reader *c;
	struct modules *modules;
	uint64_t scheduler_start, scheduler_end; /* of the kernel; equal if not known */
	bool in_kernel_files; /* for inlined calls and lines */
	struct jitnames *jit;
	struct timeline *times; /* indexed by process */
	struct frame *frames;
	size_t n_frames, frames_cap;
	struct idmap by_key; /* (key, address) -> frame */
};

static int by_proc_and_start(const void *a, const void *b)
{
	const struct cap_map *x = *(const struct cap_map *const *)a, *y = *(const struct cap_map *const *)b;
	int c = CMP(x->proc, y->proc);

	return c ? c : CMP(x->start, y->start);
}

static int load_timelines(struct resolve *r, struct err *e)
{
	const struct cap_reader *c = r->c;
	_cleanup_free_ const struct cap_map **maps = calloc(c->n_maps + 1, sizeof(const struct cap_map *));
	uint64_t reached = 0;

	r->times = calloc(c->n_procs + 1, sizeof(*r->times));
	if (!maps || !r->times)
		return err_nomem(e, "mappings");
	for (size_t i = 0; i < c->n_maps; i++)
		maps[i] = &c->maps[i];
	qsort(maps, c->n_maps, sizeof(*maps), by_proc_and_start);
	for (size_t i = 0; i < c->n_maps; i++) {
		struct timeline *t = &r->times[maps[i]->proc];

		if (i && maps[i - 1]->proc != maps[i]->proc)
			reached = 0;
		t->overlaps = t->overlaps || maps[i]->start < reached;
		reached = MAX(reached, maps[i]->end);
		t->last_map_ns = MAX(t->last_map_ns, maps[i]->from_ns);
	}
	for (size_t i = 0; i < c->n_jits; i++) {
		struct timeline *t = &r->times[c->jits[i].proc];

		t->jit = true;
		t->jit_times = t->jit_times || c->jits[i].from_ns || c->jits[i].to_ns != UINT64_MAX;
	}
	return 0;
}

static int init(struct resolve *r, const struct cap_reader *c, const struct resolve_opts *o, struct err *e)
{
	int rc;

	if (c->n_procs >= KEY_IDS_MAX || c->n_maps >= KEY_IDS_MAX || c->n_jits >= KEY_IDS_MAX)
		return err_set(e, -EFBIG, "the capture has too many processes or mappings");
	r->c = c;
	r->in_kernel_files = o->files.inlines || o->files.lines;
	rc = modules_open(c, &o->files, &r->modules, e);
	rc = rc ? rc : jitnames_new(c, &r->jit, e);
	return rc ? rc : load_timelines(r, e);
}

DEFINE_CLEANUP(struct resolve *, resolve_close);

/* Where the capture says that the kernel's scheduler is. */
static void find_scheduler(struct resolve *r)
{
	uint64_t start, end;
	int len;

	for (size_t i = 0; i < r->c->n_options; i++) {
		const char *value = r->c->options[i].value;

		if (strcmp(r->c->options[i].name, CAPTURE_OPTION_SCHEDULER) != 0 ||
			sscanf(value, "%" SCNx64 "-%" SCNx64 "%n", &start, &end, &len) != 2 || value[len] ||
			start >= end)
			continue;
		r->scheduler_start = start;
		r->scheduler_end = end;
	}
}

int resolve_open(
	const struct cap_reader *c, const struct resolve_opts *o, struct resolve **ret, struct err *e)
{
	CLEANUP(resolve_close_p) struct resolve *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "symbols");
	rc = init(r, c, o, e);
	if (rc)
		return rc;
	find_scheduler(r);
	*ret = TAKE_PTR(r);
	return 0;
}

void resolve_close(struct resolve *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->times && i < r->c->n_procs; i++)
		free(r->times[i].jit_module);
	jitnames_free(r->jit);
	modules_close(r->modules);
	free(r->times);
	free(r->frames);
	idmap_free(&r->by_key);
	free(r);
}

static const char *why_no_map(const struct cap_reader *c, uint32_t proc)
{
	const struct cap_proc *p = &c->procs[proc];

	if (!(p->flags & CAPTURE_PROC_MAPS_LOST) && !p->maps_error)
		return no_map;
	return "the mappings of the process could not be read";
}

/* Fill in what is known without reading any file. */
static void make_user(const struct resolve *r, uint32_t proc, const struct cap_map *map, struct frame *f)
{
	const struct cap_file *file = map && map->file != CAPTURE_NONE ? &r->c->files[map->file] : NULL;

	f->source = FRAME_RAW;
	if (!map) {
		f->reason = why_no_map(r->c, proc);
		return;
	}
	f->source = FRAME_MODULE;
	f->map = map;
	f->module_offset = f->module_address = f->address - map->start + map->offset;
	f->module = file ? file->path : "//anon";
	f->reason = file ? not_run : no_file;
	f->in = map->file;
	f->in_file = file && (file->path[0] == '/' || modules_has_image(r->modules, map->file));
}

static void make_kernel(const struct resolve *r, struct frame *f)
{
	const struct cap_ksym *k = cap_reader_ksym(r->c, f->address - 1);

	f->kernel = true;
	f->scheduler = f->address - 1 >= r->scheduler_start && f->address - 1 < r->scheduler_end;
	f->source = k ? FRAME_KSYM : FRAME_RAW;
	f->reason = k ? NULL : no_ksym;
	if (!k)
		return;
	f->name = f->linkage = k->name;
	f->offset = f->address - k->start;
	f->module = k->module;
	/* a number that stands for a name */
	if (f->address >= CAPTURE_SYNTHETIC_START && strcmp(k->module, CAPTURE_SYNTHETIC_MODULE) == 0) {
		f->no_start = true;
		f->offset = 0;
	}
}

/* Add F under its key; returns its number. */
static uint32_t add_frame(struct resolve *r, uint32_t key, const struct frame *f)
{
	uint32_t at = (uint32_t)r->n_frames;

	if (base_grow(&r->frames, &r->frames_cap, r->n_frames + 1, sizeof(*r->frames)) != 0 ||
		idmap_put(&r->by_key, key, f->address, at, NULL) != at)
		return RESOLVE_FAILED;
	r->frames[r->n_frames++] = *f;
	return at;
}

/* The number of the frame, or RESOLVE_FAILED. ADDR is a return address. */
static uint32_t resolve_kernel(struct resolve *r, uint64_t addr)
{
	const struct idmap_slot *s = idmap_find(&r->by_key, KEY_KERNEL, addr);
	struct frame f = { .address = addr };

	if (s)
		return s->value;
	make_kernel(r, &f);
	if (r->in_kernel_files && !f.no_start &&
		modules_ask_kernel(r->modules, f.module ? f.module : "", addr - 1, (uint32_t)r->n_frames) !=
			0)
		return RESOLVE_FAILED;
	return add_frame(r, KEY_KERNEL, &f);
}

/* Likewise for script frame SCRIPT of the capture, of which everything is known already. */
static uint32_t resolve_script(struct resolve *r, uint32_t script)
{
	const struct idmap_slot *slot = idmap_find(&r->by_key, KEY_SCRIPT, script);
	const struct cap_script *s = &r->c->scripts[script];
	struct frame f = { .source = FRAME_SCRIPT,
		.runtime = s->runtime,
		.name = *s->function ? s->function : NULL,
		.file = *s->file ? s->file : NULL,
		.line = s->line,
		.no_start = true };
	uint32_t at;

	if (slot)
		return slot->value;
	if (!f.name)
		f.reason = "the name of the function could not be read";
	/* by its number: script frames have no address */
	f.address = script;
	at = add_frame(r, KEY_SCRIPT, &f);
	if (at != RESOLVE_FAILED)
		r->frames[at].address = 0;
	return at;
}

bool resolve_steady(const struct resolve *r, uint32_t proc, uint64_t first_ns)
{
	const struct timeline *t = &r->times[proc];

	return !t->overlaps && !t->jit_times && t->last_map_ns <= first_ns;
}

/* perf's name for the file of JIT code, which readers expect. */
static const char *jit_module(struct resolve *r, const struct cap_jit *j)
{
	struct timeline *t = &r->times[j->proc];
	char name[64];

	if (!t->jit_module) {
		snprintf(name, sizeof(name), "/tmp/perf-%" PRIu32 ".map", r->c->procs[j->proc].ns_tgid);
		t->jit_module = strdup(name);
	}
	return t->jit_module;
}

/* JIT code lies in no file, or in a file without a name on disk. */
static bool may_be_jit(const struct resolve *r, uint32_t proc, const struct cap_map *map)
{
	const char *path = map && map->file != CAPTURE_NONE ? r->c->files[map->file].path : "";

	return r->times[proc].jit &&
	       (path[0] != '/' || strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/dev/", 5) == 0);
}

static void make_jit(struct resolve *r, const struct cap_jit *j, bool unsure, struct frame *f)
{
	f->source = j->kind == CAPTURE_JIT_JITDUMP ? FRAME_JITDUMP : FRAME_PERFMAP;
	f->name = f->linkage = j->name;
	f->offset = f->address - j->start + j->offset;
	f->module = jit_module(r, j);
	f->file = *j->file ? j->file : NULL;
	f->line = j->line;
	f->in_file = false;
	f->reason = unsure ? other_code : NULL;
}

/* An address of a user stack: where and when it was. */
struct place {
	uint32_t proc;
	uint64_t addr, back, first_ns, last_ns;
	bool exact, steady;
	/* set by find_map() */
	const struct cap_map *map;
	const struct cap_jit *jit;
	bool unsure, jit_unsure; /* the address also meant something else in that time */
};

static void find_map(const struct resolve *r, struct place *p)
{
	p->map = cap_reader_map(
		r->c, p->proc, p->addr - p->back, p->first_ns, p->last_ns, p->steady ? NULL : &p->unsure);
	if (may_be_jit(r, p->proc, p->map))
		p->jit = jitnames_find(
			r->jit, p->proc, p->addr - p->back, p->first_ns, p->last_ns, &p->jit_unsure);
}

/* Two addresses with the same key are the same frame. */
static uint32_t key_of(const struct resolve *r, const struct place *p)
{
	uint32_t exact = p->exact ? KEY_EXACT : 0, unsure = p->unsure || p->jit_unsure ? KEY_UNSURE : 0;

	if (p->steady)
		return p->proc << KEY_SHIFT | exact;
	if (p->jit)
		return (uint32_t)(p->jit - r->c->jits) << KEY_SHIFT | KEY_JIT | exact | unsure;
	if (p->map)
		return (uint32_t)(p->map - r->c->maps) << KEY_SHIFT | KEY_MAP | exact | unsure;
	return p->proc << KEY_SHIFT | KEY_UNSURE | exact; /* the steady key may have a mapping */
}

/* Make a frame from what was found. */
static uint32_t new_frame(struct resolve *r, const struct place *p, uint32_t key)
{
	/* two files were mapped here during these waits: no name is better than a wrong one */
	const struct cap_map *map = p->unsure && p->map && p->map->from_ns <= p->first_ns ? NULL : p->map;
	struct frame f = { .address = p->addr, .exact = p->exact };

	make_user(r, p->proc, map, &f);
	if (p->unsure)
		f.reason = changed;
	else if (p->jit)
		make_jit(r, p->jit, p->jit_unsure, &f);
	if (!p->jit && map && map->file != CAPTURE_NONE &&
		modules_ask(r->modules, map->file, p->proc, f.module_offset - p->back,
			(uint32_t)r->n_frames) != 0)
		return RESOLVE_FAILED;
	return add_frame(r, key, &f);
}

uint32_t resolve_user(
	struct resolve *r, uint32_t proc, uint64_t addr, bool exact, uint64_t first_ns, uint64_t last_ns)
{
	struct place p = { .proc = proc,
		.addr = addr,
		.back = exact || !addr ? 0 : 1,
		.first_ns = first_ns,
		.last_ns = last_ns,
		.exact = exact,
		.steady = resolve_steady(r, proc, first_ns) };
	const struct idmap_slot *s;
	uint32_t key;

	if (!p.steady)
		find_map(r, &p);
	key = key_of(r, &p);
	s = idmap_find(&r->by_key, key, addr);
	if (s)
		return s->value;
	if (p.steady)
		find_map(r, &p);
	return new_frame(r, &p, key);
}

static enum frame_source source_of(uint8_t source)
{
	static const uint8_t sources[] = { [SYM_NONE] = FRAME_MODULE,
		[SYM_DWARF] = FRAME_DWARF,
		[SYM_SYMTAB] = FRAME_SYMTAB,
		[SYM_MINIDEBUG] = FRAME_MINIDEBUG,
		[SYM_DYNSYM] = FRAME_DYNSYM,
		[SYM_PLT] = FRAME_PLT,
		[SYM_FDE] = FRAME_FDE,
		[SYM_GOPCLNTAB] = FRAME_GOPCLNTAB };

	return (enum frame_source)sources[source];
}

/* Take the calls of an answer: the last one is the function itself. */
static void set_calls(struct frame *f, const struct modules_hit *hit)
{
	const struct sym_answer_addr *a = hit->addr;
	const struct frame_call *own = &hit->calls[a->n_frames - 1];

	f->source = hit->stored && sym_answer_names(a->source) ? FRAME_STORED : source_of(a->source);
	f->name = own->name;
	f->linkage = own->linkage;
	f->file = own->file;
	f->line = own->line;
	f->column = own->column;
	f->inlined = hit->calls;
	f->n_inlined = a->n_frames - 1;
	f->no_start = f->name && !a->start;
}

/* Offsets are of the address itself, not of the byte looked up. */
static void set_place(struct frame *f, const struct modules_hit *hit)
{
	const struct sym_answer_addr *a = hit->addr;
	const uint64_t back = f->module_offset - hit->offset;

	f->module_address = hit->vaddr + back;
	f->in_image = hit->located;
	if (!a)
		return;
	if (a->n_frames)
		set_calls(f, hit);
	else
		f->source = source_of(a->source);
	if (a->start && (f->name || f->source == FRAME_FDE))
		f->offset = a->vaddr + back - a->start;
}

/*
 * Where the running kernel's own symbols are known, they name the function, as in perf: they
 * describe the kernel that was recorded, with aliases and boot-time choices. The kernel's file adds
 * the rest.
 */
static void set_kernel(struct frame *f, const struct modules_hit *hit)
{
	const struct frame named = *f;

	set_calls(f, hit);
	f->module_offset = 0;
	if (!named.name) {
		f->offset = f->name && hit->addr->start ? hit->addr->vaddr + 1 - hit->addr->start : 0;
		f->reason = f->name ? hit->reason : named.reason;
		f->module = f->name ? "" : NULL;
		f->source = f->name ? f->source : FRAME_RAW;
		return;
	}
	f->name = named.name;
	f->linkage = named.linkage;
	f->offset = named.offset;
	f->source = named.source;
	f->no_start = false;
}

static bool is_bpf(const char *module)
{
	return module && strcmp(module, "bpf") == 0;
}

/* Why a frame named by the recording has no line, although the kernel's file exists. */
static const char *why_no_line(const struct frame *f, const struct modules_hit *hit)
{
	if (!hit->addr)
		return is_bpf(f->module) ? NULL : hit->reason;
	switch (hit->addr->reason) {
	case SYM_R_DEBUG_BAD:
	case SYM_R_DEBUG_MISSING:
	case SYM_R_LIMIT:
		return hit->reason;
	default:
		return NULL;
	}
}

static void on_kernel_hit(struct frame *f, const struct modules_hit *hit)
{
	if (f->name)
		f->reason = why_no_line(f, hit);
	if (hit->addr && hit->addr->n_frames)
		set_kernel(f, hit);
}

static void on_hit(void *ctx, uint32_t id, const struct modules_hit *hit)
{
	struct resolve *r = ctx;
	struct frame *f = &r->frames[id];

	if (f->kernel) {
		on_kernel_hit(f, hit);
		return;
	}
	if (f->reason != changed)
		f->reason = hit->reason;
	set_place(f, hit);
}

int resolve_run(struct resolve *r, struct err *e)
{
	return modules_run(r->modules, on_hit, r, e);
}

size_t resolve_count(const struct resolve *r)
{
	return r->n_frames;
}

const struct frame *resolve_frame(const struct resolve *r, uint32_t id)
{
	return &r->frames[id];
}

bool resolve_file(const struct resolve *r, uint32_t file, struct modules_file *ret)
{
	return modules_file(r->modules, file, ret);
}

const char *resolve_kernel_part(const struct resolve *r, size_t i)
{
	return modules_kernel_part(r->modules, i);
}

void resolve_stats(const struct resolve *r, struct modules_stats *ret)
{
	modules_stats(r->modules, ret);
}

#define AHEAD 8 /* how many frames ahead to prefetch */

struct stackids {
	const struct cap_reader *c;
	struct resolve *r;
	uint32_t *ids;
	size_t n_ids, ids_cap;
	struct stackids_span *kernel; /* indexed by stack id */
	struct stackids_span *user; /* one for each pair of process and user stack */
	size_t n_user, user_cap;
	struct idmap by_pair; /* (process, user stack) -> user */
};

int stackids_new(const struct cap_reader *c, struct resolve *r, struct stackids **ret)
{
	struct stackids *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->c = c;
	s->r = r;
	/* enough if each stack is resolved once */
	for (size_t i = 0; i < c->n_stacks; i++)
		s->ids_cap += c->stacks[i].len + c->stacks[i].n_scripts;
	s->ids_cap++;
	s->ids = malloc(s->ids_cap * sizeof(*s->ids));
	s->kernel = calloc(c->n_stacks + 1, sizeof(*s->kernel));
	if (!s->ids || !s->kernel) {
		stackids_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void stackids_free(struct stackids *s)
{
	if (!s)
		return;
	free(s->ids);
	free(s->kernel);
	free(s->user);
	idmap_free(&s->by_pair);
	free(s);
}

/* Make room for the frames of STACK; a failed stack has none. */
static int start(struct stackids *s, const struct cap_stack *stack, struct stackids_span *ret)
{
	uint32_t len = stack->verdict != VERDICT_FAILED ? stack->len + stack->n_scripts : 0;

	*ret = (struct stackids_span){ .first = s->n_ids, .len = len, .done = true };
	return base_grow(&s->ids, &s->ids_cap, s->n_ids + len, sizeof(*s->ids));
}

int stackids_kernel(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret)
{
	const struct cap_stack *stack = &s->c->stacks[a->kstack];
	struct stackids_span *span = &s->kernel[a->kstack];

	if (!span->done) {
		if (start(s, stack, span) != 0)
			return -ENOMEM;
		for (uint32_t i = 0; i < span->len; i++) {
			uint32_t id = resolve_kernel(s->r, stack->frames[i]);

			if (id == RESOLVE_FAILED)
				return -ENOMEM;
			s->ids[s->n_ids++] = id;
		}
	}
	*ret = *span;
	return 0;
}

static int resolve_frames(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret)
{
	const struct cap_stack *stack = &s->c->stacks[a->ustack];
	uint32_t next = 0; /* index into the exact frames after frame 0 */
	uint32_t script = 0;

	if (start(s, stack, ret) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; ret->len && i < stack->len; i++) {
		bool listed = next < stack->n_exact && stack->exact[next] == i;
		uint32_t id =
			resolve_user(s->r, a->proc, stack->frames[i], !i || listed, a->first_ns, a->last_ns);

		next += listed;
		if (id == RESOLVE_FAILED)
			return -ENOMEM;
		if (script < stack->n_scripts && stack->scripts[script].at == i &&
			stack->scripts[script].instead)
			ret->len--;
		else
			s->ids[s->n_ids++] = id;
		for (; script < stack->n_scripts && stack->scripts[script].at == i; script++) {
			id = resolve_script(s->r, stack->scripts[script].frame);
			if (id == RESOLVE_FAILED)
				return -ENOMEM;
			s->ids[s->n_ids++] = id;
		}
	}
	return 0;
}

int stackids_user(struct stackids *s, const struct cap_sample *a, struct stackids_span *ret)
{
	const struct idmap_slot *seen;

	if (!resolve_steady(s->r, a->proc, a->first_ns))
		return resolve_frames(s, a, ret);
	seen = idmap_find(&s->by_pair, a->proc, a->ustack);
	if (seen) {
		*ret = s->user[seen->value];
		return 0;
	}
	if (resolve_frames(s, a, ret) != 0 ||
		base_grow(&s->user, &s->user_cap, s->n_user + 1, sizeof(*s->user)) != 0 ||
		idmap_put(&s->by_pair, a->proc, a->ustack, (uint32_t)s->n_user, NULL) == UINT32_MAX)
		return -ENOMEM;
	s->user[s->n_user++] = *ret;
	return 0;
}

const uint32_t *stackids_at(const struct stackids *s, const struct stackids_span *span)
{
	return s->ids + span->first;
}
