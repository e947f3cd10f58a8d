/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/interpreter.h"
#include "base/base.h"
#include "base/hash.h"
#include "elf/symbols.h"
#include "unwind/fde.h"
#include "unwind/hotspot.h"
#include "unwind/ruby.h"
#include "unwind/v8.h"
#include "unwind/x86.h"
#include "runtime_abi.h"

#include <elf.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN_MAX 4096 /* entries of one hash bucket */
#define OPTIONS_MAX 4096 /* of Perl's build */
#define TEXT_MAX (UINT64_C(64) << 20) /* of .rodata, when it is searched for a version; of a function */
#define TARGETS_MAX 1024 /* of jumps that leave a function */

/*
 * The dynamic symbols by DT_GNU_HASH: a Bloom filter, buckets and chains of
 * hashes, each chain in the order of the symbols. Format:
 * https://flapenguin.me/elf-dt-gnu-hash, and glibc's elf/dl-lookup.c.
 */
struct dynsyms {
	const struct elffile *f;
	const struct elffile_section *hash, *syms, *strings;
	uint32_t n_buckets, first, n_bloom, shift;
};

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

/* Read N bytes at OFFSET of section S. */
static bool section_read(
	const struct elffile *f, const struct elffile_section *s, uint64_t offset, void *to, size_t n)
{
	return offset <= s->size && n <= s->size - offset &&
	       elffile_read_at(f, s->offset + offset, to, n, NULL) == 0;
}

static bool dynsyms_open(const struct elffile *f, struct dynsyms *d)
{
	uint32_t head[4];

	*d = (struct dynsyms){ .f = f };
	for (size_t i = 0; i < f->n_sections; i++)
		if (f->sections[i].type == SHT_GNU_HASH)
			d->hash = &f->sections[i];
	if (!d->hash || d->hash->link >= f->n_sections)
		return false;
	d->syms = &f->sections[d->hash->link];
	if (d->syms->type != SHT_DYNSYM || d->syms->link >= f->n_sections)
		return false;
	d->strings = &f->sections[d->syms->link];
	if (!section_read(f, d->hash, 0, head, sizeof(head)))
		return false;
	d->n_buckets = head[0], d->first = head[1], d->n_bloom = head[2], d->shift = head[3];
	return d->n_buckets && d->n_bloom && d->shift < 32;
}

static bool is_named(const struct dynsyms *d, const struct elfcode_symbol *y, const char *name)
{
	char text[64];
	size_t len = strlen(name) + 1;

	return len <= sizeof(text) && section_read(d->f, d->strings, y->name, text, len) &&
	       memcmp(text, name, len) == 0;
}

static bool dynsyms_find(const struct dynsyms *d, const char *name, struct elfcode_symbol *ret)
{
	const uint32_t h = gnu_hash(name);
	const uint64_t bloom = 16, buckets = bloom + UINT64_C(8) * d->n_bloom,
		       chains = buckets + UINT64_C(4) * d->n_buckets;
	uint64_t word;
	uint32_t at, hash;
	uint8_t sym[sizeof(Elf64_Sym)];

	if (!section_read(d->f, d->hash, bloom + UINT64_C(8) * ((h / 64) % d->n_bloom), &word, 8) ||
		!(word >> (h % 64) & 1) || !(word >> ((h >> d->shift) % 64) & 1) ||
		!section_read(d->f, d->hash, buckets + UINT64_C(4) * (h % d->n_buckets), &at, 4) ||
		at < d->first)
		return false;
	for (uint32_t n = 0; n < CHAIN_MAX; n++, at++) {
		if (!section_read(d->f, d->hash, chains + UINT64_C(4) * (at - d->first), &hash, 4))
			return false;
		if ((hash | 1) == (h | 1)) {
			if (!section_read(d->f, d->syms, at * (uint64_t)sizeof(sym), sym, sizeof(sym)))
				return false;
			*ret = elfcode_symbol(true, sym);
			if (is_named(d, ret, name) && ret->shndx != SHN_UNDEF)
				return true;
		}
		if (hash & 1)
			return false;
	}
	return false;
}

/* What proves a runtime: the variable that leads to everything, and the function that executes script code.
 */
struct proof {
	uint32_t kind;
	const char *state, *eval;
	const char *cold; /* the part of the function that the compiler put elsewhere: a call from there
			     returns there */
	/* 0 = not found; may set state_bytes, which differs between builds */
	uint32_t (*version)(
		const struct elffile *f, const struct dynsyms *d, struct unwindtab_interpreter *ret);
};

