/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handwritten call frame instructions, and the rows that they give according to DWARF. */
#include "../data/cfi/compile.h"

/* The row that INSNS give at TEXT + 0x10. The first six advance to it; test_ops() advances for the others. */
static const struct {
	const char *insns;
	size_t n;
	const char *want, *name;
} ops[] = {
	{ BYTES("\x50\x0e\x10"), "rsp+16 u c-8", "advance_loc, def_cfa_offset" },
	{ BYTES("\2\x10\x0e\x10"), "rsp+16 u c-8", "advance_loc1" },
	{ BYTES("\3\x10\0\x0e\x10"), "rsp+16 u c-8", "advance_loc2" },
	{ BYTES("\4\x10\0\0\0\x0e\x10"), "rsp+16 u c-8", "advance_loc4" },
	{ BYTES("\x1d\x10\0\0\0\0\0\0\0\x0e\x10"), "rsp+16 u c-8", "MIPS_advance_loc8" },
	{ BYTES("\1\x10\0\x40\0\0\0\0\0\x0e\x10"), "rsp+16 u c-8", "set_loc" },
	{ BYTES("\x0c\6\x10"), "rbp+16 u c-8", "def_cfa" },
	{ BYTES("\x12\6\x7e"), "rbp+16 u c-8", "def_cfa_sf is factored" },
	{ BYTES("\x0d\6"), "rbp+8 u c-8", "def_cfa_register keeps the offset" },
	{ BYTES("\x13\x7e"), "rsp+16 u c-8", "def_cfa_offset_sf is factored" },
	{ BYTES("\x86\2"), "rsp+8 c-16 c-8", "offset" },
	{ BYTES("\5\6\2"), "rsp+8 c-16 c-8", "offset_extended" },
	{ BYTES("\x11\6\x7e"), "rsp+8 c+16 c-8", "offset_extended_sf" },
	{ BYTES("\x2f\6\2"), "rsp+8 c+16 c-8", "GNU_negative_offset_extended" },
	{ BYTES("\x86\2\xc6"), "rsp+8 u c-8", "restore: the rule of the CIE applies again" },
	{ BYTES("\x86\2\6\6"), "rsp+8 u c-8", "restore_extended" },
	{ BYTES("\7\6"), "rsp+8 ? c-8", "undefined: the frame pointer is lost" },
	{ BYTES("\x86\2\x08\6"), "rsp+8 u c-8", "same_value" },
	{ BYTES("\x09\6\3"), "rsp+8 rbx c-8", "register: the frame pointer in another register" },
	{ BYTES("\x09\6\6"), "rsp+8 u c-8", "register: the frame pointer in itself" },
	{ BYTES("\x09\x10\5"), "rsp+8 u rdi", "register: the return address in a register" },
	{ BYTES("\7\x10"), "rsp+8 u end", "undefined return address: the outermost frame" },
	{ BYTES("\x0a\x0e\x20\x86\2\x0b"), "rsp+8 u c-8", "restore_state restores the CFA too" },
	{ BYTES("\x0a\x0e\x20\x0a\x0e\x30\x0b"), "rsp+32 u c-8", "states nest" },
	{ BYTES("\x2e\x20"), "rsp+8 u c-8", "GNU_args_size says nothing about the frame" },
	{ BYTES("\x83\2\x8c\3\xcc\x87\0\x16\3\1\x30"), "unsupported", "a stack pointer that is saved" },
	{ BYTES("\x14\7\0"), "rsp+8 u c-8", "val_offset: the stack pointer is the CFA" },
	{ BYTES("\x14\7\1"), "unsupported", "val_offset: the stack pointer is not the CFA" },
	{ BYTES("\x15\6\1"), "rsp+8 ? c-8", "val_offset_sf: the frame pointer is a sum" },
	{ BYTES("\x16\6\2\x77\0"), "rsp+8 ? c-8", "val_expression: the frame pointer is a value" },
	{ BYTES("\x0f\2\x76\x10"), "rbp+16 u c-8", "def_cfa_expression: a register plus an offset" },
	{ BYTES("\x0f\3\x76\x78\6"), "*(rbp-8) u c-8",
		"def_cfa_expression: the word at a register plus an offset" },
	{ BYTES("\x0f\5\x77\x28\6\x23\x08"), "*(rsp+40)+8 u c-8",
		"def_cfa_expression: that word plus a constant" },
	{ BYTES("\x0f\5\x77\x28\6\x23\0"), "*(rsp+40) u c-8", "def_cfa_expression: that word plus 0" },
	{ BYTES("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22"), "plt(11) u c-8",
		"def_cfa_expression: the linkers' expression for a PLT" },
	{ BYTES("\x0f\x0b\x77\x08\x80\0\x3f\x1a\x35\x2a\x33\x24\x22"), "plt(5) u c-8",
		"def_cfa_expression: the expression for a PLT with another limit" },
	{ BYTES("\x0f\x0b\x77\x10\x80\0\x3f\x1a\x3b\x2a\x33\x24\x22"), "unsupported",
		"def_cfa_expression: almost the expression for a PLT" },
	{ BYTES("\x0f\2\x80\0"), "unsupported", "def_cfa_expression: the PC plus an offset" },
	{ BYTES("\x0f\4\x77\0\6\6"), "unsupported", "def_cfa_expression: two dereferences" },
	{ BYTES("\x0f\5\x77\x28\6\x23\x08\x90\2"), "unsupported",
		"a return address elsewhere if the CFA is a word plus a constant" },
	{ BYTES("\x10\6\2\x77\xf8\0"), "rsp+8 ? c-8",
		"expression: its length cuts it, and the rest is an instruction" },
	{ BYTES("\x10\6\2\x77\x10"), "rsp+8 *(rsp+16) c-8",
		"expression: saved at the stack pointer plus an offset" },
	{ BYTES("\x10\6\2\x76\x70"), "rsp+8 *(rbp-16) c-8",
		"expression: saved at the frame pointer plus an offset" },
	{ BYTES("\x10\6\2\x73\0"), "rsp+8 ? c-8", "expression: saved at another register" },
	{ BYTES("\x10\x10\3\x77\xa8\1"), "rsp+8 u *(rsp+168)",
		"expression: the return address at the stack pointer" },
	{ BYTES("\x10\x10\2\x76\0"), "unsupported", "expression: the return address at another register" },
	{ BYTES("\x0c\x10\0"), "unsupported", "a CFA from a register that is not a general one" },
	{ BYTES("\x0c\7\x80\x80\x80\x80\x10"), "unsupported", "a CFA whose offset is too large for a row" },
	{ BYTES("\x86\x80\x80\x80\x80\x10"), "rsp+8 ? c-8",
		"a frame pointer whose offset is too large for a row" },
	{ BYTES("\xd0"), "rsp+8 u c-8", "restore of the return address" },
	{ BYTES("\x83\3"), "rsp+8 u c-8 c-24", "offset: rbx" },
	{ BYTES("\x83\3\xc3"), "rsp+8 u c-8", "restore: rbx is kept" },
	{ BYTES("\x83\3\x08\3"), "rsp+8 u c-8", "same_value: rbx is kept" },
	{ BYTES("\x09\3\3"), "rsp+8 u c-8", "register: rbx in itself" },
	{ BYTES("\x09\3\6"), "rsp+8 u c-8 ?", "register: rbx in another register is lost" },
	{ BYTES("\7\3"), "rsp+8 u c-8 ?", "undefined: rbx is lost" },
	{ BYTES("\x11\3\x7e"), "rsp+8 u c-8 ?", "rbx above the frame is lost" },
	{ BYTES("\x83\x80\x80\x80\x80\x10"), "rsp+8 u c-8 ?",
		"rbx is lost if its offset is too large for a row" },
	{ BYTES("\x10\3\2\x76\x70"), "rsp+8 u c-8 ?", "expression: rbx at the frame pointer is lost" },
	{ BYTES("\x83\3\x90\2"), "rsp+8 u c-16", "a return address elsewhere leaves no room for rbx" },
	{ BYTES("\x0c\3\x10"), "rbx+16 u c-8", "def_cfa: rbx" },
	{ BYTES("\x08\x10"), "unsupported", "a return address that is not saved at all" },
};

