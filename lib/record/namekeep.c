/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "namekeep.h"
#include "debugfile.h"
#include "now.h"
#include "symchild.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX 64 /* open at the same time, each with its debug files */
#define SECONDS_MAX 60 /* of one file: the end of all comes first */
#define MEMORY_BYTES (UINT64_C(512) << 20) /* of one process */
#define DEBUG_BYTES (UINT64_C(256) << 20) /* of it, for debug information */

/* A place and the virtual address that the file's tables have for it. */
struct spot {
	uint64_t vaddr, offset;
};

/* The places of one file. */
struct group {
	const struct namewant_place *places;
	size_t n;
};

/* One file while its names are looked up. */
struct look {
	const struct group *group;
	struct elffile *elf;
	struct debugfile debug;
	struct spot *spots; /* ascending by vaddr, distinct */
	uint64_t *vaddrs; /* theirs */
	size_t n;
};

struct keep {
	struct filetab *files;
	struct capwrite *out;
	struct namewant_stats *stats;
	uint64_t end_ns;
	struct look looks[FILES_MAX];
	struct symchild_job jobs[FILES_MAX];
	size_t n; /* of both */
	struct cap_name_frame frames[SYMANSWER_FRAMES_MAX];
};

static int by_vaddr(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	return CMP(x->vaddr, y->vaddr);
}

/* Places that no segment holds are left out; two segments may hold one part of the file. */
static int find_spots(struct look *l)
{
	const struct group *g = l->group;
	size_t n = 0;

	l->spots = calloc(g->n, sizeof(*l->spots));
	l->vaddrs = calloc(g->n, sizeof(*l->vaddrs));
	if (!l->spots || !l->vaddrs)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++) {
		l->spots[n].offset = g->places[i].offset;
		n += elffile_vaddr(l->elf, g->places[i].offset, &l->spots[n].vaddr);
	}
	if (n)
		qsort(l->spots, n, sizeof(*l->spots), by_vaddr);
	for (size_t i = 0; i < n; i++)
		if (!i || l->spots[i].vaddr != l->vaddrs[l->n - 1]) {
			l->spots[l->n] = l->spots[i];
			l->vaddrs[l->n++] = l->spots[i].vaddr;
		}
	return l->n ? 0 : -ENOENT;
}

