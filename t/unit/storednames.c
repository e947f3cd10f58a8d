/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "symbols/answer.h"

#include <string.h>

static const struct cap_name_frame deep[] = { { "inner<int>(int)", "_Z5innerIiEvi", "/src/a.h", 7, 3 },
	{ "outer()", "_Z5outerv", "/src/a.c", 9, 0 } };
static const struct cap_name_frame nameless[] = { { "", "", "/src/b.s", 5, 0 } };

static struct cap_reader capture(const struct cap_name *names, size_t n)
{
	return (struct cap_reader){ .names = (struct cap_name *)(uintptr_t)names, .n_names = n };
}

/* The checked answer for FILE. Release *BYTES with free(3). */
static struct sym_answer answer_for(const struct cap_name *names, size_t n, uint32_t file,
	const struct storednames_opts *o, uint8_t **bytes)
{
	const struct cap_reader c = capture(names, n);
	struct sym_answer a;
	size_t len;

	if (storednames_answer(&c, file, o, bytes, &len, NULL) != 0 ||
		sym_answer_view(*bytes, len, &a, NULL) != 0)
		abort();
	return a;
}

static struct sym_answer answer(
	const struct cap_name *names, size_t n, uint32_t file, bool demangle, uint8_t **bytes)
{
	const struct storednames_opts o = { .demangle = demangle, .inlines = true, .lines = true };

	return answer_for(names, n, file, &o, bytes);
}

static bool is_text(const struct sym_answer *a, uint32_t string, const char *want)
{
	const char *s = sym_answer_text(a, string);

	return s ? strcmp(s, want) == 0 : !*want;
}

static void test_all(struct tap *t)
{
	static const struct cap_name names[] = {
		{ 1, 0x10, 0, SYM_SYMTAB, SYM_OK, 1, deep + 1, 0 },
		{ 2, 0x1234, 0x34, SYM_DYNSYM, SYM_R_DEBUG_BAD, 2, deep, 0 },
		{ 2, 0x2000, 0, SYM_NONE, SYM_R_NO_SYMBOL, 1, nameless, 0 },
		{ 2, 0x3000, 0, SYM_NONE, SYM_R_NO_TABLES, 0, NULL, 0 },
		{ 2, 0x4000, 0x33, SYM_FDE, SYM_R_NO_SYMBOL, 0, NULL, 0x404000 },
		{ 2, 0x5000, 0x10, SYM_DYNSYM, SYM_R_GUESS, 1, deep + 1, 0x5000 },
		{ 4, 0, 0, SYM_PLT, SYM_OK, 1, deep, 0 },
	};
	const struct cap_reader c = capture(names, ARRAY_LEN(names));
	const struct sym_answer_frame *f;
	const struct sym_answer_addr *x;
	struct sym_answer a;
	uint8_t *bytes;

	a = answer(names, ARRAY_LEN(names), 2, true, &bytes);
	tap_eq_u64(t, a.head->n_addrs, 5, "an answer has all addresses of its file and no others");
	x = sym_answer_find(&a, 0x1234);
	tap_ok(t,
		x && x->start == 0x1200 && x->source == SYM_DYNSYM && x->reason == SYM_R_DEBUG_BAD &&
			x->debug,
		"an address has its symbol's start, source and reason");
	f = x ? &a.frames[x->first] : NULL;
	tap_ok(t,
		f && x->n_frames == 2 && is_text(&a, f[0].name, "inner<int>(int)") &&
			is_text(&a, f[0].linkage, "_Z5innerIiEvi") && is_text(&a, f[0].file, "/src/a.h") &&
			f[0].line == 7 && f[0].column == 3 && is_text(&a, f[1].name, "outer()"),
		"inlined calls have names and lines, innermost first");
	x = sym_answer_find(&a, 0x2000);
	tap_ok(t, x && x->source == SYM_NONE && x->n_frames == 1 && a.frames[x->first].line == 5,
		"an address can have a line and no name");
	x = sym_answer_find(&a, 0x3000);
	tap_ok(t, x && !x->n_frames && x->reason == SYM_R_NO_TABLES,
		"an address without a name has a reason");
	x = sym_answer_find(&a, 0x4000);
	tap_ok(t, x && x->source == SYM_FDE && !x->n_frames && x->start == 0x4000 - 0x33,
		"an address without a name has the start of its function");
	x = sym_answer_find(&a, 0x5000);
	tap_ok(t, x && x->source == SYM_NONE && !x->n_frames && !x->start,
		"the nearest symbol, which older recorders stored as a name, is not used");
	tap_ok(t, !sym_answer_find(&a, 0x10) && !sym_answer_find(&a, 0x1235),
		"an address that is not stored is not in the answer");
	free(bytes);
	a = answer(names, ARRAY_LEN(names), 2, false, &bytes);
	tap_ok(t, is_text(&a, a.frames[a.addrs[0].first].name, "_Z5innerIiEvi"),
		"without demangling names are as in the symbol tables");
	free(bytes);
	a = answer(names, ARRAY_LEN(names), 3, true, &bytes);
	tap_eq_u64(t, a.head->n_addrs, 0, "a file without names has an empty answer");
	free(bytes);
	tap_ok(t,
		storednames_any(&c, 1) && storednames_any(&c, 4) && !storednames_any(&c, 0) &&
			!storednames_any(&c, 3) && !storednames_any(&c, 5),
		"storednames_any() says which files have names");
}

