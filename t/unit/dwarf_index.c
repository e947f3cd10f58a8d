/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "elf/dwarf_split.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define MAX_BYTES (UINT64_C(1) << 30)

static char dir[] = "/tmp/unit-dwarf_index.XXXXXX";

static bool sh(const char *what)
{
	char cmd[2048];

	snprintf(cmd, sizeof(cmd), "cd %s && { %s; } >/dev/null 2>&1", dir, what);
	return system(cmd) == 0;
}

/* --- packages of other tools, compared with llvm-dwarfdump --- */

static const struct {
	const char *name;
	enum dwarf_section_id id;
} columns[] = { { "INFO", DWARF_SECTION_INFO }, { "TYPES", DWARF_SECTION_TYPES },
	{ "ABBREV", DWARF_SECTION_ABBREV }, { "LINE", DWARF_SECTION_LINE },
	{ "STR_OFFSETS", DWARF_SECTION_STR_OFFSETS }, { "RNGLISTS", DWARF_SECTION_RNGLISTS } };

/* Set RET to the sections that LINE names after "Index Signature". Returns their number. */
static size_t read_columns(char *line, enum dwarf_section_id *ret)
{
	char *save = NULL;
	size_t n = 0;

	strtok_r(line, " \n", &save);
	strtok_r(NULL, " \n", &save);
	for (const char *w; (w = strtok_r(NULL, " \n", &save)) && n < 16; n++) {
		ret[n] = DWARF_SECTION_COUNT;
		for (size_t i = 0; i < ARRAY_LEN(columns); i++)
			if (strcmp(w, columns[i].name) == 0)
				ret[n] = columns[i].id;
	}
	return n;
}

/* Does a line of llvm-dwarfdump's table agree with the index? */
static bool same_parts(
	const struct dwarf_index *x, const char *line, const enum dwarf_section_id *column, size_t n)
{
	struct dwarf_index_parts want = { 0 }, got;
	uint64_t id, from, to;
	const char *p = strchr(line, '[');

	if (sscanf(line, "%*u 0x%" SCNx64, &id) != 1)
		return false;
	for (size_t i = 0; i < n && p; i++, p = strchr(p + 1, '['))
		if (sscanf(p, "[0x%" SCNx64 ", 0x%" SCNx64 ")", &from, &to) == 2 &&
			column[i] < DWARF_SECTION_COUNT)
			want.of[column[i]] = (struct dwarf_index_part){ from, to - from };
	return dwarf_index_find(x, id, &got, NULL) == 0 && memcmp(&want, &got, sizeof(want)) == 0 &&
	       dwarf_index_find(x, id + 1, &got, NULL) == -ENOENT;
}

static void compare(struct tap *t, const struct dwarf_index *x, const char *kind, const char *what)
{
	char cmd[256], line[1024];
	enum dwarf_section_id column[16];
	size_t n_columns = 0, units = 0, wrong = 0;
	FILE *f;

	snprintf(cmd, sizeof(cmd), "cd %s && llvm-dwarfdump-19 --debug-%s-index p.dwp", dir, kind);
	f = popen(cmd, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "Index", 5) == 0)
			n_columns = read_columns(line, column);
		else if (n_columns && strchr(line, '[')) {
			units++;
			wrong += !same_parts(x, line, column, n_columns);
		}
	}
	if (f)
		pclose(f);
	if (!tap_ok(t, units && units == dwarf_index_count(x) && !wrong,
		    "%s: every unit of its %s index agrees with llvm-dwarfdump", what, kind))
		tap_diag("%zu units, not %zu, %zu wrong", dwarf_index_count(x), units, wrong);
}

static void test_package(struct tap *t, const char *make, const char *what, bool types)
{
	char path[128];
	struct elffile *f = NULL;
	struct dwarf_sections *s = NULL;
	struct dwarf_index *x = NULL;

	sh("rm -f ./*.dwo p p.dwp");
	if (!sh(make)) {
		tap_skip(t, what, "no tool that creates it");
		return;
	}
	snprintf(path, sizeof(path), "%s/p.dwp", dir);
	elffile_open(AT_FDCWD, path, false, &f, NULL);
	if (!f || dwarf_sections_open(f, true, MAX_BYTES, &s, NULL) != 0) {
		tap_ok(t, false, "%s is read", what);
		return;
	}
	if (tap_ok(t, dwarf_index_open(s, DWARF_SECTION_CU_INDEX, &x, NULL) == 0,
		    "%s: the package has an index", what))
		compare(t, x, "cu", what);
	dwarf_index_close(x);
	x = NULL;
	if (tap_ok(t, dwarf_index_open(s, DWARF_SECTION_TU_INDEX, &x, NULL) == (types ? 0 : -ENOENT),
		    "%s: the package %s index of types", what, types ? "has an" : "has no") &&
		types)
		compare(t, x, "tu", what);
	dwarf_index_close(x);
	dwarf_sections_close(s);
	elffile_close(f);
}

