/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capnames.h"
#include "base/search.h"

#include <errno.h>
#include <string.h>

static const char malformed[] = "a malformed record";
static const char no_string[] = "a string that is not there";
static const char no_memory[] = "";

#define FRAME_BYTES_MIN 5 /* five numbers of a byte each at least */

#define ROOM(c, array, count) (base_grow(&(c)->array, &(c)->room.array, (count), sizeof(*(c)->array)) == 0)

/* --- writing --- */

void capnames_put_string(struct buf *b, uint32_t id, const char *text)
{
	buf_uleb(b, id);
	buf_str(b, text);
	buf_put(b, "", 1);
}

void capnames_put_jit(struct buf *b, const struct cap_jit *j, capnames_ref *ref, void *ctx)
{
	buf_uleb(b, j->proc);
	buf_uleb(b, j->kind);
	buf_uleb(b, j->from_ns);
	buf_uleb(b, j->to_ns + 1); /* UINT64_MAX is 0 */
	buf_uleb(b, j->start);
	buf_uleb(b, j->end - j->start);
	buf_uleb(b, ref(ctx, j->name));
	buf_uleb(b, ref(ctx, j->file));
	buf_uleb(b, j->line);
	buf_uleb(b, j->offset);
}

void capnames_put_name(struct buf *b, const struct cap_name *n, capnames_ref *ref, void *ctx)
{
	buf_uleb(b, n->file);
	buf_uleb(b, n->offset);
	buf_uleb(b, n->symbol_offset);
	buf_uleb(b, n->source);
	buf_uleb(b, n->reason);
	buf_uleb(b, n->n);
	for (uint32_t i = 0; i < n->n; i++) {
		const struct cap_name_frame *f = &n->frames[i];

		buf_uleb(b, ref(ctx, f->name));
		buf_uleb(b, ref(ctx, f->linkage));
		buf_uleb(b, ref(ctx, f->file));
		buf_uleb(b, f->line);
		buf_uleb(b, f->column);
	}
}

/* --- reading --- */

static uint8_t get_u8(struct rd *r)
{
	uint64_t v = rd_uleb(r);

	if (v > UINT8_MAX)
		r->bad = true;
	return (uint8_t)v;
}

/* "" is 0; NULL for an id that is not there. */
static const char *get_ref(const struct capnames *c, struct rd *r)
{
	uint64_t ref = rd_uleb(r);

	if (!ref)
		return "";
	return ref <= c->n.strings ? c->strings[ref - 1] : NULL;
}

const char *capnames_take_string(struct capnames *c, struct rd *r)
{
	uint32_t id = rd_uleb32(r);
	uint64_t len = rd_uleb(r);
	const char *s = len < rd_left(r) ? rd_bytes(r, (size_t)len + 1) : NULL;

	if (r->bad || !s || strnlen(s, (size_t)len + 1) != len)
		return malformed;
	if (id != c->n.strings)
		return "a string id out of order";
	if (!ROOM(c, strings, c->n.strings + 1))
		return no_memory;
	c->strings[c->n.strings++] = s;
	return NULL;
}

const char *capnames_take_jit(struct capnames *c, struct rd *r, size_t n_procs)
{
	struct cap_jit j = { .proc = rd_uleb32(r), .kind = get_u8(r) };
	uint64_t len;

	j.from_ns = rd_uleb(r);
	j.to_ns = rd_uleb(r) - 1;
	j.start = rd_uleb(r);
	len = rd_uleb(r);
	j.end = j.start + len;
	j.name = get_ref(c, r);
	j.file = get_ref(c, r);
	j.line = rd_uleb32(r);
	j.offset = rd_uleb(r);
	if (r->bad || j.end <= j.start)
		return malformed;
	if (j.proc >= n_procs)
		return "JIT code of a process that is not there";
	if (!j.name || !j.file)
		return no_string;
	if (!ROOM(c, jits, c->n.jits + 1))
		return no_memory;
	c->jits[c->n.jits++] = j;
	return NULL;
}

/* The N frames of a name, behind those that are there. */
static const char *take_frames(struct capnames *c, struct rd *r, uint32_t n)
{
	if (!ROOM(c, frames, c->n.frames + n))
		return no_memory;
	for (uint32_t i = 0; i < n; i++) {
		struct cap_name_frame *f = &c->frames[c->n.frames++];

		f->name = get_ref(c, r);
		f->linkage = get_ref(c, r);
		f->file = get_ref(c, r);
		f->line = rd_uleb32(r);
		f->column = rd_uleb32(r);
		if (r->bad)
			return malformed;
		if (!f->name || !f->linkage || !f->file)
			return no_string;
	}
	return NULL;
}

const char *capnames_take_name(struct capnames *c, struct rd *r, size_t n_files)
{
	struct cap_name n = { .file = rd_uleb32(r) };
	const char *complaint;

	n.offset = rd_uleb(r);
	n.symbol_offset = rd_uleb(r);
	n.source = get_u8(r);
	n.reason = get_u8(r);
	n.n = rd_uleb32(r);
	if (r->bad || n.n > rd_left(r) / FRAME_BYTES_MIN)
		return malformed;
	if (n.file >= n_files)
		return "a name in a file that is not there";
	if (!ROOM(c, names, c->n.names + 1))
		return no_memory;
	complaint = take_frames(c, r, n.n);
	if (complaint)
		return complaint;
	c->names[c->n.names++] = n;
	return NULL;
}

/* --- after the last record --- */

static int jit_cmp(const void *a, const void *b)
{
	const struct cap_jit *x = a, *y = b;
	int c = CMP(x->proc, y->proc);

	c = c ? c : CMP(x->start, y->start);
	c = c ? c : CMP(x->from_ns, y->from_ns);
	return c ? c : CMP(x->kind, y->kind);
}

static int name_cmp(const void *a, const void *b)
{
	const struct cap_name *x = a, *y = b;

	return x->file != y->file ? CMP(x->file, y->file) : CMP(x->offset, y->offset);
}

int capnames_settle(struct capnames *c)
{
	size_t at = 0;

	for (size_t i = 0; i < c->n.names; i++) {
		c->names[i].frames = c->frames ? c->frames + at : NULL;
		at += c->names[i].n;
	}
	if (sortlast(&c->jits, &c->n.jits, sizeof(*c->jits), jit_cmp) != 0 ||
		sortlast(&c->names, &c->n.names, sizeof(*c->names), name_cmp) != 0)
		return -ENOMEM;
	return 0;
}

void capnames_free(struct capnames *c)
{
	free(c->strings);
	free(c->jits);
	free(c->names);
	free(c->frames);
}
