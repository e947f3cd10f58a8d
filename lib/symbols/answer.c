/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/answer.h"
#include "base/search.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x736d7973u /* "syms" in little-endian order; the other byte order gives another magic */

_Static_assert(sizeof(struct sym_answer_head) == 96, "no padding but the visible one");
_Static_assert(sizeof(struct sym_answer_addr) == 32, "no padding but the visible one");
_Static_assert(sizeof(struct sym_answer_frame) == 20, "no padding but the visible one");

void sym_answer_begin(struct sym_answer_build *b)
{
	*b = (struct sym_answer_build){ 0 };
	b->head.magic = MAGIC;
	/* the empty string is the first one */
	b->failed = intern_put(&b->strings, "", 0) == INTERN_NONE;
	b->head.strings_len = 1;
	buf_fixed(&b->offsets, 0, sizeof(uint32_t));
}

uint32_t sym_answer_string(struct sym_answer_build *b, const char *text)
{
	size_t len = text ? strlen(text) : 0, known = b->strings.n;
	uint32_t id, at;

	if (!len || b->failed)
		return 0;
	id = intern_put(&b->strings, text, len);
	if (id == INTERN_NONE || (id == known && len >= UINT32_MAX - b->head.strings_len)) {
		b->failed = true;
		return 0;
	}
	if (id == known) {
		buf_fixed(&b->offsets, b->head.strings_len, sizeof(uint32_t));
		b->head.strings_len += (uint32_t)len + 1;
	}
	if (b->offsets.failed)
		return 0;
	memcpy(&at, b->offsets.p + id * sizeof(at), sizeof(at));
	return at;
}

void sym_answer_put(struct sym_answer_build *b, const struct sym_answer_addr *addr,
	const struct sym_answer_frame *frames, size_t n)
{
	struct sym_answer_addr a = *addr;

	if (n > SYM_ANSWER_FRAMES_MAX) { /* drop the innermost calls */
		frames += n - SYM_ANSWER_FRAMES_MAX;
		n = SYM_ANSWER_FRAMES_MAX;
	}
	if (b->head.n_addrs == UINT32_MAX || n > UINT32_MAX - b->head.n_frames) {
		b->failed = true;
		return;
	}
	a.first = b->head.n_frames;
	a.n_frames = (uint32_t)n;
	memset(a.pad, 0, sizeof(a.pad));
	buf_put(&b->addrs, &a, sizeof(a));
	if (n)
		buf_put(&b->frames, frames, n * sizeof(*frames));
	b->head.n_addrs++;
	b->head.n_frames += (uint32_t)n;
}

void sym_answer_want(struct sym_answer_build *b, const char *text)
{
	if (b->head.n_wants == UINT32_MAX) {
		b->failed = true;
		return;
	}
	buf_put(&b->wants, text, strlen(text) + 1);
	b->head.n_wants++;
}

static uint8_t *put(uint8_t *to, const void *p, size_t n)
{
	return n ? (uint8_t *)mempcpy(to, p, n) : to;
}

static uint8_t *put_strings(uint8_t *to, const struct intern *t)
{
	for (uint32_t id = 0; id < t->n; id++) {
		size_t len;
		const char *text = intern_text(t, id, &len);

		to = put(to, text, len);
		*to++ = 0;
	}
	return to;
}

int sym_answer_finish(struct sym_answer_build *b, uint8_t **ret, size_t *len)
{
	struct sym_answer_head *h = &b->head;
	uint8_t *bytes, *p;

	if (b->failed || b->addrs.failed || b->frames.failed || b->offsets.failed || b->wants.failed ||
		b->wants.len > UINT32_MAX - h->strings_len)
		return -ENOMEM;
	h->wants = h->n_wants ? h->strings_len : 0;
	*len = sizeof(*h) + b->addrs.len + b->frames.len + h->strings_len + b->wants.len;
	bytes = malloc(*len);
	if (!bytes)
		return -ENOMEM;
	h->strings_len += (uint32_t)b->wants.len;
	p = put(bytes, h, sizeof(*h));
	p = put(p, b->addrs.p, b->addrs.len);
	p = put(p, b->frames.p, b->frames.len);
	p = put_strings(p, &b->strings);
	put(p, b->wants.p, b->wants.len);
	*ret = bytes;
	return 0;
}

void sym_answer_end(struct sym_answer_build *b)
{
	buf_free(&b->addrs);
	buf_free(&b->frames);
	buf_free(&b->offsets);
	buf_free(&b->wants);
	intern_free(&b->strings);
}

/* Locate all parts from the head alone. */
static bool lay_out(const void *bytes, size_t len, struct sym_answer *a)
{
	const struct sym_answer_head *h = bytes;
	uint64_t size = sizeof(*h);

	if (len < sizeof(*h) || (uintptr_t)bytes % 8 || h->magic != MAGIC || !h->strings_len)
		return false;
	size += (uint64_t)h->n_addrs * sizeof(struct sym_answer_addr);
	size += (uint64_t)h->n_frames * sizeof(struct sym_answer_frame);
	if (size + h->strings_len != len)
		return false;
	a->head = h;
	a->addrs = (const void *)(h + 1);
	a->frames = (const void *)(a->addrs + h->n_addrs);
	a->strings = (const void *)(a->frames + h->n_frames);
	return !a->strings[0] && !a->strings[h->strings_len - 1] && h->message < h->strings_len;
}

static bool wants_are_there(const struct sym_answer *a)
{
	uint64_t at = a->head->wants;

	for (uint32_t i = 0; i < a->head->n_wants; i++) {
		if (at >= a->head->strings_len)
			return false;
		at += strlen(a->strings + at) + 1;
	}
	return true;
}

