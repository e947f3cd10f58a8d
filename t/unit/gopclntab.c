/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hand-made tables of Go functions, and the rows that are made of them. With
 * arguments it is a program for gopclntab.t, which compares real Go programs
 * with the tools of binutils:
 *
 *	unit/gopclntab functions FILE	address and name of each function
 *	unit/gopclntab lines FILE	file and line of each address on stdin; "?" = none
 *	unit/gopclntab hostile FILE	reads it damaged in many ways
 */
#include "../lib/go-made.h"
#include "base/tap.h"
#include "elf/gopclntab.h"
#include "unwind/compile.h"
#include "unwind/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

/* --- real programs --- */

static struct elffile *open_elf(const char *path)
{
	struct elffile *f = NULL;
	struct err e;

	if (elffile_open(AT_FDCWD, path, false, &f, &e) != 0) {
		fprintf(stderr, "%s: %s\n", path, e.msg);
		exit(2);
	}
	return f;
}

static int print_functions(const struct gopclntab *t)
{
	struct gopclntab_function fn;

	for (size_t i = 0; i < gopclntab_count(t); i++)
		if (gopclntab_get(t, i, &fn))
			printf("%016" PRIx64 " %s\n", fn.start, fn.name);
	return 0;
}

static int print_lines(const struct gopclntab *t)
{
	struct gopclntab_function fn;
	const char *file;
	uint32_t line;
	uint64_t pc;

	while (scanf("%" SCNx64, &pc) == 1)
		if (gopclntab_find(t, pc, &fn) && gopclntab_line(t, &fn, pc, &file, &line))
			printf("%s:%u\n", file, line);
		else
			puts("?");
	return 0;
}

/* All that can be read, for a sanitizer to watch. Returns the number of rows. */
static uint64_t read_all(const void *bytes, size_t len)
{
	struct elffile *f = NULL;
	struct gopclntab *t = NULL;
	struct gopclntab_function fn;
	struct unwindtab tab;
	const char *file;
	uint32_t line;
	uint8_t *made = NULL;
	uint64_t rows = 0;

	if (elffile_image(bytes, len, &f, NULL) != 0)
		return 0;
	if (gopclntab_open(f, &t, NULL) > 0)
		for (size_t i = 0; i < gopclntab_count(t); i++)
			if (gopclntab_get(t, i, &fn))
				gopclntab_line(t, &fn, fn.start, &file, &line);
	gopclntab_close(t);
	if (unwindcomp(f, &made, &len, NULL) == 0) {
		if (unwindtab_view(made, len, &tab, NULL) != 0)
			abort();
		rows = tab.head->n_rows;
	}
	free(made);
	elffile_close(f);
	return rows;
}

static int read_damaged(const char *path)
{
	struct elffile *f = open_elf(path);
	size_t len = f->size;
	uint8_t *bytes = malloc(len), *copy = malloc(len);
	uint64_t table = 0, size = 0, seed = 1, rows;

	if (!bytes || !copy || elffile_read_at(f, 0, bytes, len, NULL) != 0)
		return 2;
	rows = read_all(bytes, len);
	for (size_t at = 0; at + 8 < len && !table; at += 8)
		if (memcmp(bytes + at, "\xf0\xff\xff\xff\0\0\1\10", 8) == 0)
			table = at;
	if (!table || !rows)
		return 2;
	size = len - table;
	for (unsigned int i = 0; i < 24; i++) {
		memcpy(copy, bytes, len);
		for (unsigned int k = 0; k < (i < 16 ? 1U : 2000U); k++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			/* the header and the parts behind it, or anywhere */
			copy[table + (seed >> 33) % (i < 16 ? 72 : size)] ^= (uint8_t)(1 << (seed >> 20 & 7));
		}
		read_all(copy, len);
	}
	for (unsigned int i = 1; i < 8; i++)
		read_all(bytes, table + size / 8 * i);
	free(bytes);
	free(copy);
	elffile_close(f);
	return 0;
}

static int tool(const char *what, const char *path)
{
	struct elffile *f;
	struct gopclntab *t = NULL;
	struct err e = { 0 };
	int rc;

	if (strcmp(what, "hostile") == 0)
		return read_damaged(path);
	f = open_elf(path);
	rc = gopclntab_open(f, &t, &e);
	if (rc <= 0) {
		fprintf(stderr, "%s: %s\n", path, rc ? e.msg : "no table");
		return 2;
	}
	rc = strcmp(what, "lines") == 0 ? print_lines(t) : print_functions(t);
	gopclntab_close(t);
	elffile_close(f);
	return rc;
}

