/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/python.h"

#include <stddef.h>

/*
 * Offsets in bytes on x86-64, by minor version. Each column was printed by a
 * program that was compiled with the headers of that version (offsetof); the
 * members do not move between the patch levels of a version. Headers, in
 * Include/: internal/pycore_runtime.h (state_*),
 * internal/pycore_interp.h (interpreter_*; 3.8: internal/pycore_pystate.h), cpython/pystate.h
 * (thread_*, cframe_*), internal/pycore_frame.h or cpython/frameobject.h
 * (frame_*), cpython/funcobject.h (function_*), cpython/code.h (code_*), cpython/unicodeobject.h (string_*).
 */
#define SHARED_CODE_BEFORE_311                                                                               \
	.code_from = 16, .code_bytes = 112, .code_start = 0, .code_name = 112, .code_file = 104,             \
	.code_lines = 120, .code_first_line = 40, .string_data = 48, .string_wide_data = 72,                 \
	.identity = { 16, 40, 48, 56, 64, 120 } /* arguments, first line, code, constants, names, lines */
#define SHARED_CODE_FROM_312                                                                                 \
	.code_name = 128, .code_file = 112, .code_lines = 136, .code_first_line = 68, .code_version = 92,    \
	.string_data = 40, .string_wide_data = 56,                                                           \
	.identity = { 16, 64, 88, 112, 128, 136 } /* the size, first line, version, names, lines */

/* Names that were shared with earlier versions keep their meaning: prev_instr became instr_ptr, and so on. */
static const struct python_version {
	uint32_t minor;
	uint32_t state_bytes; /* sizeof(_PyRuntimeState); 0 = it differs between patch levels */
	struct runtime_file at;
} versions[] = {
	{ 8, 1464,
		{ .flags = PYTHON_FRAME_OBJECT | PYTHON_POSITION_BYTES,
			.state_key = 1392, /* gilstate.autoTSSkey */
			.state_interpreters = 32, /* interpreters.head, .main */
			.interpreter_next = 0,
			.interpreter_threads = 8, /* tstate_head; from 3.11 on threads.head */
			.thread_id = 176,
			.thread_frame = 24, /* frame */
			.frame_bytes = 112,
			.frame_back = 24, /* f_back */
			.frame_code = 32, /* f_code */
			.frame_position = 104, /* f_lasti */
			SHARED_CODE_BEFORE_311 } },
	{ 9, 656,
		{ .flags = PYTHON_FRAME_OBJECT | PYTHON_POSITION_BYTES,
			.state_key = 584,
			.state_interpreters = 32,
			.interpreter_next = 0,
			.interpreter_threads = 8,
			.thread_id = 176,
			.thread_frame = 24,
			.frame_bytes = 112,
			.frame_back = 24,
			.frame_code = 32,
			.frame_position = 104,
			SHARED_CODE_BEFORE_311 } },
	{ 10, 672,
		{ .flags = PYTHON_FRAME_OBJECT,
			.state_key = 584,
			.state_interpreters = 32,
			.interpreter_next = 0,
			.interpreter_threads = 8,
			.thread_id = 176,
			.thread_frame = 24,
			.frame_bytes = 104,
			.frame_back = 24,
			.frame_code = 32,
			.frame_position = 96,
			SHARED_CODE_BEFORE_311 } },
	{ 11, 0,
		{ .flags = PYTHON_CFRAME | PYTHON_ENTRY_FLAG | PYTHON_FUNCTION_VERSION,
			.state_key = 592, /* gilstate.autoTSSkey */
			.state_interpreters = 40,
			.interpreter_next = 0,
			.interpreter_threads = 16,
			.thread_id = 152,
			.thread_frame = 56, /* cframe */
			.cframe_frame = 8, /* current_frame */
			.frame_bytes = 72,
			.frame_code = 32, /* f_code */
			.frame_back = 48, /* previous */
			.frame_position = 56, /* prev_instr */
			.frame_owner = 68, /* is_entry */
			.frame_function = 0, /* f_func */
			.function_code = 48, /* func_code, then func_version at 128 */
			.function_version = 80,
			.code_from = 24,
			.code_bytes = 120,
			.code_start = 184, /* co_code_adaptive */
			.code_name = 128, /* co_qualname */
			.code_file = 112,
			.code_lines = 136,
			.code_first_line = 72,
			.string_data = 48,
			.string_wide_data = 72,
			/* constants, names, first line, names of variables, name, lines */
			.identity = { 24, 32, 72, 96, 128, 136 } } },
	{ 12, 0,
		{ .flags = PYTHON_CFRAME | PYTHON_SHIM | PYTHON_CODE_VERSION,
			.state_key = 1544, /* autoTSSkey */
			.thread_interpreter = 16,
			.state_interpreters = 40,
			.interpreter_next = 0,
			.interpreter_threads = 72,
			.thread_id = 136,
			.thread_frame = 56, /* cframe */
			.cframe_frame = 0,
			.frame_bytes = 72,
			.frame_code = 0, /* f_code */
			.frame_back = 8,
			.frame_position = 56, /* prev_instr */
			.frame_owner = 70,
			.code_bytes = 144,
			.code_start = 192,
			SHARED_CODE_FROM_312 } },
	{ 13, 0,
		{ .flags = PYTHON_SHIM | PYTHON_CODE_VERSION | PYTHON_OWN_VERSIONS,
			.state_key = 2160, /* autoTSSkey */
			.thread_interpreter = 16,
			.state_interpreters = 632,
			.interpreter_next = 7264,
			.interpreter_id = 7272,
			.interpreter_threads = 7344,
			.thread_id = 152,
			.thread_frame = 72, /* current_frame */
			.frame_bytes = 72,
			.frame_code = 0, /* f_executable */
			.frame_back = 8,
			.frame_position = 56, /* instr_ptr */
			.frame_owner = 70,
			.code_bytes = 192,
			.code_start = 200,
			.code_begun = 184, /* _co_firsttraceable */
			SHARED_CODE_FROM_312 } },
	{ 14, 0,
		{ .flags = PYTHON_SHIM | PYTHON_CODE_VERSION | PYTHON_OWN_VERSIONS,
			.state_key = 2336, /* autoTSSkey */
			.thread_interpreter = 16,
			.state_interpreters = 808,
			.interpreter_next = 7272,
			.interpreter_id = 7280,
			.interpreter_threads = 7344,
			.thread_id = 152,
			.thread_frame = 72, /* current_frame */
			.frame_bytes = 80,
			.frame_code = 0, /* f_executable */
			.frame_back = 8,
			.frame_position = 56, /* instr_ptr */
			.frame_owner = 74,
			.code_bytes = 200,
			.code_start = 208,
			.code_begun = 192,
			SHARED_CODE_FROM_312 } },
};

