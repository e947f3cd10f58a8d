/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "elf/dwarf_sections.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#define MAX_BYTES (UINT64_C(1) << 30)

static char dir[] = "/tmp/unit-dwarf_sections.XXXXXX";

PRINTF_LIKE(1, 2) static int sh(const char *fmt, ...)
{
	char cmd[4096], all[4200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	snprintf(all, sizeof(all), "cd %s && { %s; } >/dev/null 2>&1", dir, cmd);
	return system(all);
}

/* Build a program whose strings fill several blocks; one string is longer than two blocks. */
static bool make_program(void)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/p.c", dir);
	f = fopen(path, "we");
	if (!f)
		return false;
	for (int i = 0; i < 3000; i++)
		fprintf(f, "int a_function_with_a_long_name_number_%d(int x)\n{\n\treturn x * %d;\n}\n", i,
			i);
	fputs("int ", f);
	for (int i = 0; i < 40000; i++)
		fputc('a' + i % 26, f);
	fputs(";\nint main(void)\n{\n\treturn 0;\n}\n", f);
	fclose(f);
	return sh("gcc -g -gdwarf-5 -o plain p.c") == 0;
}

static struct elffile *open_elf(const char *name)
{
	char path[256];
	struct elffile *f = NULL;

	snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : dir, name[0] == '/' ? "" : "/", name);
	elffile_open(AT_FDCWD, path, false, &f, NULL);
	return f;
}

/* Do all sections of A and B read the same, in pieces of STEP bytes? */
static bool same(struct dwarf_sections *a, struct dwarf_sections *b, uint64_t step)
{
	struct dwarf_piece p = { 0 }, q = { 0 };
	bool ok = true;

	for (int id = 0; id < DWARF_SECTION_COUNT; id++) {
		uint64_t size = dwarf_sections_size(a, id);

		ok = ok && size == dwarf_sections_size(b, id);
		for (uint64_t at = 0; ok && at < size; at += step)
			ok = dwarf_sections_read(a, id, at, step, &p, NULL) == 0 &&
			     dwarf_sections_read(b, id, at, step, &q, NULL) == 0 && p.len == q.len &&
			     p.at == at && p.len == MIN(step, size - at) && p.bytes[p.len] == 0 &&
			     memcmp(p.bytes, q.bytes, p.len) == 0;
	}
	dwarf_piece_free(&p);
	dwarf_piece_free(&q);
	return ok;
}

static bool same_file(struct dwarf_sections *a, const char *name)
{
	struct elffile *f = open_elf(name);
	struct dwarf_sections *b = NULL;
	bool ok = f && dwarf_sections_open(f, false, MAX_BYTES, &b, NULL) == 0 && same(a, b, 1 << 20) &&
		  same(a, b, 4099);

	dwarf_sections_close(b);
	elffile_close(f);
	return ok;
}

/* Does the string at every offset agree with the section read as a whole? */
static bool strings_agree(struct dwarf_sections *s, enum dwarf_section_id id)
{
	struct dwarf_piece p = { 0 };
	bool ok = dwarf_sections_read(s, id, 0, UINT64_MAX, &p, NULL) == 0;

	for (uint64_t at = 0; ok && at < p.len; at++) {
		const char *str = dwarf_sections_string(s, id, at);

		ok = str && strcmp(str, (const char *)p.bytes + at) == 0;
	}
	ok = ok && !dwarf_sections_string(s, id, p.len) && !dwarf_sections_string(s, id, UINT64_MAX);
	dwarf_piece_free(&p);
	return ok;
}

static void test_plain(struct tap *t, struct dwarf_sections *s)
{
	struct dwarf_piece p = { 0 };
	struct err e = { 0 };
	uint64_t size = dwarf_sections_size(s, DWARF_SECTION_INFO);

	tap_ok(t, size > 10000 && dwarf_sections_size(s, DWARF_SECTION_TYPES) == 0,
		"sections have their size, absent ones have size 0");
	tap_ok(t,
		dwarf_sections_read(s, DWARF_SECTION_INFO, size, 1, &p, &e) == -EINVAL &&
			strstr(e.msg, ".debug_info"),
		"reading at the end of a section is refused, and the error names it: %s", e.msg);
	tap_ok(t, dwarf_sections_read(s, DWARF_SECTION_INFO, UINT64_MAX, UINT64_MAX, &p, NULL) == -EINVAL,
		"reading far outside a section is refused");
	tap_ok(t, dwarf_sections_read(s, DWARF_SECTION_TYPES, 0, 1, &p, NULL) == -EINVAL,
		"reading an absent section is refused");
	tap_ok(t, dwarf_sections_read(s, DWARF_SECTION_INFO, size - 3, 100, &p, NULL) == 0 && p.len == 3,
		"a piece ends at the end of its section");
	tap_ok(t, strings_agree(s, DWARF_SECTION_STR),
		"a string is read from any offset, even across blocks");
	tap_ok(t, !dwarf_sections_string(s, DWARF_SECTION_TYPES, 0), "an absent section has no strings");
	dwarf_piece_free(&p);
}

