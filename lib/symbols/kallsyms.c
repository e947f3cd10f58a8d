/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The array of ksymtext, sorted, with one symbol left for each address. An
 * address space that is mostly holes has no dense index, so there are two: the
 * kernel's own symbols are together, modules and programs far from them.
 */
#include "symbols/kallsyms.h"
#include "symbols/ksymname.h"
#include "symbols/ksymtext.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#define LIVE "/proc/kallsyms"
#define PAGE 4096u
#define MARKER ((uint32_t)KSYM_MARKER << KSYMTEXT_BITS)
#define PAGE_CAPPED (UINT32_C(1) << 31) /* ends with its page at the latest */

/*
 * The addresses from BASE on cut into N equal pieces; bucket[i] is the symbol
 * that covers the first address of piece i, so a look-up searches only
 * bucket[i] to bucket[i + 1].
 */
struct index {
	uint64_t base;
	size_t n;
	unsigned int shift;
	uint32_t *bucket; /* n + 1 */
};

struct kallsyms {
	struct ksymtext t; /* its symbols end in one at UINT64_MAX */
	size_t first_module; /* symbols before it are the kernel's own */
	struct ksym *aliases; /* symbols whose address goes by another name */
	size_t naliases, aliases_cap;
	struct index index[2]; /* of the kernel's own symbols, and from first_module on */
};

DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

void kallsyms_free(struct kallsyms *ks)
{
	if (!ks)
		return;
	ksymtext_free(&ks->t);
	free(ks->aliases);
	free(ks->index[0].bucket);
	free(ks->index[1].bucket);
	free(ks);
}

static int check_addresses(const struct ksymtext *t, const char *file, struct err *e)
{
	if (t->n)
		return 0;
	if (t->low) {
		err_set(e, -EINVAL, "'%s' is no copy of /proc/kallsyms: it holds no kernel address", file);
		err_hint(e, "make one with 'kallsyms-resolve --save FILE'");
		return -EINVAL;
	}
	err_sys(e, -EACCES, "no usable address in '%s'", file);
	if (strcmp(file, LIVE) == 0)
		err_hint(e, "kernel.kptr_restrict hides them; run with CAP_SYSLOG");
	else
		err_hint(e, "kernel.kptr_restrict hid them; save the copy again with CAP_SYSLOG");
	return -EACCES;
}

/* ---- order ---- */

/* A stable radix sort, one byte a pass and only of bytes that differ. *S and *TMP have N elements. */
static void sort_syms(struct ksym **s, struct ksym **tmp, size_t n)
{
	uint64_t differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= (*s)[i].start ^ (*s)[0].start;
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		size_t at[257] = { 0 };
		struct ksym *from = *s;

		if (!(differ >> shift & 0xff))
			continue;
		for (size_t i = 0; i < n; i++)
			at[(from[i].start >> shift & 0xff) + 1]++;
		for (size_t b = 1; b < 256; b++)
			at[b] += at[b - 1];
		for (size_t i = 0; i < n; i++)
			(*tmp)[at[from[i].start >> shift & 0xff]++] = from[i];
		*s = *tmp;
		*tmp = from;
	}
}

/* Merge the N symbols at TAIL into the FRONT ones of SYMS, from the end on; of equals TAIL's are last. */
static void merge_syms(struct ksym *syms, size_t front, const struct ksym *tail, size_t n)
{
	while (n) {
		if (front && syms[front - 1].start > tail[n - 1].start) {
			syms[front + n - 1] = syms[front - 1];
			front--;
		} else {
			syms[front + n - 1] = tail[n - 1];
			n--;
		}
	}
}