/* What only .symtab names, if it is there. */
static void find_static(const struct elffile *f, const struct proof *p, struct unwindtab_interpreter *ret)
{
	struct elfcode code = { 0 };
	_cleanup_free_ uint8_t *syms = NULL, *strings = NULL;
	size_t len = 0, strings_len = 0;

	if (elfcode_open(f, &code, NULL) == 0 && code.tables[0].syms &&
		elffile_read(f, code.tables[0].syms, &syms, &len, NULL) == 0 &&
		elffile_read(f, code.tables[0].strings, &strings, &strings_len, NULL) == 0)
		for (size_t at = 0; at + sizeof(Elf64_Sym) <= len; at += sizeof(Elf64_Sym)) {
			struct elfcode_symbol y = elfcode_symbol(true, syms + at);
			const char *name = (char *)strings + y.name;

			if (!y.size || y.name >= strings_len)
				continue;
			if (y.type == STT_FUNC && strcmp(name, p->cold) == 0) {
				ret->cold[0] = y.value;
				ret->cold[1] = y.value + y.size;
			}
		}
	elfcode_spans_free(&code.spans);
}

/* Py_Version, a constant since 3.11. */
static uint32_t stated_version(const struct elffile *f, const struct elfcode_symbol *y)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;

	if (elffile_read_vaddr(f, y->value, 4, &bytes, &len, NULL) != 0 || len != 4)
		return 0;
	return elfcode_le32(bytes);
}

/* Take a number of up to two digits from *P. */
static bool take_number(const char **p, uint32_t *ret)
{
	const char *begin = *p;

	for (*ret = 0; isdigit((unsigned char)**p) && *p - begin < 2; (*p)++)
		*ret = *ret * 10 + (uint32_t)(**p - '0');
	return *p > begin;
}

/* Read the constants of F section by section, from *I on. They end with a NUL. */
static bool next_constants(const struct elffile *f, size_t *i, uint8_t **ret, size_t *len)
{
	while (*i < f->n_sections) {
		const struct elffile_section *s = &f->sections[(*i)++];

		if (s->type == SHT_PROGBITS && !(s->flags & (SHF_WRITE | SHF_EXECINSTR)) &&
			s->flags & SHF_ALLOC && s->size <= TEXT_MAX &&
			elffile_read(f, s, ret, len, NULL) == 0)
			return true;
	}
	return false;
}

/* Before: the only version from 3.8 to 3.10 at the end of a string. sys.version begins with it; the linker
 * may have merged that string with the end of another one. */
static bool python_string(const char *p, uint32_t *ret)
{
	uint32_t minor, micro;

	if (p[0] != '3' || p[1] != '.' || p[-1] == '.' || isdigit((unsigned char)p[-1]))
		return false;
	p += 2;
	if (!take_number(&p, &minor) || *p++ != '.' || !take_number(&p, &micro) ||
		(*p && strcmp(p, "+") != 0) || minor < 8 || minor > 10)
		return false;
	*ret = 3u << 24 | minor << 16 | micro << 8 | 0xf0;
	return true;
}

/* The header that PHP sends with each page. */
static bool php_string(const char *p, uint32_t *ret)
{
	static const char begin[] = "X-Powered-By: PHP/";
	uint32_t major, minor, micro;

	if (strncmp(p, begin, sizeof(begin) - 1) != 0)
		return false;
	p += sizeof(begin) - 1;
	if (!take_number(&p, &major) || *p++ != '.' || !take_number(&p, &minor) || *p++ != '.' ||
		!take_number(&p, &micro))
		return false;
	*ret = major << 24 | minor << 16 | micro << 8;
	return true;
}

/* The version by the only text among the constants that IS_VERSION accepts; 0 = there is none, or several. */
static uint32_t searched_version(const struct elffile *f, bool (*is_version)(const char *p, uint32_t *ret))
{
	uint32_t found = 0, version;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;

	for (size_t i = 0; next_constants(f, &i, &bytes, &len); free(bytes), bytes = NULL)
		for (size_t at = 1; at < len; at++) {
			if (!is_version((const char *)bytes + at, &version))
				continue;
			if (found && found != version)
				return 0;
			found = version;
		}
	return found;
}

/*
 * From 3.13 on, _PyRuntime begins with a description for debuggers (struct
 * _Py_DebugOffsets): its mark, the version, and 1 if threads run without a common lock. Then
 * objects have other members.
 */
static bool is_stock(const struct elffile *f, uint64_t state, uint32_t version)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;

	return elffile_read_vaddr(f, state, 24, &bytes, &len, NULL) == 0 && len == 24 &&
	       memcmp(bytes, "xdebugpy", 8) == 0 && elfcode_le32(bytes + 8) == version &&
	       elfcode_le32(bytes + 16) == 0;
}