static void test_packed(struct tap *t, struct dwarf_sections *s)
{
	static const char *const how[][2] = {
		{ "zlib", "objcopy --compress-debug-sections=zlib plain zlib" },
		{ "the older zlib format", "objcopy --compress-debug-sections=zlib-gnu plain z" },
		{ "zstd", "objcopy --compress-debug-sections=zstd plain zstd"
			  " || llvm-objcopy-19 --compress-debug-sections=zstd plain zstd" },
	};
	static const char *const file[] = { "zlib", "z", "zstd" };

	for (size_t i = 0; i < ARRAY_LEN(how); i++) {
		if (sh("%s", how[i][1]) != 0)
			tap_skip(t, how[i][0], "no objcopy that supports it");
		else
			tap_ok(t, same_file(s, file[i]),
				"sections compressed with %s read the same as uncompressed ones", how[i][0]);
	}
}

static void test_limit(struct tap *t, const char *name)
{
	struct elffile *f = open_elf(name);
	struct dwarf_sections *s = NULL;
	struct dwarf_piece p = { 0 };
	struct err e = { 0 }, again = { 0 };

	if (!f) {
		tap_skip(t, "the limit on memory", "no file %s", name);
		return;
	}
	dwarf_sections_open(f, false, 20000, &s, NULL);
	tap_ok(t, dwarf_sections_read(s, DWARF_SECTION_INFO, 0, 10, &p, &e) == -E2BIG,
		"%s: a section above the limit is refused: %s", name, e.msg);
	tap_ok(t, dwarf_sections_size(s, DWARF_SECTION_INFO) > 0,
		"%s: a section that cannot be unpacked has a size", name);
	tap_ok(t,
		dwarf_sections_read(s, DWARF_SECTION_INFO, 0, 10, &p, &again) == -E2BIG &&
			strcmp(e.msg, again.msg) == 0,
		"%s: reading a refused section again reports the same error", name);
	tap_ok(t, dwarf_sections_bytes(s) <= 20000, "%s: memory stays within the limit", name);
	dwarf_piece_free(&p);
	dwarf_sections_close(s);
	elffile_close(f);
}

static void test_string_limit(struct tap *t, const struct elffile *f)
{
	struct dwarf_sections *s = NULL;
	size_t got = 0, refused = 0;

	dwarf_sections_open(f, false, 50000, &s, NULL);
	for (uint64_t at = 0; at < dwarf_sections_size(s, DWARF_SECTION_STR); at += 4000)
		*(dwarf_sections_string(s, DWARF_SECTION_STR, at) ? &got : &refused) += 1;
	tap_ok(t, got && refused && dwarf_sections_bytes(s) <= 50000,
		"the memory of strings stays within the limit");
	dwarf_sections_close(s);
}

static void test_shrinks(struct tap *t)
{
	struct elffile *f;
	struct dwarf_sections *s = NULL;
	struct dwarf_piece p = { 0 };

	sh("cp plain short");
	f = open_elf("short");
	dwarf_sections_open(f, false, MAX_BYTES, &s, NULL);
	sh("truncate -s 4096 short");
	tap_ok(t, dwarf_sections_read(s, DWARF_SECTION_INFO, 0, 100, &p, NULL) == -EIO,
		"reading a file that was truncated is an error");
	tap_ok(t, !dwarf_sections_string(s, DWARF_SECTION_STR, 5), "a file that was truncated has no string");
	dwarf_piece_free(&p);
	dwarf_sections_close(s);
	elffile_close(f);
}

