/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "elf/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* A file in memory: an executable section of 0x1000 bytes at 0x1000, and a symbol table. */
struct image {
	Elf64_Ehdr eh;
	Elf64_Shdr sh[4];
	Elf64_Sym syms[64];
	char strings[1024];
};

static struct image img;
static size_t n_syms, strings_len;

static void start_image(void)
{
	memset(&img, 0, sizeof(img));
	n_syms = 1;
	strings_len = 1;
}

static void add(const char *name, unsigned char bind, unsigned char type, uint64_t value, uint64_t size)
{
	img.syms[n_syms++] = (Elf64_Sym){ .st_name = (Elf64_Word)strings_len,
		.st_info = (unsigned char)(bind << 4 | type),
		.st_shndx = 1,
		.st_value = value,
		.st_size = size };
	strcpy(img.strings + strings_len, name);
	strings_len += strlen(name) + 1;
}

static int load(struct elfsym **ret, struct err *e)
{
	struct elffile *f = NULL;
	int rc;

	memcpy(img.eh.e_ident, "\177ELF\2\1\1", 7);
	img.eh.e_type = ET_DYN;
	img.eh.e_shoff = offsetof(struct image, sh);
	img.eh.e_shentsize = sizeof(Elf64_Shdr);
	img.eh.e_shnum = 4;
	img.sh[1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = 0x1000,
		.sh_size = 0x1000 };
	if (!img.sh[2].sh_type)
		img.sh[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
			.sh_link = 3,
			.sh_offset = offsetof(struct image, syms),
			.sh_size = n_syms * sizeof(Elf64_Sym),
			.sh_entsize = sizeof(Elf64_Sym) };
	img.sh[3] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, strings), .sh_size = strings_len
	};
	rc = elffile_image(&img, sizeof(img), &f, e);
	rc = rc ? rc : elfsym_load(f, ret, e);
	elffile_close(f);
	return rc;
}

static void is(struct tap *t, const struct elfsym *s, uint64_t at, const char *want, const char *name)
{
	struct elfsym_hit hit;

	tap_eq_str(t, elfsym_find(s, at, &hit) ? hit.name : "none", want, name);
}

static void test_not_loaded(struct tap *t)
{
	struct elfsym *s = NULL;

	start_image();
	add("code", STB_GLOBAL, STT_FUNC, 0x1100, 0x40);
	add("comment", STB_GLOBAL, STT_NOTYPE, 0x1200, 0x40);
	img.syms[2].st_shndx = 2;
	img.sh[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
		.sh_flags = SHF_EXECINSTR,
		.sh_link = 3,
		.sh_offset = offsetof(struct image, syms),
		.sh_size = n_syms * sizeof(Elf64_Sym),
		.sh_entsize = sizeof(Elf64_Sym) };
	if (!tap_ok(t, load(&s, NULL) == 0, "a table with a section that is not loaded is indexed"))
		return;
	is(t, s, 0x1100, "code", "a symbol in a loaded executable section names its code");
	is(t, s, 0x1210, "none",
		"a symbol in a section that is not loaded names no code, even if executable");
	elfsym_free(s);
}

static void test_rules(struct tap *t)
{
	struct elfsym *s = NULL;

	start_image();
	add("local", STB_LOCAL, STT_FUNC, 0x1100, 0x40);
	add("label", STB_LOCAL, STT_NOTYPE, 0x1110, 0);
	add("nested", STB_LOCAL, STT_FUNC, 0x1120, 0x10);
	add("sizeless", STB_LOCAL, STT_FUNC, 0x1200, 0);
	add("data", STB_LOCAL, STT_OBJECT, 0x1300, 0x100);
	add("global", STB_GLOBAL, STT_FUNC, 0x1100, 0x40);
	add("small", STB_GLOBAL, STT_FUNC, 0x1400, 0x10);
	add("large", STB_GLOBAL, STT_FUNC, 0x1400, 0x30);
	add("notype", STB_GLOBAL, STT_NOTYPE, 0x1500, 0x8);
	add("typed", STB_GLOBAL, STT_FUNC, 0x1500, 0x10);
	add("ifunc", STB_GLOBAL, STT_GNU_IFUNC, 0x1600, 0x10);
	add("huge", STB_GLOBAL, STT_FUNC, 0x1f00, UINT64_MAX);
	if (!tap_ok(t, load(&s, NULL) == 0, "a table is indexed"))
		return;
	is(t, s, 0x1000, "none", "an address before the first symbol has none");
	is(t, s, 0x1100, "global", "of equal symbols the one that is not local wins");
	is(t, s, 0x1115, "global", "a label does not end the function around it");
	is(t, s, 0x1125, "nested", "an inner function wins in its range");
	is(t, s, 0x1130, "global", "the outer function applies again after the inner one");
	is(t, s, 0x113f, "global", "a symbol covers its last byte");
	is(t, s, 0x1140, "none", "a symbol does not cover the byte after its last one");
	is(t, s, 0x1210, "sizeless", "a symbol without a size covers the addresses after it");
	is(t, s, 0x13ff, "sizeless", "a symbol without a size continues past data, up to the next function");
	is(t, s, 0x1405, "small", "of two functions with the same start, the smaller one wins in its range");
	is(t, s, 0x1415, "large",
		"of two functions with the same start, the larger one applies after the smaller one");
	is(t, s, 0x1505, "typed", "a function wins over an untyped symbol");
	is(t, s, 0x1601, "ifunc", "an indirect function is a function");
	is(t, s, 0x1fff, "huge", "a size beyond the section is cut to the section");
	is(t, s, 0x2000, "none", "an address after the section has no symbol");
	is(t, s, UINT64_MAX, "none", "the end of the address space has no symbol");
	elfsym_free(s);
}