/* Sets state_bytes to 0 if the build is not one whose members are known. */
static uint32_t python_version(
	const struct elffile *f, const struct dynsyms *d, struct unwindtab_interpreter *ret)
{
	struct elfcode_symbol y;
	uint32_t version;

	version = dynsyms_find(d, "Py_Version", &y) ? stated_version(f, &y)
						    : searched_version(f, python_string);
	if (version >= 0x030d0000 && !is_stock(f, ret->state, version))
		ret->state_bytes = 0;
	return version;
}

static uint32_t php_version(
	const struct elffile *f, const struct dynsyms *d, struct unwindtab_interpreter *ret)
{
	(void)d;
	(void)ret;
	return searched_version(f, php_string);
}

/* Is F a program, which has a program interpreter, and not a library? */
static bool is_program(const struct elffile *f)
{
	static const char name[] = ".interp";
	char text[sizeof(name)];

	for (size_t i = 0; f->names < f->n_sections && i < f->n_sections; i++)
		if (section_read(f, &f->sections[f->names], f->sections[i].name, text, sizeof(text)) &&
			memcmp(text, name, sizeof(name)) == 0)
			return true;
	return false;
}

/*
 * PL_revision and so on are constants. The options of the build decide the
 * layout of structures: their CRC-32C is the lower half of state_bytes. The
 * upper one is the distance of PL_curinterp from PL_thr_key, in a program.
 */
static uint32_t perl_version(
	const struct elffile *f, const struct dynsyms *d, struct unwindtab_interpreter *ret)
{
	static const char *const names[] = { "PL_revision", "PL_version", "PL_subversion",
		"PL_bincompat_options" };
	struct elfcode_symbol y;
	uint32_t version = 0;
	uint64_t first = 0;

	if (is_program(f) && dynsyms_find(d, "PL_curinterp", &y))
		first = (y.value - ret->state) << 32;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		_cleanup_free_ uint8_t *bytes = NULL;
		size_t len;

		if (!dynsyms_find(d, names[i], &y) || !y.size || y.size > OPTIONS_MAX ||
			elffile_read_vaddr(f, y.value, y.size, &bytes, &len, NULL) != 0 || len != y.size)
			return 0;
		if (i < 3)
			version = version << 8 | bytes[0];
		else
			ret->state_bytes = first | crc32c(0, bytes, strnlen((char *)bytes, len));
	}
	return version << 8;
}

