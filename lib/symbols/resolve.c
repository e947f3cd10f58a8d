/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolve.h"
#include "demangle.h"
#include "elfsym.h"
#include "symfile.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

static const char no_map[] = "no mapping is recorded at this address";
static const char no_file[] = "anonymous memory: no file has its symbols";
static const char no_symbol[] = "no symbol covers this address";
static const char no_tables[] = "the file has no symbols for code";
static const char no_load[] = "no segment of the file holds this address";
static const char no_ksym[] = "the recording has no symbol for this address";
static const char changed[] = "another file was mapped here at some time of these waits";

/* A symbol index with the names as they are shown, made when first needed. */
struct symbols {
	struct elfsym *index;
	char **pretty; /* by symbol; NOT_MANGLED() where the table's own name is shown */
};

/* A pointer that is no name and not NULL. */
#define NOT_MANGLED(s) ((char *)(s)->pretty)

struct module {
	bool asked;
	char *problem; /* why it is not used */
	struct elffile *elf;
	struct symbols own, debug;
};

/* Which maps of a process say when its addresses mean what. */
struct timeline {
	bool overlaps;
	uint64_t last_map_ns; /* when the last one was made */
};

/* KEY is a process (steady) or a mapping, with flags; see KEY_*. */
struct slot {
	uint64_t addr;
	uint32_t key;
	uint32_t frame; /* number + 1, 0 = empty */
};

enum {
	KEY_EXACT = 1,
	KEY_UNSURE = 2,
	KEY_MAP = 4,
	KEY_KERNEL = 8,
	KEY_SHIFT = 4,
	KEY_IDS_MAX = 1 << (32 - KEY_SHIFT)
};

struct resolve {
	const struct capread *c;
	bool demangle;
	struct symfile where;
	struct module *modules; /* by cap_file id */
	struct timeline *times; /* by process */
	struct frame *frames;
	size_t n_frames, frames_cap;
	struct slot *slots;
	size_t n_slots; /* a power of two */
};

static int by_proc_and_start(const void *a, const void *b)
{
	const struct cap_map *x = *(const struct cap_map *const *)a, *y = *(const struct cap_map *const *)b;
	int c = CMP(x->proc, y->proc);

	return c ? c : CMP(x->start, y->start);
}

static int load_timelines(struct resolve *r, struct err *e)
{
	const struct capread *c = r->c;
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
	return 0;
}

static int init(struct resolve *r, const struct capread *c, const struct resolve_opts *o, struct err *e)
{
	int rc;

	r->where.symfs = -1;
	if (c->n_procs >= KEY_IDS_MAX || c->n_maps >= KEY_IDS_MAX)
		return err_set(e, -EFBIG, "the capture has too many processes or mappings");
	r->c = c;
	r->demangle = o->demangle;
	r->n_slots = 1024;
	r->slots = calloc(r->n_slots, sizeof(*r->slots));
	r->modules = calloc(c->n_files + 1, sizeof(*r->modules));
	if (!r->slots || !r->modules)
		return err_nomem(e, "symbols");
	rc = symfile_init(&r->where, o->symfs, c->host.boot_id, e);
	return rc ? rc : load_timelines(r, e);
}

DEFINE_CLEANUP(struct resolve *, resolve_close);

int resolve_open(const struct capread *c, const struct resolve_opts *o, struct resolve **ret, struct err *e)
{
	CLEANUP(resolve_close_p) struct resolve *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "symbols");
	rc = init(r, c, o, e);
	if (rc)
		return rc;
	*ret = TAKE_PTR(r);
	return 0;
}

static void free_symbols(struct symbols *s)
{
	for (size_t i = 0; s->pretty && i < elfsym_count(s->index); i++)
		if (s->pretty[i] != NOT_MANGLED(s))
			free(s->pretty[i]);
	free(s->pretty);
	elfsym_free(s->index);
}

void resolve_close(struct resolve *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->modules && i < r->c->n_files; i++) {
		struct module *m = &r->modules[i];

		free(m->problem);
		free_symbols(&m->own);
		free_symbols(&m->debug);
		elffile_close(m->elf);
	}
	symfile_close(&r->where);
	free(r->modules);
	free(r->times);
	free(r->frames);
	free(r->slots);
	free(r);
}

static int load_symbols(const struct elffile *f, struct symbols *s, struct err *e)
{
	int rc = elfsym_load(f, &s->index, e);

	if (rc)
		return rc;
	s->pretty = calloc(elfsym_count(s->index) + 1, sizeof(*s->pretty));
	return s->pretty ? 0 : err_nomem(e, "symbol names");
}

static bool has_symtab(const struct elffile *f)
{
	for (size_t i = 0; i < f->n_sections; i++)
		if (f->sections[i].type == SHT_SYMTAB)
			return true;
	return false;
}

