/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiles hand-written sections of call frame information: valid, unusual and malicious ones. */
#include "../data/cfi/compile.h"
#include "unwind/cfi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* --- CIEs --- */

/* The table of a CIE with BODY behind its identifier, and of an FDE that points to it. */
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
		{ BYTES("\1\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8",
			"a CIE without augmentation" },
		{ BYTES("\3\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8", "a CIE of version 3" },
		{ BYTES("\3\0\1\x78\x90\0" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8",
			"a CIE of version 3 whose return address column is a LEB128" },
		{ BYTES("\4\0\x08\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8", "a CIE of version 4" },
		{ BYTES("\4\0\4\0\1\x78\x10" INSNS), BYTES("\0\0\x40\0\0\1\0\0"), "rsp+8 u c-8",
			"a CIE of version 4 with addresses of 4 bytes" },
		{ BYTES("\4\0\x08\4\1\x78\x10" INSNS), BYTES(PC8 LEN8), NULL,
			"a CIE with segment selectors" },
		{ BYTES("\4\0\3\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), NULL,
			"a CIE with addresses of 3 bytes" },
		{ BYTES("\2\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), NULL, "a CIE of version 2" },
		{ BYTES("\1eh\0ABCDEFGH\1\x78\x10" INSNS), BYTES(PC8 LEN8), "rsp+8 u c-8",
			"augmentation eh" },
		{ BYTES("\1z\0\1\x78\x10\0" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8",
			"augmentation z alone" },
		{ BYTES("\1zR\0\1\x78\x10\1\x1b" INSNS), BYTES("\xdf\xff\xbf\xff\0\1\0\0\0"), NULL,
			"a pc-relative address outside the text" },
		{ BYTES("\1zRS\0\1\x78\x10\1\4" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8 signal",
			"augmentation S: a signal frame" },
		{ BYTES("\1zPLR\0\1\x78\x10\7\3ABCD\x1b\4" INSNS), BYTES(PC8 LEN8 "\2ab"), "rsp+8 u c-8",
			"augmentation P and L: a personality of 4 bytes, a language-specific data area" },
		{ BYTES("\1zPLR\0\1\x78\x10\7\x9b"
			"ABCD\x1b\4" INSNS),
			BYTES(PC8 LEN8 "\2ab"), "rsp+8 u c-8", "augmentation P: an indirect personality" },
		{ BYTES("\1zPR\0\1\x78\x10\2\xff\4" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8",
			"augmentation P: no personality" },
		{ BYTES("\1zRB\0\1\x78\x10\1\4" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8",
			"augmentation B" },
		{ BYTES("\1zRX\0\1\x78\x10\3\4ab" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8",
			"an unknown augmentation letter is skipped by the length" },
		{ BYTES("\1zXR\0\1\x78\x10\3ab\4" INSNS), BYTES(PC8 LEN8 "\0"), NULL,
			"an unknown augmentation letter before R hides the encoding" },
		{ BYTES("\1zR\0\1\x78\x10\1\x84" INSNS), BYTES(PC8 LEN8 "\0"), NULL, "indirect addresses" },
		{ BYTES("\1zR\0\1\x78\x10\1\x05" INSNS), BYTES(PC8 LEN8 "\0"), NULL,
			"an unknown address format" },
		{ BYTES("\1zR\0\1\x78\x10\1\x64" INSNS), BYTES(PC8 LEN8 "\0"), NULL,
			"an unknown address base" },
		{ BYTES("\1zR\0\1\x78\x10\1\xff" INSNS), BYTES(PC8 LEN8 "\0"), NULL,
			"addresses that are omitted" },
		{ BYTES("\1zR\0\1\x78\x10\1\1" INSNS), BYTES("\x80\x80\x80\2\x80\2\0"), "rsp+8 u c-8",
			"addresses as uleb128" },
		{ BYTES("\1zR\0\1\x78\x10\1\x0b" INSNS), BYTES("\0\0\x40\0\0\1\0\0\0"), "rsp+8 u c-8",
			"addresses as sdata4" },
		{ BYTES("\1zR\0\1\x78\x10\1\x50" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8",
			"aligned addresses" },
		{ BYTES("\1zR\0\1\x78\x10\1\x34" INSNS), BYTES(PC8 LEN8 "\0"), "rsp+8 u c-8",
			"datarel addresses are relative to 0" },
		{ BYTES("\1q\0\1\x78\x10" INSNS), BYTES(PC8 LEN8), NULL, "augmentation letters without z" },
		{ BYTES("\1zR\0\1\x78\x10\x7f\4" INSNS), BYTES(PC8 LEN8 "\0"), NULL,
			"augmentation data longer than the entry" },
		{ BYTES("\1zRzRzRzRzRzRzRzRzRzR"), BYTES(PC8 LEN8 "\0"), NULL,
			"an augmentation string without an end" },
		{ BYTES("\1\0\1\x78\x10\x0b"), BYTES(PC8 LEN8), NULL, "malformed instructions in a CIE" },
		{ BYTES("\1\0\1\x78\x10\x41" INSNS), BYTES(PC8 LEN8), NULL,
			"instructions in a CIE that advance the address" },
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
				"%s: dropped and counted", forms[i].name);
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
	is_row(t, &tab, TEXT + 0x200, "rsp+32 u c-8", "an FDE may begin where another ends");
	is_row(t, &tab, TEXT + 0x280, "none", "between two FDEs there is no rule");
	is_row(t, &tab, TEXT + 0x300, "rsp+48 u c-8", "the next FDE is found after a gap");
	is_row(t, &tab, TEXT + 0x500, "none", "an FDE of no bytes has no rule");
	is_row(t, &tab, TEXT + TEXT_BYTES - 1, "rsp+88 u c-8",
		"an FDE that leaves the text is valid inside it");
	tap_ok(t, unwindtab_find(&tab.view, 0, NULL, NULL) == NULL,
		"an FDE at address 0, left by a linker, is dropped");
	tap_eq_u64(t, left(&tab, UNWINDTAB_OUTSIDE), 3, "FDEs outside the text are counted");
	tap_eq_u64(t, left(&tab, UNWINDTAB_BAD_FDE), 1,
		"an FDE whose range wraps around is counted as malformed");
	tap_eq_u64(t, tab.view.head->n_fdes, 6, "valid FDEs are counted");
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
	is_row(t, &tab, TEXT + 0x3f, "rsp+24 u c-8", "an FDE is valid up to where another begins inside it");
	is_row(t, &tab, TEXT + 0x40, "rsp+32 u c-8", "the inner FDE is valid from its own address on");
	is_row(t, &tab, TEXT + 0x60, "none",
		"behind the inner FDE neither is valid, as in a search by .eh_frame_hdr");
	is_row(t, &tab, TEXT + 0x200, "rsp+48 u c-8", "of FDEs that begin together the longest is valid");
	is_row(t, &tab, TEXT + 0x21f, "rsp+48 u c-8", "the longest of them is valid to its end");
	tap_eq_u64(t, left(&tab, UNWINDTAB_OVERLAP), 3, "overlapping FDEs are counted");
	free(tab.bytes);
	buf_free(&b);
}

static void test_cie_pointers(struct tap *t)
{
	struct image_opts o = { .debug = true };
	struct buf b = { 0 }, d = { 0 };
	size_t cie = image_cie(&b, false);
	struct table tab;

	image_fde(&b, b.len + 4, TEXT, 0x10, BYTES(""), false); /* the pointer's own place: 0 marks a CIE */
	image_fde(&b, b.len, TEXT + 0x10, 0x10, BYTES(""), false); /* the FDE itself */
	image_fde(&b, cie + 4, TEXT + 0x20, 0x10, BYTES(""), false); /* into a CIE */
	image_fde(&b, 0x7ffffff0, TEXT + 0x30, 0x10, BYTES(""), false); /* behind the section */
	image_fde(&b, (size_t)-16, TEXT + 0x40, 0x10, BYTES(""), false); /* before it */
	tab = compile(&b);
	tap_ok(t, tab.rc == 0 && tab.view.head->n_cies == 1 && tab.view.head->n_segs == 0,
		"FDEs with bad CIE pointers leave an empty table with one CIE");
	tap_eq_u64(t, left(&tab, UNWINDTAB_BAD_FDE) + left(&tab, UNWINDTAB_BAD_CIE), 5,
		"bad CIE pointers (self, into a CIE, outside the section) are dropped and counted");
	free(tab.bytes);

	image_fde(&d, 0x20, TEXT, 0x10, BYTES("\x0e\x10"), true); /* it takes 0x20 bytes */
	image_cie(&d, true);
	image_fde(&d, d.len + 0x20, TEXT + 0x10, 0x10, BYTES("\x0e\x10"), true); /* the section's end */
	tab = compile_as(&d, &o);
	is_row(t, &tab, TEXT, "rsp+16 u c-8", "in .debug_frame a CIE may follow its FDE");
	tap_eq_u64(
		t, left(&tab, UNWINDTAB_BAD_FDE), 1, "a CIE pointer to the end of .debug_frame is malformed");
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
	tap_eq_u64(t, tab.rc ? 9 : tab.view.head->section, UNWINDTAB_DEBUG_FRAME,
		"the table names .debug_frame");
	free(tab.bytes);

	image_fde(&b, image_cie(&b, false), TEXT, 0x100, BYTES("\x0e\x10"), false);
	o = (struct image_opts){ .second = &d };
	tab = compile_as(&b, &o);
	is_row(t, &tab, TEXT + 0xff, "rsp+16 u c-8",
		"where both sections cover an address .eh_frame is used");
	is_row(t, &tab, TEXT + 0x100, "none",
		"an FDE of .debug_frame that begins inside one of .eh_frame is dropped");
	is_row(t, &tab, TEXT + 0x300, "rsp+40 u c-8", "other FDEs of .debug_frame are used");
	tap_eq_u64(t, tab.rc ? 9 : tab.view.head->section, UNWINDTAB_EH_FRAME | UNWINDTAB_DEBUG_FRAME,
		"the table names both sections");
	free(tab.bytes);

	o = (struct image_opts){ .no_sections = true };
	tab = compile_as(&b, &o);
	is_row(t, &tab, TEXT, "rsp+16 u c-8",
		"without section headers .eh_frame is found by PT_GNU_EH_FRAME");
	free(tab.bytes);
	buf_fixed(&b, 0, 4);
	image_fde(&b, 0, TEXT + 0x200, 0x100, BYTES("\x0e\x28"), false);
	tab = compile_as(&b, &o);
	is_row(t, &tab, TEXT + 0x200, "none", "without section headers a length of 0 ends .eh_frame");
	free(tab.bytes);
	tab = compile(&b);
	is_row(t, &tab, TEXT + 0x200, "rsp+40 u c-8",
		"with section headers FDEs behind a length of 0 are read");
	free(tab.bytes);

	o = (struct image_opts){ .name = ".text" };
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == 0 && tab.view.head->n_segs == 0,
		"a file without such sections has an empty table");
	free(tab.bytes);
	tab = compile(&none);
	tap_ok(t, tab.rc == 0 && tab.view.head->n_segs == 0, "an empty section gives an empty table");
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
	is_row(t, &tab, TEXT, "rsp+16 u c-8", "entries of the 64-bit format are read");
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
			"a length of 0x%x exceeds the section: the rest is dropped, entries before it are "
			"kept",
			lengths[i]);
		free(tab.bytes);
		buf_free(&b);
	}
}

static void test_machines(struct tap *t)
{
	struct image_opts o = { .machine = EM_RISCV };
	struct buf b = { 0 };
	struct table tab;

	image_fde(&b, image_cie(&b, false), TEXT, 0x100, BYTES("\x0e\x10"), false);
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EOPNOTSUPP && strstr(tab.e.msg, "another machine"),
		"a file for another machine is refused: %s", tab.e.msg);
	o = (struct image_opts){ .type = ET_REL };
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EINVAL && strstr(tab.e.msg, "not linked"), "an object file is refused: %s",
		tab.e.msg);
	o = (struct image_opts){ .flags = SHF_COMPRESSED };
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EOPNOTSUPP && strstr(tab.e.msg, "compressed"),
		"an unknown compression is refused: %s", tab.e.msg);
	o = (struct image_opts){ .name = ".zeh_frame" };
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EINVAL && strstr(tab.e.msg, "not compressed"),
		"a section with a compressed name and no compressed data is refused: %s", tab.e.msg);
	buf_free(&b);
}

/* Compressed sections that claim a size that they cannot have. */
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
	tap_ok(t, tab.rc == -EINVAL && strstr(tab.e.msg, "claims"),
		"a size that deflate cannot reach is refused: %s", tab.e.msg);
	memset(b.p + 8, 0xff, 8);
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -E2BIG, "a size beyond the limit of sections is refused: %s", tab.e.msg);
	b.p[8] = 100;
	memset(b.p + 9, 0, 7);
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EINVAL && strstr(tab.e.msg, "uncompressed"),
		"a damaged compressed stream is refused: %s", tab.e.msg);
	buf_free(&b);
}

/* --- malicious and damaged sections --- */

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
		"rules beyond the limit of a table are unsupported and counted");
	is_row(t, &tab, TEXT + 400, "rsp+792 u c-8", "rows before the limit of rules are right");
	is_row(t, &tab, TEXT + 4 * UNWINDTAB_RULES_MAX, "unsupported",
		"rows beyond the limit of rules are unsupported");
	free(tab.bytes);
	buf_free(&b);
	buf_free(&insns);
}

