/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What comes out of call frame information that a test writes by hand, as text. */
#ifndef STACKTOOLS_T_CFI_COMPILE_H
#define STACKTOOLS_T_CFI_COMPILE_H

#include "base/tap.h"
#include "image.h"
#include "unwind/compile.h"
#include "unwind/text.h"

/* Bytes of a string literal without its NUL. */
#define BYTES(s) (s), sizeof(s) - 1

struct table {
	uint8_t *bytes;
	size_t len;
	struct unwindtab view;
	struct err e;
	int rc;
};

static inline struct table compile_as(const struct buf *frame, const struct image_opts *o)
{
	struct table t = { .bytes = NULL };
	struct elffile *f = NULL;
	struct buf image = { 0 };

	image_make(&image, frame->p, frame->len, o);
	t.rc = elffile_image(image.p, image.len, &f, &t.e);
	t.rc = t.rc ? t.rc : unwindcomp(f, &t.bytes, &t.len, &t.e);
	t.rc = t.rc ? t.rc : unwindtab_view(t.bytes, t.len, &t.view, &t.e);
	elffile_close(f);
	buf_free(&image);
	return t;
}

static inline struct table compile(const struct buf *frame)
{
	const struct image_opts o = { .debug = false };

	return compile_as(frame, &o);
}

/* "rsp+8 u c-8" */
static inline const char *row_text(const struct table *t, uint64_t pc, char *buf, size_t cap)
{
	const struct unwind_rule *r = t->rc ? NULL : unwindtab_find(&t->view, pc, NULL, NULL);
	struct unwindtext x;

	if (!r)
		return t->rc ? t->e.msg : "no segment";
	unwindtext(r, t->view.head->machine, &x);
	snprintf(buf, cap, "%s%s%s%s%s%s%s%s", x.cfa, *x.fp ? " " : "", x.fp, *x.ra ? " " : "", x.ra,
		*x.bx ? " " : "", x.bx, r->flags & UNWIND_SIGNAL ? " signal" : "");
	return buf;
}

static inline void is_row(
	struct tap *t, const struct table *tab, uint64_t pc, const char *want, const char *name)
{
	char buf[256];

	tap_eq_str(t, row_text(tab, pc, buf, sizeof(buf)), want, name);
}

static inline uint64_t left(const struct table *t, enum unwindtab_left what)
{
	return t->rc ? UINT64_MAX : t->view.head->left[what];
}

/* One function of 0x100 bytes at TEXT with these instructions. */
static inline struct table one_fde(const void *insns, size_t n)
{
	struct buf b = { 0 };
	struct table t;

	image_fde(&b, image_cie(&b, false), TEXT, 0x100, insns, n, false);
	t = compile(&b);
	buf_free(&b);
	return t;
}

#endif
