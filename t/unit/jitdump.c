/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/bytes.h"
#include "base/tap.h"
#include "symbols/jitdump.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* A dump that is built, in this machine's byte order or swapped. */
struct dump {
	struct buf b;
	bool swap;
};

static void put(struct dump *d, uint64_t v, size_t n)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < n; i++)
		bytes[d->swap ? n - 1 - i : i] = (uint8_t)(v >> (8 * i));
	buf_put(&d->b, bytes, n);
}

static void header(struct dump *d, uint32_t version, uint64_t flags)
{
	put(d, 0x4A695444, 4);
	put(d, version, 4);
	put(d, 40, 4);
	put(d, 62, 4);
	put(d, 0, 4);
	put(d, 1234, 4);
	put(d, 99, 8);
	put(d, flags, 8);
}

static void record(struct dump *d, uint32_t id, uint32_t size, uint64_t time_ns)
{
	put(d, id, 4);
	put(d, size, 4);
	put(d, time_ns, 8);
}

static void load(
	struct dump *d, uint64_t time_ns, uint64_t addr, uint64_t size, uint64_t index, const char *name)
{
	record(d, 0, (uint32_t)(56 + strlen(name) + 1 + 4), time_ns);
	put(d, 1234, 4);
	put(d, 1235, 4);
	put(d, addr, 8);
	put(d, addr, 8);
	put(d, size, 8);
	put(d, index, 8);
	buf_put(&d->b, name, strlen(name) + 1);
	put(d, 0x90909090, 4);
}

static void move(struct dump *d, uint64_t time_ns, uint64_t from, uint64_t to, uint64_t size, uint64_t index)
{
	record(d, 1, 64, time_ns);
	put(d, 1234, 4);
	put(d, 1235, 4);
	put(d, to, 8);
	put(d, from, 8);
	put(d, to, 8);
	put(d, size, 8);
	put(d, index, 8);
}

struct source {
	uint64_t addr;
	uint32_t line;
	const char *file;
};

static void lines(struct dump *d, uint64_t addr, const struct source *s, size_t n)
{
	size_t size = 32;

	for (size_t i = 0; i < n; i++)
		size += 17 + strlen(s[i].file);
	record(d, 2, (uint32_t)size, 1);
	put(d, addr, 8);
	put(d, n, 8);
	for (size_t i = 0; i < n; i++) {
		put(d, s[i].addr, 8);
		put(d, s[i].line, 4);
		put(d, 0, 4);
		buf_put(&d->b, s[i].file, strlen(s[i].file) + 1);
	}
}

/* Parse D and release it. NULL if it is not valid. */
static struct jitdump *parse(struct dump *d)
{
	struct jitdump *j = NULL;

	jitdump_parse(d->b.p, d->b.len, &j, NULL);
	buf_free(&d->b);
	return j;
}

static const char *name_at(const struct jitdump *j, uint64_t addr, uint64_t time_ns)
{
	struct jitdump_hit hit;

	return jitdump_find(j, addr, time_ns, &hit) ? hit.name : "-";
}

static void loads(struct tap *t, bool swap)
{
	struct dump d = { .swap = swap };
	struct jitdump_hit hit;
	struct jitdump *j;

	header(&d, 1, 0);
	load(&d, 100, 0x1000, 0x20, 1, "first one");
	record(&d, 77, 24, 150);
	put(&d, 0, 8);
	load(&d, 200, 0x2000, 0x10, 2, "second");
	j = parse(&d);
	tap_ok(t, j && jitdump_count(j) == 2 && !jitdump_bad(j),
		"both loads of a dump in %s byte order are read", swap ? "the other" : "this machine's");
	tap_ok(t, jitdump_find(j, 0x101f, 100, &hit) && hit.start == 0x1000 && hit.end == 0x1020,
		"a load has its range");
	tap_eq_str(t, hit.name, "first one", "a load has its name");
	tap_ok(t, hit.from_ns == 100 && hit.to_ns == UINT64_MAX && !hit.file,
		"a load is valid from its time on, without a source");
	tap_eq_str(t, name_at(j, 0x1000, 99), "-", "an address has no code before the time of the load");
	tap_eq_str(t, name_at(j, 0x1020, 500), "-", "an address past the end of the code has no code");
	tap_eq_str(t, name_at(j, 0x2000, 200), "second", "a record of an unknown kind is skipped");
	jitdump_free(j);
}

