/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "system/maps.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Parse a copy of TEXT that ends just before an unmapped page. */
static bool parse(const char *text, struct procmap *m, char **keep)
{
	size_t page = 4096, len = strlen(text) + 1;
	char *area = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *line = area + page - len;

	if (area == MAP_FAILED || munmap(area + page, page) != 0)
		return false;
	memcpy(line, text, len);
	*keep = area;
	return procmaps_parse(line, m);
}

static void good_lines(struct tap *t)
{
	struct procmap m;
	char *keep;

	tap_ok(t,
		parse("7f2ce30aa000-7f2ce3200000 r-xp 00026000 fe:00 332835                     "
		      "/usr/lib/libc.so.6",
			&m, &keep),
		"a line for a library is parsed");
	tap_ok(t, m.start == 0x7f2ce30aa000 && m.end == 0x7f2ce3200000 && m.offset == 0x26000,
		"a mapping has its range and offset");
	tap_ok(t, m.prot == (PROT_READ | PROT_EXEC) && m.flags == MAP_PRIVATE,
		"a mapping has its protection and flags");
	tap_ok(t, m.dev_major == 0xfe && m.dev_minor == 0 && m.inode == 332835,
		"a mapping has its device and inode");
	tap_eq_str(t, m.path, "/usr/lib/libc.so.6", "a mapping has its path");
	tap_ok(t, !m.deleted, "the file of a mapping is not marked as deleted");
	tap_ok(t,
		parse("1000-2000 rw-s 00000000 00:01 5 /dev/zero (deleted)", &m, &keep) && m.deleted &&
			m.flags == MAP_SHARED && strcmp(m.path, "/dev/zero") == 0,
		"a shared mapping of a deleted file is parsed");
	tap_ok(t, parse("1000-2000 ---p 00000000 00:00 0 ", &m, &keep) && !*m.path && !m.prot,
		"anonymous memory has no path");
	tap_ok(t, parse("1000-2000 ---p 00000000 00:00 0", &m, &keep) && !*m.path,
		"anonymous memory without a space at the end of the line has no path");
	tap_ok(t, parse("1000-2000 r-xp 00000000 00:00 0 [vdso]", &m, &keep) && strcmp(m.path, "[vdso]") == 0,
		"the vdso has its name as the path");
	tap_ok(t,
		parse("1000-2000 r-xp 00000000 08:01 9 /a b  c", &m, &keep) && strcmp(m.path, "/a b  c") == 0,
		"spaces in a path are kept");
	tap_ok(t,
		parse("1000-2000 r-xp 00000000 08:01 9 /a\\012b", &m, &keep) && strcmp(m.path, "/a\nb") == 0,
		"an escaped newline in a path is decoded");
	tap_ok(t, parse("1000-2000 r-xp 00000000 08:01 9 /a\\01", &m, &keep) && strcmp(m.path, "/a\\01") == 0,
		"an incomplete escape at the end of a path is kept");
	tap_ok(t,
		parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &m, &keep) &&
			m.start == 0xffffffffff600000,
		"addresses in the upper half of the address space are parsed");
}

static void bad_lines(struct tap *t)
{
	static const char *const bad[] = { "", " ", "x", "1000-2000", "1000-2000 r-xp",
		"2000-1000 r-xp 0 0:0 0", "1000-1000 r-xp 0 0:0 0 /a", "1000-2000 r-x 0 0:0 0 /a",
		"1000 2000 r-xp 0 0:0 0 /a", "1000-2000 r-xp 0 0:0", "g000-h000 r-xp 0 0:0 0 /a",
		"1000-2000 r-xp 0 0 0 /a" };
	struct procmap m;
	char *keep;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		tap_ok(t, !parse(bad[i], &m, &keep), "the line '%s' is refused", bad[i]);
}

struct seen {
	unsigned int n;
	bool me, ordered;
	uint64_t last;
};

static int look(void *ctx, const struct procmap *m)
{
	struct seen *s = ctx;
	uint64_t here = (uint64_t)(uintptr_t)&look;

	s->n++;
	s->ordered = s->ordered && m->start >= s->last;
	s->last = m->end;
	if (m->start <= here && here < m->end)
		s->me = m->prot & PROT_EXEC && strstr(m->path, "/procmaps");
	return 0;
}

static int stop(void *ctx, const struct procmap *m)
{
	(void)m;
	return ++*(int *)ctx == 2 ? 42 : 0;
}

int main(void)
{
	struct tap t = { 0 };
	struct seen s = { .ordered = true };
	struct err e = { 0 };
	int calls = 0;

	good_lines(&t);
	bad_lines(&t);
	tap_ok(&t, procmaps_each((uint32_t)getpid(), look, &s, &e) == 0 && s.n > 5,
		"the mappings of this process are read");
	tap_ok(&t, s.me, "this program's code is in an executable mapping of its file");
	tap_ok(&t, s.ordered, "mappings are reported in order of address");
	tap_ok(&t, procmaps_each((uint32_t)getpid(), stop, &calls, &e) == 42 && calls == 2,
		"a nonzero result of the callback ends the walk and is returned");
	tap_ok(&t, procmaps_each(4194304, look, &s, &e) == -ESRCH && strstr(e.msg, "4194304"),
		"a missing process is -ESRCH");
	return tap_done(&t);
}
