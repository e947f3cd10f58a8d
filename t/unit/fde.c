/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of unwind/fde.h: the table of .eh_frame_hdr gives what reading all of .eh_frame gives, also if it
 * lies or lacks entries. t/tools/symbolize-unnamed.t compares the starts with symbol tables.
 */
#include "base/tap.h"
#include "elf/section.h"
#include "unwind/cfi.h"
#include "unwind/fde.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define MAX_BYTES (UINT64_C(1) << 30)
#define HDR 12 /* bytes before the table */

/* A file in memory, which a test may change. */
struct file {
	uint8_t *bytes;
	size_t len;
	uint8_t *hdr; /* .eh_frame_hdr in it */
	size_t n; /* entries of the table */
	uint64_t *vaddrs; /* where each FDE begins and ends, the bytes before these, and between */
	size_t n_vaddrs;
};

static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return CMP(*x, *y);
}

static void choose(struct file *f, const struct cfi *c)
{
	size_t n = 0;

	f->vaddrs = calloc(5 * c->n_fdes + 2, sizeof(*f->vaddrs));
	f->vaddrs[f->n_vaddrs++] = 0;
	f->vaddrs[f->n_vaddrs++] = UINT64_MAX;
	for (size_t i = 0; i < c->n_fdes; i++) {
		const struct cfi_fde *x = &c->fdes[i];
		const uint64_t at[] = { x->pc, x->pc - 1, x->end, x->end - 1, x->pc + (x->end - x->pc) / 2 };

		memcpy(f->vaddrs + f->n_vaddrs, at, sizeof(at));
		f->n_vaddrs += ARRAY_LEN(at);
	}
	qsort(f->vaddrs, f->n_vaddrs, sizeof(*f->vaddrs), by_value);
	for (size_t i = 0; i < f->n_vaddrs; i++)
		if (!n || f->vaddrs[n - 1] != f->vaddrs[i])
			f->vaddrs[n++] = f->vaddrs[i];
	f->n_vaddrs = n;
}

static bool load(struct file *f, const char *path)
{
	struct elffile *elf = NULL;
	struct elfsection_names names = { 0 };
	struct elfsection sec = { 0 };
	struct cfi c = { 0 };
	bool fine = false;

	*f = (struct file){ 0 };
	if (elffile_open(AT_FDCWD, path, false, &elf, NULL) != 0)
		return false;
	f->len = elf->size;
	f->bytes = malloc(f->len);
	for (size_t i = 0; i < elf->n_loads; i++)
		if (elf->eh_frame_hdr >= elf->loads[i].vaddr &&
			elf->eh_frame_hdr - elf->loads[i].vaddr < elf->loads[i].filesz)
			f->hdr = f->bytes + elf->loads[i].offset + (elf->eh_frame_hdr - elf->loads[i].vaddr);
	if (elffile_read_at(elf, 0, f->bytes, f->len, NULL) == 0 &&
		elfsection_names(elf, &names, NULL) == 0 &&
		elfsection_load(elf, &names, ".eh_frame", MAX_BYTES, &sec, NULL) > 0) {
		const struct cfi_section s = {
			.p = sec.bytes, .len = sec.len, .vaddr = sec.header->addr, .eh = true
		};

		fine = f->hdr && elf->eh_frame_hdr_size > HDR && cfi_read(&s, &c, NULL) == 0;
		f->n = (elf->eh_frame_hdr_size - HDR) / 8;
	}
	if (fine)
		choose(f, &c);
	cfi_free(&c);
	elfsection_free(&sec);
	elfsection_names_free(&names);
	elffile_close(elf);
	return fine;
}

static void unload(struct file *f)
{
	free(f->bytes);
	free(f->vaddrs);
}

/* The ranges of N addresses from F; NULL on failure. */
static struct fde_range *ranges(const struct file *f, const uint64_t *vaddrs, size_t n)
{
	struct fde_range *r = calloc(n + 1, sizeof(*r));
	struct elffile *elf = NULL;

	if (elffile_image(f->bytes, f->len, &elf, NULL) != 0 ||
		fde_ranges(elf, NULL, vaddrs, n, MAX_BYTES, r, NULL) != 0) {
		free(r);
		r = NULL;
	}
	elffile_close(elf);
	return r;
}

/* How many of the ranges of F differ from WANT. */
static size_t differences(const struct file *f, const struct fde_range *want)
{
	struct fde_range *got = ranges(f, f->vaddrs, f->n_vaddrs);
	size_t n = 0;

	for (size_t i = 0; got && i < f->n_vaddrs; i++)
		n += got[i].start != want[i].start || got[i].end != want[i].end ||
		     got[i].signal != want[i].signal;
	free(got);
	return got ? n : f->n_vaddrs;
}

/* Without a usable table, all entries are read. */
static struct fde_range *by_reading_all(struct file *f)
{
	struct fde_range *r;

	f->hdr[0] = 9;
	r = ranges(f, f->vaddrs, f->n_vaddrs);
	f->hdr[0] = 1;
	return r;
}