/* The kernel's own symbols come sorted; modules and programs behind them come in the order of loading. */
static int sort_table(struct ksymtext *t, struct err *e)
{
	_cleanup_free_ struct ksym *tail = NULL, *tmp = NULL;
	size_t n = t->n - t->descent;

	if (!t->descent)
		return 0;
	tail = malloc(n * sizeof(*tail));
	tmp = malloc(n * sizeof(*tmp));
	if (!tail || !tmp)
		return err_nomem(e, "sorting the kernel's symbols");
	memcpy(tail, t->syms + t->descent, n * sizeof(*tail));
	sort_syms(&tail, &tmp, n);
	merge_syms(t->syms, t->descent, tail, n);
	return 0;
}

/* ---- one symbol for each address ---- */

static const char *name_of(const struct ksymtext *t, uint32_t name)
{
	return t->bytes + KSYMTEXT_OFFSET(name);
}

/* Of the symbols FROM to TO, which share an address, the one that names it; the others become aliases. */
static int choose(struct kallsyms *ks, size_t from, size_t to, size_t *best)
{
	const struct ksymtext *t = &ks->t;
	unsigned int least = UINT_MAX;

	for (size_t i = from; i < to; i++) {
		unsigned int rank =
			ksymname_rank(KSYMTEXT_FLAGS(t->syms[i].name), name_of(t, t->syms[i].name));

		if (rank < least) {
			least = rank;
			*best = i;
		}
	}
	if (base_grow(&ks->aliases, &ks->aliases_cap, ks->naliases + to - from, sizeof(*ks->aliases)) < 0)
		return -ENOMEM;
	for (size_t i = from; i < to; i++)
		if (i != *best)
			ks->aliases[ks->naliases++] = t->syms[i];
	return 0;
}

static int settle_aliases(struct kallsyms *ks, struct err *e)
{
	struct ksymtext *t = &ks->t;
	size_t kept = 0;

	for (size_t i = 0, next; i < t->n; i = next) {
		size_t best = i;

		for (next = i + 1; next < t->n && t->syms[next].start == t->syms[i].start; next++)
			;
		if (next - i > 1 && choose(ks, i, next, &best) < 0)
			return err_nomem(e, "the kernel's symbols");
		t->syms[kept++] = t->syms[best];
	}
	t->n = kept;
	t->syms[kept].start = UINT64_MAX;
	return 0;
}

/* ---- where a symbol ends ---- */

/* Programs and trampolines, each allocated by itself. */
static bool stands_alone(const char *module)
{
	return strcmp(module, "bpf") == 0 || strncmp(module, "__builtin__", 11) == 0;
}

static bool ends_with_page(const struct ksymtext *t, size_t i)
{
	uint32_t mine = t->syms[i].module, next;

	if (i + 1 == t->n)
		return true;
	next = t->syms[i + 1].module;
	if (!mine || !next)
		return mine != next;
	return stands_alone(t->bytes + mine) ||
	       (mine != next && strcmp(t->bytes + mine, t->bytes + next) != 0) ||
	       ((KSYMTEXT_FLAGS(t->syms[i].name) ^ KSYMTEXT_FLAGS(t->syms[i + 1].name)) & KSYM_CODE);
}

static void cap_ends(struct kallsyms *ks)
{
	struct ksymtext *t = &ks->t;
	size_t i = 0;

	while (i < t->n && !t->syms[i].module)
		i++;
	ks->first_module = i;
	for (i = ks->first_module ? ks->first_module - 1 : 0; i < t->n; i++)
		if (ends_with_page(t, i))
			t->syms[i].name |= PAGE_CAPPED;
}

static uint64_t end_of(const struct ksymtext *t, size_t i)
{
	uint64_t page_end = (t->syms[i].start | (PAGE - 1)) + 1, next = t->syms[i + 1].start;

	if (t->syms[i].name & MARKER)
		return t->syms[i].start + 1;
	if (t->syms[i].name & PAGE_CAPPED && page_end) /* 0: the last page of all */
		return MIN(next, page_end);
	return next;
}

/* ---- the index ---- */