/* Functions that together use every kind of instruction. */
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
	tap_eq_u64(t, refused, 0, "a section cut at any place gives a valid table of the rest");
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
	tap_eq_u64(t, refused, 0, "a section with any bit changed gives a valid table or E2BIG");
	buf_free(&b);
}

/* --- i386 --- */

/* A CIE of version 1 as i386's linkers have it: data by -4, CFA esp+4, return address (8) at c-4. */
static size_t narrow_cie(struct buf *b, const char *letters, uint8_t encoding)
{
	size_t at = b->len;

	buf_fixed(b, 0, 4);
	buf_fixed(b, 0, 4);
	buf_fixed(b, 1, 1);
	buf_put(b, letters, strlen(letters) + 1);
	buf_put(b, "\1\x7c\x08", 3);
	buf_fixed(b, 1, 1);
	buf_fixed(b, encoding, 1);
	buf_put(b, "\x0c\4\4\x88\1", 5);
	image_end_entry(b, at);
	return at;
}

static void narrow_fde(struct buf *b, size_t cie, uint32_t pc, const void *insns, size_t n)
{
	size_t at = b->len;

	buf_fixed(b, 0, 4);
	buf_fixed(b, b->len - cie, 4);
	buf_fixed(b, pc, 4);
	buf_fixed(b, 0x100, 4);
	buf_fixed(b, 0, 1);
	buf_put(b, insns, n);
	image_end_entry(b, at);
}