static void times(struct tap *t)
{
	struct dump d = { 0 };
	struct jitdump_hit hit;
	struct jitdump *j;

	header(&d, 1, 0);
	load(&d, 100, 0x1000, 0x100, 1, "old");
	load(&d, 200, 0x1040, 0x10, 2, "new");
	move(&d, 300, 0x1040, 0x5000, 0x10, 2);
	move(&d, 400, 0x5000, 0x6000, 0x10, 2);
	j = parse(&d);
	tap_eq_str(t, name_at(j, 0x1048, 150), "old", "the first code at an address is found at its time");
	tap_eq_str(t, name_at(j, 0x1048, 250), "new",
		"code that overwrites other code is found from its time on");
	tap_eq_str(t, name_at(j, 0x1048, 350), "-", "an address has no code after its code has moved away");
	tap_eq_str(t, name_at(j, 0x1050, 350), "old", "code beside overwritten code is still found");
	tap_eq_str(t, name_at(j, 0x5008, 350), "new", "moved code is found at its new address");
	tap_eq_str(t, name_at(j, 0x5008, 250), "-",
		"moved code is not found at its new address before the move");
	tap_eq_str(t, name_at(j, 0x6008, 450), "new", "code can move again");
	tap_ok(t, jitdump_find(j, 0x1048, 150, &hit) && hit.from_ns == 100 && hit.to_ns == 200,
		"a hit has the times at which the code was there");
	tap_ok(t, hit.piece_start == 0x1040 && hit.piece_end == 0x1050,
		"a hit has the piece of the code to which these times apply");
	tap_ok(t,
		jitdump_each(j, 0x1048, 0, &hit) && strcmp(hit.name, "new") == 0 && hit.to_ns == 300 &&
			jitdump_each(j, 0x1048, 1, &hit) && strcmp(hit.name, "old") == 0 &&
			!jitdump_each(j, 0x1048, 2, &hit),
		"jitdump_each() gives all code of an address, the newest first");
	tap_ok(t, !jitdump_bad(j), "a dump with moves has no malformed record");
	jitdump_free(j);
}

static void cycles(struct tap *t)
{
	struct dump d = { 0 };
	struct jitdump_hit hit;
	struct jitdump *j;

	header(&d, 1, 1);
	load(&d, 1000, 0x1000, 0x20, 1, "old");
	load(&d, 2000, 0x1000, 0x20, 2, "new");
	j = parse(&d);
	tap_ok(t,
		jitdump_find(j, 0x1000, 5, &hit) && hit.from_ns == 0 && hit.to_ns == UINT64_MAX &&
			strcmp(hit.name, "new") == 0,
		"with times of a cycle counter, code is there all the time and the newest wins");
	jitdump_free(j);
}

