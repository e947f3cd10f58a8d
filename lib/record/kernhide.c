/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/kernhide.h"
#include "base/hash.h"
#include "base/intern.h"

#include <string.h>

#define KERNEL_SPAN (UINT64_C(1) << 30)
#define SMALL_PLACES UINT64_C(0xffff900000000000) /* of one symbol, or one address */
#define SMALL_SPAN (UINT64_C(1) << 24)
#define SMALL_MAX (1u << 20)
#define MODULE_PLACES UINT64_C(0xffffa00000000000)
#define MODULE_SPAN (UINT64_C(1) << 30)
#define MODULE_MAX (1u << 14)

/* The text of a module is one piece: what is farther away from its first symbol is another piece. */
#define MODULE_REACH (UINT64_C(64) << 20)

struct kernhide {
	struct idmap small; /* start of the symbol, or the address -> which place */
	struct idmap modules; /* hash of the name -> which place */
	uint64_t *anchors; /* of each place of a module: where its first symbol really is */
	size_t n_anchors, cap_anchors;
	uint32_t n_small;
};

int kernhide_new(struct kernhide **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_nomem(e, "the table of hidden addresses");
}

void kernhide_free(struct kernhide *h)
{
	if (!h)
		return;
	idmap_free(&h->small);
	idmap_free(&h->modules);
	free(h->anchors);
	free(h);
}

/* A place for KEY alone; OFFSET in it. */
static uint64_t small_place(struct kernhide *h, uint64_t key, uint64_t offset)
{
	bool added = false;
	uint32_t at = idmap_put(&h->small, 0, key, h->n_small, &added);

	h->n_small += added;
	return SMALL_PLACES + MIN(at, SMALL_MAX) * SMALL_SPAN + MIN(offset, SMALL_SPAN - 1);
}

/* Which place NAME has; its first symbol, or what is taken for it, is at START. */
static uint32_t module_place(struct kernhide *h, const char *name, uint64_t start)
{
	uint64_t key = hash_bytes(name, strlen(name), 0);
	const struct idmap_slot *slot = idmap_find(&h->modules, 0, key);

	if (slot)
		return slot->value;
	if (h->n_anchors == MODULE_MAX ||
		base_grow(&h->anchors, &h->cap_anchors, h->n_anchors + 1, sizeof(*h->anchors)) != 0 ||
		idmap_put(&h->modules, 0, key, (uint32_t)h->n_anchors, NULL) != h->n_anchors)
		return UINT32_MAX;
	h->anchors[h->n_anchors] = start;
	return (uint32_t)h->n_anchors++;
}

static bool near(uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) < MODULE_REACH;
}

uint64_t kernhide_address(struct kernhide *h, const struct kallsyms_sym *sym, uint64_t stext, uint64_t addr)
{
	uint32_t at;

	if (!sym)
		return small_place(h, addr, 0);
	if (!*sym->module && stext && sym->start >= stext && addr - stext < KERNEL_SPAN)
		return addr - stext + KERNHIDE_STEXT;
	if (!*sym->module || strcmp(sym->module, "bpf") == 0)
		return small_place(h, sym->start, addr - sym->start);
	at = module_place(h, sym->module, sym->start);
	if (at == UINT32_MAX || !near(addr, h->anchors[at]) || !near(sym->start, h->anchors[at]))
		return small_place(h, sym->start, addr - sym->start);
	return MODULE_PLACES + at * MODULE_SPAN + MODULE_SPAN / 2 + addr - h->anchors[at];
}
