/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/lookup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "elf/debuginfo.h"
#include "elf/dwarf.h"
#include "elf/gopclntab.h"
#include "elf/minidebug.h"
#include "elf/plt.h"
#include "elf/reloc.h"
#include "elf/symbols.h"
#include "unwind/fde.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/*
 * Each back reference 'Q' of a D name is expanded by recursion: this limit bounds the intermediate
 * text to a few megabytes.
 */
#define D_BACKREFS_MAX 12
#define D_IN_MAX 1024

/* libiberty demangles names above 1,024 bytes only with DMGL_NO_RECURSE_LIMIT. */
#define V3_LIMITED_MAX 1000

struct sink {
	char *buf;
	size_t len, cap;
	jmp_buf overflow;
};

/*
 * Leaves with longjmp(3): the callback cannot stop the demangler, which would run as long as a
 * hostile name demands. The demangler holds no heap memory while it prints.
 */
static void take(const char *text, size_t n, void *opaque)
{
	struct sink *s = opaque;

	if (!n) /* the Rust demangler ends with an empty piece at NULL */
		return;
	if (n >= s->cap - s->len)
		longjmp(s->overflow, 1);
	memcpy(s->buf + s->len, text, n);
	s->len += n;
}

static size_t by_callback(const char *name, size_t len, char *buf, size_t cap)
{
	struct sink s = { .buf = buf, .cap = MIN(cap, (size_t)DEMANGLE_OUT_MAX) };
	const int params = DMGL_PARAMS | DMGL_ANSI;
	const int deep = len > V3_LIMITED_MAX ? DMGL_NO_RECURSE_LIMIT : 0;

	if (setjmp(s.overflow))
		return 0;
	if (rust_demangle_callback(name, params, take, &s) && s.len)
		return s.len;
	s.len = 0;
	if (name[0] == '_' && name[1] == 'Z' && cplus_demangle_v3_callback(name, params | deep, take, &s))
		return s.len;
	return 0;
}

static size_t d_name(const char *name, size_t len, char *buf, size_t cap)
{
	_cleanup_free_ char *text = NULL;
	size_t refs = 0, n;

	for (size_t i = 0; i < len; i++)
		refs += name[i] == 'Q';
	if (len > D_IN_MAX || refs > D_BACKREFS_MAX)
		return 0;
	text = dlang_demangle(name, DMGL_PARAMS);
	n = text ? strlen(text) : 0;
	if (n >= MIN(cap, (size_t)DEMANGLE_OUT_MAX))
		return 0;
	memcpy(buf, text ? text : "", n);
	return n;
}

size_t demangle(const char *name, char *buf, size_t cap)
{
	size_t len, n = 0;

	if (!cap)
		return 0;
	buf[0] = '\0';
	if (name[0] != '_' || !name[1] || !strchr("ZRD", name[1]))
		return 0;
	len = strnlen(name, DEMANGLE_IN_MAX + 1);
	if (len > DEMANGLE_IN_MAX)
		return 0;
	if (name[1] == 'Z' || name[1] == 'R')
		n = by_callback(name, len, buf, cap);
	else if (name[1] == 'D')
		n = d_name(name, len, buf, cap);
	buf[n] = '\0';
	return n;
}

#define DEBUG_BYTES_DEFAULT (UINT64_C(1) << 30)
#define TABLES 3 /* of the file, its debug file and .gnu_debugdata */

/* What the symbol tables and the call frame information say about an address. */
struct named {
	const char *name; /* NULL = nothing */
	uint64_t start; /* without a name: that of the FDE, if SOURCE is SYM_FDE */
	/* the symbol without a size before the address, which may name it: see prove_label() */
	const char *label;
	uint64_t label_start;
	uint8_t source, label_source;
};

/* What the debug information says about an address: frames [first, first + n) of `calls`. */
struct called {
	uint64_t low;
	uint32_t first, n;
	uint8_t reason;
	bool reported;
};

