/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symlook.h"
#include "demangle.h"
#include "elfsym.h"
#include "idmap.h"
#include "now.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/* What the symbol tables say of an address. */
struct named {
	const char *name; /* NULL = nothing */
	uint64_t start;
	uint8_t source, reason;
};

struct look {
	const struct symlook_input *in;
	struct symanswer_build b;
	struct elfsym *own, *debug;
	struct named *named; /* by address */
	size_t left; /* addresses without a name */
	bool any; /* some table has functions */
	struct idmap shown; /* string of a linkage name -> string of the name that is shown */
	const char *last; /* the name that LAST_FRAME was made of */
	struct symanswer_frame last_frame;
	uint64_t began_ns;
};

static uint64_t lap(struct look *l)
{
	uint64_t now = now_ns(), took = now - l->began_ns;

	l->began_ns = now;
	return took;
}

static void look_free(struct look *l)
{
	symanswer_end(&l->b);
	elfsym_free(l->own);
	elfsym_free(l->debug);
	idmap_free(&l->shown);
	free(l->named);
}

static bool has_symtab(const struct elffile *f)
{
	for (size_t i = 0; i < f->n_sections; i++)
		if (f->sections[i].type == SHT_SYMTAB)
			return true;
	return false;
}

/* SOURCE is what symbols of .symtab of this index count as. */
static void name_from(struct look *l, const struct elfsym *s, enum symanswer_source source)
{
	struct elfsym_hit hit;

	if (!s || !l->left)
		return;
	l->any = l->any || elfsym_ranges(s);
	l->b.head.symbols += elfsym_count(s);
	for (size_t i = 0; i < l->in->n_vaddrs; i++) {
		struct named *n = &l->named[i];

		if (n->name || !elfsym_find(s, l->in->vaddrs[i], &hit))
			continue;
		n->name = hit.name;
		n->start = hit.start;
		n->source = (uint8_t)(hit.dynamic ? SYM_DYNSYM : source);
		l->left--;
	}
}

/* A story of one of the files is told; the others may name what it does not. */
static int load(struct look *l, const struct elffile *f, struct elfsym **ret, struct err *e)
{
	struct err mine = { 0 };
	int rc = elfsym_load(f, ret, &mine);

	if (rc && !l->b.head.story)
		l->b.head.story = symanswer_string(&l->b, mine.msg);
	if (rc && e)
		*e = mine;
	return rc;
}

/* A stripped file's local functions may be in its debug file: that comes before .dynsym then. */
static int name_by_tables(struct look *l, struct err *e)
{
	const struct symlook_input *in = l->in;
	bool stripped = !has_symtab(in->elf);
	int rc = load(l, in->elf, &l->own, e);

	if (rc && (rc == -ENOMEM || !in->debug))
		return rc;
	if (!stripped)
		name_from(l, l->own, SYM_SYMTAB);
	if (in->debug && l->left) {
		rc = load(l, in->debug, &l->debug, e);
		if (rc && (rc == -ENOMEM || !l->own))
			return rc;
		name_from(l, l->debug, SYM_SYMTAB);
	}
	if (stripped)
		name_from(l, l->own, SYM_SYMTAB);
	return 0;
}

/* The string that is shown for NAME, whose own string is LINKAGE. */
static uint32_t shown(struct look *l, const char *name, uint32_t linkage)
{
	char text[DEMANGLE_OUT_MAX];
	struct idmap_slot *known;
	uint32_t string = linkage;

	if (!l->in->demangle)
		return linkage;
	known = idmap_find(&l->shown, 0, linkage);
	if (known)
		return known->value;
	if (demangle(name, text, sizeof(text)))
		string = symanswer_string(&l->b, text);
	if (idmap_put(&l->shown, 0, linkage, string, NULL) == UINT32_MAX)
		l->b.failed = true;
	return string;
}

/* Addresses come in order, so many in a row are in one function. */
static void frame_of_symbol(struct look *l, const char *name, struct symanswer_frame *f)
{
	if (name != l->last) {
		l->last_frame = (struct symanswer_frame){ .linkage = symanswer_string(&l->b, name) };
		l->last_frame.name = shown(l, name, l->last_frame.linkage);
		l->last = name;
	}
	*f = l->last_frame;
}

static void put_address(struct look *l, size_t i)
{
	const struct named *n = &l->named[i];
	struct symanswer_addr a = { .vaddr = l->in->vaddrs[i] };
	struct symanswer_frame f;

	if (!n->name) {
		a.reason = l->any ? SYM_R_NO_SYMBOL : SYM_R_NO_TABLES;
		symanswer_put(&l->b, &a, NULL, 0);
		return;
	}
	frame_of_symbol(l, n->name, &f);
	a.start = n->start;
	a.source = n->source;
	a.reason = n->reason;
	symanswer_put(&l->b, &a, &f, 1);
}

int symlook(const struct symlook_input *in, uint8_t **ret, size_t *len, struct err *e)
{
	CLEANUP(look_free) struct look l = { .in = in, .left = in->n_vaddrs, .began_ns = now_ns() };
	int rc;

	symanswer_begin(&l.b);
	l.named = calloc(in->n_vaddrs + 1, sizeof(*l.named));
	if (!l.named)
		return err_nomem(e, "addresses");
	rc = name_by_tables(&l, e);
	if (rc)
		return rc;
	l.b.head.ns_symbols = lap(&l);
	for (size_t i = 0; i < in->n_vaddrs; i++)
		put_address(&l, i);
	l.b.head.ns_names = lap(&l);
	return symanswer_finish(&l.b, ret, len) ? err_nomem(e, "names") : 0;
}
