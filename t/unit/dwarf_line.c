/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Line programs of compiled programs, compared with llvm-dwarfdump's rows and addr2line's paths. */
#include "base/tap.h"
#include "elf/dwarf_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define MAX_BYTES (UINT64_C(1) << 30)
#define NONE UINT32_MAX /* the line of an address that nothing covers */

static char dir[] = "/tmp/unit-dwarf_line.XXXXXX";

PRINTF_LIKE(1, 2) static FILE *from(const char *fmt, ...)
{
	char cmd[4096], all[4200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	snprintf(all, sizeof(all), "cd %s && { %s; } 2>/dev/null", dir, cmd);
	return popen(all, "re");
}

PRINTF_LIKE(1, 2) static bool sh(const char *fmt, ...)
{
	char cmd[4096], all[4200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	snprintf(all, sizeof(all), "cd %s && { %s; } >/dev/null 2>&1", dir, cmd);
	return system(all) == 0;
}

static bool has(const char *program)
{
	return sh("command -v %s", program);
}

/* --- units and rows as llvm-dwarfdump reads them --- */

struct unit {
	uint64_t offset;
	char comp_dir[512], name[512];
};

struct row {
	uint64_t address;
	struct dwarf_line_row row;
	bool end;
};

struct other {
	struct unit *units;
	size_t n_units, units_cap;
};

static void quoted(const char *line, char *ret, size_t size)
{
	const char *from_quote = strchr(line, '"'), *to = strrchr(line, '"');

	snprintf(ret, size, "%.*s", from_quote ? (int)(to - from_quote - 1) : 0,
		from_quote ? from_quote + 1 : "");
}

/* Read the units of FILE that have a line program. */
static void read_units(struct other *o, const char *file)
{
	FILE *f = from("llvm-dwarfdump-19 --debug-info --recurse-depth=0 %s", file);
	char line[2048];
	struct unit u = { .offset = UINT64_MAX };

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, "DW_AT_stmt_list"))
			sscanf(strchr(line, '('), "(0x%" SCNx64, &u.offset);
		else if (strstr(line, "DW_AT_comp_dir"))
			quoted(line, u.comp_dir, sizeof(u.comp_dir));
		else if (strstr(line, "DW_AT_name"))
			quoted(line, u.name, sizeof(u.name));
		if (!strstr(line, " Unit:") && !strstr(line, "NULL"))
			continue;
		if (u.offset != UINT64_MAX &&
			base_grow(&o->units, &o->units_cap, o->n_units + 1, sizeof(u)) == 0)
			o->units[o->n_units++] = u;
		u = (struct unit){ .offset = UINT64_MAX };
	}
	if (u.offset != UINT64_MAX && base_grow(&o->units, &o->units_cap, o->n_units + 1, sizeof(u)) == 0)
		o->units[o->n_units++] = u;
	if (f)
		pclose(f);
}

static const struct unit *unit_at(const struct other *o, uint64_t offset)
{
	for (size_t i = 0; i < o->n_units; i++)
		if (o->units[i].offset == offset)
			return &o->units[i];
	return NULL;
}

/* --- addresses to look up, and the rows expected for them, found by searching every sequence --- */

struct probes {
	uint64_t *at;
	struct dwarf_line_row *rows;
	size_t n;
};

static int by_value(const void *a, const void *b)
{
	return CMP(*(const uint64_t *)a, *(const uint64_t *)b);
}

static bool discarded(const struct row *r)
{
	return r->address == 0 || r->address >= UINT64_MAX - 1;
}

/* The addresses of the rows and those directly before and after, sorted, each of them once. */
static struct probes probes_of(const struct row *rows, size_t n)
{
	struct probes p = { .at = calloc(3 * n + 1, sizeof(*p.at)) };
	size_t out = 0;

	for (size_t i = 0; p.at && i < n; i++)
		for (uint64_t k = 0; k < 3; k++)
			p.at[p.n++] = rows[i].address + k - 1;
	qsort(p.at, p.n, sizeof(*p.at), by_value);
	for (size_t i = 0; i < p.n; i++)
		if (!out || p.at[out - 1] != p.at[i])
			p.at[out++] = p.at[i];
	p.n = out;
	p.rows = calloc(p.n + 1, sizeof(*p.rows));
	for (size_t i = 0; i < p.n; i++)
		p.rows[i].line = NONE;
	return p;
}

