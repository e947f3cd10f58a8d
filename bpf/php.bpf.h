/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of PHP. Part of offcpu.bpf.c; the offsets come from
 * lib/record/php.c, which names their sources.
 *
 * PHP without thread safety has one stack of frames, which executor_globals
 * leads to: of functions in PHP, and of functions in C that PHP code calls. One
 * call of execute_ex() executes the former up to one with ZEND_CALL_TOP, so the
 * native frames of execute_ex() and these groups belong together one by one.
 *
 * execute_ex() calls a function in C itself. Its frame is therefore put outside
 * of all native frames between execute_ex() and the next call of it: it is
 * right before the native frame that called it. Of two such functions of which
 * one called the other, both are there, in their order.
 */
#ifndef STACKTOOLS_PHP_BPF_H
#define STACKTOOLS_PHP_BPF_H

#define PHP_CALL_TOP (1u << 17)
#define PHP_INTERNAL 1 /* bit of the function's type: it is in C */
#define PHP_FRAME_BYTES 56

static __always_inline bool php_begin(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	if (script_read(task, &k->frame, 8, bias + f->state + f->php.current))
		return script_stop(k, SCRIPT_MEMORY);
	return k->frame != 0;
}

static __always_inline bool php_is_internal(const struct script_walk *k, const struct runtime_file *f)
{
	return k->code_bytes[f->php.function_type & (RUNTIME_CODE_BYTES - 1)] & PHP_INTERNAL;
}

/* Length of the string AT; ~0 if it cannot be read. */
static __always_inline __u64 php_string_len(struct task_struct *task, const struct runtime_file *f, __u64 at)
{
	__u64 len;

	return script_read(task, &len, 8, at + f->php.string_len) ? ~0ULL : len;
}

#define PHP_STRING_WORDS 3 /* before the text; the last one is its length */

/* From byte SCRIPT_OBJECT_BYTES - N on, these are a mask of the first N bytes. */
static const struct {
	__u8 ones[SCRIPT_OBJECT_BYTES], zeros[SCRIPT_OBJECT_BYTES];
} masks = { .ones = { [0 ... SCRIPT_OBJECT_BYTES - 1] = 255 } };

#define SHORT_TEXT 32 /* what most names are not longer than */

/* The sum that hash_text() makes of the N bytes of text of the string that was read, at most to its end. */
static __always_inline __u64 sum_string(const struct script_walk *k, __u64 n)
{
	const __u8 *mask;
	__u64 factor = hash_key[3] | 1, sum;
	__u32 at;

	sum = n * factor;
	at = SCRIPT_OBJECT_BYTES - n;
	barrier_var(at);
	if (at > SCRIPT_OBJECT_BYTES)
		return 0;
	mask = (const __u8 *)&masks + at;
	for (__u32 i = 0; i < SHORT_TEXT / 8; i++) {
		factor += FACTOR_STEP;
		sum += (OBJECT_WORD(k, PHP_STRING_WORDS + i) & *(const __u64 *)(mask + i * 8)) * factor;
	}
	if (n > SHORT_TEXT)
		for (__u32 i = SHORT_TEXT / 8; i < SCRIPT_OBJECT_BYTES / 8 - PHP_STRING_WORDS; i++) {
			factor += FACTOR_STEP;
			sum += (OBJECT_WORD(k, PHP_STRING_WORDS + i) & *(const __u64 *)(mask + i * 8)) *
			       factor;
		}
	return sum;
}

COMPUTED(sum_string)

/* Hash the string AT: most are read at once, with what is behind them up to the end of the page. */
static __always_inline __u64 php_hash_string(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 at)
{
	__u32 n = 4096 - (at & 4095);
	__u64 len, sum;

	if (n >= SCRIPT_OBJECT_BYTES)
		n = SCRIPT_OBJECT_BYTES;
	if (n < PHP_STRING_WORDS * 8)
		n = PHP_STRING_WORDS * 8;
	if (script_read(task, k->object, n, at)) {
		k->reason = SCRIPT_MEMORY;
		return 0;
	}
	len = OBJECT_WORD(k, PHP_STRING_WORDS - 1);
	if (len > n - PHP_STRING_WORDS * 8)
		return hash_text(task, k, at + f->php.string_data, len, 0);
	sum = FOR_TASK(sum_string, len);
	return mix(0, sum ^ sum >> 32);
}

/* The string with the name of the class that the function read last belongs to; 0 = none, or not readable. */
static __always_inline __u64 php_class(
	struct task_struct *task, const struct script_walk *k, const struct runtime_file *f)
{
	__u64 at = CODE_WORD(k, f->php.function_class);

	if (!at || script_read(task, &at, 8, at + f->php.class_name))
		return 0;
	return at;
}

/*
 * Read the function AT, and compute its check from what it refers to and its
 * names. A closure is a copy of its function: the opcodes are the code.
 */
static __always_inline bool php_function(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 at)
{
	__u64 hash = k->seed, file, class, name;
	__u32 bytes = f->php.lines + 8; /* the last of them */

	if (script_read(task, k->code_bytes, bytes & (RUNTIME_CODE_BYTES - 1), at))
		return script_stop(k, SCRIPT_MEMORY);
	k->code = php_is_internal(k, f) ? at : CODE_WORD(k, f->php.opcodes);
	if (!k->code || k->code >> SCRIPT_AT_SHIFT)
		return script_stop(k, SCRIPT_MEMORY);
	hash = mix(hash, k->code);
	if (!php_is_internal(k, f)) {
		hash = mix(hash, CODE_WORD(k, f->php.lines));
		hash = mix(hash, CODE_INT(k, f->php.n_opcodes));
		file = CODE_WORD(k, f->php.file);
		if (file != k->file) {
			k->file_hash = php_hash_string(task, k, f, file);
			k->file = file;
		}
		hash = mix(hash, k->file_hash);
	}
	class = CODE_WORD(k, f->php.function_class);
	if (class != k->package) {
		k->package = class;
		class = php_class(task, k, f);
		k->package_head = class ? php_hash_string(task, k, f, class) : 0;
	}
	hash = mix(hash, k->package_head);
	name = CODE_WORD(k, f->php.function_name);
	hash = mix(hash, name ? php_hash_string(task, k, f, name) : 0);
	hash = (hash ^ hash >> 32) * (hash_key[3] | 1);
	k->check = hash >> SCRIPT_POSITION_BITS;
	return k->reason == SCRIPT_NONE;
}

