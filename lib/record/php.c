/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/php.h"

/*
 * Offsets in bytes on x86-64. Each column was printed by a program that was
 * compiled with the headers of that version (offsetof). Headers, in Zend/:
 * zend_globals.h (current), zend_compile.h (frame_*, function_*, opcode*, lines,
 * file), zend.h (class_name), zend_types.h (string_*), zend_generators.h
 * (generator_*). They are part of the interface for extensions, which does not
 * change between the patch levels of a version.
 */
#define SHARED                                                                                               \
	.current = 488, /* current_execute_data */                                                           \
		.frame_opline = 0, .frame_function = 24, /* func */                                          \
		.frame_object = 32, /* This */                                                               \
		.frame_info = 40, /* This.u1.type_info */                                                    \
		.frame_back = 48, /* prev_execute_data */                                                    \
		.function_type = 0, .function_name = 8, .function_class = 16, /* scope */                    \
		.opcode_bytes = 32, .opcode_line = 24, /* lineno */                                          \
		.class_name = 8, .string_len = 16, .string_data = 24

static const struct php_version {
	uint32_t version; /* 8.2 = 0x802 */
	uint32_t state_bytes; /* sizeof(zend_executor_globals) */
	struct php_layout at;
} versions[] = {
	{ 0x704, 1664,
		{ SHARED, .opcodes = 64, .n_opcodes = 60, /* last */
			.file = 136, /* filename */
			.lines = 144, /* line_start, line_end */
			.generator_parent = 160, /* node.parent */
			.generator_frame = 64, /* execute_data */
			.generator_fake = 200 } }, /* execute_fake */
	{ 0x800, 1696,
		{ SHARED, .opcodes = 72, .n_opcodes = 68, .file = 144, .lines = 152, .generator_parent = 152,
			.generator_frame = 56, .generator_fake = 192 } },
	{ 0x801, 1752,
		{ SHARED, .opcodes = 72, .n_opcodes = 68, .file = 144, .lines = 152, .generator_parent = 152,
			.generator_frame = 56, .generator_fake = 184 } },
	{ 0x802, 1800,
		{ SHARED, .opcodes = 88, .n_opcodes = 80, .file = 152, .lines = 160, .generator_parent = 152,
			.generator_frame = 56, .generator_fake = 184 } },
	{ 0x803, 1792,
		{ SHARED, .opcodes = 80, .n_opcodes = 76, .file = 144, .lines = 152, .generator_parent = 152,
			.generator_frame = 56, .generator_fake = 184 } },
	{ 0x804, 1984,
		{ SHARED, .opcodes = 104, .n_opcodes = 96, .file = 168, .lines = 176, .generator_parent = 152,
			.generator_frame = 56, .generator_fake = 184 } },
};

bool php_layout(struct runtime_file *ret, uint64_t state_bytes)
{
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		if (ret->version >> 16 != versions[i].version || versions[i].state_bytes != state_bytes)
			continue;
		ret->php = versions[i].at;
		return true;
	}
	return false;
}