/* Aliases: symbols of the same function. */
static void test_aliases(struct tap *t)
{
	struct elfsym *s = NULL;
	struct elfsym_hit hit = { 0 };

	start_image();
	add("__GI___select", STB_LOCAL, STT_FUNC, 0x1100, 0x40);
	add("__select", STB_GLOBAL, STT_FUNC, 0x1100, 0x40);
	add("select", STB_WEAK, STT_FUNC, 0x1100, 0x40);
	add("aselect", STB_WEAK, STT_FUNC, 0x1100, 0x40);
	add("internal", STB_LOCAL, STT_FUNC, 0x1200, 0x40);
	add("_public", STB_GLOBAL, STT_FUNC, 0x1200, 0x40);
	add("__label", STB_GLOBAL, STT_NOTYPE, 0x1300, 0);
	add("label", STB_GLOBAL, STT_NOTYPE, 0x1300, 0);
	if (!tap_ok(t, load(&s, NULL) == 0, "a table with aliases is indexed"))
		return;
	is(t, s, 0x1110, "select", "of aliases the one without underscores wins, and the first of those");
	is(t, s, 0x1210, "_public", "a local alias does not win over one that is not local");
	is(t, s, 0x1310, "label", "aliases without a size follow the same rules");
	tap_ok(t, elfsym_find(s, 0x1310, &hit) && !hit.sized && elfsym_find(s, 0x1110, &hit) && hit.sized,
		"a hit says whether its symbol has a size");
	elfsym_free(s);
}

static void test_hostile(struct tap *t)
{
	struct elfsym *s = NULL;
	struct err e = { 0 };

	start_image();
	add("good", STB_LOCAL, STT_FUNC, 0x1100, 0x40);
	img.syms[n_syms++] = (Elf64_Sym){
		.st_name = UINT32_MAX, .st_info = STT_FUNC, .st_shndx = 1, .st_value = 0x1200, .st_size = 8
	};
	img.syms[n_syms++] = (Elf64_Sym){ .st_name = 1,
		.st_info = STT_FUNC,
		.st_shndx = 1,
		.st_value = UINT64_MAX,
		.st_size = UINT64_MAX };
	tap_ok(t, load(&s, &e) == 0, "a table with malformed symbols is indexed");
	if (s) {
		is(t, s, 0x1100, "good", "a valid symbol beside malformed ones is found");
		is(t, s, 0x1200, "none", "a symbol whose name is outside the string table is dropped");
		is(t, s, UINT64_MAX, "none", "a symbol outside its section is dropped");
	}
	elfsym_free(s);
	s = NULL;
	start_image();
	img.sh[2] = (Elf64_Shdr){
		.sh_type = SHT_SYMTAB, .sh_link = 3, .sh_offset = 64, .sh_size = 1ull << 60, .sh_entsize = 24
	};
	tap_ok(t, load(&s, &e) < 0 && !s, "a table larger than the file is an error");
	img.sh[2] = (Elf64_Shdr){
		.sh_type = SHT_SYMTAB, .sh_link = 99, .sh_offset = 64, .sh_size = 24, .sh_entsize = 24
	};
	tap_ok(t, load(&s, &e) < 0 && !s, "a string table that does not exist is an error");
	img.sh[2] = (Elf64_Shdr){
		.sh_type = SHT_SYMTAB, .sh_link = 3, .sh_offset = 64, .sh_size = 24, .sh_entsize = 0
	};
	tap_ok(t, load(&s, &e) < 0 && !s, "an entry size of 0 is an error");
	start_image();
	img.sh[2] = (Elf64_Shdr){ .sh_type = SHT_NOBITS };
	tap_ok(t, load(&s, &e) == 0 && elfsym_ranges(s) == 0,
		"a file without a symbol table gives an empty index");
	elfsym_free(s);
}

/* Check that the ranges of this program ascend and agree with elfsym_find(). */
static void test_real(struct tap *t)
{
	struct elffile *f = NULL;
	struct elfsym *s = NULL;
	struct elfsym_hit in, found;
	uint64_t start, end, before = 0;
	size_t wrong = 0;

	if (elffile_open(AT_FDCWD, "/proc/self/exe", false, &f, NULL) || elfsym_load(f, &s, NULL)) {
		tap_ok(t, false, "this program's own symbols are read");
		elffile_close(f);
		return;
	}
	for (size_t i = 0; elfsym_range(s, i, &start, &end, &in); i++) {
		bool named = elfsym_find(s, end - 1, &found);

		wrong += (i && start <= before) || end <= start || named != (in.index != UINT32_MAX) ||
			 (named && found.index != in.index);
		before = start;
	}
	tap_ok(t, elfsym_ranges(s) > 50, "this program's own symbols are read");
	tap_eq_u64(
		t, wrong, 0, "this program's ranges are disjoint, ascending, and agree with elfsym_find()");
	elfsym_free(s);
	elffile_close(f);
}

int main(void)
{
	struct tap t = { 0 };

	test_rules(&t);
	test_not_loaded(&t);
	test_aliases(&t);
	test_hostile(&t);
	test_real(&t);
	return tap_done(&t);
}