/* The line of the opcode that the frame is at. It is stored at each call, and where an opcode may fail. */
static __always_inline __u32 php_line(
	struct task_struct *task, const struct script_walk *k, const struct runtime_file *f)
{
	__u64 at = FRAME_WORD(k, f->php.frame_opline);
	__u32 line = 0;

	if (php_is_internal(k, f) ||
		at - k->code >= (__u64)CODE_INT(k, f->php.n_opcodes) * f->php.opcode_bytes ||
		script_read(task, &line, 4, at + f->php.opcode_line) || !line || line >= SCRIPT_POSITION_NONE)
		return SCRIPT_POSITION_NONE;
	return line;
}

/*
 * A frame without function: a copy that a call from C stands on, or the place
 * holder of a generator that waits for another one, to which it delegated. The
 * former is skipped. The latter's frame is found by the generator; that of a
 * longer chain is not.
 */
static __always_inline bool php_no_function(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 back)
{
	__u64 generator = FRAME_WORD(k, f->php.frame_object), parent, frame;

	if (generator + f->php.generator_fake != k->frame) {
		k->frame = back;
		return true;
	}
	if (script_read(task, &parent, 8, generator + f->php.generator_parent) || !parent ||
		script_read(task, &frame, 8, generator + f->php.generator_frame) || !frame ||
		script_read(task, &parent, 8, parent + f->php.generator_parent))
		return script_stop(k, SCRIPT_MEMORY);
	if (parent)
		return script_stop(k, SCRIPT_MISMATCH);
	k->aside = back;
	k->frame = frame;
	return true;
}

static __always_inline bool php_step(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f)
{
	struct script_walk *k = &s->script;
	__u32 call = k->call, at, n = s->ev.scripts;
	__u64 back, function;
	bool internal, outer;

	if (!has_frame(k, PHP_FRAME_BYTES) && !read_frame(task, k, PHP_FRAME_BYTES, false))
		return false;
	back = FRAME_WORD(k, f->php.frame_back);
	function = FRAME_WORD(k, f->php.frame_function);
	if (!function)
		return php_no_function(task, k, f, back);
	if (function != k->cv && !php_function(task, k, f, function)) /* not one that calls itself */
		return false;
	k->cv = function;
	internal = php_is_internal(k, f);
	if (internal && !CODE_WORD(k, f->php.function_name)) {
		k->frame = 0; /* the bottom of a fiber, whose native stack ends here too */
		return false;
	}
	/* no call of execute_ex() is left: functions in C that were called from C, or the native walk ended
	 * early */
	outer = call >= k->n_calls;
	if (outer && !k->aside && (!internal || s->walk.verdict != VERDICT_COMPLETE)) {
		k->beyond = 1;
		return false;
	}
	at = k->calls[(call && (outer || k->aside) ? call - 1 : call) & (OFFCPU_DEPTH_MAX - 1)];
	if (internal && !outer) {
		if (!at) { /* it has not begun, or has ended */
			k->frame = back;
			return true;
		}
		at--;
	}
	k->hints[n & (OFFCPU_SCRIPTS_MAX - 1)] = function;
	if (!script_add(s, k->code, at, php_line(task, k, f)))
		return false;
	if (k->aside) {
		back = k->aside;
		k->aside = 0;
	} else if (!internal && FRAME_INT(k, f->php.frame_info) & PHP_CALL_TOP) {
		k->call = call + 1;
	}
	k->frame = back;
	return true;
}

/* Is the function at HINT still that of the event? Reads it. */
static __always_inline bool php_is(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, const struct offcpu_ev_code *ev, __u64 hint)
{
	return php_function(task, k, f, hint) && k->code == ev->code && k->check == ev->check;
}

static __always_inline void php_names(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, struct offcpu_ev_code *ev)
{
	__u64 name, class;
	__u16 bytes = 0;

	name = CODE_WORD(k, f->php.function_name);
	class = php_class(task, k, f);
	ev->file_bytes = 0;
	ev->file_kind = SCRIPT_UNREADABLE;
	ev->first_line = 0;
	ev->lines_all = 0;
	if (name)
		ev->name_kind = script_text(task, name + f->php.string_data, php_string_len(task, f, name),
			ev->name, SCRIPT_NAME_BYTES, &ev->name_bytes);
	else
		script_nameless(ev, SCRIPT_MAIN); /* the code of a file, outside of functions */
	if (class && script_text(task, class + f->php.string_data, php_string_len(task, f, class), ev->lines,
			     SCRIPT_NAME_BYTES, &bytes) == SCRIPT_UNREADABLE)
		ev->name_kind = SCRIPT_UNREADABLE;
	ev->lines_bytes = bytes;
	if (!php_is_internal(k, f)) {
		name = CODE_WORD(k, f->php.file);
		ev->file_kind = script_text(task, name + f->php.string_data, php_string_len(task, f, name),
			ev->file, SCRIPT_FILE_BYTES, &ev->file_bytes);
		ev->first_line = CODE_INT(k, f->php.lines);
	}
}

#endif