static void sources(struct tap *t)
{
	const struct source s[] = { { 0x1004, 10, "a.js" }, { 0x1010, 12, "\xff" }, { 0x1008, 7, "b.js" } };
	struct dump d = { 0 };
	struct jitdump_hit hit;
	struct jitdump *j;

	header(&d, 1, 0);
	lines(&d, 0x1000, s, ARRAY_LEN(s));
	load(&d, 100, 0x1000, 0x20, 1, "f");
	load(&d, 100, 0x2000, 0x20, 2, "g");
	move(&d, 200, 0x1000, 0x3000, 0x20, 1);
	j = parse(&d);
	tap_ok(t, jitdump_find(j, 0x1002, 100, &hit) && !hit.file && hit.piece_end == 0x1004,
		"an address before the first line has no source");
	tap_ok(t, jitdump_find(j, 0x1006, 100, &hit) && hit.line == 10 && strcmp(hit.file, "a.js") == 0,
		"an address has its file and line");
	tap_ok(t, hit.piece_start == 0x1004 && hit.piece_end == 0x1008 && hit.start == 0x1000,
		"a hit's piece is the bytes of its line");
	tap_ok(t, jitdump_find(j, 0x100f, 100, &hit) && hit.line == 7 && strcmp(hit.file, "b.js") == 0,
		"lines may be in any order");
	tap_ok(t, jitdump_find(j, 0x1018, 100, &hit) && hit.line == 12 && strcmp(hit.file, "a.js") == 0,
		"a line with file \"\\xff\" has the file of the line before it");
	tap_ok(t, jitdump_find(j, 0x2008, 100, &hit) && !hit.file, "lines apply only to the load after them");
	tap_ok(t, jitdump_find(j, 0x3006, 300, &hit) && hit.line == 10 && hit.piece_start == 0x3004,
		"moved code keeps its lines");
	jitdump_free(j);
}

static void one_bad(struct tap *t, struct dump *d, const char *what)
{
	struct jitdump *j;
	struct jitdump_hit hit;

	load(d, 100, 0x9000, 0x10, 9, "good");
	j = parse(d);
	tap_ok(t, j && jitdump_bad(j) == 1 && jitdump_find(j, 0x9000, 100, &hit),
		"one malformed record is counted, and the rest is read: %s", what);
	jitdump_free(j);
}

static void bad_records(struct tap *t)
{
	struct dump d = { 0 };

	header(&d, 1, 0);
	load(&d, 1, 0x1000, 0, 1, "empty");
	one_bad(t, &d, "code without bytes");
	header(&d, 1, 0);
	load(&d, 1, UINT64_MAX - 5, 100, 1, "beyond");
	one_bad(t, &d, "code that reaches past the address space");
	header(&d, 1, 0);
	load(&d, 1, 0x1000, 16, 1, "");
	one_bad(t, &d, "code without a name");
	header(&d, 1, 0);
	record(&d, 0, 20, 1);
	put(&d, 0, 4);
	one_bad(t, &d, "a load that is too short");
	header(&d, 1, 0);
	record(&d, 0, 60, 1);
	for (int i = 0; i < 11; i++)
		put(&d, 0x41414141, 4);
	one_bad(t, &d, "a name without a terminating NUL");
	header(&d, 1, 0);
	move(&d, 5, 0x1000, 0x2000, 16, 42);
	one_bad(t, &d, "a move of code that was never loaded");
	header(&d, 1, 0);
	record(&d, 2, 32, 1);
	put(&d, 0x9000, 8);
	put(&d, UINT64_MAX, 8);
	one_bad(t, &d, "more lines than there is room for");
}

static void truncated(struct tap *t)
{
	struct dump d = { 0 };
	struct jitdump *j = NULL;
	size_t whole;
	bool fine = true;

	header(&d, 1, 0);
	load(&d, 100, 0x1000, 0x20, 1, "first");
	whole = d.b.len;
	load(&d, 200, 0x2000, 0x20, 2, "second");
	for (size_t len = 0; len < d.b.len; len++) {
		/* on the heap, so that a sanitizer sees a read past the end */
		void *copy = malloc(len + 1);
		int rc;

		memcpy(copy, d.b.p, len);
		rc = jitdump_parse(copy, len, &j, NULL);
		fine = fine && rc == (len < 40 ? -EINVAL : 0) && (rc || jitdump_count(j) == (len >= whole));
		fine = fine && (rc || !jitdump_bad(j));
		if (!rc)
			jitdump_free(j);
		free(copy);
	}
	tap_ok(t, fine, "a dump cut at any byte gives its complete records, and the rest is not an error");
	buf_free(&d.b);
}

