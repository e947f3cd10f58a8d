/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of symbols/kallsyms.h: small tables with known results, and random
 * tables compared with a linear search.
 */
#include "base/tap.h"
#include "symbols/filter.h"
#include "symbols/kallsyms.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

static int load_text(const void *text, size_t len, struct kallsyms **ret, struct err *e)
{
	_cleanup_close_ int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	*ret = NULL;
	if (fd < 0 || write(fd, text, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) < 0)
		return err_set(e, -EIO, "cannot make a test file");
	return kallsyms_load_fd(fd, "table", ret, e);
}

static struct kallsyms *load(const char *text)
{
	struct kallsyms *ks;

	return load_text(text, strlen(text), &ks, NULL) ? NULL : ks;
}

/* "name+0xoff[module]", or "-" */
static const char *show(const struct kallsyms *ks, uint64_t addr, char *buf, size_t cap)
{
	struct kallsyms_sym s;

	if (!ks || !kallsyms_find(ks, addr, &s))
		return "-";
	snprintf(buf, cap, "%s+0x%llx[%s]", s.name, (unsigned long long)(addr - s.start), s.module);
	return buf;
}

static void check(struct tap *t, const struct kallsyms *ks, uint64_t addr, const char *want, const char *name)
{
	char buf[256];

	tap_eq_str(t, show(ks, addr, buf, sizeof(buf)), want, name);
}

#define K UINT64_C(0xffffffff81000000)
#define M UINT64_C(0xffffffffc0000000)

static void test_ends(struct tap *t)
{
	CLEANUP(kallsyms_free_p)
	struct kallsyms *ks = load("ffffffff81000000 T one\n"
				   "ffffffff81000100 T two\n"
				   "ffffffff81000200 T _etext\n"
				   "ffffffff82000000 D __start_rodata\n"
				   "ffffffff82000100 D banner\n"
				   "ffffffffc0001010 t m_first\t[m]\n"
				   "ffffffffc0001020 t m_last\t[m]\n"
				   "ffffffffc0001100 t n_first\t[n]\n"
				   "ffffffffc0004000 d n_data\t[n]\n"
				   "ffffffffc0008ff0 t bpf_prog_1\t[bpf]\n"
				   "ffffffffc000a000 t bpf_prog_2\t[bpf]\n");

	check(t, ks, K - 1, "-", "an address below the first symbol has no name");
	check(t, ks, K, "one+0x0[]", "a symbol covers its first byte");
	check(t, ks, K + 0xff, "one+0xff[]", "a symbol covers the byte before the next symbol");
	check(t, ks, K + 0x1ff, "two+0xff[]", "the last function ends at _etext");
	check(t, ks, K + 0x200, "_etext+0x0[]", "_etext names its own address");
	check(t, ks, K + 0x201, "-", "_etext does not cover the address after its own");
	check(t, ks, K + 0x1000000, "__start_rodata+0x0[]", "a data marker names its own address");
	check(t, ks, K + 0x1000001, "-", "a data marker does not cover the data after its own address");
	check(t, ks, K + 0x1000fff, "banner+0xeff[]", "the kernel's last symbol covers the rest of its page");
	check(t, ks, K + 0x1001000, "-", "the kernel's last symbol ends with its page if a module follows");
	check(t, ks, M + 0x101f, "m_first+0xf[m]", "a module's symbol ends at the next");
	check(t, ks, M + 0x10ff, "m_last+0xdf[m]",
		"a module's last symbol ends where the next module begins");
	check(t, ks, M + 0x1fff, "n_first+0xeff[n]", "a module's last function covers the rest of its page");
	check(t, ks, M + 0x2000, "-",
		"a module's last function ends with its page if the module's data follow");
	check(t, ks, M + 0x4fff, "n_data+0xfff[n]", "a module's last symbol covers the rest of its page");
	check(t, ks, M + 0x5000, "-", "a module's last symbol ends with its page");
	check(t, ks, M + 0x8fff, "bpf_prog_1+0xf[bpf]", "a BPF program has its name");
	check(t, ks, M + 0x9000, "-", "a BPF program ends with its page even if another one follows");
	check(t, ks, M + 0xb000, "-", "an address after the last symbol has no name");
	check(t, ks, UINT64_MAX, "-", "the last address has no name");
	check(t, ks, 0, "-", "address 0 has no name");
	tap_eq_u64(t, kallsyms_count(ks), 11, "every symbol is counted");
}