static void test_hostile(struct tap *t)
{
	static struct cap_name_frame many[SYM_ANSWER_FRAMES_MAX + 2];
	static const struct cap_name names[] = {
		{ 0, 1, 2, SYM_SYMTAB, SYM_OK, 1, deep, 0 },
		{ 0, 2, 0, UINT8_MAX, SYM_OK, 1, deep, 0 },
		{ 0, 3, 0, SYM_SYMTAB, UINT8_MAX, 1, deep, 0 },
		{ 0, 4, 0, SYM_SYMTAB, SYM_OK, 0, NULL, 0 },
		{ 0, 5, 0, SYM_SYMTAB, SYM_OK, 1, nameless, 0 },
		{ 0, 6, 0, SYM_SYMTAB, SYM_OK, ARRAY_LEN(many), many, 0 },
		{ 0, 7, 0, SYM_FDE, SYM_OK, 1, deep, 0 },
		{ 0, 8, 0, SYM_SOURCES, SYM_OK, 0, NULL, 0 },
	};
	const struct sym_answer_addr *x;
	struct sym_answer a;
	uint8_t *bytes;

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct cap_name_frame){ i < 2 ? "cut" : "f", "", "", 0, 0 };
	a = answer(names, ARRAY_LEN(names), 0, true, &bytes);
	tap_eq_u64(t, a.head->n_addrs, 1, "malformed records are dropped");
	x = sym_answer_find(&a, 6);
	tap_ok(t, x && x->n_frames == SYM_ANSWER_FRAMES_MAX && is_text(&a, a.frames[x->first].name, "f"),
		"if there are too many inlined calls, the outermost are kept");
	free(bytes);
}

/* The answer is the same as if the file was read without inlined calls or lines. */
static void test_wanted(struct tap *t)
{
	static const struct cap_name name = { 1, 0x1234, 0x34, SYM_SYMTAB, SYM_OK, 2, deep, 0 };
	struct storednames_opts o = { .demangle = true, .lines = true };
	const struct sym_answer_addr *x;
	struct sym_answer a;
	uint8_t *bytes;

	a = answer_for(&name, 1, 1, &o, &bytes);
	x = sym_answer_find(&a, 0x1234);
	tap_ok(t,
		x && x->n_frames == 1 && x->debug && is_text(&a, a.frames[x->first].name, "outer()") &&
			is_text(&a, a.frames[x->first].file, "/src/a.h") && a.frames[x->first].line == 7,
		"without inlined calls the function has the file and line of the innermost call");
	free(bytes);
	o.lines = false;
	a = answer_for(&name, 1, 1, &o, &bytes);
	x = sym_answer_find(&a, 0x1234);
	tap_ok(t, x && x->n_frames == 1 && !x->debug,
		"without inlined calls and lines the answer is as from a symbol table");
	free(bytes);
}

int main(void)
{
	struct tap t = { 0 };

	test_all(&t);
	test_wanted(&t);
	test_hostile(&t);
	return tap_done(&t);
}