/* Rows of i386 code, by the instructions of its functions. */
static const struct {
	const char *insns;
	size_t n;
	const char *want;
} narrow_rows[] = {
	{ BYTES(""), "esp+4 u c-4" },
	{ BYTES("\x0e\x8\x85\2\x0d\5"), "ebp+8 c-8 c-4" },
	{ BYTES("\x0e\x10\x83\4"), "esp+16 u c-4 c-16" },
	{ BYTES("\x0c\1\0"), "ecx+0 u c-4" },
	{ BYTES("\x0c\6\0"), "esi+0 u c-4" },
	{ BYTES("\x0c\7\0"), "edi+0 u c-4" },
	{ BYTES("\x0c\2\0"), "edx+0 u c-4" },
	{ BYTES("\x0c\3\0"), "ebx+0 u c-4" },
	{ BYTES("\x0c\x08\0"), "unsupported" }, /* eip */
	{ BYTES("\x0c\x0c\0"), "unsupported" }, /* there is no r12 */
	{ BYTES("\x09\5\2"), "esp+4 edx c-4" },
	{ BYTES("\x09\5\x0c"), "esp+4 ? c-4" },
	{ BYTES("\x09\x08\1"), "esp+4 u ecx" }, /* vfork keeps it there */
	{ BYTES("\x07\x08"), "esp+4 u end" },
	{ BYTES("\x0f\3\x75\x7c\6\x10\5\2\x75\0"), "*(ebp-4) *(ebp+0) c-4" },
	{ BYTES("\x0f\x0b\x74\4\x78\0\x3f\x1a\x3b\x2a\x32\x24\x22"), "plt(11) u c-4" },
	/* that of x86-64 has other registers, and shifts by 3 */
	{ BYTES("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22"), "unsupported" },
};

