/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handwritten line programs: those that compilers rarely or never emit, and malformed ones. */
#include "base/tap.h"
#include "elf/dwarf_lines.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define MAX_BYTES (UINT64_C(1) << 30)
#define NONE 4711

/* --- line programs, byte by byte: begin(), file tables, end_heading(), opcodes, finish() --- */

struct prog {
	uint8_t b[4096];
	size_t n;
	size_t heading_at;
};

static void put(struct prog *p, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++)
		p->b[p->n++] = (uint8_t)(i < 8 ? v >> 8 * i : 0);
}

static void put_str(struct prog *p, const char *s)
{
	memcpy(p->b + p->n, s, strlen(s) + 1);
	p->n += strlen(s) + 1;
}

#define PUT(p, ...) put_all((p), (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void put_all(struct prog *p, const uint8_t *bytes, size_t n)
{
	memcpy(p->b + p->n, bytes, n);
	p->n += n;
}

static void put_length(struct prog *p, size_t at)
{
	uint64_t v = p->n - at - 4;

	memcpy(p->b + at, &v, 4); /* little-endian, like every machine that runs this */
}

/* Everything before the file tables: line_base -3, line_range 12, as in gcc. */
static struct prog begin(uint16_t version, uint8_t min_inst, uint8_t max_ops, uint8_t opcode_base)
{
	static const uint8_t lengths[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 3, 0, 1 };
	struct prog p = { .n = 4 };

	put(&p, version, 2);
	if (version >= 5)
		PUT(&p, 8, 0);
	p.heading_at = p.n;
	p.n += 4;
	put(&p, min_inst, 1);
	if (version >= 4)
		put(&p, max_ops, 1);
	PUT(&p, 1, (uint8_t)-3, 12, opcode_base);
	put_all(&p, lengths, opcode_base - 1U);
	return p;
}

static void end_heading(struct prog *p)
{
	put_length(p, p->heading_at);
}

/* One directory "inc", and the file "a.c" in it. */
static struct prog usual(uint16_t version, uint8_t opcode_base)
{
	struct prog p = begin(version, 1, 1, opcode_base);

	put_str(&p, "inc");
	PUT(&p, 0);
	put_str(&p, "a.c");
	PUT(&p, 1, 0, 0, 0);
	end_heading(&p);
	return p;
}

static void set_address(struct prog *p, uint64_t address, uint8_t size)
{
	PUT(p, 0, size + 1, 2);
	put(p, address, size);
}

/* Rows at ADDRESS and ADDRESS + 16 with lines LINE and LINE + 1; the end is 16 bytes further. */
static void sequence(struct prog *p, uint64_t address, uint8_t size, uint8_t line)
{
	set_address(p, address, size);
	PUT(p, 3, line - 1, 1, 2, 16, 3, 1, 1, 2, 16, 0, 1, 1);
}

static struct prog *finish(struct prog *p)
{
	put_length(p, 0);
	return p;
}

/* --- a table opened from such bytes --- */

struct table {
	struct elffile elf;
	struct elffile_section secs[3];
	uint8_t image[8192];
	struct dwarf_sections *s;
	struct dwarf_line *l;
	struct err e;
	int rc;
};

#define LINE_STR "/comp\0rel\0/abs\0n.c"

static void open_with(struct table *t, const struct prog *p, const struct dwarf_line_opts *o)
{
	static const char names[] = "\0.debug_line\0.debug_line_str";

	*t = (struct table){ .rc = 0 };
	memcpy(t->image, names, sizeof(names));
	memcpy(t->image + 64, LINE_STR, sizeof(LINE_STR));
	memcpy(t->image + 128, p->b, p->n);
	t->secs[0] = (struct elffile_section){ .type = SHT_STRTAB, .size = sizeof(names) };
	t->secs[1] = (struct elffile_section){ .name = 1, .type = SHT_PROGBITS, .offset = 128, .size = p->n };
	t->secs[2] = (struct elffile_section){
		.name = 13, .type = SHT_PROGBITS, .offset = 64, .size = sizeof(LINE_STR)
	};
	t->elf = (struct elffile){ .fd = -1,
		.image = t->image,
		.size = sizeof(t->image),
		.is64 = true,
		.sections = t->secs,
		.n_sections = 3 };
	t->rc = dwarf_sections_open(&t->elf, false, MAX_BYTES, &t->s, &t->e);
	if (t->rc == 0)
		t->rc = dwarf_line_open(t->s, o, &t->l, &t->e);
}

