/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "symbols/perfmap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SPACE 600 /* addresses of the random maps */

static struct perfmap *parse(const char *text)
{
	struct perfmap *m = NULL;

	return perfmap_parse(text, strlen(text), &m, NULL) == 0 ? m : NULL;
}

/* The name at ADDR of the map TEXT; "-" = none. */
static const char *name_at(const char *text, uint64_t addr)
{
	static char name[64];
	struct perfmap *m = parse(text);
	struct perfmap_hit hit;

	snprintf(name, sizeof(name), "%s", m && perfmap_find(m, addr, &hit) ? hit.name : "-");
	perfmap_free(m);
	return name;
}

static void good_lines(struct tap *t)
{
	struct perfmap *m = parse("1000 20 first one\n2000 10 second\n");
	struct perfmap_hit hit;

	tap_ok(t, m && perfmap_count(m) == 2 && perfmap_bad(m) == 0, "two lines are two entries");
	tap_ok(t, perfmap_find(m, 0x1000, &hit) && hit.start == 0x1000 && hit.end == 0x1020,
		"the numbers of a line are hexadecimal");
	tap_eq_str(t, hit.name, "first one", "a name may contain spaces");
	tap_ok(t, perfmap_find(m, 0x101f, &hit), "an entry covers its last byte");
	tap_ok(t, !perfmap_find(m, 0x1020, &hit) && !perfmap_find(m, 0xfff, &hit),
		"an entry does not cover the bytes before and after it");
	perfmap_free(m);
	tap_eq_str(t, name_at("0x00007f0000001000 0x0000000000000020 Interpreter\n", 0x7f0000001010),
		"Interpreter", "numbers with 0x, as HotSpot writes them, are accepted");
	tap_eq_str(t, name_at("7F00AB 5 Upper\n", 0x7f00ab), "Upper", "upper case digits are accepted");
	tap_eq_str(t, name_at("10 5 \x1b[31mred\n", 0x10), "\x1b[31mred", "a name may contain any bytes");
	tap_eq_str(t, name_at("fffffffffffffff0 f end\n", UINT64_MAX - 1), "end",
		"an entry may reach the end of the address space");
	m = parse("");
	tap_ok(t, m && !perfmap_count(m) && !perfmap_bad(m) && !perfmap_find(m, 0, &hit),
		"an empty map is valid");
	perfmap_free(m);
}

static void bad_lines(struct tap *t)
{
	static const char *const bad[] = { "x", "1000", "1000 ", "1000 10", "1000 10 ", "1000 0 nothing",
		"g000 10 name", "1000 1g name", " 1000 10 blank", "-1000 10 name", "1000 -10 name",
		"10000000000000000 10 much", "1000 10000000000000000 much", "ffffffffffffffff 2 beyond",
		"0x 10 name", "1000,10,name" };
	static const char with_nul[] = "1000 10 na\0me\n2000 10 good\n";
	char text[128];
	struct perfmap_hit hit;
	struct perfmap *m;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(text, sizeof(text), "100 10 before\n%s\n200 10 after\n", bad[i]);
		m = parse(text);
		tap_ok(t,
			m && perfmap_bad(m) == 1 && perfmap_count(m) == 2 && perfmap_find(m, 0x100, &hit) &&
				perfmap_find(m, 0x200, &hit),
			"the malformed line '%s' is counted, and the other lines are read", bad[i]);
		perfmap_free(m);
	}
	m = parse("100 10 whole\n200 10 half a na");
	tap_ok(t, m && perfmap_count(m) == 1 && perfmap_bad(m) == 1,
		"a last line without a newline is counted as malformed");
	perfmap_free(m);
	m = NULL;
	perfmap_parse(with_nul, sizeof(with_nul) - 1, &m, NULL);
	tap_ok(t, m && perfmap_bad(m) == 1 && perfmap_find(m, 0x2000, &hit),
		"a line whose name has a NUL is counted as malformed");
	perfmap_free(m);
	m = parse("\n\n100 10 name\n\n");
	tap_ok(t, m && perfmap_bad(m) == 0 && perfmap_count(m) == 1, "empty lines are ignored");
	perfmap_free(m);
}

static void overlaps(struct tap *t)
{
	static const char inside[] = "1000 100 outer\n1040 10 inner\n";
	struct perfmap *m = parse(inside);
	struct perfmap_hit hit;

	tap_eq_str(t, name_at("1000 100 old\n1000 100 new\n", 0x1080), "new",
		"the last of two entries with the same range wins");
	tap_eq_str(t, name_at(inside, 0x1048), "inner", "a newer entry inside another one wins in its range");
	tap_eq_str(t, name_at(inside, 0x1050), "outer", "an entry applies again after a newer one inside it");
	tap_eq_str(t, name_at("1040 10 inner\n1000 100 outer\n", 0x1048), "outer",
		"a newer entry around another one hides it");
	tap_eq_str(t, name_at("1040 100 a\n1000 80 b\n", 0x1060), "b",
		"a newer entry over the start of an older one wins there");
	tap_eq_str(t, name_at("1040 100 a\n1000 80 b\n", 0x1090), "a",
		"the rest of an older entry applies after a newer one over its start");
	tap_ok(t,
		perfmap_find(m, 0x1090, &hit) && hit.start == 0x1000 && hit.end == 0x1100 &&
			hit.piece_start == 0x1050 && hit.piece_end == 0x1100,
		"a hit has the range of the entry and the piece of it that applies");
	perfmap_free(m);
}