struct lookup {
	const struct sym_lookup_input *in;
	struct sym_answer_build b;
	struct elfmatch *tables[TABLES];
	size_t n_tables;
	struct minidebug mini;
	struct pltsym *plt;
	struct gopclntab *go;
	struct buf plt_names;
	struct named *named; /* one for each address */
	size_t left; /* addresses without a name */
	bool any; /* some table has functions */
	struct called *called; /* one for each address; NULL = no debug information */
	struct buf calls; /* struct sym_answer_frame */
	struct idmap shown; /* linkage name (string) -> shown name (string) */
	const char *last; /* the name that LAST_FRAME was made from */
	struct sym_answer_frame last_frame;
	uint64_t began_ns;
};

static uint64_t lap(struct lookup *l)
{
	uint64_t now = now_ns(), took = now - l->began_ns;

	l->began_ns = now;
	return took;
}

static void lookup_free(struct lookup *l)
{
	sym_answer_end(&l->b);
	for (size_t i = 0; i < l->n_tables; i++)
		elfmatch_free(l->tables[i]);
	minidebug_close(&l->mini);
	pltsym_free(l->plt);
	gopclntab_close(l->go);
	buf_free(&l->plt_names);
	buf_free(&l->calls);
	idmap_free(&l->shown);
	free(l->named);
	free(l->called);
}

/* Keep the first error as the file's message; everything else is still used. */
static void note(struct lookup *l, const struct err *e)
{
	if (!l->b.head.message)
		l->b.head.message = sym_answer_string(&l->b, e->msg);
}

/* --- symbol tables --- */

static bool has_symtab(const struct elffile *f)
{
	for (size_t i = 0; i < f->n_sections; i++)
		if (f->sections[i].type == SHT_SYMTAB)
			return true;
	return false;
}

/* The addresses without a name, in order; NULL when out of memory. */
static uint64_t *unnamed(const struct lookup *l)
{
	uint64_t *v = malloc((l->left + 1) * sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; v && i < l->in->n_vaddrs; i++)
		if (!l->named[i].name)
			v[n++] = l->in->vaddrs[i];
	return v;
}

/* Marks of gcc's annobin plugin: where there is no other symbol, there is just padding. */
static bool is_mark(const char *name)
{
	return strncmp(name, ".annobin_", 9) == 0;
}

/* HITS are those of the addresses without a name. */
static void take_hits(struct lookup *l, const struct elfmatch_hit *hits, uint8_t source)
{
	for (size_t i = 0; i < l->in->n_vaddrs; i++) {
		struct named *n = &l->named[i];

		if (n->name)
			continue;
		if (!hits->name || is_mark(hits->name)) {
			/* the next table may know it */
		} else if (hits->sized) {
			n->name = hits->name;
			n->start = hits->start;
			n->source = hits->dynamic ? SYM_DYNSYM : source;
			l->left--;
		} else if (!n->label) {
			n->label = hits->name;
			n->label_start = hits->start;
			n->label_source = hits->dynamic ? SYM_DYNSYM : source;
		}
		hits++;
	}
}

/* Name the remaining addresses from the tables of F; SOURCE is what to report for its .symtab. */
static int name_from(struct lookup *l, const struct elffile *f, uint8_t source, struct err *e)
{
	_cleanup_free_ uint64_t *vaddrs = unnamed(l);
	struct elfmatch *m = NULL;
	struct err mine = { 0 };
	int rc = vaddrs ? elfmatch_run(f, vaddrs, l->left, &m, &mine) : err_nomem(&mine, "addresses");

	if (rc) {
		note(l, &mine);
		if (e)
			*e = mine;
		return rc;
	}
	l->tables[l->n_tables++] = m;
	l->any = l->any || elfmatch_any(m);
	l->b.head.symbols += elfmatch_symbols(m);
	take_hits(l, elfmatch_hits(m), source);
	return 0;
}

/*
 * Name addresses from .gnu_debugdata, which distributions keep. A stream that cannot be unpacked
 * loses only that.
 */