static void shut(struct table *t)
{
	dwarf_line_close(t->l);
	dwarf_sections_close(t->s);
}

static const struct dwarf_line_opts usual_opts = { .addr_size = 8, .comp_dir = "/comp", .name = "unit.c" };

/* Returns the line at ADDRESS, or NONE. Sets *RC to the result of opening or running the table. */
static uint32_t line_with(struct prog *p, const struct dwarf_line_opts *o, uint64_t address, int *rc)
{
	struct dwarf_line_row row = { .line = NONE };
	struct table t;

	open_with(&t, p, o);
	*rc = t.rc ? t.rc : dwarf_line_run(t.l, &address, 1, &row, &t.e);
	shut(&t);
	return row.line;
}

static uint32_t line_at(struct prog *p, uint64_t address)
{
	int rc;
	uint32_t line = line_with(finish(p), &usual_opts, address, &rc);

	return rc ? NONE + 1 : line;
}

/* --- rows --- */

static void test_rows(struct tap *t)
{
	struct prog p = usual(4, 13);

	sequence(&p, 0x1000, 8, 10);
	tap_ok(t,
		line_at(&p, 0xfff) == NONE && line_at(&p, 0x1000) == 10 && line_at(&p, 0x100f) == 10 &&
			line_at(&p, 0x1010) == 11 && line_at(&p, 0x101f) == 11,
		"a row applies up to the next row");
	tap_ok(t, line_at(&p, 0x1020) == NONE, "the end address of a sequence is not part of it");
	p = usual(4, 13);
	set_address(&p, 0x1000, 8);
	PUT(&p, 1, 3, 5, 1, 3, 1, 1, 2, 4, 0, 1, 1);
	tap_eq_u64(t, line_at(&p, 0x1000), 7, "of rows with the same address the last one applies");
	p = usual(4, 13);
	set_address(&p, 0x1000, 8);
	PUT(&p, 3, 0x7f, 1, 2, 4, 0, 1, 1);
	tap_eq_u64(t, line_at(&p, 0x1000), 0, "line 0 is reported as line 0");
}

static void test_overlap(struct tap *t)
{
	struct prog p = usual(4, 13);

	sequence(&p, 0x1008, 8, 30);
	sequence(&p, 0x1000, 8, 10);
	tap_ok(t,
		line_at(&p, 0x1007) == 10 && line_at(&p, 0x1008) == 30 && line_at(&p, 0x1018) == 31 &&
			line_at(&p, 0x101f) == 31,
		"of two overlapping sequences the one with the higher start applies");
	p = usual(4, 13);
	sequence(&p, 0x1000, 8, 10);
	sequence(&p, 0x1000, 8, 30);
	tap_eq_u64(t, line_at(&p, 0x1000), 10, "of two sequences with the same start the first one applies");
}

static void test_many_overlaps(struct tap *t)
{
	enum { N = 1024 };
	static uint64_t at[N];
	static struct dwarf_line_row rows[N];
	struct prog p = usual(4, 13);
	struct table x;

	for (size_t i = 0; i < N; i++)
		at[i] = 0x1000 + i / 128;
	for (int i = 0; i < 160; i++)
		sequence(&p, 0x1000, 8, 10);
	open_with(&x, finish(&p), &usual_opts);
	tap_ok(t, x.l && dwarf_line_run(x.l, at, N, rows, NULL) == -EINVAL && rows[N - 1].line == 10,
		"too many overlaps end the run with an error");
	tap_ok(t, x.l && dwarf_line_run(x.l, at, 4, rows, NULL) == 0,
		"many overlaps at a few addresses do not end the run");
	shut(&x);
}