/* Compare a random map with an array in which each line, in order, sets its addresses. */
static bool random_map(unsigned int *seed)
{
	static char text[100 * 32];
	int painted[SPACE], n = rand_r(seed) % 100;
	size_t len = 0;
	struct perfmap *m;
	bool same = true;

	for (int i = 0; i < SPACE; i++)
		painted[i] = -1;
	for (int i = 0; i < n; i++) {
		int start = rand_r(seed) % (SPACE - 100), size = 1 + rand_r(seed) % (i % 3 ? 8 : 100);

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%x %x n%d\n", start, size, i);
		for (int a = start; a < start + size; a++)
			painted[a] = i;
	}
	if (perfmap_parse(text, len, &m, NULL) != 0)
		return false;
	for (int a = 0; a < SPACE; a++) {
		struct perfmap_hit hit;
		bool found = perfmap_find(m, (uint64_t)a, &hit);

		same = same && found == (painted[a] >= 0) && (!found || atoi(hit.name + 1) == painted[a]);
		for (uint64_t b = found ? hit.piece_start : 0; found && b < hit.piece_end; b++)
			same = same && painted[b] == painted[a];
	}
	perfmap_free(m);
	return same;
}

static void random_maps(struct tap *t)
{
	unsigned int seed = 7;
	bool all = true;

	for (int i = 0; i < 500; i++)
		all = all && random_map(&seed);
	tap_ok(t, all, "in 500 random maps each address has the name of its last line");
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* N lines at random addresses, about a quarter of them over others. */
static char *big_map(size_t n, size_t *len)
{
	char *text = malloc(n * 64);
	unsigned int seed = 3;

	*len = 0;
	for (size_t i = 0; text && i < n; i++)
		*len += (size_t)sprintf(text + *len, "%lx %x LazyCompile:~function_%zu file.js:%zu\n",
			0x7f0000000000ul + (unsigned long)((unsigned int)rand_r(&seed) % (n * 4)) * 64,
			64 + (unsigned int)(i % 128), i, i % 1000);
	return text;
}

/* Parse N lines into *M. Returns the CPU time in seconds. */
static double parse_many(size_t n, struct perfmap **m)
{
	size_t len;
	char *text = big_map(n, &len);
	double begin = seconds(), took;

	if (text)
		perfmap_parse(text, len, m, NULL);
	took = seconds() - begin;
	free(text);
	return took;
}

static void big(struct tap *t)
{
	struct perfmap *m = NULL;
	struct perfmap_hit hit;
	size_t found = 0;
	double few, many;

	few = parse_many(125000, &m);
	perfmap_free(m);
	m = NULL;
	many = parse_many(1000000, &m);
	tap_ok(t, m && perfmap_count(m) == 1000000, "a million lines are read");
	/* eight times as many: O(n log n) takes about 10 times as long, O(n * n) 64 times */
	tap_ok(t, many < few * 30,
		"eight times as many lines take less than 30 times as long (%.3f s, %.3f s)", few, many);
	for (uint64_t i = 0; m && i < 1000000; i++)
		found += perfmap_find(m, 0x7f0000000000 + i * 256 + 7, &hit);
	tap_ok(t, found > 100000, "entries at random addresses are found (%zu)", found);
	perfmap_free(m);
}

static void files(struct tap *t)
{
	static const char text[] = "1000 20 one\n";
	struct perfmap *m = NULL;
	uint64_t size = 0;
	struct err e = { 0 };
	int fd = memfd_create("map", MFD_CLOEXEC), pair[2];

	if (fd < 0 || write(fd, text, sizeof(text) - 1) < 0 || pipe(pair) != 0)
		return;
	tap_ok(t, perfmap_load(fd, &m, &size, &e) == 0 && perfmap_count(m) == 1 && size == sizeof(text) - 1,
		"a file is read from its start, and its size is returned");
	perfmap_free(m);
	tap_ok(t, perfmap_load(pair[0], &m, &size, &e) == -EMEDIUMTYPE, "a pipe is refused without waiting");
	tap_ok(t,
		ftruncate(fd, (off_t)PERFMAP_BYTES_MAX + 1) == 0 && perfmap_load(fd, &m, &size, &e) == -EFBIG,
		"a file that is too large is refused");
	close(fd);
}

/* Is every entry consistent: with a name, and its piece around the address and inside its range? */
static bool hangs_together(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1); /* so that the sanitizers of SAN=1 see a read past the end */
	struct perfmap *m = NULL;
	struct perfmap_hit hit;
	bool fine;

	memcpy(copy, text, len);
	fine = perfmap_parse(copy, len, &m, NULL) == 0;
	for (uint64_t addr = 0; fine && addr < 0x60; addr++)
		if (perfmap_find(m, addr, &hit))
			fine = hit.start <= hit.piece_start && hit.piece_start <= addr &&
			       addr < hit.piece_end && hit.piece_end <= hit.end && *hit.name;
	perfmap_free(m);
	free(copy);
	return fine;
}

static void damaged(struct tap *t)
{
	char text[] = "10 20 one\n0x18 4 two words\nffffffffffffffff 1 last\n20 20 three";
	size_t wrong = 0;

	for (size_t len = 0; len < sizeof(text); len++)
		wrong += !hangs_together(text, len);
	for (size_t bit = 0; bit < 8 * sizeof(text); bit++) {
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
		wrong += !hangs_together(text, sizeof(text) - 1);
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
	}
	tap_eq_u64(t, wrong, 0, "a map cut anywhere, or with any bit changed, gives consistent entries");
}

int main(void)
{
	struct tap t = { 0 };

	good_lines(&t);
	bad_lines(&t);
	overlaps(&t);
	random_maps(&t);
	big(&t);
	files(&t);
	damaged(&t);
	return tap_done(&t);
}
