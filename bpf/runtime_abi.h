/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime_abi - what BPF must know about an interpreter to find the functions
 * of its programs, and what it reports. Both compilers check the layout.
 * docs/runtimes.md describes how the parts work together.
 */
#ifndef STACKTOOLS_RUNTIME_ABI_H
#define STACKTOOLS_RUNTIME_ABI_H

#include <linux/types.h>

#define RUNTIMES_MAX 256 /* files with an interpreter in a recording; number 0 is none */

enum runtime_kind {
	RUNTIME_NONE = 0,
	RUNTIME_PYTHON = 1,
	RUNTIME_JAVA = 2,
	RUNTIME_PHP = 3,
	RUNTIME_PERL = 4,
	RUNTIME_RUBY = 5,
	RUNTIME_V8 = 6,
	RUNTIME_KINDS
};

/* How CPython keeps its frames: they differ by version. */
enum python_flags {
	PYTHON_CFRAME = 1, /* thread state -> cframe -> frame; else thread state -> frame */
	PYTHON_ENTRY_FLAG = 2, /* a byte of the frame says that it is the outermost one of a C call */
	PYTHON_SHIM = 4, /* a frame whose owner is the C stack follows the outermost one of a C call */
	PYTHON_FRAME_OBJECT = 8, /* each frame is a C call of its own; its position is an int */
	PYTHON_POSITION_BYTES = 16, /* that int counts bytes, not code units of two bytes */
	PYTHON_CODE_VERSION = 32, /* code objects have a version number, which is used only once */
	PYTHON_OWN_VERSIONS = 64, /* only once in each interpreter */
	PYTHON_FUNCTION_VERSION =
		128, /* functions that are called often have one, used once for one code object */
};

#define PYTHON_OWNER_CSTACK                                                                                  \
	3 /* and above: FRAME_OWNED_BY_CSTACK; 3.14 has FRAME_OWNED_BY_INTERPRETER before it */
#define PYTHON_IDENTITY 6

/* PHP without thread safety: the state is executor_globals. */
struct php_layout {
	__u16 current; /* current_execute_data */
	__u16 frame_opline, frame_function, frame_object, frame_info, frame_back;
	__u16 function_type, function_name, function_class;
	__u16 opcodes, n_opcodes, lines,
		file; /* of functions in PHP; `lines`: the first one and the last one */
	__u16 opcode_bytes, opcode_line;
	__u16 class_name;
	__u16 string_len, string_data;
	__u16 generator_parent, generator_frame, generator_fake;
};

/* Perl with ithreads: the state is PL_thr_key. */
struct perl_layout {
	__u16 statement, stack, main, phase; /* of the interpreter */
	__u16 stack_contexts, stack_top, stack_type, stack_back;
	__u16 context_bytes, context_statement, context_return, context_sub, context_eval;
	__u16 statement_line, statement_file, statement_number;
	__u16 cv_flags, cv_package, cv_glob;
	__u16 glob_name; /* the package follows */
	__u16 package_name, package_names; /* the name, or several, and their number */
	__u16 package_max; /* these are behind the hash's array, whose highest index this is; 0 = inside */
	__u16 name_text;
	/*
	 * PL_curinterp, the first interpreter, as a distance from the state; 0 = the
	 * file is a library, whose users may make one interpreter after the other.
	 */
	__s32 first;
};

/* How a thread of Ruby finds its own structure, a thread-local variable of libruby. */
enum ruby_thread {
	RUBY_THREAD_KEY = 1, /* `state` has a key of thread-specific data */
	RUBY_THREAD_MODULE = 2, /* `state` has the number of libruby's block of thread-local storage */
	RUBY_THREAD_FIXED = 3, /* at a fixed distance of the thread pointer: Ruby is the program itself */
};

/* MRI: the state leads to rb_thread_t. */
struct ruby_layout {
	__u64 symbols; /* address of ruby_global_symbols.str, which the names follow; 0 = not known */
	__s32 thread_at; /* of RUBY_THREAD_MODULE and _FIXED: where the variable is */
	__u16 thread_way; /* enum ruby_thread */
	__u16 thread_ec, thread_native, thread_id; /* thread_native: 0 = the thread has the id itself */
	__u16 ec_thread;
	__u16 frame_bytes;
	__u16 body_insns; /* insns_info */
	__u16 line_bytes; /* of an entry of it */
	__u16 first_line_shift;
	__u16 operators; /* IDs up to this one are their own serial number */
	__u16 string_embedded; /* offset of the text; 0 = behind the head, the length is in the flags */
	__u16 pad[3];
};

/* V8: eval is the code of its builtins. Types are those of Map::instance_type. */
struct v8_layout {
	__u16 type_function, type_shared, type_script, type_scope; /* functions: the first of several */
	__u16 type_bytecode, type_bytes, type_array, type_deopt;
	__u16 function_shared, function_code;
	__u16 bytecode_data, bytecode_positions;
	__u16 code_start, code_inline; /* the address of its instructions, or else where they begin */
	__u16 code_stream; /* they begin so far behind an object that refers to the code */
	__u16 code_bytes, code_deopt, code_positions;
	__u16 page_flags, page_heap; /* of the 256 KiB that an object is in */
	__u16 page_executable; /* number of the flag */
	__u16 heap_builtins; /* from the heap to the address of the builtins' code, in the isolate around it
			      */
	__u16 exit_marker; /* of frames of builtins in C++ */
	__u16 n_bytecodes; /* their sizes are at cold[0], for each of three scales of operands */
	__u16 pad[2];
};