static int name_by_minidebug(struct lookup *l)
{
	struct err e = { 0 };
	int rc = minidebug_open(l->in->elf, 0, &l->mini, &e);

	if (rc < 0)
		note(l, &e);
	return rc > 0 ? name_from(l, l->mini.elf, SYM_MINIDEBUG, NULL) : rc;
}

/* 0, or -errno if the file's own table cannot be read and nothing else names an address. */
static int name_by_tables(struct lookup *l, struct err *e)
{
	const struct sym_lookup_input *in = l->in;
	bool stripped = !has_symtab(in->elf);
	int rc = 0, others = -ENOENT;

	if (!stripped)
		rc = name_from(l, in->elf, SYM_SYMTAB, e);
	if (rc == -ENOMEM)
		return rc;
	if (l->left && in->debug)
		others = name_from(l, in->debug, SYM_SYMTAB, NULL);
	if (l->left && stripped && others)
		others = name_by_minidebug(l);
	if (l->left && stripped)
		rc = name_from(l, in->elf, SYM_SYMTAB, e);
	return rc && others && !debugfile_has_info(in->elf) ? rc : 0;
}

/* PLT stubs have no symbols; their jump target names them. */
static void name_by_plt(struct lookup *l)
{
	struct pltsym_hit hit;
	struct err e = { 0 };

	if (!l->left)
		return;
	if (pltsym_load(l->in->elf, l->in->vaddrs, l->in->n_vaddrs, &l->plt, &e) != 0) {
		note(l, &e);
		return;
	}
	for (size_t i = 0; i < l->in->n_vaddrs; i++) {
		struct named *n = &l->named[i];

		if (n->name || !pltsym_find(l->plt, l->in->vaddrs[i], &hit))
			continue;
		*n = (struct named){ .name = hit.name, .start = hit.start, .source = SYM_PLT };
		l->any = true;
		l->left--;
	}
}

/* --- call frame information --- */

/*
 * A symbol without a size (as assembly has them) names an address behind it only if the address's FDE
 * begins with it: else another function, whose symbol was stripped, may lie between them.
 */
static bool prove_label(const struct named *n, const struct fde_range *r)
{
	return n->label && (r->start == n->label_start || (r->signal && r->start + 1 == n->label_start));
}

static void take_range(struct lookup *l, struct named *n, const struct fde_range *r)
{
	if (!r->start)
		return;
	if (prove_label(n, r)) {
		n->name = n->label;
		n->start = n->label_start;
		n->source = n->label_source;
		l->left--;
	} else {
		n->start = r->start;
		n->source = SYM_FDE;
	}
}

/* Find the functions of the addresses without a name. */
static int place_by_fdes(struct lookup *l, struct err *e)
{
	const struct sym_lookup_input *in = l->in;
	const size_t n = l->left;
	_cleanup_free_ uint64_t *vaddrs = n ? unnamed(l) : NULL;
	_cleanup_free_ struct fde_range *ranges = n ? calloc(n, sizeof(*ranges)) : NULL;
	size_t k = 0;
	int rc;

	if (!n)
		return 0;
	if (!vaddrs || !ranges)
		return err_nomem(e, "addresses");
	rc = fde_ranges(in->elf, in->debug, vaddrs, n, in->max_bytes ? in->max_bytes : DEBUG_BYTES_DEFAULT,
		ranges, e);
	for (size_t i = 0; i < in->n_vaddrs && rc == 0; i++)
		if (!l->named[i].name)
			take_range(l, &l->named[i], &ranges[k++]);
	return rc;
}

/* --- Go's table of functions --- */

static void name_by_go(struct lookup *l)
{
	struct gopclntab_function fn;
	struct err e = { 0 };

	if (!l->left && !l->in->lines)
		return;
	if (gopclntab_open(l->in->elf, &l->go, &e) < 0)
		note(l, &e);
	for (size_t i = 0; l->go && l->left && i < l->in->n_vaddrs; i++) {
		struct named *n = &l->named[i];

		if (n->name || !gopclntab_find(l->go, l->in->vaddrs[i], &fn) || !*fn.name)
			continue;
		*n = (struct named){ .name = fn.name, .start = fn.start, .source = SYM_GOPCLNTAB };
		l->any = true;
		l->left--;
	}
}