static bool same_id(const struct cap_build_id *a, const struct cap_build_id *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* 0 with what is open in L; whatever comes of it, release L with close_look(). */
static int open_look(struct look *l, const struct keep *k, const struct group *g)
{
	const struct debugfile_opts local = { .symfs = -1 };
	const struct cap_file *file = filetab_file(k->files, g->places->file);
	int fd, rc;

	l->group = g;
	fd = filetab_open(k->files, g->places->file);
	if (fd < 0)
		return fd;
	rc = elffile_fd(fd, &l->elf, NULL);
	if (rc) {
		close(fd);
		return rc;
	}
	if (!same_id(&l->elf->build_id, &file->build_id))
		return -ESTALE;
	rc = find_spots(l);
	return rc ? rc : debugfile_find(&local, l->elf, file->path, &l->debug, NULL);
}

static void close_look(struct look *l)
{
	debugfile_close(&l->debug);
	elffile_close(l->elf);
	free(l->spots);
	free(l->vaddrs);
	*l = (struct look){ 0 };
}

static const char *text(const struct symanswer *a, uint32_t string)
{
	const char *s = symanswer_text(a, string);

	return s ? s : "";
}

/* Is it worth a record? One without a name is, for the reason; it counts as unresolved. */
static void write_name(struct keep *k, const struct symanswer *a, const struct symanswer_addr *x,
	uint32_t file, uint64_t offset)
{
	struct cap_name n = { .file = file,
		.offset = offset,
		.symbol_offset = x->start ? x->vaddr - x->start : 0,
		.source = x->source,
		.reason = x->reason,
		.n = MIN(x->n_frames, (uint32_t)SYMANSWER_FRAMES_MAX),
		.frames = k->frames };

	for (uint32_t i = 0; i < n.n; i++) {
		const struct symanswer_frame *f = &a->frames[x->first + i];

		k->frames[i] = (struct cap_name_frame){ text(a, f->name), text(a, f->linkage),
			text(a, f->file), f->line, f->column };
	}
	capwrite_name(k->out, &n);
}

static void write_look(struct keep *k, const struct look *l, const struct symchild_job *j)
{
	uint32_t file = filetab_emit(k->files, l->group->places->file, k->out);
	uint64_t stored = 0;

	for (size_t i = 0; j->bytes && i < l->n; i++) {
		const struct symanswer_addr *x = symanswer_find(&j->answer, l->vaddrs[i]);

		if (!x)
			continue;
		write_name(k, &j->answer, x, file, l->spots[i].offset);
		stored += x->source != SYM_NONE;
	}
	k->stats->stored += stored;
	k->stats->files += stored != 0;
	if (j->bytes || (j->error != -ETIME && j->error != -ETIMEDOUT))
		k->stats->unresolved += l->group->n - stored;
	else
		k->stats->late += l->group->n;
}

/* What is open is looked up, written and closed. */
static void run(struct keep *k)
{
	const struct symchild_opts o = {
		.memory_bytes = MEMORY_BYTES, .seconds = SECONDS_MAX, .end_ns = k->end_ns
	};

	for (size_t i = 0; i < k->n; i++) {
		struct look *l = &k->looks[i];

		k->jobs[i] = (struct symchild_job){ .in = { .elf = l->elf,
							    .debug = l->debug.debug,
							    .alt = l->debug.alt,
							    .dwp = l->debug.dwp,
							    .vaddrs = l->vaddrs,
							    .n_vaddrs = l->n,
							    .inlines = true,
							    .lines = true,
							    .demangle = true,
							    .max_bytes = DEBUG_BYTES } };
	}
	symchild_run(&o, k->jobs, k->n, NULL, NULL, NULL);
	for (size_t i = 0; i < k->n; i++) {
		write_look(k, &k->looks[i], &k->jobs[i]);
		free(k->jobs[i].bytes);
		close_look(&k->looks[i]);
	}
	k->n = 0;
}

static void keep_all(struct keep *k, const struct group *groups, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct look *l = &k->looks[k->n];

		if (now_ns() >= k->end_ns) {
			k->stats->late += groups[i].n;
		} else if (open_look(l, k, &groups[i]) != 0) {
			k->stats->unresolved += groups[i].n;
			close_look(l);
		} else if (++k->n == ARRAY_LEN(k->looks)) {
			run(k);
		}
	}
	if (k->n)
		run(k);
}

static int by_size(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->n != y->n ? CMP(y->n, x->n) : CMP(x->places->file, y->places->file);
}

/* The places by file, the largest group first; without those that need no name. NULL without memory. */
static struct group *make_groups(
	const struct filetab *files, const struct namewant_place *p, size_t n, size_t *ret)
{
	struct group *groups = calloc(n + 1, sizeof(*groups));
	size_t n_groups = 0, len;

	for (size_t i = 0; groups && i < n; i += len) {
		for (len = 1; i + len < n && p[i + len].file == p[i].file; len++)
			;
		/* the vdso is in the capture */
		if (strcmp(filetab_path(files, p[i].file), "[vdso]") != 0)
			groups[n_groups++] = (struct group){ &p[i], len };
	}
	if (n_groups)
		qsort(groups, n_groups, sizeof(*groups), by_size);
	*ret = n_groups;
	return groups;
}

void namekeep_write(struct namewant *w, struct filetab *files, unsigned int seconds, struct capwrite *out,
	struct namewant_stats *ret)
{
	struct keep k = {
		.files = files, .out = out, .stats = ret, .end_ns = now_ns() + seconds * UINT64_C(1000000000)
	};
	size_t n, n_groups;
	const struct namewant_place *places = namewant_places(w, &n);
	_cleanup_free_ struct group *groups = make_groups(files, places, n, &n_groups);

	*ret = (struct namewant_stats){ .late = namewant_missed(w) };
	if (groups)
		keep_all(&k, groups, n_groups);
	else
		ret->late += n;
}