static void absurd(struct tap *t)
{
	struct dump d = { 0 };
	struct jitdump *j;
	struct err e = { 0 };
	size_t n = 60000;
	int rc;

	header(&d, 2, 0);
	tap_ok(t, !parse(&d), "another version is refused");
	d = (struct dump){ 0 };
	header(&d, 1, 0);
	d.b.p[8] = 39;
	tap_ok(t, !parse(&d), "a header that is too short is refused");
	d = (struct dump){ 0 };
	header(&d, 1, 0);
	d.b.p[11] = 0x7f;
	tap_ok(t, !parse(&d), "a header longer than the file is refused");
	d = (struct dump){ 0 };
	header(&d, 1, 0);
	record(&d, 0, 0, 1);
	j = parse(&d);
	tap_ok(t, j && jitdump_bad(j) == 1, "a record of size 0 is counted and ends the reading");
	jitdump_free(j);
	d = (struct dump){ 0 };
	header(&d, 1, 0);
	for (size_t i = 0; i < n; i++)
		load(&d, i, 0x1000000 - i, 2 * i + 2, i, "shell");
	rc = jitdump_parse(d.b.p, d.b.len, &j, &e);
	tap_ok(t, rc == -EFBIG && strstr(e.msg, "overlaps"), "60,000 nested ranges are refused");
	buf_free(&d.b);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Parse N loads at random addresses into *J. Returns the CPU time in seconds. */
static double parse_many(size_t n, struct jitdump **j)
{
	struct dump d = { 0 };
	unsigned int seed = 5;
	double begin, took;

	header(&d, 1, 0);
	for (uint64_t i = 0; i < n; i++)
		load(&d, i, 0x7f0000000000 + (uint64_t)((unsigned int)rand_r(&seed) % (2 * n)) * 64,
			64 + i % 256, i, "a function of some length");
	begin = seconds();
	jitdump_parse(d.b.p, d.b.len, j, NULL);
	took = seconds() - begin;
	buf_free(&d.b);
	return took;
}

static void big(struct tap *t)
{
	struct jitdump *j = NULL;
	struct jitdump_hit hit;
	size_t found = 0;
	double few, many;

	few = parse_many(62500, &j);
	jitdump_free(j);
	j = NULL;
	many = parse_many(500000, &j);
	tap_ok(t, j && jitdump_count(j) == 500000, "half a million loads are read");
	/* eight times as many: O(n log n) takes about 10 times as long, O(n * n) 64 times */
	tap_ok(t, many < few * 30,
		"eight times as many loads take less than 30 times as long (%.3f s, %.3f s)", few, many);
	for (uint64_t i = 0; j && i < 500000; i++)
		found += jitdump_find(j, 0x7f0000000000 + i * 128 + 7, i, &hit);
	tap_ok(t, found > 100000, "loads at random addresses are found (%zu)", found);
	jitdump_free(j);
}

static void files(struct tap *t)
{
	struct dump d = { 0 };
	struct jitdump *j = NULL;
	int fd = memfd_create("dump", MFD_CLOEXEC);

	header(&d, 1, 0);
	load(&d, 1, 0x1000, 16, 1, "one");
	tap_ok(t,
		fd >= 0 && write(fd, d.b.p, d.b.len) == (ssize_t)d.b.len && jitdump_load(fd, &j, NULL) == 0 &&
			jitdump_count(j) == 1,
		"a file is read from its start");
	jitdump_free(j);
	tap_ok(t, ftruncate(fd, (off_t)JITDUMP_BYTES_MAX + 1) == 0 && jitdump_load(fd, &j, NULL) == -EFBIG,
		"a file that is too large is refused");
	close(fd);
	buf_free(&d.b);
}

int main(void)
{
	struct tap t = { 0 };

	loads(&t, false);
	loads(&t, true);
	times(&t);
	cycles(&t);
	sources(&t);
	bad_records(&t);
	truncated(&t);
	absurd(&t);
	big(&t);
	files(&t);
	return tap_done(&t);
}