static void test_edges(struct tap *t)
{
	CLEANUP(kallsyms_free_p)
	struct kallsyms *ks = load("ffffffffffffffff T top\n8000000000000000 T bottom\n");
	CLEANUP(kallsyms_free_p) struct kallsyms *one = load("fffffffffffffff0 T only\n");
	CLEANUP(kallsyms_free_p) struct kallsyms *mods = load("ffffffffc0000000 t a\t[m]\n");

	check(t, ks, UINT64_C(1) << 63, "bottom+0x0[]", "a symbol at the lowest kernel address is found");
	check(t, ks, UINT64_MAX - 1, "bottom+0x7ffffffffffffffe[]",
		"a symbol can cover half the address space");
	check(t, ks, (UINT64_C(1) << 63) - 1, "-", "a user address has no name");
	check(t, one, UINT64_MAX - 1, "only+0xe[]",
		"a symbol in the last page of the address space has an end");
	check(t, mods, M, "a+0x0[m]", "a table with only a module's symbols works");
	check(t, mods, K, "-", "a table with only a module's symbols names no kernel address");
}

static void test_names(struct tap *t)
{
	static const struct {
		const char *lines, *want, *name;
	} cases[] = {
		{ "W weak\nK t local\n", "local", "a strong local symbol comes before a weak one" },
		{ "t local\nK T ___global\n", "___global",
			"a global symbol comes before a local one, even with underscores" },
		{ "T __b\nK T _c\nK T d\n", "d", "a name with fewer underscores comes first" },
		{ "T x\nK T y\n", "x", "among equal symbols the first in the file wins" },
		{ "T __pfx_b\nK t a\n", "a", "a function comes before the padding of another one" },
		{ "T __sched_text_start\nK t __pfx_a\n", "__pfx_a",
			"any other symbol comes before a section's start marker" },
		{ "T _stext\nK T _text\nK W a\n", "a", "_stext does not name a function" },
		{ "T _etext\nK D data\n", "data", "any other symbol comes before a section's end marker" },
		{ "T __ia32_sys_x\nK T __x64_sys_x\n", "__x64_sys_x",
			"the native system call entry comes first" },
		{ "D data\nK t code\n", "code", "code comes before data" },
		{ "t __stop_tty\n", "__stop_tty", "a function called __stop_tty is not a marker" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[512] = "", want[64];
		size_t at = 0;

		at += (size_t)snprintf(text, sizeof(text), "ffffffff81000000 ");
		for (const char *p = cases[i].lines; *p; p++) {
			if (*p == 'K')
				at += (size_t)snprintf(text + at, sizeof(text) - at, "ffffffff81000000");
			else
				text[at++] = *p;
		}
		CLEANUP(kallsyms_free_p) struct kallsyms *ks = load(text);
		snprintf(want, sizeof(want), "%s+0x0[]", cases[i].want);
		check(t, ks, K, want, cases[i].name);
	}
	CLEANUP(kallsyms_free_p)
	struct kallsyms *ks =
		load("ffffffff81000000 t __stop_tty\nffffffff81000010 T alias\nffffffff81000010 t x\n"
		     "ffffffff81000020 T x\n");

	check(t, ks, K + 1, "__stop_tty+0x1[]",
		"a function called __stop_tty covers the bytes after its start");
	tap_eq_u64(t, kallsyms_address(ks, "alias"), K + 0x10, "a symbol's address is found by its name");
	tap_eq_u64(t, kallsyms_address(ks, "x"), K + 0x10,
		"the first of two equal names is found, even if its address has another name");
	tap_eq_u64(t, kallsyms_address(ks, "y"), 0, "a missing name has address 0");
}

static void test_pfx_sharing(struct tap *t)
{
	CLEANUP(kallsyms_free_p)
	struct kallsyms *ks = load("ffffffff81000000 t __pfx_a\nffffffff81000010 t a\n"
				   "ffffffff81000020 t __pfx_b\nffffffff81000030 t c\n"
				   "ffffffff81000040 t __pfx_\nffffffff81000050 t b\n");

	check(t, ks, K, "__pfx_a+0x0[]", "padding has its own name");
	check(t, ks, K + 0x10, "a+0x0[]", "a function has the name without __pfx_");
	check(t, ks, K + 0x30, "c+0x0[]", "another function after the padding has its own name");
	check(t, ks, K + 0x40, "__pfx_+0x0[]", "a bare __pfx_ is a valid name");
	check(t, ks, K + 0x50, "b+0x0[]", "the function after a bare __pfx_ has its own name");
}

/* With FIRST and SECOND as names of LEN digits: is the second one stored as the tail of "__pfx_FIRST"? */
static bool shares_tail(size_t len, int first, int second)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = NULL;
	struct kallsyms_sym pfx = { 0 }, sym = { 0 };
	char text[400];
	int n = snprintf(text, sizeof(text), "ffffffff81000000 t __pfx_%0*d\nffffffff81000010 t %0*d\n",
		(int)len, first, (int)len, second);

	return !load_text(text, (size_t)n, &ks, NULL) && kallsyms_find(ks, K, &pfx) &&
	       kallsyms_find(ks, K + 0x10, &sym) && pfx.name + 6 == sym.name;
}