static void test_back(struct tap *t)
{
	struct prog p = usual(4, 13);

	set_address(&p, 0x2000, 8);
	PUT(&p, 3, 9, 1, 2, 16, 1);
	sequence(&p, 0x1000, 8, 20);
	tap_ok(t, line_at(&p, 0x2000) == 10 && line_at(&p, 0x2010) == NONE,
		"a sequence ends if its address decreases");
	tap_eq_u64(t, line_at(&p, 0x1000), 29, "rows after the address decreased form another sequence");
	p = usual(4, 13);
	set_address(&p, 0x2000, 8);
	PUT(&p, 1, 2, 0x80, 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 1, 2, 16, 0, 1, 1);
	tap_ok(t, line_at(&p, 0x1000) == 1 && line_at(&p, 0x1800) == NONE,
		"a sequence ends if an advance wraps around to a lower address");
}

static void test_discarded(struct tap *t)
{
	static const uint64_t dead[] = { 0, UINT64_MAX, UINT64_MAX - 1 };
	struct dwarf_line_opts o = usual_opts;
	struct prog p;
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(dead); i++) {
		p = usual(4, 13);
		sequence(&p, dead[i], 8, 10);
		sequence(&p, 0x1000, 8, 20);
		tap_ok(t, line_at(&p, 8) == NONE && line_at(&p, 1) == NONE && line_at(&p, 0x1000) == 20,
			"code at 0x%llx, which the linker discarded, is ignored",
			(unsigned long long)dead[i]);
	}
	for (uint64_t top = UINT32_MAX;; top = UINT64_MAX) {
		o.addr_size = top == UINT32_MAX ? 4 : 8;
		p = usual(4, 13);
		set_address(&p, top - 1, o.addr_size);
		PUT(&p, 3, 9, 1, 2, 1, 0, 1, 1); /* one row of one byte */
		tap_ok(t, line_with(finish(&p), &o, top - 1, &rc) == NONE && rc == 0,
			"nothing is found at 0x%llx, the address some linkers give discarded code",
			(unsigned long long)top - 1);
		if (top == UINT64_MAX)
			break;
	}
	o = usual_opts;
	p = usual(4, 13);
	sequence(&p, UINT32_MAX, 4, 10);
	o.addr_size = 4;
	tap_ok(t, line_with(finish(&p), &o, UINT32_MAX, &rc) == NONE && rc == 0,
		"discarded code at the highest 32-bit address is ignored");
	p = usual(4, 13);
	sequence(&p, 0, 8, 10);
	o = usual_opts;
	o.zero_ok = true;
	tap_ok(t, line_with(finish(&p), &o, 16, &rc) == 11 && line_with(&p, &o, 0, &rc) == 10,
		"code at address 0 is found if it is allowed there");
	p = usual(4, 13);
	set_address(&p, 0x1000, 8);
	PUT(&p, 3, 9, 1, 2, 16, 1);
	sequence(&p, UINT64_MAX, 8, 20);
	tap_ok(t, line_at(&p, 0x1000) == 10 && line_at(&p, 0x1010) == NONE && line_at(&p, 1 << 20) == NONE,
		"a sequence that continues in discarded code ends before it");
}

/* --- opcodes --- */