/* --- hand-made programs --- */

#define CODE(s) .code = (s), .len = sizeof(s) - 1

/* TLS of Go's g, then what systemstack does behind its call, then a return */
#define SWITCH_BACK                                                                                          \
	"\x64\x48\x8b\x04\x25\xf8\xff\xff\xff" /* mov %fs:-8,%rax */                                         \
	"\x48\x8b\x58\x30" /* mov 0x30(%rax),%rbx */                                                         \
	"\x48\x8b\x83\xc0\x00\x00\x00" /* mov 0xc0(%rbx),%rax */                                             \
	"\x48\x8b\x60\x38" /* mov 0x38(%rax),%rsp */

static const struct go_function functions[] = {
	{ "main.leaf", 0, "\x02\x40", "\x16\x40", NULL, CODE("\xc3") },
	/* sub $24,%rsp; mov %rbp,16(%rsp); lea 16(%rsp),%rbp; mov 16(%rsp),%rbp; add $24,%rsp; ret */
	{ "main.old", 0, "\x02\x04\x30\x13\x2f\x29", "\x16\x08\x02\x38", "\x01\x08\x04\x10\x01\x28",
		CODE("\x48\x83\xec\x18\x48\x89\x6c\x24\x10\x48\x8d\x6c\x24\x10\x48\x8b\x6c\x24\x10\x48\x83"
		     "\xc4\x18\xc3") },
	/* push %rbp; mov %rsp,%rbp; sub $16,%rsp; add $16,%rsp; pop %rbp; ret */
	{ "main.new", 0, "\x02\x01\x10\x07\x20\x04\x1f\x01\x0f\x33", "\x16\x40", NULL,
		CODE("\x55\x48\x89\xe5\x48\x83\xec\x10\x48\x83\xc4\x10\x5d\xc3") },
	/* push %rax; pop %rax: a frame without the frame pointer */
	{ "main.asm", GOPCLNTAB_ASSEMBLY, "\x02\x01\x10\x01\x0f\x3e", "\x16\x40", NULL,
		CODE("\x50\x58\xc3") },
	{ "runtime.goexit", GOPCLNTAB_TOP_FRAME, "\x02\x40", "\x16\x40", NULL, CODE("\x90\xe8\0\0\0\0\x90") },
	/* mov %rbx,%rsp; call *%rdi; back; ret */
	{ "runtime.systemstack", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x48\x89\xdc\xff\xd7" SWITCH_BACK "\xc3") },
	/* the same, but it does not come back to where it was: 8 bytes more */
	{ "runtime.other", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x48\x89\xdc\xff\xd7" SWITCH_BACK "\x48\x83\xc4\x08\xc3") },
	/* mov 0x38(%rsi),%rsp; call *%rax; mov 48(%rsp),%rdi; mov 8(%rdi),%rsi; sub 40(%rsp),%rsi; mov
	   %rsi,%rsp; ret */
	{ "runtime.asmcgocall", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x48\x8b\x66\x38\xff\xd0\x48\x8b\x7c\x24\x30\x48\x8b\x77\x08\x48\x2b\x74\x24\x28\x48"
		     "\x89"
		     "\xf4\xc3") },
	/* and $-16,%rsp; call *%rax; mov 40(%rsp),%rsi; mov %rsi,%rsp; ret */
	{ "runtime.nosave", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x48\x83\xe4\xf0\xff\xd0\x48\x8b\x74\x24\x28\x48\x89\xf4\xc3") },
	/* mov %rbx,%rsp; call *%rdi; xor %eax,%eax: what follows is not known */
	{ "runtime.unknown", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x48\x89\xdc\xff\xd7\x31\xc0\x48\x89\xc4\xc3") },
	{ "runtime.mcall", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x49\x8b\x66\x38\x50\x41\xff\xd4\x58") },
	/* mov 0x38(%rbx),%rsp; call */
	{ "runtime.morestack", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x48\x8b\x63\x38\xe8\0\0\0\0") },
	{ "runtime.cgocallback", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x48\x89\xfc\xff\xd0" SWITCH_BACK "\xc3") },
	/* mov %rsp,%r12; and $-16,%rsp; call *%rax; mov %r12,%rsp; ret */
	{ "runtime.nanotime1", GOPCLNTAB_SP_WRITE, "\x02\x40", "\x16\x40", NULL,
		CODE("\x49\x89\xe4\x48\x83\xe4\xf0\xff\xd0\x4c\x89\xe4\xc3") },
	/* pop %r12; syscall; push %r12; ret */
	{ "syscall.rawVforkSyscall", 0, "\x02\x02\x0f\x04\x10\x3a", "\x16\x40", NULL,
		CODE("\x41\x5c\x0f\x05\x41\x54\xc3") },
	/* sub $8,%rsp; call copystack; call gopreempt_m */
	{ "runtime.newstack", 0, "\x02\x04\x10\x3c", "\x16\x40", NULL,
		CODE("\x48\x83\xec\x08\xe8\x37\0\0\0\xe8\x72\0\0\0\xc3") },
	{ "runtime.copystack", 0, "\x02\x40", "\x16\x40", NULL, CODE("\xc3") },
	{ "runtime.gopreempt_m", 0, "\x02\x40", "\x16\x40", NULL, CODE("\xc3") },
	{ "runtime.sigreturn", 0, "\x02\x40", "\x16\x40", NULL, CODE("\x48\xc7\xc0\x0f\0\0\0\x0f\x05") },
};

enum {
	LEAF,
	OLD,
	NEW,
	ASM,
	GOEXIT,
	SYSTEMSTACK,
	OTHER,
	ASMCGOCALL,
	NOSAVE,
	UNKNOWN,
	MCALL,
	MORESTACK,
	CGOCALLBACK,
	NANOTIME,
	VFORK,
	NEWSTACK,
	COPYSTACK,
	GOPREEMPT,
	SIGRETURN
};

static const struct {
	int function;
	unsigned int offset;
	const char *rule; /* CFA, frame pointer, return address */
	const char *what;
} rows[] = {
	{ LEAF, 0, "rsp+8 u c-8", "a function without a frame" },
	{ OLD, 0, "rsp+8 u c-8", "the first instruction" },
	{ OLD, 4, "rsp+32 u c-8", "the frame pointer is not saved yet" },
	{ OLD, 9, "rsp+32 c-16 c-8", "the frame pointer is saved" },
	{ OLD, 18, "rsp+32 c-16 c-8", "right before the frame is left" },
	{ OLD, 23, "rsp+8 u c-8", "the frame is left" },
	{ NEW, 0, "rsp+8 u c-8", "before the push" },
	{ NEW, 1, "rsp+16 c-16 c-8", "the frame pointer is pushed" },
	{ NEW, 8, "rsp+32 c-16 c-8", "the rest of the frame" },
	{ NEW, 12, "rsp+16 c-16 c-8", "before the pop" },
	{ NEW, 13, "rsp+8 u c-8", "after the pop" },
	{ ASM, 1, "rsp+16 ? c-8", "a frame where the frame pointer is not known to be saved" },
	{ GOEXIT, 5, "rsp+8 u end", "goexit ends a stack" },
	{ SYSTEMSTACK, 0, "rsp+8 u c-8", "systemstack before the other stack" },
	{ SYSTEMSTACK, 3, "goroutine(%fs:-8) u c-8", "systemstack's call" },
	{ SYSTEMSTACK, 5, "unsupported  ", "systemstack behind its call" },
	{ OTHER, 3, "unsupported  ", "a call whose way back contradicts the table" },
	{ ASMCGOCALL, 4, "goroutine(*(rsp+48)) u c-8", "asmcgocall's call" },
	{ NOSAVE, 4, "*(rsp+40)+8 u c-8", "a call on the thread's own stack" },
	{ UNKNOWN, 3, "unsupported  ", "a call with an unknown way back" },
	{ MCALL, 0, "rsp+8 u c-8", "mcall before the other stack" },
	{ MCALL, 7, "rsp+8 u end", "mcall's call ends a stack" },
	{ MORESTACK, 4, "more-stack(%fs:-8) ? saved", "morestack's call" },
	{ CGOCALLBACK, 3, "thread(%fs:-8) u c-8", "a call from C" },
	{ NANOTIME, 7, "r12+8 u c-8", "a call with the stack pointer in a register" },
	{ VFORK, 1, "rsp+8 u c-8", "vfork's return address on the stack" },
	{ VFORK, 3, "rsp+0 u r12", "vfork's return address in a register" },
	{ NEWSTACK, 4, "rsp+16 ? c-8", "newstack's call that moves the goroutine's stack" },
	{ GOPREEMPT, 63, "*(rsp+160) *(rsp+120) *(rsp+168)", "the byte before sigreturn" },
	{ SIGRETURN, 7, "*(rsp+160) *(rsp+120) *(rsp+168)", "sigreturn" },
};

static void test_rows(struct tap *t, const struct elffile *f, bool flags)
{
	uint8_t *bytes = NULL;
	size_t len;
	struct unwindtab tab;
	unsigned int marked = 0, others = 0;
	struct err e = { 0 };

	if (!tap_ok(t,
		    unwindcomp(f, &bytes, &len, &e) == 0 && unwindtab_view(bytes, len, &tab, &e) == 0 &&
			    tab.head->section == UNWINDTAB_GOPCLNTAB,
		    "its rows are made of the table of functions")) {
		tap_diag("%s", e.msg);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t pc = GO_TEXT + (uint64_t)rows[i].function * GO_FUNCTION + rows[i].offset;
		const struct unwind_rule *r = unwindtab_find(&tab, pc, NULL, NULL);
		char text[4 * UNWINDTEXT_MAX];
		struct unwindtext u;

		/* without flags, only the functions with known names set the stack pointer */
		if (!flags && (rows[i].function == OTHER || rows[i].function == NOSAVE ||
				      rows[i].function == UNKNOWN))
			continue;
		unwindtext(r, EM_X86_64, &u);
		snprintf(text, sizeof(text), "%s %s %s", u.cfa, u.fp, u.ra);
		tap_eq_str(t, text, rows[i].rule, rows[i].what);
	}
	for (unsigned int i = 0; i < GO_FUNCTION; i++) {
		const struct unwind_rule *r =
			unwindtab_find(&tab, GO_TEXT + NEWSTACK * GO_FUNCTION + i, NULL, NULL);

		marked += (r->flags & UNWIND_GO_COPIES) != 0 && i >= 4 && i < 9;
		others += (r->flags & UNWIND_GO_COPIES) != 0 && (i < 4 || i >= 9);
	}
	tap_ok(t, marked == 5 && !others, "only that call is marked");
	free(bytes);
}

static void test_version(struct tap *t, enum go_version v)
{
	static const char *const names[] = { "1.2", "1.16", "1.18", "1.20" };
	struct buf image = { 0 };
	struct elffile *f = NULL;
	struct gopclntab *g = NULL;
	struct gopclntab_function fn = { 0 };
	const char *file = "";
	uint32_t line = 0;
	struct err e = { 0 };

	go_program(&image, v, functions, ARRAY_LEN(functions));
	tap_ok(t,
		elffile_image(image.p, image.len, &f, &e) == 0 && gopclntab_open(f, &g, &e) == 1 &&
			gopclntab_count(g) == ARRAY_LEN(functions),
		"version %s: %zu functions", names[v], ARRAY_LEN(functions));
	if (!g) {
		tap_diag("%s", e.msg);
		return;
	}
	tap_ok(t,
		gopclntab_find(g, GO_TEXT + GO_FUNCTION + 5, &fn) && strcmp(fn.name, "main.old") == 0 &&
			fn.start == GO_TEXT + GO_FUNCTION && fn.end == fn.start + GO_FUNCTION,
		"version %s: a function is found by an address in it", names[v]);
	tap_ok(t,
		!gopclntab_find(g, GO_TEXT - 1, &fn) &&
			!gopclntab_find(g, GO_TEXT + ARRAY_LEN(functions) * GO_FUNCTION, &fn),
		"version %s: there is none before and behind all functions", names[v]);
	gopclntab_find(g, GO_TEXT + GO_FUNCTION, &fn);
	tap_ok(t,
		gopclntab_line(g, &fn, fn.start, &file, &line) == (v != GO_MADE_1_2) &&
			(v == GO_MADE_1_2 || (line == 10 && strcmp(file, "dir/made.go") == 0)),
		"version %s: the line of its first instruction", names[v]);
	tap_ok(t, !gopclntab_line(g, &fn, fn.start + 8, &file, &line),
		"version %s: no line in an inlined call", names[v]);
	tap_ok(t,
		gopclntab_line(g, &fn, fn.start + 30, &file, &line) == (v != GO_MADE_1_2) &&
			(v == GO_MADE_1_2 || line == 11),
		"version %s: the line behind it", names[v]);
	test_rows(t, f, v != GO_MADE_1_2);
	gopclntab_close(g);
	elffile_close(f);
	buf_free(&image);
}

/* Open the table with the byte at AT replaced. */
static int opened_with(size_t at, uint8_t byte, size_t cut, struct err *e)
{
	struct buf table = { 0 }, code = { 0 }, image = { 0 };
	struct elffile *f = NULL;
	struct gopclntab *g = NULL;
	int rc;

	go_table(&table, GO_MADE_1_18, functions, ARRAY_LEN(functions));
	go_code(&code, functions, ARRAY_LEN(functions));
	table.p[at] = byte;
	go_file(&image, table.p, cut ? cut : table.len, code.p, code.len, &(struct go_more){ 0 });
	rc = elffile_image(image.p, image.len, &f, e);
	rc = rc ? rc : gopclntab_open(f, &g, e);
	gopclntab_close(g);
	elffile_close(f);
	buf_free(&table);
	buf_free(&code);
	buf_free(&image);
	return rc;
}

static void test_bad(struct tap *t)
{
	static const struct {
		size_t at;
		uint8_t byte;
		const char *what;
	} bad[] = { { 0, 0xf5, "an unknown version" }, { 4, 1, "a byte before the size of instructions" },
		{ 6, 4, "another machine's instructions" }, { 7, 4, "32-bit pointers" },
		{ 8 + 3, 0x10, "more functions than the table has room for" },
		{ 8, 0, "no function" }, /* at(8) is the low byte of the count */
		{ 24 + 2, 0x7f, "functions outside the code" }, { 32 + 6, 1, "a part outside the table" } };
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		e = (struct err){ 0 };
		tap_ok(t,
			opened_with(bad[i].at, bad[i].byte, 0, &e) == -EINVAL && strstr(e.msg, ".gopclntab"),
			"%s: refused with a message", bad[i].what);
	}
	for (size_t cut = 1; cut < 2000; cut += 7) {
		int rc = opened_with(0, 0xf0, cut, &e);

		if (rc != 1 && rc != -EINVAL) {
			tap_ok(t, false, "a table cut after %zu bytes", cut);
			return;
		}
	}
	tap_ok(t, true, "a table cut anywhere is refused or read in part");
}

/*
 * Open a table whose header does not say where the text is; another section has
 * WORDS. The first function's address as it was found; 0 = refused.
 */
static uint64_t found_text(const char *section, const uint64_t *words, size_t n)
{
	const bool rela = strcmp(section, ".rela.dyn") == 0;
	const struct go_more more = { section, rela ? SHT_RELA : SHT_PROGBITS, rela ? 24 : 0, words, n * 8 };
	struct buf table = { 0 }, code = { 0 }, image = { 0 };
	struct gopclntab_function fn = { 0 };
	struct elffile *f = NULL;
	struct gopclntab *g = NULL;

	go_table(&table, GO_MADE_1_20, functions, ARRAY_LEN(functions));
	go_code(&code, functions, ARRAY_LEN(functions));
	go_patch(&table, 24, 0, 8);
	go_file(&image, table.p, table.len, code.p, code.len, &more);
	if (elffile_image(image.p, image.len, &f, NULL) == 0 && gopclntab_open(f, &g, NULL) == 1)
		gopclntab_get(g, 0, &fn);
	gopclntab_close(g);
	elffile_close(f);
	buf_free(&table);
	buf_free(&code);
	buf_free(&image);
	return fn.start;
}

static void test_text(struct tap *t)
{
	const uint64_t at = go_table_vaddr(ARRAY_LEN(functions) * GO_FUNCTION);
	uint64_t rela[] = { at, R_X86_64_RELATIVE, GO_TEXT + 64, at + 24, R_X86_64_RELATIVE, GO_TEXT };
	uint64_t module[23] = { [0] = at, [20] = GO_TEXT, [22] = GO_TEXT };

	tap_eq_u64(t, found_text(".rela.dyn", rela, 6), GO_TEXT, "the address of the text is relocated");
	rela[4] = R_X86_64_64;
	tap_eq_u64(t, found_text(".rela.dyn", rela, 6), 0, "another kind of relocation does not count");
	tap_eq_u64(t, found_text(".go.module", module, 23), GO_TEXT, "the runtime's module has the address");
	module[20] = GO_TEXT + 64;
	tap_eq_u64(t, found_text(".go.module", module, 23), 0, "not if its lowest address is another one");
	module[20] = GO_TEXT;
	module[0]++;
	tap_eq_u64(t, found_text(".go.module", module, 23), 0, "not if it is of another table");
	module[0]--;
	tap_eq_u64(t, found_text(".go.module", module, 22), 0, "not if it is cut");
}

int main(int argc, char **argv)
{
	struct tap t = { 0 };

	if (argc == 3)
		return tool(argv[1], argv[2]);
	for (enum go_version v = GO_MADE_1_2; v <= GO_MADE_1_20; v++)
		test_version(&t, v);
	test_bad(&t);
	test_text(&t);
	return tap_done(&t);
}