static void test_pfx_lengths(struct tap *t)
{
	size_t shared = 0, mistaken = 0;

	for (size_t len = 1; len <= 150; len++) {
		shared += shares_tail(len, 1, 1);
		mistaken += shares_tail(len, 1, 2);
	}
	tap_eq_u64(t, shared, 150, "a name of any length shares its bytes with its padding's name");
	tap_eq_u64(t, mistaken, 0, "a name that differs in its last byte shares nothing");
}

/* Sorted symbols, then unsorted ones, some of them at the same addresses. */
static void test_late_symbols(struct tap *t)
{
	CLEANUP(kallsyms_free_p)
	struct kallsyms *ks = load("ffffffff81000010 t a\nffffffff81000020 t b\nffffffff81000030 t c\n"
				   "ffffffff81000020 t late\nffffffff81000028 t between\n"
				   "ffffffff81000000 t early\nffffffff81000030 T better\n");

	check(t, ks, K, "early+0x0[]",
		"a symbol at the lowest address is found though it comes late in the file");
	check(t, ks, K + 0x10, "a+0x0[]", "the first sorted symbol is still found");
	check(t, ks, K + 0x20, "b+0x0[]",
		"a late symbol does not replace an equal one that was first in the file");
	check(t, ks, K + 0x28, "between+0x0[]", "a late symbol with an address between two others is found");
	check(t, ks, K + 0x30, "better+0x0[]", "a late symbol with a better name replaces the first one");
}

static void test_refusals(struct tap *t)
{
	static const struct {
		const char *text;
		size_t len;
		int want;
		const char *name;
	} cases[] = {
#define CASE(text, want, name) { text, sizeof(text) - 1, want, name }
		CASE("", -EINVAL, "an empty file is refused"),
		CASE("hello world\n", -EINVAL, "another text is refused"),
		CASE("\x7f"
		     "ELF\2\1\1\n",
			-EINVAL, "a binary is refused"),
		CASE("ffffffff81000000 T a\nffffffff81000010 T b", -EINVAL, "a truncated name is refused"),
		CASE("ffffffff81000000 T a\n\n", -EINVAL, "an empty line is refused"),
		CASE("ffffffff81000000 T \n", -EINVAL, "a missing name is refused"),
		CASE("ffffffff81000000 TT a\n", -EINVAL, "a long type is refused"),
		CASE("ffffffff81000000 1 a\n", -EINVAL, "a digit as the type is refused"),
		CASE("fffffffff81000000 T a\n", -EINVAL, "17 digits are refused"),
		CASE(" T a\n", -EINVAL, "a missing address is refused"),
		CASE("fffffffg81000000 T a\n", -EINVAL, "an address with an invalid digit is refused"),
		CASE("FFFFFFFF81000000 T a\n", -EINVAL,
			"capital hex digits, which the kernel never prints, are refused"),
		CASE("ffffffff81000000 T a b\n", -EINVAL, "a second word is refused"),
		CASE("ffffffff81000000 T a\t[m\n", -EINVAL, "a module without a closing bracket is refused"),
		CASE("ffffffff81000000 T a\t[]\n", -EINVAL, "an empty module name is refused"),
		CASE("ffffffff81000000 T a\tm]\n", -EINVAL, "a module without an opening bracket is refused"),
		CASE("ffffffff81000000 T a\t[m] x\n", -EINVAL, "a word after the module is refused"),
		CASE("ffffffff81000000 T a\0b\n", -EINVAL, "a NUL byte is refused"),
		CASE("0000000000000000 T a\n0000000000000000 T b\n", -EACCES,
			"a table whose addresses are all zero is -EACCES (kptr_restrict)"),
		CASE("0 T a\n", -EACCES, "a zero address of one digit is -EACCES as well"),
		CASE("0000000000001000 A a\n", -EINVAL, "a table with only per-CPU offsets is refused"),
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct kallsyms *ks;
		struct err e = { 0 };
		int got = load_text(cases[i].text, cases[i].len, &ks, &e);

		tap_ok(t, got == cases[i].want && !ks && e.code == got && e.msg[0] && e.hint[0], "%s",
			cases[i].name);
		if (got != cases[i].want)
			tap_diag("got %d: %s", got, e.msg);
		kallsyms_free(ks);
	}
}