static void test_ops(struct tap *t)
{
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		struct buf insns = { 0 };
		struct table tab;
		bool advances = i < 6;

		if (!advances)
			buf_fixed(&insns, 0x50, 1);
		buf_put(&insns, ops[i].insns, ops[i].n);
		tab = one_fde(insns.p, insns.len);
		is_row(t, &tab, TEXT + 0x10, ops[i].want, ops[i].name);
		free(tab.bytes);
		buf_free(&insns);
	}
}

static void test_ranges(struct tap *t)
{
	struct table tab = one_fde(BYTES("\x50\x0e\x10\x60\x0e\x18"));

	is_row(t, &tab, TEXT, "rsp+8 u c-8", "a function begins with the row of its CIE");
	is_row(t, &tab, TEXT + 0xf, "rsp+8 u c-8", "the first row applies up to the first advance");
	is_row(t, &tab, TEXT + 0x2f, "rsp+16 u c-8", "a row applies up to the next row");
	is_row(t, &tab, TEXT + 0xff, "rsp+24 u c-8", "the last row applies up to the end of the function");
	is_row(t, &tab, TEXT + 0x100, "none", "there is no row after the end of the function");
	free(tab.bytes);
	tab = one_fde(BYTES("\x0e\x10\4\0\1\0\0\x0e\x20"));
	is_row(t, &tab, TEXT + 0xff, "rsp+16 u c-8",
		"an advance beyond the end of the function adds no row inside it");
	is_row(t, &tab, TEXT + 0x100, "none",
		"an advance beyond the end of the function adds no row after it");
	free(tab.bytes);
	tab = one_fde(BYTES("\x0e\x10\x40\x0e\x18\x0e\x20"));
	is_row(t, &tab, TEXT, "rsp+32 u c-8", "an advance by 0 begins no row");
	free(tab.bytes);
}

