/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/v8.h"
#include "base/base.h"

/*
 * Offsets in bytes from the beginning of an object, without compressed pointers,
 * on x86-64. The names are those of V8's src/objects. Types, and offsets of
 * functions, frames and bytecode, are exported as v8dbg_*; the others are those
 * of a running program.
 */
static const struct version {
	uint32_t version;
	uint32_t constants;
	struct v8_layout at;
} versions[] = {
	{ 10 << 24 | 2 << 16, 0x6fc9c01d, /* Node 18 */
		{ .type_function = 2065,
			.type_shared = 257,
			.type_script = 170,
			.type_scope = 256,
			.type_bytecode = 195,
			.type_bytes = 194,
			.type_array = 179,
			.type_deopt = 179,
			.function_shared = 24,
			.function_code = 48,
			.bytecode_data = 56,
			.bytecode_positions = 32,
			.code_inline = 128,
			.code_bytes = 40,
			.code_deopt = 16,
			.code_positions = 24,
			.page_flags = 8,
			.page_heap = 16,
			.page_executable = 0,
			.heap_builtins = 0x2420, /* Isolate: from heap_ to embedded_blob_code_ */
			.exit_marker = 22 << 1 } },
	{ 11 << 24 | 3 << 16, 0x98f5ae, /* Node 20 */
		{ .type_function = 2066,
			.type_shared = 262,
			.type_script = 167,
			.type_scope = 261,
			.type_bytecode = 191,
			.type_bytes = 190,
			.type_array = 175,
			.type_deopt = 175,
			.function_shared = 24,
			.function_code = 48,
			.bytecode_data = 54,
			.bytecode_positions = 32,
			.code_start = 40,
			.code_stream = 16,
			.code_bytes = 56,
			.code_deopt = 16,
			.code_positions = 24,
			.page_flags = 8,
			.page_heap = 16,
			.page_executable = 21,
			.heap_builtins = 0x23d0, /* Isolate: from heap_ to embedded_blob_code_ */
			.exit_marker = 25 << 1 } },
	{ 12 << 24 | 4 << 16, 0x9d53815a, /* Node 22 */
		{ .type_function = 2066,
			.type_shared = 274,
			.type_script = 167,
			.type_scope = 272,
			.type_bytecode = 205,
			.type_bytes = 212,
			.type_array = 174,
			.type_deopt = 213,
			.function_shared = 32,
			.function_code = 24,
			.bytecode_data = 64,
			.bytecode_positions = 24,
			.code_start = 40,
			.code_stream = 32,
			.code_bytes = 52,
			.code_deopt = 8,
			.code_positions = 16,
			.page_flags = 0,
			.page_heap = 24,
			.page_executable = 18,
			.heap_builtins = 0x2278, /* Isolate: from heap_ to embedded_blob_code_ */
			.exit_marker = 26 << 1 } },
};

bool v8_layout(struct runtime_file *ret, uint64_t constants)
{
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		if (versions[i].version != ret->version || versions[i].constants != constants)
			continue;
		if (!ret->eval[0] || (ret->cold[1] - ret->cold[0]) % 3 != 0)
			return false;
		ret->v8 = versions[i].at;
		ret->v8.n_bytecodes = (uint16_t)((ret->cold[1] - ret->cold[0]) / 3);
		return true;
	}
	return false;
}
