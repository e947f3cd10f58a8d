/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwname.h"

#include <dwarf.h>

#define HOPS 16
#define CHUNK (size_t)16384
#define ENTRY_BYTES 512
#define ENTRY_MAX (UINT64_C(1) << 20)

struct dwname_chunk {
	struct dwname_chunk *next;
	size_t used, cap;
	char text[];
};

/* Where a chain goes on. */
struct hop {
	struct dwinfo *d;
	uint64_t at; /* in its .debug_info */
	bool more, alt_missing;
};

static const char *keep(struct dwnames *n, const char *text)
{
	size_t len = strlen(text) + 1;
	struct dwname_chunk *c = n->chunks;
	char *at;

	if (!c || c->cap - c->used < len) {
		size_t cap = MAX(CHUNK, len);

		c = malloc(sizeof(*c) + cap);
		if (!c)
			return NULL;
		*c = (struct dwname_chunk){ .next = n->chunks, .cap = cap };
		n->chunks = c;
		n->bytes += sizeof(*c) + cap;
	}
	at = c->text + c->used;
	memcpy(at, text, len);
	c->used += len;
	return at;
}

static const char *text_of(struct dwnames *n, struct dwinfo *d, struct dwunit *u, const struct dwvalue *v)
{
	const char *text = dwinfo_text(d, n->alt, u, v);

	/* what stands in the entry is in a buffer that is used again */
	return text && v->kind == DWV_TEXT ? keep(n, text) : text;
}

static void note_link(
	struct dwnames *n, struct dwinfo *d, struct dwunit *u, const struct dwvalue *v, struct hop *hop)
{
	*hop = (struct hop){ .d = d, .more = true };
	if (v->kind == DWV_REF && v->u < u->end - u->at)
		hop->at = u->at + v->u;
	else if (v->kind == DWV_REF_INFO)
		hop->at = v->u;
	else if (v->kind == DWV_REF_ALT && n->alt)
		*hop = (struct hop){ .d = n->alt, .at = v->u, .more = true };
	else
		*hop = (struct hop){ .alt_missing = v->kind == DWV_REF_ALT };
}

static void note_call(struct dwcall *call, uint16_t name, const struct dwvalue *v)
{
	uint32_t *to = name == DW_AT_call_file     ? &call->file
		       : name == DW_AT_call_line   ? &call->line
		       : name == DW_AT_call_column ? &call->column
						   : NULL;

	if (to && v->kind == DWV_CONST && v->u < UINT32_MAX)
		*to = (uint32_t)v->u;
}

/* What the attributes at R add to RET, and where the rest is. False where they are cut short. */
static bool read_entry(struct dwnames *n, struct dwinfo *d, struct dwunit *u, const struct dwabbrev_table *t,
	const struct dwabbrev *a, struct rd *r, struct dwname *ret, struct dwcall *call, struct hop *hop)
{
	struct dwvalue name = { .kind = DWV_NONE }, linkage = name, link = name;

	for (uint32_t i = 0; i < a->n_attrs; i++) {
		const struct dwabbrev_attr *at = &t->attrs[a->attrs + i];
		struct dwvalue v = dwform_read(r, at->form, at->implicit, &u->shape);

		if (at->name == DW_AT_name)
			name = v;
		else if (at->name == DW_AT_linkage_name || at->name == DW_AT_MIPS_linkage_name)
			linkage = v;
		else if (at->name == DW_AT_abstract_origin || at->name == DW_AT_specification)
			link = v;
		else if (call)
			note_call(call, at->name, &v);
	}
	if (r->bad)
		return false;
	if (!ret->name)
		ret->name = text_of(n, d, u, &name);
	if (!ret->linkage)
		ret->linkage = text_of(n, d, u, &linkage);
	*hop = (struct hop){ 0 };
	if (link.kind != DWV_NONE)
		note_link(n, d, u, &link, hop);
	return true;
}

/* The entry at HOP, with bytes of its own; then HOP is the next one. */
static void read_hop(struct dwnames *n, struct hop *hop, struct dwname *ret)
{
	struct dwinfo *d = hop->d;
	struct dwunit *u = dwinfo_unit(d, hop->at);
	const struct dwabbrev_table *t;
	uint64_t at = hop->at, left;

	hop->more = false;
	if (!u || at < u->at + u->first || dwinfo_table(d, u, false, &t, NULL) != 0)
		return;
	left = u->end - at;
	for (uint64_t want = ENTRY_BYTES;; want *= 16) {
		const struct dwabbrev *a;
		struct rd r;

		if (dwsect_read(d->sect, DWSECT_INFO, at, MIN(want, left), &n->piece, NULL) != 0)
			return;
		r = rd_init(n->piece.bytes, n->piece.len);
		a = dwabbrev_find(t, rd_uleb(&r));
		if (!a)
			return;
		if (read_entry(n, d, u, t, a, &r, ret, NULL, hop) || want >= left || want > ENTRY_MAX)
			return;
	}
}

static struct dwname *known(struct dwnames *n, const struct hop *hop, bool *added)
{
	uint32_t id = idmap_put(&n->known, (uint64_t)(uintptr_t)hop->d, hop->at, (uint32_t)n->n, added);

	if (id == UINT32_MAX || base_grow(&n->list, &n->cap, n->n + 1, sizeof(*n->list)) != 0)
		return NULL;
	if (*added)
		n->list[n->n++] = (struct dwname){ 0 };
	return id < n->n ? &n->list[id] : NULL;
}

/* The names at the end of a chain that begins at HOP. */
static void follow(struct dwnames *n, struct hop hop, struct dwname *ret)
{
	bool added = false;
	struct dwname *mine = known(n, &hop, &added);

	if (mine && !added) {
		*ret = *mine;
		return;
	}
	for (unsigned int i = 0; hop.more && i < HOPS && (!ret->name || !ret->linkage); i++)
		read_hop(n, &hop, ret);
	ret->alt_missing = hop.alt_missing && !ret->name && !ret->linkage;
	if (mine)
		*mine = *ret;
}

void dwnames_of_entry(struct dwnames *n, struct dwinfo *d, struct dwunit *u, const struct dwabbrev_table *t,
	const struct dwabbrev *a, struct rd r, struct dwname *ret, struct dwcall *call)
{
	struct dwname own = { 0 }, rest = { 0 };
	struct hop hop = { 0 };

	*ret = own;
	*call = (struct dwcall){ .file = DWCALL_NO_FILE };
	if (!read_entry(n, d, u, t, a, &r, &own, call, &hop))
		return;
	if (hop.more && (!own.name || !own.linkage))
		follow(n, hop, &rest);
	ret->name = own.name ? own.name : rest.name;
	ret->linkage = own.linkage ? own.linkage : rest.linkage;
	ret->alt_missing = hop.alt_missing || rest.alt_missing;
}

void dwnames_free(struct dwnames *n)
{
	while (n->chunks) {
		struct dwname_chunk *c = n->chunks;

		n->chunks = c->next;
		free(c);
	}
	idmap_free(&n->known);
	free(n->list);
	dwpiece_free(&n->piece);
	*n = (struct dwnames){ 0 };
}
