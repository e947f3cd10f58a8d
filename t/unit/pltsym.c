/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of elf/plt.h with handwritten stubs. With --list it prints the stubs of
 * a file instead, for symbolize-plt.t:
 *
 *   pltsym --list ELF
 */
#include "base/tap.h"
#include "elf/plt.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define PLT 0x1000
#define GOT 0x4000

/* A library: stubs at PLT, and a relocation for each slot from GOT on. */
struct image {
	Elf64_Ehdr eh;
	Elf64_Shdr sh[8];
	uint8_t plt[256];
	Elf64_Rela rela[8];
	Elf64_Sym dynsym[8], symtab[4];
	char dynstr[64], strtab[64], names[64];
};

static struct image img;

enum { S_PLT = 1, S_RELA, S_DYNSYM, S_DYNSTR, S_SYMTAB, S_STRTAB, S_NAMES };

static void section(int i, uint32_t name, uint32_t type, uint64_t flags, size_t offset, size_t size,
	uint32_t link, size_t entsize)
{
	img.sh[i] = (Elf64_Shdr){ .sh_name = name,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = i == S_PLT ? PLT : 0,
		.sh_offset = offset,
		.sh_size = size,
		.sh_link = link,
		.sh_entsize = entsize };
}

static void start_image(void)
{
	memset(&img, 0, sizeof(img));
	memset(img.plt, 0xcc, sizeof(img.plt));
	memcpy(img.eh.e_ident, "\177ELF\2\1\1", 7);
	img.eh.e_type = ET_DYN;
	img.eh.e_machine = EM_X86_64;
	img.eh.e_shoff = offsetof(struct image, sh);
	img.eh.e_shentsize = sizeof(Elf64_Shdr);
	img.eh.e_shnum = ARRAY_LEN(img.sh);
	img.eh.e_shstrndx = S_NAMES;
	memcpy(img.names, "\0.plt\0.rela.plt", 16);
	memcpy(img.dynstr, "\0alpha\0beta\0gamma", 18);
	memcpy(img.strtab, "\0resolve\0chosen", 16);
	section(S_PLT, 1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, offsetof(struct image, plt),
		sizeof(img.plt), 0, 0);
	section(S_RELA, 6, SHT_RELA, SHF_ALLOC, offsetof(struct image, rela), sizeof(img.rela), S_DYNSYM,
		sizeof(Elf64_Rela));
	section(S_DYNSYM, 0, SHT_DYNSYM, SHF_ALLOC, offsetof(struct image, dynsym), sizeof(img.dynsym),
		S_DYNSTR, sizeof(Elf64_Sym));
	section(S_DYNSTR, 0, SHT_STRTAB, SHF_ALLOC, offsetof(struct image, dynstr), sizeof(img.dynstr), 0, 0);
	section(S_SYMTAB, 0, SHT_SYMTAB, 0, offsetof(struct image, symtab), sizeof(img.symtab), S_STRTAB,
		sizeof(Elf64_Sym));
	section(S_STRTAB, 0, SHT_STRTAB, 0, offsetof(struct image, strtab), sizeof(img.strtab), 0, 0);
	section(S_NAMES, 0, SHT_STRTAB, 0, offsetof(struct image, names), sizeof(img.names), 0, 0);
	img.dynsym[1].st_name = 1;
	img.dynsym[2].st_name = 7;
	img.dynsym[3].st_name = 12;
	img.symtab[1] =
		(Elf64_Sym){ .st_name = 1, .st_info = STT_FUNC, .st_shndx = S_PLT, .st_value = 0x2000 };
	img.symtab[2] =
		(Elf64_Sym){ .st_name = 9, .st_info = STT_GNU_IFUNC, .st_shndx = S_PLT, .st_value = 0x2000 };
	img.rela[0] = (Elf64_Rela){ GOT, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0 };
	img.rela[1] = (Elf64_Rela){ GOT + 8, ELF64_R_INFO(2, R_X86_64_JUMP_SLOT), 0 };
	img.rela[2] = (Elf64_Rela){ GOT + 16, ELF64_R_INFO(3, R_X86_64_GLOB_DAT), 0 };
	img.rela[3] = (Elf64_Rela){ GOT + 24, ELF64_R_INFO(0, R_X86_64_IRELATIVE), 0x2000 };
	img.rela[4] = (Elf64_Rela){ GOT + 32, ELF64_R_INFO(0, R_X86_64_IRELATIVE), 0x3000 };
	img.rela[5] = (Elf64_Rela){ GOT + 40, ELF64_R_INFO(0, R_X86_64_RELATIVE), 0x2000 };
	img.rela[6] = (Elf64_Rela){ GOT + 48, ELF64_R_INFO(99, R_X86_64_JUMP_SLOT), 0 };
}