static void test_packages(struct tap *t)
{
	if (!sh("command -v llvm-dwarfdump-19") || !sh("command -v g++")) {
		tap_skip(t, "packages", "no llvm-dwarfdump-19 or g++");
		return;
	}
	sh("echo 'struct A { int a; int m(); }; int A::m() { return a; } int two(int);"
	   " int main(int c, char **) { A x{c}; return x.m() + two(c); }' >a.cc;"
	   " echo 'struct B { long q; }; int two(int x) { B b{x}; return b.q * 2; }' >b.cc");
	test_package(t,
		"g++ -g -gdwarf-4 -gsplit-dwarf -fdebug-types-section a.cc b.cc -o p && dwp -e p -o p.dwp",
		"version 2 by dwp", true);
	test_package(t, "g++ -g -gdwarf-4 -gsplit-dwarf a.cc b.cc -o p && llvm-dwp-19 -e p -o p.dwp",
		"version 2 by llvm-dwp", false);
	test_package(t,
		"g++ -g -gdwarf-5 -gsplit-dwarf -fdebug-types-section a.cc b.cc -o p && llvm-dwp-19 -e p -o "
		"p.dwp",
		"version 5 by llvm-dwp", true);
	test_package(t,
		"clang++ -g -gdwarf-5 -O2 -ffunction-sections -gsplit-dwarf a.cc b.cc -o p && llvm-dwp-19 -e "
		"p -o p.dwp",
		"version 5 from clang", false);
	test_package(t,
		"for i in $(seq 100); do echo \"int f$i(int x) { return x + $i; }\" >f$i.c; done;"
		" echo 'int main(void) { return 0; }' >main.c;"
		" gcc -g -gdwarf-5 -gsplit-dwarf main.c f*.c -o p && llvm-dwp-19 -e p -o p.dwp",
		"a hundred units", false);
}

/* --- a handwritten index --- */

struct made {
	uint8_t bytes[4096];
	size_t n;
};

static void put(struct made *m, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++)
		m->bytes[m->n++] = (uint8_t)(v >> 8 * i);
}

/* Version 5, four slots, three units whose IDs all hash to slot 1, two columns. */
static struct made make_index(void)
{
	static const uint64_t ids[4] = { 0x0000000000000001 + 8, 1, 0x0000000200000001 + 4, 0 };
	static const uint32_t rows[4] = { 3, 1, 2, 0 };
	struct made m = { 0 };

	put(&m, 5, 4);
	put(&m, 2, 4);
	put(&m, 3, 4);
	put(&m, 4, 4);
	/* 1 is in slot 1; 0x200000005 steps by 3 from slot 1 to 0; 9 steps by 1 from slot 1 to 2 */
	put(&m, ids[2], 8);
	put(&m, ids[1], 8);
	put(&m, ids[0], 8);
	put(&m, 0, 8);
	put(&m, rows[2], 4);
	put(&m, rows[1], 4);
	put(&m, rows[0], 4);
	put(&m, 0, 4);
	put(&m, 1, 4); /* INFO */
	put(&m, 7, 4); /* MACRO */
	for (uint32_t i = 0; i < 3; i++) {
		put(&m, 8 * i, 4);
		put(&m, 1000 * i, 4);
	}
	for (uint32_t i = 0; i < 3; i++) {
		put(&m, 8, 4);
		put(&m, 1000, 4);
	}
	return m;
}

