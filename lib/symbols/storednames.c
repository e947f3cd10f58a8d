/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/storednames.h"

#include <errno.h>

/* Where the names of FILE begin in the sorted array. */
static size_t first_of(const struct capread *c, uint32_t file)
{
	size_t lo = 0, hi = c->n_names;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->names[mid].file < file)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool storednames_any(const struct capread *c, uint32_t file)
{
	size_t i = first_of(c, file);

	return i < c->n_names && c->names[i].file == file;
}

static struct symanswer_frame make_frame(
	struct symanswer_build *b, const struct cap_name_frame *f, bool demangle)
{
	const char *shown = demangle || !*f->linkage ? f->name : f->linkage;

	return (struct symanswer_frame){ .name = symanswer_string(b, shown),
		.linkage = symanswer_string(b, f->linkage),
		.file = symanswer_string(b, f->file),
		.line = f->line,
		.column = f->column };
}

/* The frames of N that are wanted: their number. */
static uint32_t make_frames(struct symanswer_build *b, const struct cap_name *n,
	const struct storednames_opts *o, struct symanswer_frame *frames)
{
	/* the outermost ones are kept */
	uint32_t skip = n->n > SYMANSWER_FRAMES_MAX ? n->n - SYMANSWER_FRAMES_MAX : 0;

	if (!o->inlines && n->n) {
		const struct symanswer_frame place = make_frame(b, &n->frames[0], o->demangle);

		*frames = make_frame(b, &n->frames[n->n - 1], o->demangle);
		frames->file = place.file;
		frames->line = place.line;
		frames->column = place.column;
		return 1;
	}
	for (uint32_t i = skip; i < n->n; i++)
		frames[i - skip] = make_frame(b, &n->frames[i], o->demangle);
	return n->n - skip;
}

static void put(struct symanswer_build *b, const struct cap_name *n, const struct storednames_opts *o)
{
	struct symanswer_frame frames[SYMANSWER_FRAMES_MAX];
	struct symanswer_addr a = { .vaddr = n->offset, .source = n->source, .reason = n->reason };
	uint32_t made;

	if (n->symbol_offset > n->offset || n->source > SYM_PLT || n->reason >= SYM_R_COUNT)
		return;
	if (n->source != SYM_NONE) {
		if (!n->n || !*n->frames[n->n - 1].name)
			return;
		a.start = n->offset - n->symbol_offset;
	}
	made = make_frames(b, n, o, frames);
	for (uint32_t i = 0; i < made && (o->inlines || o->lines); i++)
		a.debug = a.debug || frames[i].file;
	symanswer_put(b, &a, frames, made);
}

int storednames_answer(const struct capread *c, uint32_t file, const struct storednames_opts *o,
	uint8_t **ret, size_t *len, struct err *e)
{
	struct symanswer_build b;
	int rc;

	symanswer_begin(&b);
	for (size_t i = first_of(c, file); i < c->n_names && c->names[i].file == file; i++)
		put(&b, &c->names[i], o);
	rc = symanswer_finish(&b, ret, len);
	symanswer_end(&b);
	return rc ? err_nomem(e, "stored names") : 0;
}