/* The parser reads text in chunks: a name of any length is read whole, wherever a chunk ends. */
static void test_lengths(struct tap *t)
{
	bool good = true;

	for (size_t len = 1; len < 700; len++) {
		CLEANUP(kallsyms_free_p) struct kallsyms *ks = NULL;
		struct kallsyms_sym s = { 0 };
		char text[1500];
		int n = snprintf(text, sizeof(text),
			"ffffffff81000000 T %0*d\nffffffff81000010 t %0*d\t[%0*d]\n", (int)len, 1,
			(int)(700 - len), 2, (int)(len / 8 + 1), 3);

		if (load_text(text, (size_t)n, &ks, NULL) || !kallsyms_find(ks, K, &s) ||
			strlen(s.name) != len) {
			good = false;
			break;
		}
		good = good && kallsyms_find(ks, K + 0x10, &s) && strlen(s.name) == 700 - len &&
		       strlen(s.module) == len / 8 + 1 && s.name[700 - len - 1] == '2';
	}
	tap_ok(t, good, "names of every length from 1 to 699 are read");
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

enum { SYMS = 3000 };

/* An unsorted table of module and kernel symbols as text; their addresses go to STARTS. */
static char *random_table(uint64_t *seed, uint64_t *starts, size_t *len)
{
	char *text = malloc(SYMS * 64u);
	size_t at = 0;

	for (size_t i = 0; text && i < SYMS; i++) {
		uint64_t r = next_random(seed), span = r & 1 ? 1 << 16 : 1 << 30;

		starts[i] = (r & 2 ? K : M) + (r >> 8) % span;
		at += (size_t)snprintf(text + at, 64, "%016llx t s%llx%s\n", (unsigned long long)starts[i],
			(unsigned long long)starts[i], r & 2 ? "" : "\t[m]");
	}
	*len = at;
	return text;
}

static void test_random(struct tap *t)
{
	uint64_t seed = 88172645463325252u, starts[SYMS], addrs[1000];
	struct kallsyms_sym many[1000], s;
	size_t wrong = 0, differ = 0, len;
	_cleanup_free_ char *text = random_table(&seed, starts, &len);
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = NULL;

	if (!text || load_text(text, len, &ks, NULL)) {
		tap_ok(t, false, "an unsorted table loads");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		uint64_t best = 0, r = next_random(&seed);

		addrs[i] = i % 3 ? starts[r % SYMS] + r % 512 - 8 : r;
		for (size_t j = 0; j < SYMS; j++)
			if (starts[j] <= addrs[i] && starts[j] > best)
				best = starts[j];
		if (kallsyms_find(ks, addrs[i], &s) && (s.start != best || addrs[i] >= s.end))
			wrong++;
		if (!kallsyms_find(ks, addrs[i], &s) && best && addrs[i] < (best | 4095))
			wrong++;
	}
	tap_eq_u64(t, wrong, 0, "look-ups in an unsorted table give the same as a linear search");
	kallsyms_find_many(ks, addrs, ARRAY_LEN(addrs), many);
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		bool found = kallsyms_find(ks, addrs[i], &s);

		differ += found != (many[i].name != NULL) ||
			  (found && (s.name != many[i].name || s.end != many[i].end));
	}
	tap_eq_u64(t, differ, 0, "kallsyms_find_many() gives the same as kallsyms_find() for each address");
}

