/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sections of call frame information written by hand, good, strange and hostile. */
#include "../data/cfi/compile.h"
#include "unwind/cfi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* --- CIEs --- */

/* A CIE of these bytes behind its identifier, and an FDE of it with an address of 8 bytes. */
static struct table one_cie(const void *body, size_t n, const void *fde, size_t fde_n)
{
	struct buf b = { 0 };
	struct table t;
	size_t at;

	buf_fixed(&b, 0, 4);
	buf_fixed(&b, 0, 4);
	buf_put(&b, body, n);
	image_end_entry(&b, 0);
	at = b.len;
	buf_fixed(&b, 0, 4);
	buf_fixed(&b, at + 4, 4);
	buf_put(&b, fde, fde_n);
	image_end_entry(&b, at);
	t = compile(&b);
	buf_free(&b);
	return t;
}

#define PC8 "\0\0\x40\0\0\0\0\0"
#define LEN8 "\0\1\0\0\0\0\0\0"
#define INSNS "\x0c\7\x08\x90\1"

static void test_cies(struct tap *t)
{
	static const struct {
		const char *cie;
		size_t n;
		const char *fde;
		size_t fde_n;
		const char *want, *name;
	} forms[] = {
		{ BYTES("\1\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8", "no augmentation" },
		{ BYTES("\3\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8", "version 3" },
		{ BYTES("\3\0\1\x78\x90\0" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8",
			"version 3: the column is a LEB128" },
		{ BYTES("\4\0\x08\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8", "version 4" },
		{ BYTES("\4\0\4\0\1\x78\x10" INSNS), BYTES("\0\0\x40\0\0\1\0\0"), "rsp+8 u c-8",
			"version 4: addresses of 4 bytes" },
		{ BYTES("\4\0\x08\4\1\x78\x10" INSNS), BYTES(PC8 LEN8), NULL, "segment selectors" },
		{ BYTES("\4\0\3\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), NULL, "addresses of 3 bytes" },
		{ BYTES("\2\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), NULL, "version 2" },
		{ BYTES("\1eh\0ABCDEFGH\1\x78\x10" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8", "eh" },
		{ BYTES("\1z\0\1\x78\x10\0" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8", "z alone" },
		{ BYTES("\1zR\0\1\x78\x10\1\x1b" INSNS), BYTES("\xdf\xff\xbf\xff\0\1\0\0\0"), NULL,
			"pcrel, to outside of the text" },
		{ BYTES("\1zRS\0\1\x78\x10\1\4" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8 signal",
			"S: a signal frame" },
		{ BYTES("\1zPLR\0\1\x78\x10\7\3ABCD\x1b\4" INSNS), BYTES(PC8 LEN8 "\2ab"), "rsp+8 u c-8",
			"P and L: a personality of 4 bytes, a language area" },
		{ BYTES("\1zPLR\0\1\x78\x10\7\x9b"
			"ABCD\x1b\4" INSNS),
			BYTES(PC8 LEN8 "\2ab"), "rsp+8 u c-8", "P: an indirect personality" },
		{ BYTES("\1zPR\0\1\x78\x10\2\xff\4" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8", "P: none" },
		{ BYTES("\1zRB\0\1\x78\x10\1\4" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8", "B" },
		{ BYTES("\1zRX\0\1\x78\x10\3\4ab" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8",
			"an unknown letter is skipped by the length" },
		{ BYTES("\1zXR\0\1\x78\x10\3ab\4" INSNS), BYTES(PC8 LEN8 "\0"), NULL,
			"one before R hides the encoding" },
		{ BYTES("\1zR\0\1\x78\x10\1\x84" INSNS), BYTES(PC8 LEN8 "\0"), NULL, "indirect addresses" },
		{ BYTES("\1zR\0\1\x78\x10\1\x05" INSNS), BYTES(PC8 LEN8 "\0"), NULL, "an unknown form" },
		{ BYTES("\1zR\0\1\x78\x10\1\x64" INSNS), BYTES(PC8 LEN8 "\0"), NULL, "an unknown base" },
		{ BYTES("\1zR\0\1\x78\x10\1\xff" INSNS), BYTES(PC8 LEN8 "\0"), NULL, "no address at all" },
		{ BYTES("\1zR\0\1\x78\x10\1\1" INSNS), BYTES("\x80\x80\x80\2\x80\2\0"), "rsp+8 u c-8",
			"uleb128" },
		{ BYTES("\1zR\0\1\x78\x10\1\x0b" INSNS), BYTES("\0\0\x40\0\0\1\0\0\0"), "rsp+8 u c-8",
			"sdata4" },
		{ BYTES("\1zR\0\1\x78\x10\1\x50" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8", "aligned" },
		{ BYTES("\1zR\0\1\x78\x10\1\x34" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8",
			"datarel counts from 0" },
		{ BYTES("\1q\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), NULL, "letters without z" },
		{ BYTES("\1zR\0\1\x78\x10\x7f\4" INSNS), BYTES(PC8 LEN8 "\0"), NULL,
			"augmentation data longer than the entry" },
		{ BYTES("\1zRzRzRzRzRzRzRzRzRzR"), BYTES(PC8 LEN8 "\0"), NULL, "a string without an end" },
		{ BYTES("\1\0\1\x78\x10\x0b"), BYTES(PC8 LEN8), NULL, "instructions that make no sense" },
		{ BYTES("\1\0\1\x78\x10\x41" INSNS), BYTES(PC8 LEN8), NULL, "instructions that advance" },
	};

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct table tab = one_cie(forms[i].cie, forms[i].n, forms[i].fde, forms[i].fde_n);
		char buf[256];

		if (forms[i].want) {
			is_row(t, &tab, TEXT, forms[i].want, forms[i].name);
		} else {
			tap_ok(t,
				strcmp(row_text(&tab, TEXT, buf, sizeof(buf)), "no segment") == 0 &&
					left(&tab, UNWINDTAB_BAD_CIE) + left(&tab, UNWINDTAB_BAD_FDE) +
						left(&tab, UNWINDTAB_OUTSIDE),
				"%s: left out and counted", forms[i].name);
		}
		free(tab.bytes);
	}
}

/* --- FDEs --- */

static void test_fdes(struct tap *t)
{
	struct buf b = { 0 };
	size_t cie = image_cie(&b, false);
	struct table tab;

	image_fde(&b, cie, TEXT + 0x300, 0x100, BYTES("\x0e\x30"), false);
	image_fde(&b, cie, TEXT + 0x100, 0x100, BYTES("\x0e\x10"), false);
	image_fde(&b, cie, TEXT + 0x200, 0x80, BYTES("\x0e\x20"), false);
	image_fde(&b, cie, TEXT + 0x500, 0, BYTES("\x0e\x50"), false);
	image_fde(&b, cie, 0, 0x100, BYTES("\x0e\x50"), false);
	image_fde(&b, cie, TEXT - 8, 0x10, BYTES("\x0e\x50"), false);
	image_fde(&b, cie, TEXT + TEXT_BYTES - 8, 0x10, BYTES("\x0e\x58"), false);
	image_fde(&b, cie, TEXT + 0x600, UINT64_MAX - TEXT, BYTES("\x0e\x50"), false);
	tab = compile(&b);
	is_row(t, &tab, TEXT + 0x1ff, "rsp+16 u c-8", "FDEs need not be sorted");
	is_row(t, &tab, TEXT + 0x200, "rsp+32 u c-8", "one begins where another ends");
	is_row(t, &tab, TEXT + 0x280, "none", "between two there is nothing");
	is_row(t, &tab, TEXT + 0x300, "rsp+48 u c-8", "then comes the next");
	is_row(t, &tab, TEXT + 0x500, "none", "one of no bytes is none");
	is_row(t, &tab, TEXT + TEXT_BYTES - 1, "rsp+88 u c-8", "one that leaves the text holds inside");
	tap_ok(t, unwindtab_find(&tab.view, 0, NULL, NULL) == NULL, "one at 0, left by a linker, is dropped");
	tap_eq_u64(t, left(&tab, UNWINDTAB_OUTSIDE), 3, "what is outside the text is counted");
	tap_eq_u64(t, left(&tab, UNWINDTAB_BAD_FDE), 1, "a range that wraps around is malformed");
	tap_eq_u64(t, tab.view.head->n_fdes, 6, "good FDEs are counted");
	free(tab.bytes);
	buf_free(&b);
}

static void test_overlap(struct tap *t)
{
	struct buf b = { 0 };
	size_t cie = image_cie(&b, false);
	struct table tab;

	image_fde(&b, cie, TEXT, 0x100, BYTES("\x0e\x10\x60\x0e\x18"), false);
	image_fde(&b, cie, TEXT + 0x40, 0x20, BYTES("\x0e\x20"), false);
	image_fde(&b, cie, TEXT + 0x200, 0x10, BYTES("\x0e\x28"), false);
	image_fde(&b, cie, TEXT + 0x200, 0x20, BYTES("\x0e\x30"), false);
	image_fde(&b, cie, TEXT + 0x200, 0x08, BYTES("\x0e\x38"), false);
	tab = compile(&b);
	is_row(t, &tab, TEXT + 0x3f, "rsp+24 u c-8", "an FDE holds up to where another begins inside it");
	is_row(t, &tab, TEXT + 0x40, "rsp+32 u c-8", "then that one holds");
	is_row(t, &tab, TEXT + 0x60, "none", "and behind it neither, as in a search by .eh_frame_hdr");
	is_row(t, &tab, TEXT + 0x200, "rsp+48 u c-8", "of those that begin together the longest holds");
	is_row(t, &tab, TEXT + 0x21f, "rsp+48 u c-8", "to its end");
	tap_eq_u64(t, left(&tab, UNWINDTAB_OVERLAP), 3, "they are counted");
	free(tab.bytes);
	buf_free(&b);
}

static void test_cie_pointers(struct tap *t)
{
	struct image_opts o = { .debug = true };
	struct buf b = { 0 }, d = { 0 };
	size_t cie = image_cie(&b, false);
	struct table tab;

	image_fde(&b, b.len + 4, TEXT, 0x10, BYTES(""), false); /* the pointer itself: that is a CIE's mark */
	image_fde(&b, b.len, TEXT + 0x10, 0x10, BYTES(""), false); /* itself */
	image_fde(&b, cie + 4, TEXT + 0x20, 0x10, BYTES(""), false); /* into a CIE */
	image_fde(&b, 0x7ffffff0, TEXT + 0x30, 0x10, BYTES(""), false); /* behind the section */
	image_fde(&b, (size_t)-16, TEXT + 0x40, 0x10, BYTES(""), false); /* before it */
	tab = compile(&b);
	tap_ok(t, tab.rc == 0 && tab.view.head->n_cies == 1 && tab.view.head->n_segs == 0,
		"CIEs are entries of their own");
	tap_eq_u64(t, left(&tab, UNWINDTAB_BAD_FDE) + left(&tab, UNWINDTAB_BAD_CIE), 5,
		"a pointer to itself, into a CIE, behind and before the section: left out and counted");
	free(tab.bytes);

	image_fde(&d, 0x20, TEXT, 0x10, BYTES("\x0e\x10"), true); /* it takes 0x20 bytes */
	image_cie(&d, true);
	image_fde(&d, d.len + 0x20, TEXT + 0x10, 0x10, BYTES("\x0e\x10"), true); /* there is nothing */
	tab = compile_as(&d, &o);
	is_row(t, &tab, TEXT, "rsp+16 u c-8", "in .debug_frame a CIE may stand behind its FDE");
	tap_eq_u64(t, left(&tab, UNWINDTAB_BAD_FDE), 1, "but not where the section ends");
	free(tab.bytes);
	buf_free(&b);
	buf_free(&d);
}

/* --- sections --- */

static void test_sections(struct tap *t)
{
	struct image_opts o = { .debug = true };
	struct buf b = { 0 }, d = { 0 }, none = { 0 };
	struct table tab;

	image_fde(&d, image_cie(&d, true), TEXT + 0x80, 0x100, BYTES("\x0e\x20"), true);
	image_fde(&d, 0, TEXT + 0x300, 0x100, BYTES("\x0e\x28"), true);
	tab = compile_as(&d, &o);
	is_row(t, &tab, TEXT + 0x80, "rsp+32 u c-8", ".debug_frame is read");
	tap_eq_u64(t, tab.rc ? 9 : tab.view.head->section, UNWINDTAB_DEBUG_FRAME, "and named");
	free(tab.bytes);

	image_fde(&b, image_cie(&b, false), TEXT, 0x100, BYTES("\x0e\x10"), false);
	o = (struct image_opts){ .second = &d };
	tab = compile_as(&b, &o);
	is_row(t, &tab, TEXT + 0xff, "rsp+16 u c-8",
		"where both sections speak of an address .eh_frame holds");
	is_row(t, &tab, TEXT + 0x100, "none", "an FDE of .debug_frame that begins inside is left out");
	is_row(t, &tab, TEXT + 0x300, "rsp+40 u c-8", "the others are taken");
	tap_eq_u64(t, tab.rc ? 9 : tab.view.head->section, UNWINDTAB_BOTH, "and both are named");
	free(tab.bytes);

	o = (struct image_opts){ .no_sections = true };
	tab = compile_as(&b, &o);
	is_row(t, &tab, TEXT, "rsp+16 u c-8",
		"without section headers .eh_frame is found by PT_GNU_EH_FRAME");
	free(tab.bytes);
	buf_fixed(&b, 0, 4);
	image_fde(&b, 0, TEXT + 0x200, 0x100, BYTES("\x0e\x28"), false);
	tab = compile_as(&b, &o);
	is_row(t, &tab, TEXT + 0x200, "none", "then a length of 0 ends it");
	free(tab.bytes);
	tab = compile(&b);
	is_row(t, &tab, TEXT + 0x200, "rsp+40 u c-8", "in a section what follows counts too");
	free(tab.bytes);

	o = (struct image_opts){ .name = ".text" };
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == 0 && tab.view.head->n_segs == 0,
		"a file without such sections: a table of nothing");
	free(tab.bytes);
	tab = compile(&none);
	tap_ok(t, tab.rc == 0 && tab.view.head->n_segs == 0, "an empty section too");
	free(tab.bytes);
	buf_free(&b);
	buf_free(&d);
}

static void test_64bit(struct tap *t)
{
	struct buf b = { 0 };
	struct table tab;
	struct image_opts o = { .debug = true };

	buf_fixed(&b, 0xffffffff, 4);
	buf_fixed(&b, 8 + 5 + 5 + 6, 8);
	buf_fixed(&b, UINT64_MAX, 8);
	buf_put(&b, BYTES("\4\0\x08\0\1\x78\x10" INSNS "\0\0\0\0"));
	buf_fixed(&b, 0xffffffff, 4);
	buf_fixed(&b, 24 + 2, 8);
	buf_fixed(&b, 0, 8);
	buf_fixed(&b, TEXT, 8);
	buf_fixed(&b, 0x100, 8);
	buf_put(&b, BYTES("\x0e\x10"));
	tab = compile_as(&b, &o);
	is_row(t, &tab, TEXT, "rsp+16 u c-8", "entries of the 64-bit form are read");
	free(tab.bytes);
	buf_free(&b);
}

static void test_lengths(struct tap *t)
{
	static const uint32_t lengths[] = { 0x1000, 0x7fffffff, 0xffffffef, 0xfffffff0, 0xfffffffe,
		0xffffffff };

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct buf b = { 0 };
		struct table tab;

		image_fde(&b, image_cie(&b, false), TEXT, 0x100, BYTES("\x0e\x10"), false);
		buf_fixed(&b, lengths[i], 4);
		buf_fixed(&b, UINT64_MAX, 8);
		buf_fixed(&b, 0, 8);
		tab = compile(&b);
		tap_ok(t, left(&tab, UNWINDTAB_BAD_FDE) == 1 && tab.view.head->n_fdes == 1,
			"a length of 0x%x leads outside: the rest is left out, what came before stands",
			lengths[i]);
		free(tab.bytes);
		buf_free(&b);
	}
}

static void test_machines(struct tap *t)
{
	struct image_opts o = { .machine = EM_AARCH64 };
	struct buf b = { 0 };
	struct table tab;

	image_fde(&b, image_cie(&b, false), TEXT, 0x100, BYTES("\x0e\x10"), false);
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EOPNOTSUPP && strstr(tab.e.msg, "another machine"), "another machine: %s",
		tab.e.msg);
	o = (struct image_opts){ .type = ET_REL };
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EINVAL && strstr(tab.e.msg, "not linked"), "an object file: %s", tab.e.msg);
	o = (struct image_opts){ .flags = SHF_COMPRESSED };
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EOPNOTSUPP && strstr(tab.e.msg, "compressed"), "an unknown compression: %s",
		tab.e.msg);
	o = (struct image_opts){ .name = ".zeh_frame" };
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EINVAL && strstr(tab.e.msg, "not compressed"), "a compression in name only: %s",
		tab.e.msg);
	buf_free(&b);
}

/* A stream that claims more than it can hold. */
static void test_bombs(struct tap *t)
{
	struct image_opts o = { .flags = SHF_COMPRESSED };
	struct buf b = { 0 };
	struct table tab;

	buf_fixed(&b, ELFCOMPRESS_ZLIB, 4);
	buf_fixed(&b, 0, 4);
	buf_fixed(&b, UNWINDCOMP_SECTION_MAX, 8);
	buf_fixed(&b, 1, 8);
	buf_fixed(&b, 0x9c78, 8);
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EINVAL && strstr(tab.e.msg, "claims"), "more than deflate can reach: %s",
		tab.e.msg);
	memset(b.p + 8, 0xff, 8);
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -E2BIG, "more than is read at all: %s", tab.e.msg);
	b.p[8] = 100;
	memset(b.p + 9, 0, 7);
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EINVAL && strstr(tab.e.msg, "uncompressed"), "a broken stream: %s", tab.e.msg);
	buf_free(&b);
}

/* --- everything else that a file can do --- */

static void rule_bomb(struct tap *t)
{
	struct buf b = { 0 }, insns = { 0 };
	struct table tab;

	for (unsigned int i = 0; i < UNWINDTAB_RULES_MAX + 1000; i++) {
		buf_fixed(&insns, 0x44, 1);
		buf_fixed(&insns, 0x0e, 1);
		buf_uleb(&insns, 8 * i);
	}
	image_fde(&b, image_cie(&b, false), TEXT, TEXT_BYTES, insns.p, insns.len, false);
	tab = compile(&b);
	tap_ok(t,
		tab.rc == 0 && tab.view.head->n_rules == UNWINDTAB_RULES_MAX &&
			left(&tab, UNWINDTAB_TOO_MANY),
		"more rules than a table holds: the rest is unsupported and counted");
	is_row(t, &tab, TEXT + 400, "rsp+792 u c-8", "the rows before are right");
	is_row(t, &tab, TEXT + 4 * UNWINDTAB_RULES_MAX, "unsupported", "those behind claim nothing");
	free(tab.bytes);
	buf_free(&b);
	buf_free(&insns);
}

/* Functions with a bit of everything. */
static struct buf everything(void)
{
	static const struct {
		const char *insns;
		size_t n;
	} some[] = {
		{ BYTES("\x50\x0e\x10\x86\2\x43\x0d\6\x0a\x60\xc6\x0c\7\x08\x41\x0b") },
		{ BYTES("\2\x10\x0e\x10\3\x10\0\x0e\x18\4\x10\0\0\0\x0e\x20") },
		{ BYTES("\x1d\x10\0\0\0\0\0\0\0\x0e\x10") },
		{ BYTES("\1\x10\3\x40\0\0\0\0\0\x0e\x10") },
		{ BYTES("\x12\6\x7e\x41\x13\x7e\x41\5\6\2\x41\x11\6\x7e\x41\x2f\6\2\x41\6\6") },
		{ BYTES("\7\6\x41\x08\6\x41\x09\6\3\x41\x14\6\1\x41\x15\6\1\x41\x16\6\2\x77\0") },
		{ BYTES("\x0f\5\x77\x28\6\x23\x08\x41\x10\6\2\x77\x10\x41\x10\x10\3\x77\xa8\1") },
		{ BYTES("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22") },
	};
	struct buf b = { 0 };
	size_t cie = image_cie(&b, false);

	for (size_t k = 0; k < ARRAY_LEN(some); k++)
		image_fde(&b, cie, TEXT + 0x100 * k, 0x100, some[k].insns, some[k].n, false);
	return b;
}

/* Every prefix of a good section, and every bit of it changed. */
static void test_damage(struct tap *t)
{
	struct buf b = everything();
	size_t refused = 0;

	for (size_t n = 0; n <= b.len; n++) {
		struct buf cut = { .p = b.p, .len = n };
		struct table tab = compile(&cut);

		refused += tab.rc != 0;
		free(tab.bytes);
	}
	tap_eq_u64(t, refused, 0, "a section cut anywhere gives a good table of what is left");
	for (size_t i = 0; i < b.len; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			struct table tab;

			b.p[i] ^= (uint8_t)(1U << bit);
			tab = compile(&b);
			refused += tab.rc != 0 && tab.rc != -E2BIG;
			free(tab.bytes);
			b.p[i] ^= (uint8_t)(1U << bit);
		}
	}
	tap_eq_u64(t, refused, 0, "one with any bit changed gives a good table");
	buf_free(&b);
}

/* The rows of a section, read where it lies. */
static size_t rows_in_place(const uint8_t *p, size_t n)
{
	const struct cfi_section s = { .p = p, .len = n, .vaddr = FRAME, .eh = true };
	static struct cfarun run;
	struct cfi c;
	size_t rows = 0;

	if (cfi_read(&s, &c, NULL))
		return 0;
	for (size_t i = 0; i < c.n_fdes; i++) {
		const struct cfi_cie *cie = &c.cies[c.fdes[i].cie];
		const struct cfarun_regs regs = { 7, 6, cie->ra_reg, 3 };
		struct cfarules initial;
		uint64_t pc;

		if (!cfarun_initial(&s, cie, &regs, &initial))
			continue;
		cfarun_begin(&run, &s, cie, &c.fdes[i], &regs, &initial);
		while (cfarun_next(&run, &pc))
			rows++;
	}
	cfi_free(&c);
	return rows;
}

/* A byte read behind the section's end would end this program. */
static void test_hole(struct tap *t)
{
	const struct buf b = everything();
	const size_t room = (b.len + 4095) & ~(size_t)4095;
	uint8_t *p = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t most = 0;

	if (p == MAP_FAILED || mprotect(p + room, 4096, PROT_NONE))
		abort();
	for (size_t n = 0; n <= b.len; n++) {
		uint8_t *at = p + room - n;
		uint32_t len;

		memcpy(at, b.p, n);
		most = MAX(most, rows_in_place(at, n));
		/* the entry that is cut made to end with the bytes */
		for (size_t i = 0; i + 4 <= n; i += len + 4) {
			memcpy(&len, at + i, 4);
			if (len > n - i - 4)
				len = (uint32_t)(n - i - 4);
			memcpy(at + i, &len, 4);
		}
		rows_in_place(at, n);
	}
	munmap(p, room + 4096);
	tap_ok(t, most > 20, "nothing behind a section is read, wherever it ends (%zu rows)", most);
	free(b.p);
}

/* --- the kept inputs of the fuzzer --- */

static bool survives(const char *dir, const char *name)
{
	char path[512];
	uint8_t bytes[65536];
	struct elffile *f = NULL;
	uint8_t *table = NULL;
	struct unwindtab v;
	ssize_t n;
	size_t len;
	int fd, rc = 0;
	bool good = true;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
	close(fd);
	if (n < 0)
		return false;
	if (elffile_image(bytes, (size_t)n, &f, NULL) == 0) {
		rc = unwindcomp(f, &table, &len, NULL);
		good = rc || unwindtab_view(table, len, &v, NULL) == 0;
	} else {
		const struct buf b = { .p = bytes, .len = (size_t)n };
		struct table tab = compile(&b);

		good = tab.rc == 0 || tab.rc == -E2BIG;
		free(tab.bytes);
	}
	free(table);
	elffile_close(f);
	return good;
}

static void test_corpus(struct tap *t, const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t n = 0, bad = 0;

	while (d && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		bad += !survives(dir, e->d_name);
	}
	if (d)
		closedir(d);
	tap_ok(t, n > 0 && bad == 0, "what the fuzzer found worth keeping gives good tables (%zu inputs)", n);
}

int main(void)
{
	struct tap t = { 0 };

	test_cies(&t);
	test_fdes(&t);
	test_overlap(&t);
	test_cie_pointers(&t);
	test_sections(&t);
	test_64bit(&t);
	test_lengths(&t);
	test_machines(&t);
	test_bombs(&t);
	rule_bomb(&t);
	test_damage(&t);
	test_hole(&t);
	test_corpus(&t, "t/data/cfi/corpus");
	return tap_done(&t);
}