/* A stripped file's local functions may be in a debug file; without one .dynsym has to do. */
static void load_debug(struct resolve *r, struct module *m)
{
	struct elffile *f = NULL;

	if (has_symtab(m->elf) || symfile_open_debug(&r->where, &m->elf->build_id, &f) != 0)
		return;
	if (load_symbols(f, &m->debug, NULL) != 0) {
		free_symbols(&m->debug);
		m->debug = (struct symbols){ 0 };
	}
	elffile_close(f);
}

static int open_module(
	struct resolve *r, const struct cap_file *file, uint32_t proc, struct module *m, struct err *e)
{
	int rc;

	for (size_t i = 0; i < r->c->n_images; i++)
		if (r->c->images[i].file == file->id)
			return elffile_image(r->c->images[i].bytes, r->c->images[i].len, &m->elf, e);
	if (file->flags & CAP_FILE_PSEUDO)
		return err_set(e, -ENOENT, "is no file, and its bytes are not in the recording");
	rc = symfile_open(&r->where, file, r->c->procs[proc].tgid, &m->elf, e);
	if (rc == -ENOENT && (file->flags & CAP_FILE_DELETED))
		return err_set(e, rc, "was deleted or replaced before it could be kept");
	return rc;
}

static struct module *get_module(struct resolve *r, const struct cap_map *map)
{
	const struct cap_file *file = &r->c->files[map->file];
	struct module *m = &r->modules[map->file];
	struct err e = { 0 };
	int rc;

	if (m->asked)
		return m;
	m->asked = true;
	rc = open_module(r, file, map->proc, m, &e);
	rc = rc ? rc : load_symbols(m->elf, &m->own, &e);
	if (rc == 0)
		load_debug(r, m);
	else
		m->problem = strdup(e.msg);
	if (m->elf)
		elffile_detach(m->elf);
	return m;
}

/* The name of a symbol as it is shown. */
static const char *pretty_name(const struct resolve *r, struct symbols *s, const struct elfsym_hit *hit)
{
	char buf[DEMANGLE_OUT_MAX];
	char **name = &s->pretty[hit->index];

	if (!r->demangle)
		return hit->name;
	if (!*name) {
		if (demangle(hit->name, buf, sizeof(buf)))
			*name = strdup(buf);
		if (!*name)
			*name = NOT_MANGLED(s);
	}
	return *name == NOT_MANGLED(s) ? hit->name : *name;
}

static bool name_from(const struct resolve *r, struct symbols *s, uint64_t vaddr, uint64_t back,
	struct frame *f, enum frame_source source)
{
	struct elfsym_hit hit;

	if (!s->index || !elfsym_find(s->index, vaddr - back, &hit))
		return false;
	f->name = pretty_name(r, s, &hit);
	f->linkage = hit.name;
	f->offset = vaddr - hit.start;
	f->source = source == FRAME_SYMTAB && hit.dynamic ? FRAME_DYNSYM : source;
	return true;
}

static void name_in_module(struct resolve *r, const struct cap_map *map, uint64_t back, struct frame *f)
{
	const struct cap_file *file = &r->c->files[map->file];
	struct module *m = get_module(r, map);
	uint64_t vaddr;

	f->module = file->path;
	f->in_file = file->path[0] == '/' || m->elf;
	if (!m->own.index) {
		f->reason = m->problem ? m->problem : no_tables;
		return;
	}
	if (!elffile_vaddr(m->elf, f->module_offset - back, &vaddr)) {
		f->reason = no_load;
		return;
	}
	vaddr += back;
	if (name_from(r, &m->debug, vaddr, back, f, FRAME_DEBUG) ||
		name_from(r, &m->own, vaddr, back, f, FRAME_SYMTAB))
		return;
	f->reason = elfsym_ranges(m->own.index) || m->debug.index ? no_symbol : no_tables;
}

static const char *why_no_map(const struct capread *c, uint32_t proc)
{
	const struct cap_proc *p = &c->procs[proc];

	if (!(p->flags & CAP_PROC_MAPS_LOST) && !p->maps_error)
		return no_map;
	return "the mappings of the process could not be read";
}

static void make_user(
	struct resolve *r, uint32_t proc, const struct cap_map *map, uint64_t back, struct frame *f)
{
	f->source = FRAME_NONE;
	if (!map) {
		f->reason = why_no_map(r->c, proc);
		return;
	}
	f->source = FRAME_RAW;
	f->module_offset = f->address - map->start + map->offset;
	if (map->file == CAP_NONE) {
		f->module = "//anon";
		f->reason = no_file;
		return;
	}
	name_in_module(r, map, back, f);
}