static void test_narrow(struct tap *t)
{
	struct image_opts o = { .narrow = true };
	struct buf b = { 0 };
	size_t cie = narrow_cie(&b, "zR", 0), signal, refused = 0;
	const uint32_t n = ARRAY_LEN(narrow_rows);
	struct table tab;
	char buf[256];

	for (uint32_t i = 0; i < n; i++)
		narrow_fde(&b, cie, (uint32_t)TEXT + 0x100 * i, narrow_rows[i].insns, narrow_rows[i].n);
	signal = narrow_cie(&b, "zRS", 0);
	narrow_fde(&b, signal, (uint32_t)TEXT + 0x100 * n,
		BYTES("\x0f\4\x74\xbc\1\6\x10\4\3\x74\xbc\1\x10\5\3\x74\xb8\1\x10\x8\3\x74\xd8\1"));
	/* pc-relative, and beyond 4 GiB around to the text */
	cie = narrow_cie(&b, "zR", 0x1b);
	narrow_fde(&b, cie, (uint32_t)(TEXT + 0x100 * (n + 1) - (FRAME + b.len + 8)), BYTES(""));
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == 0 && tab.view.head->machine == EM_386,
		"an i386 file has a table of its machine %s", tab.rc ? tab.e.msg : "");
	for (uint32_t i = 0; i < n; i++)
		is_row(t, &tab, TEXT + 0x100 * i, narrow_rows[i].want, narrow_rows[i].want);
	is_row(t, &tab, TEXT + 0x100 * n, "*(esp+188) *(esp+184) *(esp+216) signal",
		"a signal's frame of i386");
	is_row(t, &tab, TEXT + 0x100 * (n + 1), "esp+4 u c-4", "a pc-relative address of 4 bytes");
	for (uint32_t i = 1; !tab.rc && i < tab.view.head->n_rules; i++)
		refused += tab.view.rules[i].cfa != UNWIND_CFA_UNSUPPORTED &&
			   !(tab.view.rules[i].flags & UNWIND_WORD4);
	tap_eq_u64(t, refused, 0, "each rule says that it is one of i386 code");
	if (!tab.rc) {
		((struct unwindtab_head *)(void *)tab.bytes)->machine = EM_X86_64;
		unwindtab_seal(tab.bytes, tab.len);
		tap_ok(t, unwindtab_view(tab.bytes, tab.len, &tab.view, NULL) == -EINVAL,
			"rules of i386 code in a table of x86-64 are refused");
	}
	free(tab.bytes);
	o.machine = EM_X86_64;
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == -EOPNOTSUPP, "an x32 file is refused: %s", tab.e.msg);
	free(tab.bytes);
	tab = compile(&b);
	tap_ok(t, strncmp(row_text(&tab, TEXT, buf, sizeof(buf)), "esp", 3) != 0,
		"no 64-bit file has rules of i386");
	free(tab.bytes);
	o.machine = 0;
	refused = 0;
	for (size_t i = 0; i < b.len; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			b.p[i] ^= (uint8_t)(1U << bit);
			tab = compile_as(&b, &o);
			refused += tab.rc != 0 && tab.rc != -E2BIG;
			free(tab.bytes);
			b.p[i] ^= (uint8_t)(1U << bit);
		}
	}
	tap_eq_u64(t, refused, 0, "an i386 section with any bit changed gives a valid table or E2BIG");
	buf_free(&b);
}

