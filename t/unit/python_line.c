/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Line tables of CPython: each line of each code unit is what CPython itself
 * says (code.co_lines(), dis.findlinestarts()), for the Pythons of the machine.
 */
#include "base/base.h"
#include "base/tap.h"
#include "record/python.h"
#include "../lib/edge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Prints for each code object of some modules: version, first line, table in hex, and the line of each unit.
 */
static const char program[] =
	"import sys, dis, argparse, json.decoder, asyncio.base_events, typing, subprocess, types\n"
	"v = sys.hexversion\n"
	"def lines(c):\n"
	"    n = len(c.co_code) // 2\n"
	"    out = [0] * n\n"
	"    if v >= 0x030a0000:\n"
	"        for a, b, l in c.co_lines():\n"
	"            out[a // 2:b // 2] = [l or 0] * (b // 2 - a // 2)\n"
	"    else:\n"
	"        s = list(dis.findlinestarts(c)) + [(2 * n, 0)]\n"
	"        for (a, l), (b, _) in zip(s, s[1:]):\n"
	"            out[a // 2:b // 2] = [l] * (b // 2 - a // 2)\n"
	"    return out\n"
	"def show(c):\n"
	"    t = c.co_linetable if v >= 0x030a0000 else c.co_lnotab\n"
	"    print(v, c.co_firstlineno, t.hex() or '-', *lines(c))\n"
	"    for k in c.co_consts:\n"
	"        if isinstance(k, types.CodeType): show(k)\n"
	"for m in argparse, json.decoder, asyncio.base_events, typing, subprocess:\n"
	"    show(compile(open(m.__file__, 'rb').read(), m.__file__, 'exec'))\n"
	"show(compile('def f():\\n' + ' a = 1\\n' * 200 + '\\n' * 300 + ' b = (1,\\n' + '\\n' * 200 + ' "
	"f)\\n', 'x', 'exec'))\n";

struct counts {
	unsigned long objects, right, wrong, cut_wrong;
};

/* One line of the program's output. */
static void check(char *text, struct counts *c)
{
	char *save = NULL;
	uint32_t version = (uint32_t)strtoul(strtok_r(text, " ", &save), NULL, 10), at = 0;
	uint32_t first = (uint32_t)strtoul(strtok_r(NULL, " ", &save), NULL, 10);
	size_t n;
	const uint8_t *table = edge_end_hex(strtok_r(NULL, " ", &save), &n);

	c->objects++;
	for (char *w; (w = strtok_r(NULL, " \n", &save)); at++) {
		uint32_t want = (uint32_t)strtoul(w, NULL, 10);
		uint32_t got = python_line(version, first, table, n, false, at);
		uint32_t part = python_line(version, first, table, n / 2, true, at);

		if (got == want)
			c->right++;
		else if (c->wrong++ < 5)
			printf("# version %x, unit %u: got %u, want %u\n", version, at, got, want);
		/* of a table that is cut, an answer is right or missing; the cut may be inside an entry */
		if (version < 0x030b0000 && n / 2 % 2 == 0 && part && part != want)
			c->cut_wrong++;
	}
}

static void test_python(struct tap *t, const char *python)
{
	char path[] = "/tmp/unit-python_line.XXXXXX", command[512];
	int fd = mkstemp(path);
	struct counts c = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	if (write(fd, program, sizeof(program) - 1) < 0)
		abort();
	close(fd);
	snprintf(command, sizeof(command), "%s -I %s", python, path);
	f = popen(command, "r");
	while (f && getline(&text, &size, f) > 0)
		check(text, &c);
	if (f)
		pclose(f);
	free(text);
	unlink(path);
	tap_ok(t, c.objects > 100 && c.right > 10000 && !c.wrong,
		"%s: the line of each of %lu code units is CPython's", python, c.right);
	tap_ok(t, !c.cut_wrong, "%s: no line is wrong if the table is cut", python);
}

static void test_bytes(struct tap *t)
{
	static const uint32_t versions[] = { 0x030800f0, 0x030900f0, 0x030a00f0, 0x030b00f0, 0x030d00f0 };
	uint32_t seed = 1;
	uint64_t sum = 0;

	for (int round = 0; round < 20000; round++) {
		char hex[129];
		size_t n, digits = (size_t)(round % 64) * 2;
		const uint8_t *table;

		for (size_t i = 0; i < digits; i++) {
			seed = seed * 1664525 + 1013904223;
			hex[i] = "0123456789abcdef"[seed >> 28];
		}
		hex[digits] = 0;
		table = edge_end_hex(digits ? hex : "-", &n);
		for (size_t v = 0; v < ARRAY_LEN(versions); v++)
			sum += python_line(versions[v], seed >> 8, table, n, seed & 1, seed >> 20);
	}
	tap_ok(t, sum != 0, "arbitrary bytes are read to their end and no further");
	tap_ok(t, python_line(0x030b00f0, 7, NULL, 0, true, SCRIPT_POSITION_NONE) == 7,
		"a function that has not begun is at its first line");
	tap_ok(t,
		python_line(0x030800f0, 7, NULL, 0, true, 3) == 0 &&
			python_line(0x030800f0, 7, NULL, 0, false, 3) == 7,
		"without a table there is no line, with an empty one it is the first");
}

static void test_layouts(struct tap *t)
{
	struct runtime_file f = { .kind = RUNTIME_PYTHON, .version = 0x030b02f0, .state = 5 };

	tap_ok(t, python_layout(&f, 1) && f.frame_code == 32 && f.state == 5 && f.version == 0x030b02f0,
		"a known version has its offsets");
	f.version = 0x030e00f0;
	tap_ok(t, !python_layout(&f, 0) && python_layout(&f, 1) && f.frame_owner == 74,
		"a build with other members is refused");
	python_places(&f, &(struct unwindtab_interpreter){ .state_bytes = 1 });
	tap_ok(t, !f.state_counter, "where it counts code objects is not guessed");
	python_places(&f, &(struct unwindtab_interpreter){ .state_bytes = 316616 });
	tap_ok(t, f.state_counter == 90752 + 14256 && f.state_main == 90752,
		"it is known for Debian's build");
	f.version = 0x030800f0;
	tap_ok(t, !python_layout(&f, 1463) && python_layout(&f, 1464),
		"before 3.11 the size of _PyRuntime proves the version");
	for (uint32_t v = 0x03000000; v < 0x04000000; v += 0x10000) {
		f = (struct runtime_file){ .version = v };
		if (v >= 0x030b0000 && v < 0x030f0000)
			continue;
		if (python_layout(&f, 1))
			break;
	}
	tap_ok(t, !f.frame_code && f.version == 0x03ff0000, "other versions are refused");
}

int main(void)
{
	struct tap t = { 0 };
	const char *more = getenv("RUNTIME");
	char *list = more ? strdup(more) : NULL, *save = NULL;

	if (list)
		for (char *p = strtok_r(list, " ", &save); p; p = strtok_r(NULL, " ", &save))
			test_python(&t, p);
	else
		test_python(&t, "/usr/bin/python3");
	free(list);
	test_bytes(&t);
	test_layouts(&t);
	return tap_done(&t);
}