static void test_relocate(struct tap *t)
{
	CLEANUP(kallsyms_free_p)
	struct kallsyms *ks = load("ffffffff81000000 T _stext\nffffffff81000000 T start\n"
				   "ffffffff81000010 T a\nffffffff81000020 T _etext\n"
				   "ffffffffc0000000 t m\t[m]\n");
	CLEANUP(kallsyms_free_p) struct kallsyms *without = load("ffffffff81000010 T a\n");
	struct err e = { 0 };
	size_t dropped = 0;

	tap_eq_u64(t, kallsyms_relocate(ks, 0x1000, &dropped, &e), -ERANGE,
		"moving a kernel to user addresses is refused");
	tap_eq_u64(t, kallsyms_relocate(ks, UINT64_MAX - 8, &dropped, &e), -ERANGE,
		"moving a kernel past the end of the address space is refused");
	check(t, ks, K + 0x10, "a+0x0[]", "a refused move leaves the symbols where they were");
	tap_eq_u64(t, kallsyms_relocate(ks, K + 0x200000, &dropped, &e), 0, "a kernel can be moved");
	check(t, ks, K + 0x200011, "a+0x1[]", "a symbol has moved with the kernel");
	check(t, ks, K + 0x11, "-", "a moved symbol is no longer at its old address");
	check(t, ks, M, "-", "the symbols of modules are removed by a move");
	tap_eq_u64(t, dropped, 1, "the removed symbols are counted");
	tap_eq_u64(t, kallsyms_address(ks, "_stext"), K + 0x200000, "_stext has moved too");
	tap_eq_u64(t, kallsyms_relocate(ks, K, &dropped, &e), 0, "a kernel can be moved back");
	check(t, ks, K + 0x10, "a+0x0[]", "a symbol is back at its first address");
	tap_eq_u64(t, kallsyms_relocate(without, K, &dropped, &e), -ENOENT,
		"a table without _stext cannot be moved");
}

static void test_foreign(struct tap *t)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *plain = load("ffffffff81000000 T a.b$c!\n");
	CLEANUP(kallsyms_free_p) struct kallsyms *esc = load("ffffffff81000000 T a\033[2Jb\n");
	CLEANUP(kallsyms_free_p) struct kallsyms *del = load("ffffffff81000000 T a\177\n");
	CLEANUP(kallsyms_free_p) struct kallsyms *utf8 = load("ffffffff81000000 t a\t[\303\244]\n");

	tap_ok(t, plain && kallsyms_plain(plain), "a name of printable ASCII is plain");
	tap_ok(t, esc && !kallsyms_plain(esc), "a name with an escape character is not plain");
	tap_ok(t, del && !kallsyms_plain(del), "a name with DEL is not plain");
	tap_ok(t, utf8 && !kallsyms_plain(utf8), "a module's name with a non-ASCII character is not plain");
}

/* For scripts/bench.d: time a million look-ups in the live table or in FILE; prints ns for each. */
static int bench(const char *file)
{
	enum { N = 1000000 };
	_cleanup_free_ uint64_t *addrs = malloc(N * sizeof(*addrs));
	struct kallsyms_sym s, many[64];
	uint64_t seed = 88172645463325252u, sum = 0, first, span;
	struct timespec t[3];
	struct kallsyms *ks;

	if (!addrs || kallsyms_load(*file ? file : NULL, &ks, NULL))
		return 2;
	first = kallsyms_address(ks, "_stext");
	span = kallsyms_address(ks, "_etext") - first;
	for (size_t i = 0; i < N; i++)
		addrs[i] = first + next_random(&seed) % span;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t[0]);
	for (size_t i = 0; i < N; i++)
		sum += kallsyms_find(ks, addrs[i], &s) ? s.start : 0;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t[1]);
	for (size_t i = 0; i < N; i += 64) {
		kallsyms_find_many(ks, addrs + i, MIN(64u, N - i), many);
		sum += many[0].start;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t[2]);
	for (int i = 0; i < 2; i++)
		printf("library, %s: %.1f ns an address\n", i ? "64 at once" : "one by one",
			((double)(t[i + 1].tv_sec - t[i].tv_sec) * 1e9 +
				(double)(t[i + 1].tv_nsec - t[i].tv_nsec)) /
				N);
	kallsyms_free(ks);
	return sum == 1;
}

int main(int argc, char **argv)
{
	struct tap t = { 0 };

	if (argc == 3 && strcmp(argv[1], "--bench") == 0)
		return bench(argv[2]);
	test_ends(&t);
	test_edges(&t);
	test_names(&t);
	test_pfx_sharing(&t);
	test_pfx_lengths(&t);
	test_late_symbols(&t);
	test_refusals(&t);
	test_lengths(&t);
	test_random(&t);
	test_relocate(&t);
	test_foreign(&t);
	return tap_done(&t);
}