/* Every bit of the headers of an i386 file changed, and the file cut at any place. */
static void test_narrow_headers(struct tap *t)
{
	const struct image_opts o = { .narrow = true };
	struct buf b = { 0 }, image = { 0 };
	size_t bad = 0, compiled = 0;

	narrow_fde(&b, narrow_cie(&b, "zR", 0), (uint32_t)TEXT, BYTES("\x0e\x8"));
	image_make(&image, b.p, b.len, &o);
	for (size_t i = 0; i < 9 * image.len; i++) {
		const bool cut = i >= 8 * image.len;
		const size_t n = cut ? i - 8 * image.len : image.len;
		struct elffile *f = NULL;
		uint8_t *table = NULL;
		struct unwindtab v;
		size_t len;

		if (!cut)
			image.p[i / 8] ^= (uint8_t)(1U << i % 8);
		if (elffile_image(image.p, n, &f, NULL) == 0 && unwindcomp(f, &table, &len, NULL) == 0) {
			compiled++;
			bad += unwindtab_view(table, len, &v, NULL) != 0;
		}
		if (!cut)
			image.p[i / 8] ^= (uint8_t)(1U << i % 8);
		free(table);
		elffile_close(f);
	}
	tap_ok(t, compiled > 100 && !bad,
		"a damaged i386 file is refused or has a valid table (%zu of %zu have one)", compiled,
		9 * image.len);
	buf_free(&b);
	buf_free(&image);
}