static void test_opcodes(struct tap *t)
{
	struct prog p = usual(4, 17);

	set_address(&p, 0x1000, 8);
	PUT(&p, 13, 0x81, 1, 2, 14, 1, 2, 0x83, 3, 15, 16, 9); /* two operands, three, none, one */
	PUT(&p, 0, 5, 0x80, 1, 2, 3, 4, 0, 0, 0, 2, 4, 7);
	PUT(&p, 10, 11, 12, 5, 6, 7, 3, 4, 1, 2, 4, 0, 1, 1);
	tap_eq_u64(t, line_at(&p, 0x1000), 5, "unknown opcodes are skipped");
	for (uint8_t size = 1; size <= 8; size++) {
		p = usual(3, 13);
		sequence(&p, 0x40, size, 7);
		tap_ok(t, line_at(&p, 0x50) == 8, "an address of %u bytes is read", size);
	}
	p = usual(4, 13);
	set_address(&p, 0x1000, 8);
	PUT(&p, 1, 8, 3, 1, 1, 9, 0x34, 0x12, 3, 1, 1, 9, 1, 0, 0, 1, 1); /* const_add_pc is 20 */
	tap_ok(t,
		line_at(&p, 0x1013) == 1 && line_at(&p, 0x1014) == 2 && line_at(&p, 0x1014 + 0x1233) == 2 &&
			line_at(&p, 0x1014 + 0x1234) == 3,
		"constant and fixed advances are applied");
	p = usual(4, 13);
	set_address(&p, 0x1000, 8);
	PUT(&p, 3, 20, 1, 13 + 12 * 3, 13 + 12 * 2 + 11, 13 + 4, 2, 1, 0, 1, 1); /* +3 -3, +2 +8, +0 +1 */
	tap_ok(t,
		line_at(&p, 0x1002) == 21 && line_at(&p, 0x1003) == 18 && line_at(&p, 0x1004) == 18 &&
			line_at(&p, 0x1005) == 27,
		"special opcodes advance address and line");
	p = usual(4, 10);
	set_address(&p, 0x1000, 8);
	PUT(&p, 10 + 3 + 12 * 2, 2, 4, 0, 1, 1);
	tap_eq_u64(t, line_at(&p, 0x1002), 1, "a lower opcode base gives more special opcodes");
}

/* Instructions of 16 bytes with three operations each, as on Itanium. */
static void test_vliw(struct tap *t)
{
	struct prog p = begin(4, 16, 3, 13);

	PUT(&p, 0);
	put_str(&p, "a.c");
	PUT(&p, 0, 0, 0, 0);
	end_heading(&p);
	set_address(&p, 0x1000, 8);
	PUT(&p, 1); /* line 1 at 0x1000, operation 0 */
	PUT(&p, 13 + 4 + 12 * 2); /* + 2: line 2 at 0x1000, operation 2 */
	PUT(&p, 13 + 4 + 12 * 2); /* + 2: line 3 at 0x1010, operation 1 */
	PUT(&p, 2, 7, 3, 1, 1); /* + 7: line 4 at 0x1030, operation 2 */
	PUT(&p, 2, 1, 0, 1, 1);
	tap_ok(t,
		line_at(&p, 0x1000) == 2 && line_at(&p, 0x1010) == 3 && line_at(&p, 0x102f) == 3 &&
			line_at(&p, 0x1030) == 4 && line_at(&p, 0x103f) == 4 && line_at(&p, 0x1040) == NONE,
		"operations inside an instruction are counted");
}

static void test_broken(struct tap *t)
{
	struct prog p = usual(4, 13);
	int rc;

	sequence(&p, 0x1000, 8, 10);
	PUT(&p, 0, 20, 2, 1);
	tap_ok(t, line_with(finish(&p), &usual_opts, 0x1000, &rc) == 10 && rc == -EINVAL,
		"the rows before a truncated opcode are kept");
	p = usual(4, 13);
	sequence(&p, 0x1000, 8, 10);
	finish(&p);
	p.b[2] = 1; /* claims 64 KB more than there are */
	tap_ok(t, line_with(&p, &usual_opts, 0x1000, &rc) == 10 && rc == -EINVAL,
		"the rows of a program that claims to be longer than its section are kept");
	p = usual(4, 13);
	sequence(&p, 0x1000, 8, 10);
	set_address(&p, 0x2000, 9);
	tap_ok(t, line_with(finish(&p), &usual_opts, 0x1010, &rc) == 11 && rc == -EINVAL,
		"the rows before an address of nine bytes, which is an error, are kept");
}

/* --- files --- */

static void file_is(struct tap *t, struct table *x, uint32_t file, const char *want, const char *what)
{
	const char *got = x->l ? dwarf_line_file(x->l, file) : x->e.msg;

	if (!tap_ok(t, want ? got && strcmp(got, want) == 0 : !got, "%s", what))
		tap_diag("got %s, not %s", got ? got : "none", want ? want : "none");
}