/*
 * Since 3.13 each interpreter counts its code objects: func_state.next_version. The
 * structure of the main one stands behind members of _PyRuntime that differ between patch
 * levels and options of the build: known for these sizes of _PyRuntime.
 */
static const struct {
	uint32_t minor, state_bytes;
	uint32_t main, counter; /* _main_interpreter, func_state.next_version in it */
} counters[] = {
	{ 13, 283320, 88352, 17000 }, /* 3.13.0 */
	{ 13, 283376, 88400, 17000 }, /* 3.13.5, Debian */
	{ 14, 316616, 90752, 14256 }, /* 3.14.10, Debian */
};

bool python_layout(struct runtime_file *ret, uint64_t state_bytes)
{
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		const struct runtime_file *at = &versions[i].at;
		struct runtime_file file = *at;

		if (ret->version >> 16 != (3u << 8 | versions[i].minor) ||
			(versions[i].state_bytes && versions[i].state_bytes != state_bytes) || !state_bytes)
			continue;
		file.kind = ret->kind;
		file.version = ret->version;
		file.state = ret->state;
		for (size_t k = 0; k < 2; k++) {
			file.eval[k] = ret->eval[k];
			file.cold[k] = ret->cold[k];
		}
		*ret = file;
		return true;
	}
	return false;
}

void python_places(struct runtime_file *f, const struct unwindtab_interpreter *i)
{
	const uint32_t minor = f->version >> 16 & 0xff;
	const int64_t from_state = (int64_t)(i->counter - f->state);

	/* in 3.12 it is a variable of its own */
	if (minor == 12 && i->counter && from_state == (int32_t)from_state)
		f->state_counter = (int32_t)from_state;
	for (size_t k = 0; k < ARRAY_LEN(counters); k++)
		if (counters[k].minor == minor && counters[k].state_bytes == i->state_bytes) {
			f->state_main = counters[k].main;
			f->state_counter = (int32_t)(counters[k].main + counters[k].counter);
		}
}

/* co_lnotab, Objects/lnotab_notes.txt: pairs of increments of the address in bytes and of the line. */
static int64_t line_by_pairs(int64_t line, const uint8_t *lines, size_t n, bool cut, uint64_t position)
{
	uint64_t at = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		at += lines[i];
		if (at > position)
			return line;
		line += (int8_t)lines[i + 1];
	}
	return cut ? 0 : line;
}

/* co_linetable of 3.10, Objects/lnotab_notes.txt: pairs of a length in bytes and an increment of the line. */
static int64_t line_by_ranges(int64_t line, const uint8_t *lines, size_t n, uint64_t position)
{
	uint64_t end = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		bool none = (int8_t)lines[i + 1] == -128;

		end += lines[i];
		line += none ? 0 : (int8_t)lines[i + 1];
		if (position < end)
			return none ? 0 : line;
	}
	return 0;
}

/* Six bits in a byte, the lowest first; bit 6: more follow. The lowest bit of the number is its sign. */
static int64_t signed_varint(const uint8_t *p, const uint8_t *end)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	for (; p < end && shift < 36; p++, shift += 6) {
		value |= (uint64_t)(*p & 63) << shift;
		if (!(*p & 64))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* co_linetable since 3.11, Objects/locations.md: entries that begin with a byte with the highest bit set. */
static int64_t line_by_locations(int64_t line, const uint8_t *lines, size_t n, uint64_t position)
{
	const uint8_t *p = lines, *end = lines + n;
	uint64_t at = 0;

	while (p < end) {
		unsigned int code = *p >> 3 & 15;

		at += (*p & 7) + 1u;
		if (code == 13 || code == 14)
			line += signed_varint(p + 1, end);
		else if (code >= 10 && code <= 12)
			line += code - 10;
		if (position < at)
			return code == 15 ? 0 : line;
		for (p++; p < end && !(*p & 0x80); p++)
			;
	}
	return 0;
}

uint32_t python_line(
	uint32_t version, uint32_t first_line, const uint8_t *lines, size_t n, bool cut, uint32_t position)
{
	int64_t line = first_line;

	if (position == SCRIPT_POSITION_NONE)
		return first_line;
	if (version >= 0x030b0000)
		line = line_by_locations(line, lines, n, position);
	else if (version >= 0x030a0000)
		line = line_by_ranges(line, lines, n, UINT64_C(2) * position);
	else
		line = line_by_pairs(line, lines, n, cut, UINT64_C(2) * position);
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