/* Write at PLT + AT: the bytes BEFORE, an instruction OPCODE that reads slot SLOT, and the bytes AFTER. */
static void stub(
	size_t at, const char *before, const char *opcode, uint64_t slot, const char *after, size_t n_after)
{
	uint8_t *p = img.plt + at;
	int32_t disp;

	memcpy(p, before, strlen(before));
	p += strlen(before);
	memcpy(p, opcode, strlen(opcode));
	p += strlen(opcode);
	disp = (int32_t)(GOT + 8 * slot - (PLT + (uint64_t)(p + 4 - img.plt)));
	memcpy(p, &disp, 4);
	memcpy(p + 4, after, n_after);
}

static int load_from(const uint64_t *vaddrs, size_t n, struct pltsym **ret, struct err *e)
{
	struct elffile *f = NULL;
	int rc = elffile_image(&img, sizeof(img), &f, e);

	rc = rc ? rc : pltsym_load(f, vaddrs, n, ret, e);
	elffile_close(f);
	return rc;
}

static void is(struct tap *t, const struct pltsym *p, uint64_t at, const char *want, const char *name)
{
	struct pltsym_hit hit;

	tap_eq_str(t, pltsym_find(p, PLT + at, &hit) ? hit.name : "none", want, name);
}

#define ENDBR "\xf3\x0f\x1e\xfa"
#define JMP "\xff\x25"

static void test_layouts(struct tap *t)
{
	struct pltsym *p = NULL;

	start_image();
	stub(0, "", "\xff\x35", 20, JMP "\0\0\0\0\x0f\x1f\x40\0", 10);
	stub(16, "", JMP, 0, "\x68\0\0\0\0\xe9\0\0\0\0", 10);
	stub(32, ENDBR, "\xf2" JMP, 1, "\x0f\x1f\x44\0\0", 5);
	stub(48, "", JMP, 2, "\x66\x90", 2);
	stub(56, "", JMP, 0, "\x66\x90", 2);
	memcpy(img.plt + 64, ENDBR "\x68\1\0\0\0\xf2\xe9\0\0\0\0\x90", 16);
	stub(80, "", "\x4c\x8b\x1d", 2, "\xe8\0\0\0\0\xe9\0\0\0\0\x68\2\0\0\0\xe9\0\0\0\0", 20);
	stub(112, ENDBR "\x41\xbb\1\1\1\1", JMP, 1, "", 0);
	memcpy(img.plt + 128, ENDBR "\x68\0\1\0\0\xf2\xe9\0\0\0\0\x90", 16);
	if (!tap_ok(t, load_from(NULL, 0, &p, NULL) == 0, "a procedure linkage table is read"))
		return;
	is(t, p, 0, "none", "the code that all lazy stubs jump to has no name");
	is(t, p, 16, "alpha@plt", "a lazy stub is found by its jump");
	is(t, p, 27, "alpha@plt", "a lazy stub includes the code after its jump");
	is(t, p, 32, "beta@plt", "a stub that begins with endbr64 starts there");
	is(t, p, 43, "none", "padding after a stub has no name");
	is(t, p, 48, "gamma@plt", "a stub of eight bytes is named by its GLOB_DAT relocation");
	is(t, p, 56, "alpha@plt", "adjacent stubs of eight bytes have their own names");
	is(t, p, 68, "beta@plt", "a lazy stub without its own jump is named by the number that it pushes");
	is(t, p, 105, "gamma@plt", "a retpoline is one stub up to its end");
	is(t, p, 112, "beta@plt", "a stub that passes its number in a register is found");
	is(t, p, 132, "none", "a number past the last relocation gives no name");
	is(t, p, 4096, "none", "an address outside the table has no name");
	pltsym_free(p);
}

static void test_slots(struct tap *t)
{
	struct pltsym_hit hit;
	struct pltsym *p = NULL;

	start_image();
	for (size_t i = 0; i < 8; i++)
		stub(i * 8, "", JMP, i, "", 0);
	if (!tap_ok(t, load_from(NULL, 0, &p, NULL) == 0, "slots of all kinds are read"))
		return;
	is(t, p, 24, "chosen@plt",
		"an indirect function names the stub, not the resolver at the same address");
	is(t, p, 32, "*ABS*+0x3000@plt", "a resolver without a symbol is reported by its address");
	is(t, p, 40, "none", "a slot with a relocation for data gives no name");
	is(t, p, 48, "none", "a relocation with an invalid symbol gives no name");
	is(t, p, 56, "none", "a slot without a relocation gives no name");
	tap_ok(t,
		pltsym_find(p, PLT + 2, &hit) && hit.name_len == 5 && hit.start == PLT && hit.end == PLT + 6,
		"a stub has a start, an end, and the length of its symbol's name");
	pltsym_free(p);
}