static void test_old_files(struct tap *t)
{
	struct prog p = begin(4, 1, 1, 13);
	struct table x;
	uint64_t at = 0x1000;
	struct dwarf_line_row row = { .line = NONE };

	put_str(&p, "inc");
	put_str(&p, "/usr/include");
	put_str(&p, "slash/");
	PUT(&p, 0);
	for (uint8_t i = 0; i < 5; i++) {
		put_str(&p, "a.h");
		PUT(&p, i, 0, 0);
	}
	put_str(&p, "/abs/b.h");
	PUT(&p, 1, 0, 0, 0);
	end_heading(&p);
	PUT(&p, 0, 8, 3, 'n', '.', 'h', 0, 2, 0, 0, 4, 7);
	sequence(&p, 0x1000, 8, 10);
	open_with(&x, finish(&p), &usual_opts);
	file_is(t, &x, 0, "/comp/unit.c", "file 0 is the source file of the unit");
	file_is(t, &x, 1, "/comp/a.h", "directory 0 is the directory of the unit");
	file_is(t, &x, 2, "/comp/inc/a.h", "a relative directory is relative to the unit's directory");
	file_is(t, &x, 3, "/usr/include/a.h", "an absolute directory is kept");
	file_is(t, &x, 4, "/comp/slash/a.h", "no slash is doubled");
	file_is(t, &x, 5, NULL, "a file in an unknown directory has no path");
	file_is(t, &x, 6, "/abs/b.h", "an absolute file name is kept");
	file_is(t, &x, 7, NULL, "an unknown file has no path");
	tap_ok(t, x.l && dwarf_line_run(x.l, &at, 1, &row, NULL) == 0 && row.file == 7,
		"a program can define a file");
	file_is(t, &x, 7, "/usr/include/n.h", "a file that the program defined has a path");
	tap_ok(t, x.l && dwarf_line_run(x.l, &at, 1, &row, NULL) == 0 && row.file == 7,
		"a second run gives the defined file the same number");
	file_is(t, &x, 7, "/usr/include/n.h", "the defined file has the same path after a second run");
	file_is(t, &x, 8, NULL, "a second run adds no other file");
	shut(&x);
	open_with(&x, &p, &(struct dwarf_line_opts){ .addr_size = 8 });
	file_is(t, &x, 0, NULL, "without the unit's name file 0 has no path");
	file_is(t, &x, 2, "inc/a.h", "without the unit's directory paths stay relative");
	shut(&x);
}

static void test_new_files(struct tap *t)
{
	struct prog p = begin(5, 1, 1, 13);
	struct table x;

	PUT(&p, 1, 1, 0x1f, 3, 0, 0, 0, 0, 6, 0, 0, 0, 10, 0, 0, 0); /* "/comp", "rel", "/abs" by line_strp */
	/* path, directory, MD5, size, and a vendor's own block and number */
	PUT(&p, 6, 1, 0x1f, 2, 0x0b, 5, 0x1e, 4, 0x0f, 0x81, 0x40, 0x09, 0x82, 0x40, 0x06, 4);
	for (uint8_t i = 0; i < 4; i++) {
		PUT(&p, 15, 0, 0, 0, i);
		for (uint8_t k = 0; k < 16; k++)
			PUT(&p, k);
		PUT(&p, 0x80, 1, 2, 0xaa, 0xbb, 1, 2, 3, 4);
	}
	end_heading(&p);
	open_with(&x, finish(&p), &usual_opts);
	file_is(t, &x, 0, "/comp/n.c", "files are numbered from 0");
	file_is(t, &x, 1, "/comp/rel/n.c", "a relative directory is relative to the unit's directory");
	file_is(t, &x, 2, "/abs/n.c", "an absolute directory is kept");
	file_is(t, &x, 3, NULL, "a file in an unknown directory has no path");
	file_is(t, &x, 4, NULL, "an unknown file has no path");
	shut(&x);
	p.b[p.n - 4 * 30 + 0] = 200;
	open_with(&x, &p, &usual_opts);
	file_is(t, &x, 0, NULL, "a file whose name is outside its section has no path");
	file_is(t, &x, 1, "/comp/rel/n.c", "a file with a bad name does not affect the others");
	shut(&x);
}