/* The line of an address that the debug information does not know. */
static void line_by_go(struct lookup *l, uint64_t vaddr, struct sym_answer_frame *f)
{
	struct gopclntab_function fn;
	const char *file;

	if (!l->go || !l->in->lines || !gopclntab_find(l->go, vaddr, &fn) ||
		!gopclntab_line(l->go, &fn, vaddr, &file, &f->line))
		return;
	f->file = sym_answer_string(&l->b, file);
}

/* --- names as shown --- */

/*
 * Linkers append the version to the names in .symtab: "__libc_start_main@@GLIBC_2.34". The length of
 * the name without it.
 */
static size_t unversioned(const char *name)
{
	static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
	const char *at = strchr(name, '@'), *version;

	if (!at || at == name)
		return strlen(name);
	version = at + 1 + (at[1] == '@');
	return *version && !version[strspn(version, chars)] ? (size_t)(at - name) : strlen(name);
}

/* The string to show for NAME, whose own string is LINKAGE. */
static uint32_t shown(struct lookup *l, const char *name, uint32_t linkage)
{
	char text[DEMANGLE_OUT_MAX];
	struct idmap_slot *known;
	uint32_t string = linkage;

	if (!l->in->demangle || !linkage)
		return linkage;
	known = idmap_find(&l->shown, 0, linkage);
	if (known)
		return known->value;
	if (demangle(name, text, sizeof(text)))
		string = sym_answer_string(&l->b, text);
	if (idmap_put(&l->shown, 0, linkage, string, NULL) == UINT32_MAX)
		l->b.failed = true;
	return string;
}

/* "name@plt": only the part before the @ is mangled. */
static uint32_t shown_stub(struct lookup *l, const char *name, uint32_t linkage)
{
	char text[DEMANGLE_OUT_MAX + 8];
	size_t len = strlen(name), n;

	if (!l->in->demangle || len < 5 || strcmp(name + len - 4, "@plt") != 0)
		return linkage;
	buf_reset(&l->plt_names);
	buf_put(&l->plt_names, name, len - 4);
	buf_put(&l->plt_names, "", 1);
	if (l->plt_names.failed)
		return linkage;
	n = demangle((const char *)l->plt_names.p, text, DEMANGLE_OUT_MAX);
	if (!n)
		return linkage;
	memcpy(text + n, "@plt", 5);
	return sym_answer_string(&l->b, text);
}

/* Addresses are sorted, so consecutive ones are often in one function. */
static void name_symbol(struct lookup *l, const struct named *n, struct sym_answer_frame *f)
{
	if (n->name != l->last) {
		_cleanup_free_ char *cut = NULL;
		size_t len = n->source == SYM_PLT ? strlen(n->name) : unversioned(n->name);
		const char *name = n->name;
		uint32_t linkage;

		if (name[len]) {
			name = cut = strndup(name, len);
			l->b.failed = l->b.failed || !cut;
		}
		linkage = sym_answer_string(&l->b, name);
		l->last_frame.linkage = linkage;
		l->last_frame.name =
			n->source == SYM_PLT ? shown_stub(l, name, linkage) : shown(l, name, linkage);
		l->last = n->name;
	}
	f->linkage = l->last_frame.linkage;
	f->name = l->last_frame.name;
}

/* --- debug information --- */

static uint8_t reason_of(int error)
{
	switch (error) {
	case 0:
		return SYM_OK;
	case -ENOENT:
		return SYM_R_DEBUG_MISSING;
	case -ENOMEM:
		return SYM_R_LIMIT;
	default:
		return SYM_R_DEBUG_BAD;
	}
}