/* The number of rows of the section of N bytes at P, read in place. */
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
		const struct cfarun_regs regs = { 7, 6, cie->ra_reg, 3, 0 };
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

/* Sections that end at an unmapped page: reading a byte behind one would kill this program. */
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
		/* shorten the cut entry so that it ends with the bytes */
		for (size_t i = 0; i + 4 <= n; i += len + 4) {
			memcpy(&len, at + i, 4);
			if (len > n - i - 4)
				len = (uint32_t)(n - i - 4);
			memcpy(at + i, &len, 4);
		}
		rows_in_place(at, n);
	}
	munmap(p, room + 4096);
	tap_ok(t, most > 20, "no byte behind a section is read, at whatever place it ends (%zu rows)", most);
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
		const struct image_opts narrow = { .narrow = true };
		struct table tab = compile(&b);

		good = tab.rc == 0 || tab.rc == -E2BIG;
		free(tab.bytes);
		tab = compile_as(&b, &narrow);
		good = good && (tab.rc == 0 || tab.rc == -E2BIG);
		free(tab.bytes);
	}
	free(table);
	elffile_close(f);
	return good;
}

/* --- arm64 --- */

/* A CIE as gcc makes it on arm64: code by 4, data by -8, CFA sp+0; the return address is in register RA. */
static size_t arm64_cie(struct buf *b, uint8_t ra)
{
	size_t at = b->len;

	buf_fixed(b, 0, 4);
	buf_fixed(b, 0, 4);
	buf_put(b, "\1zR\0\4\x78", 6);
	buf_fixed(b, ra, 1);
	buf_put(b, "\1\4\x0c\x1f\0", 5);
	image_end_entry(b, at);
	return at;
}