/* Open the index and look up ID. Returns the result of the open, and in *FOUND that of both. */
static int ask(const struct made *m, size_t len, uint64_t id, struct dwarf_index_parts *parts, int *found)
{
	static const char names[] = "\0.debug_info.dwo\0.debug_cu_index";
	struct elffile_section secs[3] = { { .type = SHT_STRTAB, .size = sizeof(names) },
		{ .name = 1, .type = SHT_PROGBITS, .size = 24 },
		{ .name = 17, .type = SHT_PROGBITS, .offset = 64, .size = len } };
	struct elffile f = { .fd = -1, .size = 64 + len, .is64 = true, .sections = secs, .n_sections = 3 };
	_cleanup_free_ uint8_t *image = calloc(1, 64 + len + 1);
	struct dwarf_sections *s = NULL;
	struct dwarf_index *x = NULL;
	int rc;

	memcpy(image, names, sizeof(names));
	memcpy(image + 64, m->bytes, len);
	f.image = image;
	dwarf_sections_open(&f, true, MAX_BYTES, &s, NULL);
	rc = dwarf_index_open(s, DWARF_SECTION_CU_INDEX, &x, NULL);
	*found = rc ? rc : dwarf_index_find(x, id, parts, NULL);
	dwarf_index_close(x);
	dwarf_sections_close(s);
	return rc;
}

static bool is_at(const struct made *m, uint64_t id, uint64_t offset)
{
	struct dwarf_index_parts p;
	int found;

	return ask(m, m->n, id, &p, &found) == 0 && found == 0 && p.of[DWARF_SECTION_INFO].offset == offset &&
	       p.of[DWARF_SECTION_INFO].size == 8;
}

static bool opens(const struct made *m)
{
	struct dwarf_index_parts p;
	int found;

	return ask(m, m->n, 1, &p, &found) != -EINVAL;
}

static void test_made(struct tap *t)
{
	struct made m = make_index();
	struct dwarf_index_parts p;
	int found, rc;
	size_t cut, wrong = 0;

	tap_ok(t, is_at(&m, 1, 0) && is_at(&m, 0x200000005, 8) && is_at(&m, 9, 16),
		"IDs that collide are found");
	ask(&m, m.n, 13, &p, &found);
	tap_ok(t, found == -ENOENT, "an ID that is not in the index is not found");
	for (cut = 0; cut < m.n; cut++)
		wrong += ask(&m, cut, 1, &p, &found) != (cut ? -EINVAL : -ENOENT);
	tap_ok(t, wrong == 0, "an index cut anywhere is refused");
	m.bytes[16 + 24] = 99; /* the last slot is used too */
	m.bytes[60] = 1;
	rc = ask(&m, m.n, 13, &p, &found);
	tap_ok(t, rc == 0 && found < 0, "the search in a table without a free slot ends");
	m = make_index();
	m.bytes[16 + 32 + 4] = 200;
	ask(&m, m.n, 1, &p, &found);
	tap_ok(t, found == -EINVAL, "a slot whose row does not exist is malformed");
	m = make_index();
	m.bytes[m.n - 24] = 25;
	ask(&m, m.n, 1, &p, &found);
	tap_ok(t, found == -EINVAL, "a part outside its section is malformed");
}

static void test_absurd(struct tap *t)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *what;
	} bad[] = { { 0, 3, "an unknown version" }, { 4, 0xffffffff, "an index with too many columns" },
		{ 8, 0xffffffff, "an index with more units than slots" },
		{ 12, 3, "a number of slots that is not a power of two" },
		{ 12, 0x80000000, "an index with slots beyond its end" } };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct made m = make_index();
		struct made b = m;

		memcpy(b.bytes + bad[i].at, &bad[i].value, 4);
		tap_ok(t, opens(&m) && !opens(&b), "%s is refused", bad[i].what);
	}
}

/* Change every byte. The sanitizers of SAN=1 detect a read outside the index. */
static void test_damage(struct tap *t)
{
	struct made m = make_index();
	struct dwarf_index_parts p;
	size_t odd = 0;
	int found;

	for (size_t i = 0; i < m.n; i++)
		for (unsigned int v = 0; v < 256; v++) {
			uint8_t was = m.bytes[i];

			m.bytes[i] = (uint8_t)v;
			ask(&m, m.n, 9, &p, &found);
			odd += found == 0 &&
			       p.of[DWARF_SECTION_INFO].offset + p.of[DWARF_SECTION_INFO].size > 24;
			m.bytes[i] = was;
		}
	tap_ok(t, odd == 0, "with any byte changed, parts are inside their sections");
}

int main(void)
{
	struct tap t = { 0 };

	if (!mkdtemp(dir))
		return 2;
	test_packages(&t);
	test_made(&t);
	test_absurd(&t);
	test_damage(&t);
	sh("rm -f ./*");
	rmdir(dir);
	return tap_done(&t);
}