/* From an invalid instruction on, the rest of the function is unsupported, and nothing else. */
static void test_nonsense(struct tap *t)
{
	static const struct {
		const char *insns;
		size_t n;
		const char *name;
	} bad[] = {
		{ BYTES("\x0e\x10\x50\x2d"), "GNU_window_save, which belongs to another machine," },
		{ BYTES("\x0e\x10\x50\x3f"), "an unknown opcode" },
		{ BYTES("\x0e\x10\x50\x0b"), "restore_state without a state" },
		{ BYTES("\x0e\x10\x50\x0f\2\x77\0\x0e\x08"), "an offset for a CFA that is an expression" },
		{ BYTES("\x0e\x10\x50\x0f\2\x77\0\x0d\6"), "a register for a CFA that is an expression" },
		{ BYTES("\x0e\x10\x50\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
			"a number of more than 64 bits" },
		{ BYTES("\x0e\x10\x50\x0f\x7f\x77"), "an expression longer than the entry" },
		{ BYTES("\x0e\x10\x50\1\0\0\x40\0\0\0\0\0"), "a location that decreases" },
		{ BYTES("\x0e\x10\x50\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"
			"\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"),
			"too many nested states" },
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct table tab = one_fde(bad[i].insns, bad[i].n);
		char buf[256];

		tap_ok(t, left(&tab, UNWINDTAB_BAD_FDE) == 1, "%s is counted as bad", bad[i].name);
		tap_ok(t, strcmp(row_text(&tab, TEXT + 0xf, buf, sizeof(buf)), "rsp+16 u c-8") == 0,
			"the rows before an invalid instruction are kept");
		tap_ok(t,
			strcmp(row_text(&tab, TEXT + 0x10, buf, sizeof(buf)), "unsupported") == 0 &&
				unwindtab_find(&tab.view, TEXT + 0xff, NULL, NULL)->cfa ==
					UNWIND_CFA_UNSUPPORTED,
			"the rows after an invalid instruction are unsupported");
		free(tab.bytes);
	}
}

int main(void)
{
	struct tap t = { 0 };

	test_ops(&t);
	test_ranges(&t);
	test_nonsense(&t);
	return tap_done(&t);
}