static void probes_free(struct probes *p)
{
	free(p->at);
	free(p->rows);
}

/* Returns the row of AT in the sequence ROWS[0..N), whose last row is its end; NULL = AT is outside. */
static const struct row *row_in(const struct row *rows, size_t n, uint64_t at)
{
	size_t low = 0, high = n - 1;

	if (n < 2 || discarded(rows) || at < rows[0].address || at >= rows[n - 1].address)
		return NULL;
	while (high - low > 1) {
		size_t mid = (low + high) / 2;

		*(rows[mid].address <= at ? &low : &high) = mid;
	}
	return &rows[low];
}

/* The row expected at AT. SEQS are the indexes of the rows that end a sequence. */
static struct dwarf_line_row expected(const struct row *rows, const size_t *seqs, size_t n_seqs, uint64_t at)
{
	struct dwarf_line_row ret = { .line = NONE };
	uint64_t start = 0;

	for (size_t i = 0, first = 0; i < n_seqs; first = seqs[i++] + 1) {
		const struct row *r = row_in(rows + first, seqs[i] + 1 - first, at);

		if (!r || (ret.line != NONE && rows[first].address <= start))
			continue;
		ret = r->row;
		start = rows[first].address;
	}
	return ret;
}

/* --- one table against its dump --- */

struct tally {
	size_t tables, probes, wrong, covered, zero; /* zero: those with line 0 */
	size_t each; /* write the path of every EACH-th covered address */
	FILE *paths; /* "ADDRESS PATH:LINE" of these */
};

static struct dwarf_line *open_table(
	struct dwarf_sections *s, const struct unit *u, uint64_t offset, struct err *e)
{
	struct dwarf_line_opts o = { .offset = offset,
		.addr_size = 8,
		.comp_dir = u ? u->comp_dir : NULL,
		.name = u ? u->name : NULL };
	struct dwarf_line *l = NULL;

	dwarf_line_open(s, &o, &l, e);
	return l;
}

static void count_row(struct tally *t, struct dwarf_line *l, uint64_t at, const struct dwarf_line_row *row)
{
	const char *path = dwarf_line_file(l, row->file);

	t->zero += row->line == 0;
	if (t->covered++ % t->each == 0 && row->line)
		fprintf(t->paths, "0x%" PRIx64 " %s:%u\n", at, path ? path : "??", row->line);
}

static size_t *seqs_of(const struct row *rows, size_t n, size_t *n_seqs)
{
	size_t *seqs = calloc(n + 1, sizeof(*seqs));

	*n_seqs = 0;
	for (size_t i = 0; seqs && i < n; i++)
		if (rows[i].end)
			seqs[(*n_seqs)++] = i;
	return seqs;
}

static void compare(struct tally *t, struct dwarf_sections *s, const struct other *o, uint64_t offset,
	const struct row *rows, size_t n)
{
	struct probes p = probes_of(rows, n);
	size_t n_seqs, *seqs = seqs_of(rows, n, &n_seqs);
	struct err e = { 0 };
	struct dwarf_line *l = open_table(s, unit_at(o, offset), offset, &e);

	t->tables++;
	if (!l || dwarf_line_run(l, p.at, p.n, p.rows, &e) != 0) {
		tap_diag("0x%" PRIx64 ": %s", offset, e.msg);
		t->wrong++;
	}
	for (size_t i = 0; l && i < p.n; i++) {
		struct dwarf_line_row want = expected(rows, seqs, n_seqs, p.at[i]);
		const struct dwarf_line_row *got = &p.rows[i];

		t->probes++;
		if (want.line != got->line || want.file != got->file || want.column != got->column) {
			if (t->wrong++ < 5)
				tap_diag("0x%" PRIx64 ": file %u line %u column %u, not %u %u %u", p.at[i],
					got->file, got->line, got->column, want.file, want.line, want.column);
		} else if (got->line != NONE) {
			count_row(t, l, p.at[i], got);
		}
	}
	dwarf_line_close(l);
	probes_free(&p);
	free(seqs);
}