/* Read all sections of an image that may be damaged. */
static void use(const uint8_t *bytes, size_t len, bool dwo)
{
	struct elffile *f = NULL;
	struct dwarf_sections *s = NULL;
	struct dwarf_piece p = { 0 };

	if (elffile_image(bytes, len, &f, NULL) == 0 && dwarf_sections_open(f, dwo, 8 << 20, &s, NULL) == 0)
		for (int id = 0; id < DWARF_SECTION_COUNT; id++) {
			dwarf_sections_read(s, id, 0, UINT64_MAX, &p, NULL);
			dwarf_sections_read(s, id, dwarf_sections_size(s, id) / 2, 100, &p, NULL);
			dwarf_sections_string(s, id, 1);
			dwarf_sections_string(s, id, dwarf_sections_size(s, id) - 1);
		}
	dwarf_piece_free(&p);
	dwarf_sections_close(s);
	elffile_close(f);
}

/* Cut the file at every seventh byte, and change every byte. */
static void test_damage(struct tap *t, const char *name)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0xff };
	struct elffile *f = open_elf(name);
	struct elffile_section whole = { .type = SHT_PROGBITS };
	uint8_t *bytes = NULL;
	size_t len = 0;

	if (!f) {
		tap_skip(t, "a damaged file", "no file %s", name);
		return;
	}
	whole.size = f->size;
	elffile_read(f, &whole, &bytes, &len, NULL);
	elffile_close(f);
	for (size_t cut = 0; bytes && cut < len; cut += 7) {
		uint8_t *part = malloc(cut ? cut : 1);

		memcpy(part, bytes, cut);
		use(part, cut, false);
		free(part);
	}
	for (size_t i = 0; bytes && i < len; i++)
		for (size_t k = 0; k < ARRAY_LEN(values); k++) {
			uint8_t was = bytes[i];

			bytes[i] = values[k];
			use(bytes, len, k & 1);
			bytes[i] = was;
		}
	tap_ok(t, bytes && len > 1000, "%s: cut anywhere, or with any byte changed, it is read in bounds",
		name);
	free(bytes);
}

static void test_claims(struct tap *t)
{
	/* an Elf64_Chdr that claims 1 GB, and a few bytes of data */
	uint8_t packed[64] = { 0 };
	struct elffile_section secs[2] = { { .name = 11, .type = SHT_STRTAB, .size = 12 },
		{ .type = SHT_PROGBITS, .flags = SHF_COMPRESSED, .offset = 16, .size = 48 } };
	uint8_t image[64];
	struct elffile f = {
		.fd = -1, .image = image, .size = 64, .is64 = true, .sections = secs, .n_sections = 2
	};
	struct dwarf_piece p = { 0 };

	for (uint8_t type = 1; type <= 3; type++) {
		struct dwarf_sections *s = NULL;
		struct err e = { 0 };
		int rc;

		packed[0] = type;
		packed[11] = 0x3f;
		memcpy(image, ".debug_info", 12);
		memcpy(image + 16, packed, 48);
		dwarf_sections_open(&f, false, UINT64_MAX, &s, NULL);
		rc = dwarf_sections_read(s, DWARF_SECTION_INFO, 0, 1, &p, &e);
		tap_ok(t, rc == (type == 3 ? -EOPNOTSUPP : -EINVAL),
			"compression type %d: a section that claims too much is refused: %s", type, e.msg);
		tap_ok(t, dwarf_sections_bytes(s) == 0, "no memory is kept for a refused section");
		dwarf_sections_close(s);
	}
	dwarf_piece_free(&p);
}

int main(void)
{
	struct tap t = { 0 };
	struct elffile *f;
	struct dwarf_sections *s = NULL;

	if (!mkdtemp(dir))
		return 2;
	if (sh("command -v gcc >/dev/null") != 0) {
		rmdir(dir);
		puts("1..0 # SKIP no C compiler for the sections to be read");
		return 0;
	}
	if (!make_program())
		return 2;
	f = open_elf("plain");
	if (!f || dwarf_sections_open(f, false, MAX_BYTES, &s, NULL) != 0)
		return 2;
	test_plain(&t, s);
	test_packed(&t, s);
	test_limit(&t, "zlib");
	test_limit(&t, "zstd");
	test_string_limit(&t, f);
	test_shrinks(&t);
	test_claims(&t);
	sh("echo 'int f(void) { return 1; }' >s.c && gcc -g -c s.c && cp s.o s.zlib &&"
	   " objcopy --compress-debug-sections=zlib s.zlib && llvm-objcopy-19 --compress-debug-sections=zstd "
	   "s.o s.zstd");
	test_damage(&t, "s.o");
	test_damage(&t, "s.zlib");
	test_damage(&t, "s.zstd");
	dwarf_sections_close(s);
	elffile_close(f);
	sh("rm -f ./*");
	rmdir(dir);
	return tap_done(&t);
}