static void on_hit(void *ctx, const struct dwarf_lookup_hit *hit)
{
	struct lookup *l = ctx;
	struct called *c = &l->called[hit->index];

	*c = (struct called){ .low = hit->low,
		.first = (uint32_t)(l->calls.len / sizeof(struct sym_answer_frame)),
		.n = (uint32_t)hit->n,
		.reason = reason_of(hit->error),
		.reported = true };
	for (size_t i = 0; i < hit->n; i++) {
		const struct dwarf_lookup_frame *f = &hit->frames[i];
		const char *name = f->linkage ? f->linkage : f->name;
		struct sym_answer_frame to = { .linkage = sym_answer_string(&l->b, name),
			.file = sym_answer_string(&l->b, f->file),
			.line = f->line,
			.column = f->column };

		to.name = shown(l, name, to.linkage);
		buf_put(&l->calls, &to, sizeof(to));
	}
}

static void on_want(void *ctx, uint64_t id, const char *path)
{
	struct lookup *l = ctx;
	char text[4096 + 32];

	if ((size_t)snprintf(text, sizeof(text), "%016" PRIx64 " %s", id, path) < sizeof(text))
		sym_answer_want(&l->b, text);
}

static const struct elffile *with_info(const struct sym_lookup_input *in)
{
	if (debugfile_has_info(in->elf))
		return in->elf;
	return in->debug && debugfile_has_info(in->debug) ? in->debug : NULL;
}

/*
 * Set REASON where the debug information gave nothing: at the limit some addresses are left, and
 * malformed data may have covered any of them.
 */
static void mark_unanswered(struct lookup *l, uint8_t reason)
{
	for (size_t i = 0; i < l->in->n_vaddrs; i++)
		if (!l->called[i].reported)
			l->called[i].reason = reason;
}

static int make_called(struct lookup *l)
{
	l->called = calloc(l->in->n_vaddrs + 1, sizeof(*l->called));
	return l->called ? 0 : -ENOMEM;
}

/* FROM: the start of opening the file, which unpacks its units. */
static int run_debug(struct lookup *l, struct dwarf_lookup *d, uint64_t from)
{
	struct dwarf_lookup_stats s;
	struct err e = { 0 };
	int rc;

	if (make_called(l) != 0)
		return -ENOMEM;
	rc = dwarf_lookup_run(d, l->in->vaddrs, l->in->n_vaddrs, on_hit, on_want, l, &e);
	if (e.msg[0])
		note(l, &e);
	if (rc || e.msg[0])
		mark_unanswered(l, rc ? SYM_R_LIMIT : SYM_R_DEBUG_BAD);
	dwarf_lookup_stats(d, &s);
	l->b.head.units = s.units;
	l->b.head.units_read = s.units_read;
	l->b.head.ns_units = now_ns() - from - s.ns_lines;
	l->b.head.ns_lines = s.ns_lines;
	l->b.head.memory_bytes = s.peak_bytes;
	return l->calls.failed ? -ENOMEM : 0;
}

/* Without inlined calls and lines, read it only if an address has no symbol. */
static int read_debug(struct lookup *l, struct err *e)
{
	const struct sym_lookup_input *in = l->in;
	_cleanup_free_ struct dwarf_lookup_dwo *dwos = calloc(in->n_dwos + 1, sizeof(*dwos));
	struct dwarf_lookup_opts o = { .elf = with_info(in),
		.alt = in->alt,
		.dwp = in->dwp,
		.dwos = dwos,
		.n_dwos = in->n_dwos,
		.inlines = in->inlines,
		.lines = in->lines,
		.max_bytes = in->max_bytes ? in->max_bytes : DEBUG_BYTES_DEFAULT };
	uint64_t from = now_ns();
	struct dwarf_lookup *d = NULL;
	struct err mine = { 0 };
	int rc;

	if (!o.elf || (!in->inlines && !in->lines && !l->left))
		return 0;
	if (!dwos)
		return err_nomem(e, "debug information");
	for (size_t i = 0; i < in->n_dwos; i++)
		dwos[i] = (struct dwarf_lookup_dwo){ in->dwos[i].id, in->dwos[i].file };
	rc = dwarf_lookup_open(&o, &d, &mine);
	if (rc) {
		if (rc == -ENOENT)
			return 0;
		note(l, &mine);
		if (make_called(l) != 0)
			return err_nomem(e, "debug information");
		mark_unanswered(l, reason_of(rc == -E2BIG ? -ENOMEM : rc));
		return 0;
	}
	rc = run_debug(l, d, from);
	dwarf_lookup_close(d);
	return rc ? err_nomem(e, "debug information") : 0;
}