/* Rows of arm64 code, by the instructions of its functions. */
static const struct {
	const char *insns;
	size_t n;
	const char *want, *name;
} arm64_rows[] = {
	{ BYTES(""), "sp+0 u x30", "a leaf function: the return address is in x30" },
	{ BYTES("\x0e\x20\x9d\4\x9e\3"), "sp+32 c-32 c-24", "a frame with x29 and x30" },
	{ BYTES("\x0e\x10\x9e\1"), "sp+16 u c-8", "a return address right below the CFA" },
	{ BYTES("\x0e\x10\x9e\2"), "sp+16 u c-16", "a frame with x30 alone" },
	{ BYTES("\x0c\x1d\x10\x9d\2\x9e\1"), "x29+16 c-16 c-8", "a CFA by the frame pointer" },
	{ BYTES("\x0c\x13\x10\x9d\2\x9e\1"), "x19+16 c-16 c-8", "a CFA by another register" },
	{ BYTES("\x2d\x0e\x10\x9d\2\x9e\1"), "sp+16 c-16 c-8", "a signed return address" },
	{ BYTES("\x0e\x10\x9d\2\x9e\1\x0e\0\xdd\xde"), "sp+0 u x30", "the end of a function" },
	{ BYTES("\7\x1e"), "sp+0 u end", "the outermost frame" },
	{ BYTES("\x08\x1e"), "sp+0 u x30", "same_value: x30 has the return address" },
	{ BYTES("\x09\x1e\x0a"), "sp+0 u x10", "a return address in another register" },
	{ BYTES("\x09\x1d\x0a"), "sp+0 x10 x30", "a frame pointer in another register" },
	{ BYTES("\7\x1d"), "sp+0 ? x30", "a frame pointer that is lost" },
	{ BYTES("\x0f\3\x8d\x10\6\x9e\2"), "*(x29+16) u c-16", "a CFA that is saved" },
	{ BYTES("\x10\x1d\2\x8f\x10\x10\x1e\2\x8f\x18"), "sp+0 *(sp+16) *(sp+24)",
		"both saved at the stack pointer plus an offset" },
	{ BYTES("\x0c\x22\0"), "unsupported", "no CFA by a register that is not general" },
	/* sp + 144 * vg + 48: vectors whose length only the CPU knows */
	{ BYTES("\x0f\x0b\x8f\0\x92\x2e\0\x08\x90\x1e\x23\x30\x22"), "unsupported",
		"a frame with SVE registers" },
	{ BYTES("\x0f\5\x8f\x28\6\x23\x08\x9e\1"), "unsupported",
		"no CFA that implies where a call of x86 leaves the return address" },
	{ BYTES("\x0f\x0b\x8f\x08\x8e\0\x3f\x1a\x3b\x2a\x33\x24\x22\x9e\1"), "unsupported", "no PLT of x86" },
};

static void test_arm64(struct tap *t)
{
	struct image_opts o = { .machine = EM_AARCH64 };
	struct buf b = { 0 };
	size_t cie = arm64_cie(&b, 30);
	const uint32_t n = ARRAY_LEN(arm64_rows);
	struct table tab;
	char buf[256];

	for (uint32_t i = 0; i < n; i++)
		image_fde(&b, cie, TEXT + 0x100 * i, 0x100, arm64_rows[i].insns, arm64_rows[i].n, false);
	image_fde(&b, cie, TEXT + 0x100 * n, 0x100, BYTES("\x41\x0e\x10\x41\x9d\2\x9e\1"), false);
	image_fde(&b, arm64_cie(&b, 31), TEXT + 0x100 * (n + 1), 0x100, BYTES(""), false);
	tab = compile_as(&b, &o);
	tap_ok(t, tab.rc == 0 && tab.view.head->machine == EM_AARCH64,
		"an arm64 file has a table of its machine %s", tab.rc ? tab.e.msg : "");
	for (uint32_t i = 0; i < n; i++)
		is_row(t, &tab, TEXT + 0x100 * i, arm64_rows[i].want, arm64_rows[i].name);
	is_row(t, &tab, TEXT + 0x100 * n + 3, "sp+0 u x30", "arm64: an advance counts instructions");
	is_row(t, &tab, TEXT + 0x100 * n + 4, "sp+16 u x30", "arm64: there is a frame, without x30 yet");
	is_row(t, &tab, TEXT + 0x100 * n + 8, "sp+16 c-16 c-8", "arm64: x30 is in the frame");
	is_row(t, &tab, TEXT + 0x100 * (n + 1), "none",
		"arm64: no rows of a CIE whose return address is in another register");
	tap_ok(t, left(&tab, UNWINDTAB_BAD_CIE) == 1 && left(&tab, UNWINDTAB_BAD_FDE) == 1,
		"arm64: they are counted");
	free(tab.bytes);
	o.machine = EM_X86_64;
	tab = compile_as(&b, &o);
	tap_ok(t, strncmp(row_text(&tab, TEXT, buf, sizeof(buf)), "sp", 2) != 0,
		"no x86-64 file has rows of arm64");
	free(tab.bytes);
	buf_free(&b);
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
	tap_ok(t, n > 0 && bad == 0, "the fuzzer's kept inputs give valid tables (%zu inputs)", n);
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
	test_narrow(&t);
	test_narrow_headers(&t);
	test_arm64(&t);
	test_corpus(&t, "t/data/cfi/corpus");
	return tap_done(&t);
}