static void test_wanted(struct tap *t)
{
	static const uint64_t inside[] = { 5, PLT + 9, PLT + 300 }, outside[] = { 5, PLT + 256 };
	struct pltsym *p = NULL;
	struct pltsym_hit hit;

	start_image();
	for (size_t i = 0; i < 3; i++)
		stub(i * 8, "", JMP, i, "", 0);
	tap_ok(t,
		load_from(inside, 3, &p, NULL) == 0 && pltsym_stub(p, 0, &hit) && !pltsym_stub(p, 1, &hit) &&
			strcmp(hit.name, "beta@plt") == 0,
		"only the stubs that contain one of the given addresses are read");
	pltsym_free(p);
	p = NULL;
	img.sh[S_RELA].sh_offset = UINT64_MAX / 2;
	tap_ok(t, load_from(outside, 2, &p, NULL) == 0 && !pltsym_stub(p, 0, &hit),
		"if no address is in the stubs, nothing else is read");
	pltsym_free(p);
	start_image();
	img.eh.e_machine = EM_AARCH64;
	p = NULL;
	tap_ok(t, load_from(NULL, 0, &p, NULL) == 0 && !pltsym_stub(p, 0, &hit),
		"a file of another architecture has no stubs and is not an error");
	pltsym_free(p);
}

static void test_hostile(struct tap *t)
{
	struct pltsym *p = NULL;
	struct pltsym_hit hit;
	struct err e = { 0 };

	start_image();
	stub(0, "", JMP, 0, "", 0);
	img.sh[S_RELA].sh_offset = UINT64_MAX / 2;
	tap_ok(t, load_from(NULL, 0, &p, &e) == -EINVAL && !p, "relocations outside the file are an error");
	start_image();
	stub(0, "", JMP, 0, "", 0);
	img.sh[S_STRTAB] = img.sh[S_RELA];
	img.sh[S_SYMTAB] = img.sh[S_RELA];
	img.sh[S_STRTAB].sh_size = img.sh[S_SYMTAB].sh_size = sizeof(img) - img.sh[S_RELA].sh_offset;
	tap_ok(t, load_from(NULL, 0, &p, &e) == -EINVAL && !p,
		"overlapping sections that are too large are an error");
	start_image();
	stub(0, "", JMP, 0, "", 0);
	img.dynsym[1].st_name = UINT32_MAX;
	tap_ok(t, load_from(NULL, 0, &p, &e) == 0 && !pltsym_stub(p, 0, &hit),
		"a stub whose name is outside the string table is ignored");
	pltsym_free(p);
	p = NULL;
	start_image();
	memcpy(img.plt + sizeof(img.plt) - 5, ENDBR "\xff", 5);
	memcpy(img.plt + sizeof(img.plt) - 8, "\xff\x25\0\0\0", 5);
	tap_ok(t, load_from(NULL, 0, &p, &e) == 0 && !pltsym_stub(p, 0, &hit), "a truncated stub is ignored");
	pltsym_free(p);
}

/* Does every stub have a name, and its end after its start? */
static bool hangs_together(const void *bytes, size_t len)
{
	void *copy = malloc(len ? len : 1); /* so that the sanitizers of SAN=1 see a read past the end */
	struct elffile *f = NULL;
	struct pltsym *p = NULL;
	struct pltsym_hit hit;
	bool fine = true;

	memcpy(copy, bytes, len);
	if (elffile_image(copy, len, &f, NULL) == 0)
		pltsym_load(f, NULL, 0, &p, NULL);
	for (size_t i = 0; p && pltsym_stub(p, i, &hit); i++)
		fine = fine && hit.end > hit.start && strlen(hit.name) >= hit.name_len &&
		       hit.name[hit.name_len] == '@';
	pltsym_free(p);
	elffile_close(f);
	free(copy);
	return fine;
}

static void test_damaged(struct tap *t)
{
	size_t wrong = 0;

	start_image();
	stub(0, "", JMP, 0, "", 0);
	for (size_t len = 0; len <= sizeof(img); len++)
		wrong += !hangs_together(&img, len);
	for (size_t bit = 0; bit < 8 * sizeof(img); bit++) {
		((uint8_t *)&img)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		wrong += !hangs_together(&img, sizeof(img));
		((uint8_t *)&img)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	tap_eq_u64(t, wrong, 0, "a file cut anywhere, or with any bit changed, gives consistent stubs");
}

static int list(const char *path)
{
	struct elffile *f = NULL;
	struct pltsym *p = NULL;
	struct pltsym_hit hit;
	struct err e = { 0 };
	int rc = elffile_open(AT_FDCWD, path, false, &f, &e);

	rc = rc ? rc : pltsym_load(f, NULL, 0, &p, &e);
	if (rc)
		fprintf(stderr, "%s: %s\n", path, e.msg);
	for (size_t i = 0; rc == 0 && pltsym_stub(p, i, &hit); i++)
		printf("%llx %s\n", (unsigned long long)hit.start, hit.name);
	pltsym_free(p);
	elffile_close(f);
	return rc ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct tap t = { 0 };

	if (argc == 3 && strcmp(argv[1], "--list") == 0)
		return list(argv[2]);
	test_layouts(&t);
	test_slots(&t);
	test_wanted(&t);
	test_hostile(&t);
	test_damaged(&t);
	return tap_done(&t);
}