/*
 * An interpreter, by its file. Addresses are those of the ELF file; everything
 * else is an offset in bytes inside the structure that the name begins with.
 */
struct runtime_file {
	__u32 kind; /* enum runtime_kind */
	__u32 version; /* as Py_Version has it: 0x030b02f0 = 3.11.2 */
	__u64 state; /* the variable that leads to everything: _PyRuntime */
	__u64 eval[2], cold[2]; /* the evaluation function and its part for unlikely code; ends exclusive */
	union {
		struct { /* of CPython */
			__u16 flags; /* enum python_flags */
			__u16 state_key; /* Py_tss_t */
			__u16 thread_id, thread_frame;
			__u16 cframe_frame;
			__u16 frame_bytes; /* to be read, at most RUNTIME_FRAME_BYTES */
			__u16 frame_code, frame_back, frame_position, frame_owner, frame_function;
			__u16 function_code,
				function_version; /* the version: so many bytes behind the code */
			/* what is read: from which byte on (below 32), and how many, up to RUNTIME_CODE_BYTES
			   in all; 128 and more take twice as long as less */
			__u16 code_from, code_bytes;
			__u16 code_start; /* of the bytecode */
			__u16 code_name, code_file, code_lines, code_first_line, code_version;
			__u16 string_data, string_wide_data; /* of ASCII strings, of others */
			__u16 identity[PYTHON_IDENTITY]; /* words that differ between code objects;
							    the last repeats */
			__u16 state_interpreters; /* the newest one, followed by the main one */
			__u16 interpreter_next, interpreter_id, interpreter_threads;
			__u16 thread_interpreter;
			__u16 code_begun; /* int: frames before this position are not shown by CPython; 0 =
					     none */
			__s32 state_counter; /* a number that counts code objects that are made; 0 = not known
					      */
			__u32 state_main; /* the only interpreter whose code objects it counts; 0 = of all */
		};
		struct php_layout php;
		struct perl_layout perl;
		struct ruby_layout ruby;
		struct v8_layout v8;
	};
};

#define RUNTIME_FRAME_BYTES 128
#define RUNTIME_WINDOW 2048 /* frames are next to each other: as many as this holds are read at once */
#define RUNTIME_CODE_BYTES 256

/*
 * A script frame is two words of offcpu_ev_stack.frames, after the native
 * frames:
 *
 *	pointer of what is executed | index of the native frame that it follows << 48
 *	check << 24 | position
 *
 * Several that follow the same native frame are in the order of calls,
 * innermost first. Code is freed and its memory is used again: the check is a
 * hash of what identifies the code and its process, and belongs to the name.
 * The position of CPython counts code units of two bytes, that of Ruby words of
 * code, that of others is the line.
 */
#define SCRIPT_AT_SHIFT 48
#define SCRIPT_CODE(word) ((word) & ((1ULL << SCRIPT_AT_SHIFT) - 1))
#define SCRIPT_AT(word) ((__u32)((word) >> SCRIPT_AT_SHIFT))
#define SCRIPT_POSITION_BITS 24
#define SCRIPT_POSITION_NONE ((1u << SCRIPT_POSITION_BITS) - 1) /* not known, or not begun */
#define SCRIPT_POSITION(word) ((__u32)(word)&SCRIPT_POSITION_NONE)
#define SCRIPT_CHECK(word) ((word) >> SCRIPT_POSITION_BITS)

/* Why a stack of a process with an interpreter has no script frames. */
enum script_reason {
	SCRIPT_NONE = 0, /* it has them all, or the thread has none */
	SCRIPT_THREAD = 1, /* the thread's state could not be found or proved */
	SCRIPT_MEMORY = 2, /* memory could not be read, or is not what it should be */
	SCRIPT_MISMATCH = 3, /* native stack and script frames do not fit together */
};

#define SCRIPT_NAME_BYTES 512
#define SCRIPT_FILE_BYTES 1024
#define SCRIPT_LINES_BYTES 16384

enum script_string {
	SCRIPT_UNREADABLE = 0,
	SCRIPT_ASCII = 1,
	SCRIPT_LATIN1 = 2,
	SCRIPT_UCS2 = 3,
	SCRIPT_UCS4 = 4,
	SCRIPT_UTF8 = 5,
	/* no text: the recorder knows what functions without a name are called */
	SCRIPT_MAIN = 6,
	SCRIPT_EVAL = 7,
	SCRIPT_ANONYMOUS = 8,
};

/*
 * The names of a code object, read while a frame held a reference to it. In the ring
 * buffer each of the three texts follows the one before without a gap.
 */
struct offcpu_ev_code {
	__u32 type; /* OFFCPU_EV_CODE */
	__u16 runtime; /* number of the interpreter's file */
	__u8 name_kind, file_kind; /* enum script_string */
	__u64 code, check;
	__u32 first_line;
	__u32 lines_bytes; /* of `lines` */
	__u32 lines_all; /* the line table's size, which may be more; ~0 = not readable */
	__u16 name_bytes, file_bytes;
	__u8 name[SCRIPT_NAME_BYTES], file[SCRIPT_FILE_BYTES];
	__u8 lines[SCRIPT_LINES_BYTES]; /* the line table in the form of CPython's version; the class, of PHP
					 */
};

_Static_assert(sizeof(struct runtime_file) == 128, "runtime_file");
_Static_assert(__builtin_offsetof(struct offcpu_ev_code, name) == 40, "ev_code.name");

#endif