static void make_kernel(const struct capread *c, struct frame *f)
{
	const struct cap_ksym *k = capread_ksym(c, f->address - 1);

	f->kernel = true;
	f->source = k ? FRAME_KSYM : FRAME_NONE;
	f->reason = k ? NULL : no_ksym;
	if (!k)
		return;
	f->name = f->linkage = k->name;
	f->offset = f->address - k->start;
	f->module = k->module;
}

static size_t slot_of(const struct resolve *r, uint64_t addr, uint32_t key)
{
	uint64_t h = (addr ^ key * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);

	return (size_t)(h >> 32) & (r->n_slots - 1);
}

static struct slot *find_slot(const struct resolve *r, uint64_t addr, uint32_t key)
{
	size_t i = slot_of(r, addr, key);

	while (r->slots[i].frame && (r->slots[i].addr != addr || r->slots[i].key != key))
		i = (i + 1) & (r->n_slots - 1);
	return &r->slots[i];
}

static int grow_slots(struct resolve *r)
{
	struct slot *old = r->slots;
	size_t n = r->n_slots;

	if (r->n_frames < n / 2)
		return 0;
	r->slots = calloc(2 * n, sizeof(*r->slots));
	if (!r->slots) {
		r->slots = old;
		return -ENOMEM;
	}
	r->n_slots = 2 * n;
	for (size_t i = 0; i < n; i++)
		if (old[i].frame)
			*find_slot(r, old[i].addr, old[i].key) = old[i];
	free(old);
	return 0;
}

/* Number F under its key. */
static uint32_t add_frame(struct resolve *r, uint32_t key, const struct frame *f)
{
	struct slot *s;

	if (r->n_frames >= RESOLVE_FAILED - 1 || grow_slots(r) != 0 ||
		base_grow(&r->frames, &r->frames_cap, r->n_frames + 1, sizeof(*r->frames)) != 0)
		return RESOLVE_FAILED;
	r->frames[r->n_frames++] = *f;
	s = find_slot(r, f->address, key);
	*s = (struct slot){ .addr = f->address, .key = key, .frame = (uint32_t)r->n_frames };
	return s->frame - 1;
}

uint32_t resolve_kernel(struct resolve *r, uint64_t addr)
{
	const struct slot *s = find_slot(r, addr, KEY_KERNEL);
	struct frame f = { .address = addr };

	if (s->frame)
		return s->frame - 1;
	make_kernel(r->c, &f);
	return add_frame(r, KEY_KERNEL, &f);
}

bool resolve_steady(const struct resolve *r, uint32_t proc, uint64_t first_ns)
{
	return !r->times[proc].overlaps && r->times[proc].last_map_ns <= first_ns;
}

uint32_t resolve_user(
	struct resolve *r, uint32_t proc, uint64_t addr, bool exact, uint64_t first_ns, uint64_t last_ns)
{
	const uint64_t back = exact || !addr ? 0 : 1;
	uint32_t key = proc << KEY_SHIFT | (exact ? KEY_EXACT : 0);
	bool unsure = false, steady = resolve_steady(r, proc, first_ns);
	const struct cap_map *map = NULL;
	const struct slot *s;
	struct frame f = { .address = addr };

	if (!steady) {
		map = capread_map(r->c, proc, addr - back, first_ns, last_ns, &unsure);
		if (map)
			key = (uint32_t)(map - r->c->maps) << KEY_SHIFT | KEY_MAP | (exact ? KEY_EXACT : 0) |
			      (unsure ? KEY_UNSURE : 0);
		else
			key |= KEY_UNSURE; /* not the steady one, which may have a mapping */
	}
	s = find_slot(r, addr, key);
	if (s->frame)
		return s->frame - 1;
	if (steady)
		map = capread_map(r->c, proc, addr - back, first_ns, last_ns, NULL);
	/* which of two files these waits were in is not known: no name is better than a wrong one */
	make_user(r, proc, unsure && map && map->from_ns <= first_ns ? NULL : map, back, &f);
	if (unsure)
		f.reason = changed;
	return add_frame(r, key, &f);
}

void resolve_prefetch(const struct resolve *r, uint32_t proc, uint64_t addr)
{
	__builtin_prefetch(&r->slots[slot_of(r, addr, proc << KEY_SHIFT)]);
}

size_t resolve_count(const struct resolve *r)
{
	return r->n_frames;
}

const struct frame *resolve_frame(const struct resolve *r, uint32_t id)
{
	return &r->frames[id];
}

bool resolve_file(const struct resolve *r, uint32_t file, const char **problem, size_t *symbols)
{
	const struct module *m = &r->modules[file];

	*problem = m->problem;
	*symbols = (m->own.index ? elfsym_count(m->own.index) : 0) +
		   (m->debug.index ? elfsym_count(m->debug.index) : 0);
	return m->asked;
}