static void test_table(struct tap *t, struct file *f, const char *path)
{
	struct fde_range *want = by_reading_all(f);
	size_t covered = 0, wrong = 0;

	for (size_t i = 0; want && i < f->n_vaddrs; i++) {
		covered += want[i].end != 0;
		wrong += want[i].end && (f->vaddrs[i] < want[i].start || f->vaddrs[i] >= want[i].end);
	}
	tap_ok(t, want && covered >= f->n && !wrong, "%s: each range has its address (%zu of %zu addresses)",
		path, covered, f->n_vaddrs);
	if (want)
		tap_eq_u64(t, differences(f, want), 0, "the table gives the ranges of all of .eh_frame");
	wrong = 0;
	for (size_t i = 0; want && i < f->n_vaddrs; i += 1 + f->n_vaddrs / 200) {
		struct fde_range *one = ranges(f, f->vaddrs + i, 1);

		wrong += !one || one->start != want[i].start || one->end != want[i].end;
		free(one);
	}
	tap_eq_u64(t, wrong, 0, "an address alone has the same range as among others");
	free(want);
}

/* The number of ranges that F has; SIZE_MAX if one is not that of WANT. */
static size_t found(const struct file *f, const struct fde_range *want)
{
	struct fde_range *got = ranges(f, f->vaddrs, f->n_vaddrs);
	size_t n = 0, wrong = !got;

	for (size_t i = 0; got && i < f->n_vaddrs; i++) {
		n += got[i].end != 0;
		wrong += got[i].end && (got[i].start != want[i].start || got[i].end != want[i].end);
	}
	free(got);
	return wrong ? SIZE_MAX : n;
}

/* Entries that lie are not believed. */
static void test_hostile(struct tap *t, struct file *f)
{
	struct fde_range *want = by_reading_all(f);
	const size_t len = HDR + 8 * f->n, all = want ? found(f, want) : 0;
	uint8_t *good = malloc(len);
	size_t wrong = 0, n;

	memcpy(good, f->hdr, len);
	if (!want)
		abort();
	for (size_t i = 0; i < f->n; i++) /* the start of this entry, the FDE of the one after it */
		memcpy(f->hdr + HDR + 8 * i + 4, good + HDR + 8 * ((i + 1) % f->n) + 4, 4);
	tap_eq_u64(t, differences(f, want), 0, "entries with the FDE of another function change nothing");
	memset(f->hdr + 8, 0xff, 4);
	tap_eq_u64(
		t, differences(f, want), 0, "a table that claims to be longer than its header is not used");
	memcpy(f->hdr, good, len);
	f->hdr[8] = (uint8_t)(f->n / 2), f->hdr[9] = (uint8_t)(f->n / 2 >> 8);
	n = found(f, want);
	tap_ok(t, n > all / 3 && n < all * 2 / 3, "FDEs that a table has are found, those it lacks are not");
	memcpy(f->hdr, good, len);
	memset(f->hdr + HDR, 0, len - HDR);
	wrong += found(f, want) == SIZE_MAX;
	memset(f->hdr + HDR, 0xff, len - HDR);
	wrong += found(f, want) == SIZE_MAX;
	for (unsigned int round = 0; round < 200; round++) {
		memcpy(f->hdr, good, len);
		for (unsigned int k = 0; k < 1 + round % 16; k++)
			f->hdr[next_random() % (round < 50 ? HDR : len)] = (uint8_t)next_random();
		wrong += found(f, want) == SIZE_MAX;
	}
	tap_eq_u64(t, wrong, 0, "any bytes of the table and its header changed: no range is another one");
	memcpy(f->hdr, good, len);
	free(good);
	free(want);
}

/* Whatever is in .eh_frame, a range has its address. */
static void test_damaged(struct tap *t, struct file *f)
{
	uint8_t *copy = malloc(f->len);
	size_t wrong = 0;

	memcpy(copy, f->bytes, f->len);
	for (unsigned int round = 0; round < 100; round++) {
		struct fde_range *r;

		memcpy(f->bytes, copy, f->len);
		for (unsigned int k = 0; k < 2000; k++) /* .eh_frame follows .eh_frame_hdr */
			f->hdr[next_random() % (24 * f->n)] = (uint8_t)next_random();
		r = ranges(f, f->vaddrs, f->n_vaddrs);
		for (size_t i = 0; r && i < f->n_vaddrs; i++)
			wrong += r[i].end && (f->vaddrs[i] < r[i].start || f->vaddrs[i] >= r[i].end);
		wrong += !r;
		free(r);
	}
	memcpy(f->bytes, copy, f->len);
	free(copy);
	tap_eq_u64(t, wrong, 0, "damaged call frame information gives no range without its address");
}

static void test_other(struct tap *t, struct file *f)
{
	struct fde_range *r = ranges(f, f->vaddrs, 0);
	Elf64_Ehdr eh;

	tap_ok(t, r != NULL, "no addresses are no error");
	free(r);
	memcpy(&eh, f->bytes, sizeof(eh));
	eh.e_type = ET_REL;
	memcpy(f->bytes, &eh, sizeof(eh));
	r = ranges(f, f->vaddrs, f->n_vaddrs);
	for (size_t i = 0; r && i < f->n_vaddrs; i++)
		if (r[i].end)
			f->n = SIZE_MAX;
	tap_ok(t, r && f->n != SIZE_MAX, "a relocatable file has no ranges");
	free(r);
}

int main(void)
{
	static const char *const paths[] = { "/proc/self/exe", "/usr/lib/x86_64-linux-gnu/libz.so.1",
		"/usr/lib/x86_64-linux-gnu/libc.so.6" };
	struct tap t = { 0 };
	struct file f;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		if (load(&f, paths[i])) {
			test_table(&t, &f, paths[i]);
			if (i < 2) {
				test_hostile(&t, &f);
				test_damaged(&t, &f);
			}
			if (i == 0)
				test_other(&t, &f);
		} else {
			tap_skip(&t, paths[i], "it has no table of call frame information");
		}
		unload(&f);
	}
	return tap_done(&t);
}