/* Of the symbols FROM to TO. */
static int build_index(struct index *ix, const struct ksym *syms, size_t from, size_t to, struct err *e)
{
	size_t at = from;
	uint64_t span;

	free(ix->bucket);
	*ix = (struct index){ 0 };
	if (from == to)
		return 0;
	ix->base = syms[from].start;
	span = syms[to - 1].start - ix->base;
	while (span >> ix->shift >= to - from)
		ix->shift++;
	ix->n = (size_t)(span >> ix->shift) + 1;
	ix->bucket = malloc((ix->n + 1) * sizeof(*ix->bucket));
	if (!ix->bucket)
		return err_nomem(e, "the kernel's symbols");
	for (size_t b = 0; b < ix->n; b++) {
		while (at + 1 < to && syms[at + 1].start - ix->base <= (uint64_t)b << ix->shift)
			at++;
		ix->bucket[b] = (uint32_t)at;
	}
	ix->bucket[ix->n] = (uint32_t)(to - 1);
	return 0;
}

static int build_indexes(struct kallsyms *ks, struct err *e)
{
	int err = build_index(&ks->index[0], ks->t.syms, 0, ks->first_module, e);

	return err ? err : build_index(&ks->index[1], ks->t.syms, ks->first_module, ks->t.n, e);
}

/* ---- the interface ---- */

int kallsyms_load_fd(int fd, const char *file, struct kallsyms **ret, struct err *e)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = calloc(1, sizeof(*ks));
	int err;

	*ret = NULL;
	if (!ks)
		return err_nomem(e, "the kernel's symbols");
	err = ksymtext_read(fd, file, &ks->t, e);
	if (!err)
		err = check_addresses(&ks->t, file, e);
	if (!err)
		err = sort_table(&ks->t, e);
	if (!err)
		err = settle_aliases(ks, e);
	if (err)
		return err;
	cap_ends(ks);
	err = build_indexes(ks, e);
	if (err)
		return err;
	*ret = TAKE_PTR(ks);
	return 0;
}

int kallsyms_load(const char *file, struct kallsyms **ret, struct err *e)
{
	_cleanup_close_ int fd = -1;

	*ret = NULL;
	if (!file)
		file = LIVE;
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", file);
	return kallsyms_load_fd(fd, file, ret, e);
}

static bool in_range(const struct kallsyms *ks, const struct index *ix, uint64_t addr)
{
	return ix->n && addr >= ks->t.syms[0].start;
}

static const struct index *index_for(const struct kallsyms *ks, uint64_t addr)
{
	return &ks->index[ks->index[1].n && addr >= ks->index[1].base];
}

static const uint32_t *bucket_for(const struct index *ix, uint64_t addr)
{
	return &ix->bucket[MIN((size_t)((addr - ix->base) >> ix->shift), ix->n - 1)];
}

/* The last symbol that starts at ADDR or before. */
static size_t search(const struct ksymtext *t, const uint32_t *bucket, uint64_t addr)
{
	size_t at = bucket[0], n = bucket[1] - at + 1;

	while (n > 1) { /* syms[at].start <= addr, and the last such is among the N from AT on */
		size_t half = n / 2;

		at = t->syms[at + half].start <= addr ? at + half : at;
		n -= half;
	}
	return at;
}

static bool symbol_at(const struct kallsyms *ks, size_t at, uint64_t addr, struct kallsyms_sym *ret)
{
	const struct ksymtext *t = &ks->t;

	*ret = (struct kallsyms_sym){ .start = t->syms[at].start,
		.end = end_of(t, at),
		.name = name_of(t, t->syms[at].name),
		.module = t->bytes + t->syms[at].module };
	return addr < ret->end;
}

bool kallsyms_find(const struct kallsyms *ks, uint64_t addr, struct kallsyms_sym *ret)
{
	const struct index *ix = index_for(ks, addr);

	return in_range(ks, ix, addr) && symbol_at(ks, search(&ks->t, bucket_for(ix, addr), addr), addr, ret);
}

#define BATCH 64u