/* --- the answer --- */

/* Put frames of the debug information; the outermost one takes the name of its symbol if it has one. */
static void put_called(
	struct lookup *l, const struct named *n, const struct called *c, struct sym_answer_addr *a)
{
	struct sym_answer_frame *frames = (struct sym_answer_frame *)(void *)l->calls.p + c->first;
	struct sym_answer_frame *own = &frames[c->n - 1];

	a->debug = 1;
	if (own->name) {
		a->source = SYM_DWARF;
		a->reason = c->reason;
	}
	if (n->name)
		name_symbol(l, n, own);
	else if (own->name)
		a->start = c->low <= a->vaddr ? c->low : 0;
	sym_answer_put(&l->b, a, frames, c->n);
}

static void put_address(struct lookup *l, size_t i)
{
	const struct called *c = l->called ? &l->called[i] : NULL;
	const struct named *n = &l->named[i];
	struct sym_answer_addr a = { .vaddr = l->in->vaddrs[i], .start = n->start, .source = n->source };
	struct sym_answer_frame f = { 0 };

	if (!n->name)
		a.reason = l->any ? SYM_R_NO_SYMBOL : SYM_R_NO_TABLES;
	if (c && c->reason)
		a.reason = c->reason;
	if (c && c->n) {
		put_called(l, n, c, &a);
		return;
	}
	if (n->name) {
		name_symbol(l, n, &f);
		line_by_go(l, a.vaddr, &f);
	}
	sym_answer_put(&l->b, &a, &f, n->name ? 1 : 0);
}

static int lookup(struct lookup *l, struct err *e)
{
	int rc = name_by_tables(l, e);

	if (rc)
		return rc;
	name_by_plt(l);
	name_by_go(l);
	rc = place_by_fdes(l, e);
	if (rc)
		return rc;
	l->b.head.ns_symbols = lap(l);
	rc = read_debug(l, e);
	lap(l);
	return rc;
}

static int run_all(const struct sym_lookup_input *in, uint8_t **ret, size_t *len, struct err *e)
{
	CLEANUP(lookup_free) struct lookup l = { .in = in, .left = in->n_vaddrs, .began_ns = now_ns() };
	int rc;

	sym_answer_begin(&l.b);
	l.named = calloc(in->n_vaddrs + 1, sizeof(*l.named));
	if (!l.named)
		return err_nomem(e, "addresses");
	rc = lookup(&l, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < in->n_vaddrs; i++)
		put_address(&l, i);
	l.b.head.ns_names = lap(&l);
	return sym_answer_finish(&l.b, ret, len) ? err_nomem(e, "names") : 0;
}

int sym_lookup(const struct sym_lookup_input *in, uint8_t **ret, size_t *len, struct err *e)
{
	CLEANUP(elfrel_close) struct elfrel rel = { 0 };
	struct sym_lookup_input laid_out = *in;
	const uint64_t max = in->max_bytes ? in->max_bytes : DEBUG_BYTES_DEFAULT;
	int rc;

	if (!elfrel_is(in->elf))
		return run_all(in, ret, len, e);
	rc = elfrel_open(in->elf, max / 2, &rel, e);
	if (rc)
		return rc;
	laid_out.elf = rel.elf;
	laid_out.max_bytes = max / 2;
	return run_all(&laid_out, ret, len, e);
}