static void compare_all(struct tally *t, const char *file, struct dwarf_sections *s, const struct other *o)
{
	FILE *f = from("llvm-dwarfdump-19 --debug-line %s", file);
	char line[1024];
	struct row *rows = NULL;
	size_t n = 0, cap = 0;
	uint64_t offset = UINT64_MAX, next;

	while (f && fgets(line, sizeof(line), f)) {
		struct row r = { .end = strstr(line, "end_sequence") };

		if (sscanf(line, "debug_line[0x%" SCNx64 "]", &next) == 1) {
			if (offset != UINT64_MAX)
				compare(t, s, o, offset, rows, n);
			offset = next;
			n = 0;
		} else if (sscanf(line, "0x%" SCNx64 " %u %u %u", &r.address, &r.row.line, &r.row.column,
				   &r.row.file) == 4) {
			if (base_grow(&rows, &cap, n + 1, sizeof(*rows)) == 0)
				rows[n++] = r;
		}
	}
	if (offset != UINT64_MAX)
		compare(t, s, o, offset, rows, n);
	if (f)
		pclose(f);
	free(rows);
}

/*
 * Returns how many of the lines "ADDRESS PATH:LINE" differ from addr2line's; -1 on
 * error. addr2line prints <artificial> for the code of merged units, so lines that
 * differ are compared with llvm-symbolizer's too.
 */
static long differing(const char *file)
{
	FILE *f =
		from("cut -d' ' -f1 paths >addresses && addr2line -e %s <addresses |"
		     " sed 's/ (discriminator.*//; s/:?$/:0/' >peer &&"
		     " paste -d' ' paths peer | awk '$2 != $3' >differ; cut -d' ' -f1 differ >again;"
		     " llvm-symbolizer-19 --no-inlines -f=none -e %s <again | sed -n 's/:[0-9]*$//p' >peer2;"
		     " paste -d' ' differ peer2 | awk '$2 != $4 && !($4 ~ /^[?]/ && $3 ~ /<artificial>/)' |"
		     " tee wrong | wc -l",
			file, file);
	long n = -1;

	if (!f || fscanf(f, "%ld", &n) != 1)
		n = -1;
	if (f)
		pclose(f);
	return n;
}

static void test_file(struct tap *t, const char *file, const char *what, size_t each)
{
	struct elffile *elf = NULL;
	struct dwarf_sections *s = NULL;
	struct other o = { 0 };
	struct tally n = { 0 };
	char name[512];
	struct err e = { 0 };

	snprintf(name, sizeof(name), "%s%s%s", file[0] == '/' ? "" : dir, file[0] == '/' ? "" : "/", file);
	if (elffile_open(AT_FDCWD, name, false, &elf, &e) != 0 ||
		dwarf_sections_open(elf, false, MAX_BYTES, &s, &e) != 0) {
		tap_ok(t, false, "%s: %s", what, e.msg);
		return;
	}
	snprintf(name, sizeof(name), "%s/paths", dir);
	n.paths = fopen(name, "we");
	n.each = each;
	read_units(&o, file);
	compare_all(&n, file, s, &o);
	if (n.paths)
		fclose(n.paths);
	tap_diag("%s: %zu tables, %zu addresses, %zu covered, %zu of them with line 0", what, n.tables,
		n.probes, n.covered, n.zero);
	tap_ok(t, n.tables && n.covered && !n.wrong,
		"%s: rows, and the addresses next to them, agree with llvm-dwarfdump", what);
	tap_ok(t, differing(file) == 0, "%s: paths and lines agree with addr2line", what);
	dwarf_sections_close(s);
	elffile_close(elf);
	free(o.units);
}

/* Write two units that include headers by three kinds of path: below, above, absolute. */
static bool make_sources(void)
{
	return sh("mkdir -p src/in up && cd src && cat >in/a.h <<'E'\n"
		  "static inline int in_a(int x)\n{\n\tfor (int i = 0; i < x; i++)\n\t\tx += i * "
		  "x;\n\treturn x;\n}\nE\n"
		  "sed s/in_a/up_b/ in/a.h >../up/b.h && sed s/in_a/abs_c/ in/a.h >../up/c.h &&"
		  "cat >one.c <<E\n#include \"in/a.h\"\n#include \"../up/b.h\"\n#include \"$(cd ../up && "
		  "pwd)/c.h\"\n"
		  "#include <string.h>\n#include <stdlib.h>\n"
		  "int unused(int x)\n{\n\treturn up_b(x) - 1;\n}\n"
		  "int two(int, char **);\n"
		  "int main(int argc, char **argv)\n{\n\tchar buf[20];\n\tmemset(buf, argc, sizeof(buf));\n"
		  "\tif (in_a(argc) > atoi(argv[0]))\n\t\treturn two(up_b(argc), argv) + buf[argc];\n"
		  "\treturn abs_c(in_a(argc));\n}\nE\n"
		  "cat >two.c <<'E'\n#include \"in/a.h\"\n"
		  "int unused2(int x)\n{\n\treturn in_a(x);\n}\n"
		  "int two(int n, char **v)\n{\n\tint sum = 0;\n\tfor (; n--; v++)\n\t\tsum += v[0][0] ? "
		  "in_a(n) : n;\n"
		  "\treturn sum;\n}\nE\n"
		  "cp one.c one.cc && cp two.c two.cc");
}