static bool addr_is_sane(const struct sym_answer *a, const struct sym_answer_addr *x)
{
	const struct sym_answer_head *h = a->head;

	if (x->first > h->n_frames || x->n_frames > h->n_frames - x->first ||
		x->n_frames > SYM_ANSWER_FRAMES_MAX)
		return false;
	if (x->source > SYM_SOURCE_LAST || x->reason >= SYM_R_COUNT || x->debug > 1 || x->start > x->vaddr)
		return false;
	return x->source == SYM_NONE || (x->n_frames && a->frames[x->first + x->n_frames - 1].name);
}

static bool all_are_sane(const struct sym_answer *a)
{
	const struct sym_answer_head *h = a->head;

	for (uint32_t i = 0; i < h->n_frames; i++) {
		const struct sym_answer_frame *f = &a->frames[i];

		if (f->name >= h->strings_len || f->linkage >= h->strings_len || f->file >= h->strings_len)
			return false;
	}
	for (uint32_t i = 0; i < h->n_addrs; i++)
		if ((i && a->addrs[i - 1].vaddr >= a->addrs[i].vaddr) || !addr_is_sane(a, &a->addrs[i]))
			return false;
	return true;
}

int sym_answer_view(const void *bytes, size_t len, struct sym_answer *ret, struct err *e)
{
	struct sym_answer a;

	if (!lay_out(bytes, len, &a) || !wants_are_there(&a) || !all_are_sane(&a))
		return err_set(e, -EINVAL, "what its symbols were answered with makes no sense");
	*ret = a;
	return 0;
}

const struct sym_answer_addr *sym_answer_find(const struct sym_answer *a, uint64_t vaddr)
{
	size_t lo = PARTITION_POINT(0, a->head->n_addrs, mid, a->addrs[mid].vaddr < vaddr);

	return lo < a->head->n_addrs && a->addrs[lo].vaddr == vaddr ? &a->addrs[lo] : NULL;
}

const char *sym_answer_text(const struct sym_answer *a, uint32_t string)
{
	return string ? a->strings + string : NULL;
}

const char *sym_answer_want_at(const struct sym_answer *a, uint32_t i)
{
	const char *p = a->strings + a->head->wants;

	while (i--)
		p += strlen(p) + 1;
	return p;
}

const char *sym_answer_reason_text(unsigned int reason)
{
	static const char *const texts[SYM_R_COUNT] = {
		[SYM_R_NO_SYMBOL] = "no symbol covers this address",
		[SYM_R_NO_TABLES] = "the file has no symbols for code",
		[SYM_R_BEYOND] = "the nearest symbol before it: the address lies beyond its end",
		[SYM_R_DEBUG_BAD] = "the debug information that covers this address is malformed",
		[SYM_R_DEBUG_MISSING] = "its debug information is in a file that was not found",
		[SYM_R_LIMIT] = "the memory or time for this file was used up",
	};

	return reason < SYM_R_COUNT ? texts[reason] : "a reason that is not known";
}

/* The index of the first name of FILE in the sorted array. */
static size_t first_of(const struct cap_reader *c, uint32_t file)
{
	size_t lo = PARTITION_POINT(0, c->n_names, mid, c->names[mid].file < file);

	return lo;
}

bool storednames_any(const struct cap_reader *c, uint32_t file)
{
	size_t i = first_of(c, file);

	return i < c->n_names && c->names[i].file == file;
}

static struct sym_answer_frame make_frame(
	struct sym_answer_build *b, const struct cap_name_frame *f, bool demangle)
{
	const char *shown = demangle || !*f->linkage ? f->name : f->linkage;

	return (struct sym_answer_frame){ .name = sym_answer_string(b, shown),
		.linkage = sym_answer_string(b, f->linkage),
		.file = sym_answer_string(b, f->file),
		.line = f->line,
		.column = f->column };
}

/* Store the wanted frames of N; returns how many. */
static uint32_t make_frames(struct sym_answer_build *b, const struct cap_name *n,
	const struct storednames_opts *o, struct sym_answer_frame *frames)
{
	/* keep the outermost ones */
	uint32_t skip = n->n > SYM_ANSWER_FRAMES_MAX ? n->n - SYM_ANSWER_FRAMES_MAX : 0;

	if (!o->inlines && n->n) {
		const struct sym_answer_frame place = make_frame(b, &n->frames[0], o->demangle);

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

static void put_stored(struct sym_answer_build *b, const struct cap_name *n, const struct storednames_opts *o)
{
	struct sym_answer_frame frames[SYM_ANSWER_FRAMES_MAX];
	struct sym_answer_addr a = { .vaddr = n->offset, .source = n->source, .reason = n->reason };
	uint32_t made;

	if (n->symbol_offset > n->offset || n->source > SYM_SOURCE_LAST || n->reason >= SYM_R_COUNT)
		return;
	if (n->source != SYM_NONE) {
		if (!n->n || !*n->frames[n->n - 1].name)
			return;
		a.start = n->offset - n->symbol_offset;
	}
	made = make_frames(b, n, o, frames);
	for (uint32_t i = 0; i < made && (o->inlines || o->lines); i++)
		a.debug = a.debug || frames[i].file;
	sym_answer_put(b, &a, frames, made);
}

int storednames_answer(const struct cap_reader *c, uint32_t file, const struct storednames_opts *o,
	uint8_t **ret, size_t *len, struct err *e)
{
	struct sym_answer_build b;
	int rc;

	sym_answer_begin(&b);
	for (size_t i = first_of(c, file); i < c->n_names && c->names[i].file == file; i++)
		put_stored(&b, &c->names[i], o);
	rc = sym_answer_finish(&b, ret, len);
	sym_answer_end(&b);
	return rc ? err_nomem(e, "stored names") : 0;
}