/* The target of a direct jump at PC, conditional or not; 0 = it is none. */
static uint64_t jump_target(const struct unwindx86_insn *i, uint64_t pc)
{
	const bool is_jump = i->op == 0xe9 || i->op == 0xeb || (i->op >= 0x70 && i->op <= 0x7f) ||
			     (i->op >= 0x180 && i->op <= 0x18f);

	return is_jump ? pc + i->len + (uint64_t)(int64_t)i->imm : 0;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The ascending addresses outside of the function that its code jumps to. Returns how many. */
static size_t outer_targets(const struct elffile *f, const uint64_t eval[2], uint64_t *ret, size_t max)
{
	_cleanup_free_ uint8_t *code = NULL;
	struct unwindx86_insn i;
	size_t len = 0, n = 0;

	if (eval[1] - eval[0] > TEXT_MAX ||
		elffile_read_vaddr(f, eval[0], eval[1] - eval[0], &code, &len, NULL) != 0)
		return 0;
	for (size_t at = 0; at < len && n < max && unwindx86_decode(code + at, len - at, &i); at += i.len) {
		uint64_t target = jump_target(&i, eval[0] + at);

		if (target && (target < eval[0] || target >= eval[1]))
			ret[n++] = target;
	}
	qsort(ret, n, sizeof(*ret), by_address);
	return n;
}

/*
 * Without .symtab: code that the function jumps into the middle of, by the call frame
 * information. What begins where a jump leads may be another function, what is
 * entered elsewhere cannot be one.
 */
static void find_part(const struct elffile *f, struct unwindtab_interpreter *ret)
{
	uint64_t targets[TARGETS_MAX];
	struct fde_range ranges[TARGETS_MAX];
	size_t n = outer_targets(f, ret->eval, targets, TARGETS_MAX);
	const struct fde_range *part = NULL;

	if (fde_ranges(f, NULL, targets, n, TEXT_MAX, ranges, NULL) != 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (ranges[i].start == targets[i] || !ranges[i].end)
			continue;
		if (part && part->start != ranges[i].start)
			return;
		part = &ranges[i];
	}
	if (part) {
		ret->cold[0] = part->start;
		ret->cold[1] = part->end;
	}
}

static void find_outside(const struct elffile *f, const struct proof *p, struct unwindtab_interpreter *ret)
{
	find_static(f, p, ret);
	if (!ret->cold[1] && ret->eval[1])
		find_part(f, ret);
}

/* What is known of the registers while the code of one function is read. */
struct registers {
	uint64_t address[UNWINDX86_REGS]; /* it points to this; 0 = not known */
	uint64_t value[UNWINDX86_REGS]; /* it has the value of the variable there; 0 = not known */
};

/* The address of the operand of instruction I, which ends at END; 0 = not known. */
static uint64_t operand_address(const struct registers *r, const struct unwindx86_insn *i, uint64_t end)
{
	if (!i->memory || i->indexed || i->fs)
		return 0;
	if (i->base == UNWINDX86_RIP)
		return end + (uint64_t)(int64_t)i->disp;
	if (i->base == UNWINDX86_NO_BASE)
		return (uint32_t)i->disp;
	return i->disp ? 0 : r->address[i->base];
}

/* Follow I, as far as addresses and loads go; another register that it names is not known any more. */
static void follow(struct registers *r, const struct unwindx86_insn *i, uint64_t end)
{
	const uint64_t at = operand_address(r, i, end);
	const bool is_call = i->op == 0xe8 || (i->op == 0xff && (i->reg & 7) == 2);
	/* these have part of the opcode where others have a register */
	const bool is_group = (i->op >= 0x80 && i->op <= 0x83) || (i->op >= 0xc0 && i->op <= 0xc7) ||
			      (i->op >= 0xd0 && i->op <= 0xd3) || (i->op >= 0xf6 && i->op <= 0xff);
	/* neither a store, nor a comparison, nor of the second map, but for those that change general
	 * registers */
	const bool changes = (i->op < 0x100 && !(i->op == 0x89 && i->memory) && i->op != 0x85 &&
				     i->op != 0x39 && i->op != 0x3b) ||
			     (i->op >= 0x140 && i->op <= 0x14f) || i->op == 0x1af ||
			     (i->op >= 0x1b6 && i->op <= 0x1bf) || i->op == 0x17e;

	for (unsigned int n = 0; n < UNWINDX86_REGS; n++)
		if ((changes && ((n == i->reg && !(is_group && i->has_modrm)) ||
					(n == i->rm && i->has_modrm && !i->memory))) ||
			(is_call && (0x0fc7 >> n & 1))) /* rax, rcx, rdx, rsi, rdi, r8 to r11 */
			r->address[n] = r->value[n] = 0;
	if (i->op == 0x8d && i->base == UNWINDX86_RIP) {
		r->address[i->reg] = at;
	} else if (i->op >= 0xb8 && i->op <= 0xbf) {
		r->address[i->reg] = (uint32_t)i->imm;
		r->value[i->reg] = 0;
	} else if (i->op == 0x8b && !i->wide) {
		r->value[i->reg] = at;
	}
}

#define PYTHON_312_VERSION 92 /* co_version of 3.12: code_version in record/python.c */

struct function {
	const uint8_t *code;
	size_t len;
	uint64_t start;
};

/* The variable whose value F puts into new code objects; 0 = none, not only one, or F is not wholly
 * understood. */
static uint64_t numbered_by(const struct function *f)
{
	struct registers r = { 0 };
	struct unwindx86_insn i;
	uint64_t ret = 0;
	size_t at;

	for (at = 0; at < f->len && unwindx86_decode(f->code + at, f->len - at, &i); at += i.len) {
		const bool is_number = i.op == 0x89 && i.memory && !i.wide && !i.indexed &&
				       i.disp == PYTHON_312_VERSION && r.value[i.reg];

		if (is_number && ret && ret != r.value[i.reg])
			return 0;
		if (is_number)
			ret = r.value[i.reg];
		follow(&r, &i, f->start + at + i.len);
	}
	return at == f->len ? ret : 0;
}

/* Does F change the variable at ADDRESS? */
static bool writes(const struct function *f, uint64_t address)
{
	struct registers r = { 0 };
	struct unwindx86_insn i;

	for (size_t at = 0; at < f->len && unwindx86_decode(f->code + at, f->len - at, &i); at += i.len) {
		const uint64_t end = f->start + at + i.len;
		/* or add, sub, inc, dec */
		const bool is_store = i.op == 0x89 ||
				      (i.op == 0x83 && ((i.reg & 7) == 0 || (i.reg & 7) == 5)) ||
				      (i.op == 0xff && (i.reg & 7) < 2);

		if (is_store && !i.wide && operand_address(&r, &i, end) == address)
			return true;
		follow(&r, &i, end);
	}
	return false;
}

/*
 * CPython 3.12 counts code objects with a variable that only .symtab names, and which
 * what makes them reads, puts into the new one, and changes: the only one of which that is true.
 */
static uint64_t find_counter(const struct elffile *f, const struct dynsyms *d)
{
	_cleanup_free_ uint8_t *code = NULL;
	struct elfcode_symbol y;
	size_t len = 0;
	struct function maker;
	uint64_t ret;

	if (!dynsyms_find(d, "_PyCode_New", &y) || !y.size || y.size > TEXT_MAX ||
		elffile_read_vaddr(f, y.value, y.size, &code, &len, NULL) != 0)
		return 0;
	maker = (struct function){ code, len, y.value };
	ret = numbered_by(&maker);
	return ret && writes(&maker, ret) ? ret : 0;
}

static const struct proof proofs[] = {
	{ RUNTIME_PYTHON, "_PyRuntime", "_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault.cold",
		python_version },
	{ RUNTIME_PHP, "executor_globals", "execute_ex", "execute_ex.cold", php_version },
	{ RUNTIME_PERL, "PL_thr_key", "Perl_runops_standard", "Perl_runops_standard.cold", perl_version },
};

static bool find(const struct elffile *f, const struct dynsyms *d, const struct proof *p,
	struct unwindtab_interpreter *ret)
{
	struct elfcode_symbol state = { 0 }, eval;

	if (!dynsyms_find(d, p->eval, &eval) || !eval.size || eval.value > UINT64_MAX - eval.size)
		return false;
	if (!dynsyms_find(d, p->state, &state))
		state = (struct elfcode_symbol){ 0 };
	ret->state = state.value;
	ret->state_bytes = state.size;
	ret->version = p->version(f, d, ret);
	if (!ret->state && !ret->version) {
		*ret = (struct unwindtab_interpreter){ 0 };
		return false;
	}
	ret->kind = p->kind;
	ret->eval[0] = eval.value;
	ret->eval[1] = eval.value + eval.size;
	find_outside(f, p, ret);
	if (ret->kind == RUNTIME_PYTHON && ret->version >> 16 == 0x030c)
		ret->counter = find_counter(f, d);
	return true;
}

static bool find_java(const struct elffile *f, const struct dynsyms *d, struct unwindtab_interpreter *ret,
	struct unwindtab_hotspot *hotspot)
{
	struct elfcode_symbol structs, types;

	if (!dynsyms_find(d, "gHotSpotVMStructs", &structs) || !dynsyms_find(d, "gHotSpotVMTypes", &types))
		return false;
	ret->kind = RUNTIME_JAVA;
	ret->version = hotspot_read(f, structs.value, types.value, hotspot);
	return true;
}

static bool find_ruby(const struct elffile *f, const struct dynsyms *d, struct unwindtab_interpreter *ret)
{
	struct elfcode_symbol version, thread, symbols;

	if (!dynsyms_find(d, "ruby_native_thread_p", &thread) ||
		!dynsyms_find(d, "rb_sym_all_symbols", &symbols) ||
		!dynsyms_find(d, "ruby_version", &version))
		return false;
	ruby_read(f,
		&(struct ruby_exports){
			version.value, thread.value, thread.size, symbols.value, symbols.size },
		ret);
	find_outside(f, &(struct proof){ .cold = "vm_exec_core.cold" }, ret);
	return true;
}

static bool find_symbol(void *ctx, const char *name, struct elfcode_symbol *ret)
{
	return dynsyms_find(ctx, name, ret);
}

struct unwindtab_interpreter interpreter_find(const struct elffile *f, struct unwindtab_hotspot *hotspot)
{
	struct unwindtab_interpreter ret = { 0 };
	struct dynsyms d;

	*hotspot = (struct unwindtab_hotspot){ 0 };
	/* code is read, and what is read of processes was tried, on x86-64 alone */
	if (!f->is64 || f->machine != EM_X86_64 || !dynsyms_open(f, &d))
		return ret;
	for (size_t i = 0; i < ARRAY_LEN(proofs); i++)
		if (find(f, &d, &proofs[i], &ret))
			return ret;
	if (!find_ruby(f, &d, &ret) && !find_java(f, &d, &ret, hotspot))
		v8_read(f, find_symbol, &d, &ret);
	return ret;
}