static void test_program(struct tap *t, const char *compile)
{
	const char *compiler = strncmp(compile, "clang", 5) == 0 ? "clang" : "gcc";

	if (!has(compiler))
		tap_skip(t, compile, "no %s", compiler);
	else if (!sh("cd src && %s -o ../program", compile))
		tap_skip(t, compile, "the compiler does not support this");
	else
		test_file(t, "program", compile, 1);
}

static void test_programs(struct tap *t)
{
	static const char *const compile[] = {
		"gcc -g -gdwarf-2 -gstrict-dwarf -O2 one.c two.c",
		"gcc -g -gdwarf-3 -O1 one.c two.c",
		"gcc -g -gdwarf-4 -O2 one.c two.c",
		"gcc -g -gdwarf-5 -O2 one.c $PWD/two.c",
		"gcc -g -gdwarf-5 -gno-as-loc-support -O2 one.c two.c",
		"gcc -g -gdwarf-4 -gno-as-loc-support -O2 one.c two.c",
		"gcc -g -gdwarf-5 -gdwarf64 -O2 one.c two.c",
		"gcc -g -gdwarf-4 -gdwarf64 -O2 one.c two.c",
		"gcc -g -O2 -flto one.c two.c",
		"gcc -g -O2 -ffunction-sections -Wl,--gc-sections one.c two.c",
		"gcc -g -O2 -gz=zlib one.c two.c",
		"gcc -g -O2 -fdebug-prefix-map=$PWD=. one.c two.c",
		"gcc -g -x c++ one.cc two.cc",
		"clang -g -gdwarf-2 -O2 one.c two.c",
		"clang -g -gdwarf-3 -O1 one.c two.c",
		"clang -g -gdwarf-4 -O2 one.c two.c",
		"clang -g -gdwarf-5 -O2 one.c $PWD/two.c",
		"clang -g -gdwarf-5 -gdwarf64 -O2 one.c two.c",
		"clang -g -gdwarf-5 -O0 -gembed-source one.c two.c",
		"clang -g -gdwarf-5 -O2 -ffunction-sections -Wl,--gc-sections one.c two.c",
		"clang -g -gdwarf-4 -O2 -ffunction-sections -fuse-ld=lld -Wl,--gc-sections one.c two.c",
		"clang -g -gdwarf-5 -O2 -fdebug-compilation-dir=. one.c two.c",
	};

	if (!make_sources()) {
		tap_ok(t, false, "the sources are written");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(compile); i++)
		test_program(t, compile[i]);
}

/* The debug file that Debian has of Python's interpreter. */
static void test_python(struct tap *t)
{
	char path[512] = "";
	FILE *f = from("id=$(readelf -n /usr/bin/python3.11 | sed -n 's/.*Build ID: //p');"
		       " ls /usr/lib/debug/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug");

	if (f && fgets(path, sizeof(path), f))
		path[strcspn(path, "\n")] = 0;
	if (f)
		pclose(f);
	if (path[0])
		test_file(t, path, "python3.11", 16);
	else
		tap_skip(t, "python3.11", "its debug file is not installed");
}

int main(void)
{
	struct tap t = { 0 };

	if (!mkdtemp(dir))
		return 2;
	if (has("llvm-dwarfdump-19") && has("addr2line") && has("llvm-symbolizer-19")) {
		test_programs(&t);
		test_python(&t);
	} else {
		tap_skip(&t, "line tables", "no llvm-dwarfdump-19, llvm-symbolizer-19 or addr2line");
	}
	sh("rm -rf %s", dir);
	return tap_done(&t);
}
