/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compressed line number tables of HotSpot. Those of real methods are compared
 * with jstack in t/bpf/java.t; here are the forms that javac makes rarely.
 */
#include "base/tap.h"
#include "record/hotspot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The bytes end at a page that is not there. */
static uint32_t line(uint32_t feature, const uint8_t *table, size_t n, bool cut, uint32_t bci)
{
	uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t ret;

	if (page == MAP_FAILED || munmap(page + 4096, 4096) != 0)
		abort();
	memcpy(page + 4096 - n, table, n);
	ret = hotspot_line(feature << 24, 0, page + 4096 - n, n, cut, bci);
	munmap(page, 4096);
	return ret;
}

#define LINE_OF(feature, bci, cut, ...)                                                                      \
	line(feature, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), cut, bci)
#define LINE(...) LINE_OF(17, __VA_ARGS__)

int main(void)
{
	struct tap t = { 0 };

	/* 0xff: bytecode +0 and line +10, as signed numbers, then +3 and +2 in a byte */
	tap_ok(&t, LINE(0, false, 0xff, 0, 20, 3 << 3 | 2, 0) == 10, "the first line, by two numbers");
	tap_ok(&t, LINE(2, false, 0xff, 0, 20, 3 << 3 | 2, 0) == 10, "a bytecode inside the first line");
	tap_ok(&t, LINE(3, false, 0xff, 0, 20, 3 << 3 | 2, 0) == 12, "the next line, by a byte");
	tap_ok(&t, LINE(999, false, 0xff, 0, 20, 3 << 3 | 2, 0) == 12, "the last line goes on to the end");
	tap_ok(&t, LINE(5, false, 0xff, 0, 20, 0xff, 10, 7, 0) == 6,
		"a line before the last one: a loop's head");
	tap_ok(&t, LINE(5, false, 0xff, 20, 40, 0xff, 19, 1, 0) == 19, "bytecodes that are not sorted");
	tap_ok(&t, LINE(0, false, 0xff, 0, 192, 12, 0) == 480, "a number of two bytes");
	tap_ok(&t, LINE(0, false, 0xff, 0, 255, 255, 255, 255, 255, 0) == 0, "a line that no class file has");
	tap_ok(&t, LINE(0, false, 0) == 0 && LINE(1, false, 9) == 1, "an empty table, one without an end");
	tap_ok(&t, LINE(0, false, 0xff) == 0 && LINE(7, false, 0xff, 0, 20, 0xff, 192) == 10,
		"a number that is cut ends the table");
	tap_ok(&t, LINE(9, true, 0xff, 0, 20, 1 << 3 | 1) == 0,
		"a table that is cut: the last line is not known");
	tap_ok(&t, LINE(0, true, 0xff, 0, 20, 1 << 3 | 1) == 10,
		"a table that is cut: a line that it has is");
	tap_ok(&t, LINE(SCRIPT_POSITION_NONE, false, 0xff, 0, 20, 0) == 0, "no position, no line");
	tap_ok(&t,
		LINE_OF(11, 0, false, 0xff, 0, 192, 12, 0) == 480 &&
			LINE_OF(21, 0, false, 0xff, 1, 193, 13, 0) == 480 &&
			LINE_OF(25, 0, false, 0xff, 1, 193, 13, 0) == 480,
		"in 21 and 25 each byte of a number is one more, so that none is 0");
	tap_ok(&t, LINE_OF(21, 3, false, 0xff, 1, 21, 3 << 3 | 2, 0) == 12, "pairs in a byte are as in 17");
	return tap_done(&t);
}