/* Each step starts the loads of the next for all addresses, so that their waits overlap. */
static void find_batch(const struct kallsyms *ks, const uint64_t *addrs, size_t n, struct kallsyms_sym *ret)
{
	const uint32_t *buckets[BATCH];
	size_t at[BATCH];

	for (size_t i = 0; i < n; i++) {
		const struct index *ix = index_for(ks, addrs[i]);

		buckets[i] = in_range(ks, ix, addrs[i]) ? bucket_for(ix, addrs[i]) : NULL;
		if (buckets[i])
			__builtin_prefetch(buckets[i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (!buckets[i])
			continue;
		__builtin_prefetch(&ks->t.syms[buckets[i][0]]);
	}
	for (size_t i = 0; i < n; i++) {
		if (!buckets[i])
			continue;
		at[i] = search(&ks->t, buckets[i], addrs[i]);
		__builtin_prefetch(name_of(&ks->t, ks->t.syms[at[i]].name));
	}
	for (size_t i = 0; i < n; i++)
		if (!buckets[i] || !symbol_at(ks, at[i], addrs[i], &ret[i]))
			ret[i].name = NULL;
}

void kallsyms_find_many(const struct kallsyms *ks, const uint64_t *addrs, size_t n, struct kallsyms_sym *ret)
{
	for (size_t i = 0; i < n; i += BATCH)
		find_batch(ks, addrs + i, MIN(n - i, BATCH), ret + i);
}

uint64_t kallsyms_address(const struct kallsyms *ks, const char *name)
{
	uint64_t best = 0;

	for (size_t i = 0; i < ks->naliases && !best; i++)
		if (strcmp(name_of(&ks->t, ks->aliases[i].name), name) == 0)
			best = ks->aliases[i].start;
	for (size_t i = 0; i < ks->t.n && (!best || ks->t.syms[i].start < best); i++)
		if (strcmp(name_of(&ks->t, ks->t.syms[i].name), name) == 0)
			best = ks->t.syms[i].start;
	return best;
}

size_t kallsyms_count(const struct kallsyms *ks)
{
	return ks->t.n + ks->naliases;
}

bool kallsyms_plain(const struct kallsyms *ks)
{
	return !ks->t.odd;
}

/* ---- another boot ---- */

static int check_shift(const struct kallsyms *ks, uint64_t shift, uint64_t stext, struct err *e)
{
	const struct ksymtext *t = &ks->t;
	uint64_t first = t->syms[0].start + shift, last;

	for (size_t i = 0; i < t->n; i++) {
		if (t->syms[i].module)
			continue;
		last = t->syms[i].start + shift;
		if (last < KSYMTEXT_KERNEL_HALF || last < first)
			return err_set(e, -ERANGE,
				"cannot move _stext to 0x%llx: '%s' would leave the kernel's half",
				(unsigned long long)stext, name_of(t, t->syms[i].name));
	}
	return 0;
}

int kallsyms_relocate(struct kallsyms *ks, uint64_t stext, size_t *dropped, struct err *e)
{
	struct ksymtext *t = &ks->t;
	uint64_t own = kallsyms_address(ks, "_stext"), shift = stext - own;
	size_t kept = 0, before = kallsyms_count(ks);
	int err;

	if (!own)
		return err_set(e, -ENOENT, "cannot relocate kernel symbols that have no _stext");
	err = check_shift(ks, shift, stext, e);
	if (err)
		return err;
	for (size_t i = 0; i < t->n; i++) {
		if (t->syms[i].module)
			continue;
		t->syms[kept++] =
			(struct ksym){ t->syms[i].start + shift, t->syms[i].name & ~PAGE_CAPPED, 0 };
	}
	t->n = kept;
	t->syms[kept].start = UINT64_MAX;
	kept = 0;
	for (size_t i = 0; i < ks->naliases; i++)
		if (!ks->aliases[i].module)
			ks->aliases[kept] = ks->aliases[i], ks->aliases[kept++].start += shift;
	ks->naliases = kept;
	if (dropped)
		*dropped = before - kallsyms_count(ks);
	cap_ends(ks);
	return build_indexes(ks, e);
}
