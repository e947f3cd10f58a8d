/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/v8.h"
#include "base/base.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "runtime_abi.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define CODE_MAX (UINT64_C(64) << 20) /* of builtins */
#define SIZES_MAX 1024 /* of bytecodes */

static bool bytes_at(const struct elffile *f, uint64_t address, void *to, size_t n)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t len;

	if (elffile_read_vaddr(f, address, n, &bytes, &len, NULL) != 0 || len != n)
		return false;
	memcpy(to, bytes, n);
	return true;
}

/* The addend of the relative relocation of the word at ADDRESS; 0 if there is none. */
static uint64_t relocated(const struct elffile *f, uint64_t address)
{
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];
		_cleanup_free_ uint8_t *relocations = NULL;
		size_t len;

		if (s->type != SHT_RELA || !(s->flags & SHF_ALLOC) || s->size > CODE_MAX ||
			elffile_read(f, s, &relocations, &len, NULL) != 0)
			continue;
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= len; at += sizeof(Elf64_Rela)) {
			Elf64_Rela r;

			memcpy(&r, relocations + at, sizeof(r));
			if (r.r_offset == address && ELF64_R_TYPE(r.r_info) == R_X86_64_RELATIVE)
				return (uint64_t)r.r_addend;
		}
	}
	return 0;
}

/*
 * What the function at ADDRESS returns, if it consists of one or two of these
 * instructions: mov $VALUE, %eax; mov or lea VARIABLE(%rip), %rax or %eax; mov
 * (%rax), %rax or %eax. BYTES: of the result.
 */
static uint64_t returned(const struct elffile *f, uint64_t address, size_t bytes)
{
	uint8_t code[16];
	uint64_t value = 0, variable;
	size_t at = 0, next;
	bool lea;

	if (!bytes_at(f, address, code, sizeof(code)))
		return 0;
	if (code[0] == 0xb8 && code[5] == 0xc3)
		return elfcode_le32(code + 1);
	if (code[0] == 0x48)
		at++;
	if ((code[at] != 0x8b && code[at] != 0x8d) || code[at + 1] != 0x05)
		return 0;
	lea = code[at] == 0x8d;
	next = at + 6;
	variable = address + next + (uint64_t)(int64_t)(int32_t)elfcode_le32(code + at + 2);
	if (lea) {
		if (code[next] == 0xc3)
			return variable;
		next += code[next] == 0x48;
		if (code[next] != 0x8b || code[next + 1] != 0x00)
			return 0;
		next += 2;
	}
	if (code[next] != 0xc3)
		return 0;
	if (bytes == 8 && (value = relocated(f, variable)) != 0)
		return value;
	return bytes_at(f, variable, &value, bytes) ? value : 0;
}

bool v8_read(const struct elffile *f, bool (*find)(void *ctx, const char *name, struct elfcode_symbol *ret),
	void *ctx, struct unwindtab_interpreter *ret)
{
	static const char *const version[] = { "_ZN2v88internal7Version6major_E",
		"_ZN2v88internal7Version6minor_E", "_ZN2v88internal7Version6build_E" };
	/* a name that is missing counts as well */
	static const char *const constants[] = {
		"v8dbg_SmiTagMask",
		"v8dbg_SmiShiftSize",
		"v8dbg_FirstNonstringType",
		"v8dbg_off_fp_context",
		"v8dbg_off_fp_function",
		"v8dbg_off_fp_bytecode_array",
		"v8dbg_off_fp_bytecode_offset",
		"v8dbg_type_JSFunction__JS_FUNCTION_TYPE",
		"v8dbg_type_Script__SCRIPT_TYPE",
		"v8dbg_type_ScopeInfo__SCOPE_INFO_TYPE",
		"v8dbg_type_Code__CODE_TYPE",
		"v8dbg_type_BytecodeArray__BYTECODE_ARRAY_TYPE",
		"v8dbg_type_FixedArray__FIXED_ARRAY_TYPE",
		"v8dbg_frametype_BuiltinExitFrame",
		"v8dbg_class_JSFunction__shared__SharedFunctionInfo",
		"v8dbg_class_BytecodeArray__data__uintptr_t",
		"v8dbg_class_Script__source__Object",
		"v8dbg_class_Script__line_ends__Object",
		"v8dbg_class_SharedFunctionInfo__flags__int",
	};
	struct elfcode_symbol code, size, sizes, y;
	uint32_t numbers[ARRAY_LEN(version)], crc = 0;

	if (f->machine != EM_X86_64 || !find(ctx, "v8dbg_off_fp_function", &y) || !find(ctx, version[0], &y))
		return false;
	ret->kind = RUNTIME_V8;
	for (size_t i = 0; i < ARRAY_LEN(version); i++)
		if (!find(ctx, version[i], &y) || !bytes_at(f, y.value, &numbers[i], 4))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
		uint32_t number = 0;

		if (!find(ctx, constants[i], &y))
			number = UINT32_MAX;
		else
			bytes_at(f, y.value, &number, sizeof(number));
		crc = crc32c(crc, &number, sizeof(number));
	}
	ret->version = (numbers[0] & 0xff) << 24 | (numbers[1] & 0xff) << 16;
	ret->state_bytes = crc;
	if (!find(ctx, "_ZN2v88internal23DefaultEmbeddedBlobCodeEv", &code) ||
		!find(ctx, "_ZN2v88internal27DefaultEmbeddedBlobCodeSizeEv", &size) ||
		!find(ctx, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE", &sizes) ||
		sizes.size > SIZES_MAX || sizes.value > UINT64_MAX - sizes.size)
		return true;
	ret->eval[0] = returned(f, code.value, 8);
	ret->eval[1] = returned(f, size.value, 4);
	if (!ret->eval[0] || ret->eval[1] > CODE_MAX) {
		ret->eval[0] = ret->eval[1] = 0;
		return true;
	}
	ret->eval[1] += ret->eval[0];
	ret->cold[0] = sizes.value;
	ret->cold[1] = sizes.value + sizes.size;
	return true;
}