static bool refused(struct prog *p)
{
	struct table x;
	bool ok;

	end_heading(p);
	open_with(&x, finish(p), &usual_opts);
	ok = x.rc == -EINVAL && x.e.msg[0];
	shut(&x);
	return ok;
}

static void test_absurd(struct tap *t)
{
	struct prog p = begin(5, 1, 1, 13);

	PUT(&p, 1, 1, 0x77, 1, 1, 1, 1, 1, 1, 1);
	tap_ok(t, refused(&p), "an unknown form is refused");
	p = begin(5, 1, 1, 13);
	PUT(&p, 1, 1, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0);
	tap_ok(t, refused(&p), "more directories than bytes are refused");
	p = begin(5, 1, 1, 13);
	PUT(&p, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0);
	tap_ok(t, refused(&p), "directories of zero bytes are refused");
	p = begin(5, 1, 1, 13);
	PUT(&p, 1, 1, 9, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0);
	tap_ok(t, refused(&p), "a block longer than the program is refused");
	p = begin(4, 1, 1, 13);
	put_str(&p, "no end");
	tap_ok(t, refused(&p), "a table without an end is refused");
	p = begin(4, 1, 1, 13);
	p.b[p.n - 14] = 0;
	PUT(&p, 0, 0);
	tap_ok(t, refused(&p), "a line range of 0 is refused");
	p = begin(6, 1, 1, 13);
	PUT(&p, 0, 0, 0, 0);
	tap_ok(t, refused(&p), "version 6 is refused");
	p = begin(1, 1, 1, 13);
	PUT(&p, 0, 0, 0, 0);
	tap_ok(t, refused(&p), "version 1 is refused");
}

static void use(const struct prog *p)
{
	uint64_t at[64];
	struct dwarf_line_row rows[64] = { { 0 } };
	struct table x;

	for (uint64_t i = 0; i < 64; i++)
		at[i] = i * 0x80;
	open_with(&x, p, &usual_opts);
	if (x.l) {
		dwarf_line_run(x.l, at, 64, rows, NULL);
		for (uint32_t i = 0; i < 10; i++)
			dwarf_line_file(x.l, i);
	}
	shut(&x);
}

/* The piece that is read ends at the end of the bytes; the sanitizers of SAN=1 detect a read past it. */
static void test_damage(struct tap *t, uint16_t version)
{
	static const uint8_t values[] = { 0, 1, 0x0d, 0x7f, 0x80, 0xff };
	struct prog p = begin(version, 1, 1, 13), cut;

	if (version < 5)
		PUT(&p, 'd', 0, 0, 'f', 0, 1, 0, 0, 0);
	else
		PUT(&p, 1, 1, 8, 1, '/', 'd', 0, 2, 1, 0x1f, 2, 0x0b, 2, 15, 0, 0, 0, 0, 15, 0, 0, 0, 1);
	end_heading(&p);
	PUT(&p, 0, 8, 3, 'n', '.', 'h', 0, 2, 0, 0, 4, 7, 0, 2, 4, 4, 5, 11);
	sequence(&p, 0x1000, 8, 10);
	finish(&p);
	for (size_t n = 0; n < p.n; n++) {
		cut = p;
		cut.n = n;
		use(&cut);
		use(n > 4 ? finish(&cut) : &cut);
	}
	for (size_t i = 0; i < p.n; i++)
		for (size_t k = 0; k < ARRAY_LEN(values); k++) {
			cut = p;
			cut.b[i] = values[k];
			use(&cut);
		}
	tap_ok(t, line_at(&p, 0x1000) == 10,
		"version %u: a program cut anywhere, or with any byte changed, does no harm", version);
}

int main(void)
{
	struct tap t = { 0 };

	test_rows(&t);
	test_overlap(&t);
	test_many_overlaps(&t);
	test_back(&t);
	test_discarded(&t);
	test_opcodes(&t);
	test_vliw(&t);
	test_broken(&t);
	test_old_files(&t);
	test_new_files(&t);
	test_absurd(&t);
	test_damage(&t, 3);
	test_damage(&t, 4);
	test_damage(&t, 5);
	return tap_done(&t);
}
