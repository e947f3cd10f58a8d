/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The frames of Perl with ithreads. Part of offcpu.bpf.c; the offsets come from
 * lib/record/perl.c, which names their sources.
 *
 * The interpreter of a thread is the value of a key of thread-specific data.
 * It has stacks of contexts, the innermost first; those of subroutines, and of
 * evals and files that are required, are script frames. Each context has the
 * statement that the outer ones are at.
 *
 * A subroutine that C code called returns to no operation: then the native
 * frame of Perl_runops_standard() that executes it ends. So do blocks of sort
 * and code in regular expressions, and a subroutine that is the last thing these
 * call. An eval inside of all of these may begin one more native frame, which
 * nothing in the contexts shows; if the numbers differ, all script frames follow
 * the outermost native one: their own order is right all the same.
 *
 * To read the names of a subroutine takes eight reads. An interpreter numbers
 * its statements (cop_seq) by a counter that only grows, once or more for each
 * block, so a statement that was executed, at its address and with its number,
 * is never another one later. Its subroutine is the same one then, unless it is
 * one of several closures or was given another name. So for all others the check
 * is kept by statement and subroutine, in the map perl_places. This is so in the
 * process's first interpreter, which only the program perl(1) is known to have
 * for good.
 */
#ifndef STACKTOOLS_PERL_BPF_H
#define STACKTOOLS_PERL_BPF_H

#define PERL_CONTEXTS 8 /* read at once */
#define PERL_STACK_BYTES 48 /* of a struct stackinfo, up to its type */

#define PERL_TYPE 15 /* of a context's first byte */
#define PERL_SUB 9
#define PERL_FORMAT 10
#define PERL_EVAL 11
#define PERL_EVAL_BLOCK 0xc0 /* eval {}, try {}: not a call */
#define PERL_RE_FAKE 0x80 /* of PERL_SUB: code in a regular expression, its subroutine is there too */

#define PERL_SV_TYPE 255
#define PERL_CV 13
#define PERL_FM 14
#define PERL_HV 12
#define PERL_GV 9
#define PERL_OOK (1u << 25) /* of a hash: it has a name */
#define PERL_CV_NAMED 0x8000 /* its name is not a glob's */
#define PERL_CV_LEXICAL 0x10000 /* without a package */
#define PERL_CV_RENAMED 0x4e0 /* a closure, without a name, or one that got it later (CVf_CVGV_RC) */

#define PERL_INTERPRETER_BYTES 4096 /* at most; it has a statement for code that is being compiled */

#define PERL_SI_SORT 3
#define PERL_PHASE_RUN 4

/* What is executed: in the lowest bits of a frame's hint, whose other bits are the statement. */
#define PERL_IS_SUB 0
#define PERL_IS_EVAL 1
#define PERL_IS_MAIN 2
#define PERL_IS 7

/* Begin with the contexts of stack INFO. */
static __always_inline bool perl_stack(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 info)
{
	__s32 top;

	k->frame = info;
	k->window_len = 0;
	if (script_read(task, k->code_bytes, PERL_STACK_BYTES, info))
		return script_stop(k, SCRIPT_MEMORY);
	k->contexts = CODE_WORD(k, f->perl.stack_contexts);
	k->outer_stack = CODE_WORD(k, f->perl.stack_back);
	k->stack_type = CODE_INT(k, f->perl.stack_type);
	top = CODE_INT(k, f->perl.stack_top);
	if (top < -1)
		return script_stop(k, SCRIPT_MEMORY);
	k->left = top + 1;
	return true;
}

static __always_inline bool perl_begin(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 bias)
{
	__u32 key = 0, bytes = f->perl.stack + 8; /* the last of the members that are read here */
	__u64 interpreter, first, sp;

	if (script_read(task, &key, 4, bias + f->state))
		return script_stop(k, SCRIPT_MEMORY);
	interpreter = thread_value(task, k, key);
	if (!interpreter)
		return false;
	/* stack pointer, operation, pad, base, end */
	if (script_read(task, k->code_bytes, bytes & (RUNTIME_CODE_BYTES - 1), interpreter))
		return script_stop(k, SCRIPT_THREAD);
	sp = CODE_WORD(k, 0);
	if (sp < CODE_WORD(k, 24) || sp > CODE_WORD(k, 32))
		return script_stop(k, SCRIPT_THREAD);
	k->interpreter = interpreter;
	k->statement = CODE_WORD(k, f->perl.statement);
	k->foreign = 1; /* the innermost one: it may have begun just now */
	if (f->perl.first && k->main_thread)
		k->first = !script_read(task, &first, 8, bias + f->state + f->perl.first) &&
			   first == interpreter;
	k->frame = CODE_WORD(k, f->perl.stack);
	return k->frame && perl_stack(task, k, f, k->frame);
}

struct perl_name {
	__u64 at; /* 0 = there is none */
	__u32 hash;
	__s32 len;
};

/* Read the head of a name with length and hash (HEK). */
static __always_inline bool perl_hek(struct task_struct *task, __u64 at, struct perl_name *ret)
{
	ret->at = at;
	ret->hash = 0;
	ret->len = 0;
	if (!at)
		return true;
	return !script_read(task, &ret->hash, 8, at) && ret->len >= 0;
}

/* Find the body of value AT, which must be of TYPE. 0 if not. */
static __always_inline __u64 perl_body(struct task_struct *task, __u64 at, __u32 type)
{
	__u64 head[2]; /* body; references, flags */

	if (!at || script_read(task, head, sizeof(head), at))
		return 0;
	return (head[1] >> 32 & PERL_SV_TYPE) == type ? head[0] : 0;
}

/* Where package STASH has its name. 0 if it has none. */
static __always_inline __u64 perl_package_name(
	struct task_struct *task, const struct runtime_file *f, __u64 stash)
{
	__u64 head[3], max; /* body; references, flags; array */

	if (!stash || script_read(task, head, sizeof(head), stash))
		return 0;
	if ((head[1] >> 32 & (PERL_SV_TYPE | PERL_OOK)) != (PERL_HV | PERL_OOK))
		return 0;
	if (f->perl.package_max) {
		if (script_read(task, &max, 8, head[0] + f->perl.package_max))
			return 0;
		head[0] = head[2] + (max + 1) * 8;
	}
	return head[0] + f->perl.package_name;
}

/* The name of package STASH. The one that was found last is remembered. */
static __always_inline bool perl_package(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, __u64 stash, struct perl_name *ret)
{
	__u64 at;

	if (stash != k->package) {
		k->package = 0;
		at = perl_package_name(task, f, stash);
		if (!at || script_read(task, k->code_bytes, 32, at))
			return false;
		at = CODE_WORD(k, 0);
		if (CODE_INT(k, f->perl.package_names - f->perl.package_name) &&
			script_read(task, &at, 8, at))
			return false;
		if (!perl_hek(task, at, ret))
			return false;
		k->package = stash;
		k->package_at = ret->at;
		k->package_head = (__u64)ret->hash << 32 | (__u32)ret->len;
	}
	ret->at = k->package_at;
	ret->hash = k->package_head >> 32;
	ret->len = k->package_head;
	return true;
}

/* The package and the name of subroutine CV. */
static __always_inline bool perl_sub(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, __u64 cv, struct perl_name *package, struct perl_name *name)
{
	__u64 head[2], body, stash, at, both[2];
	__u32 flags, type;

	package->at = name->at = 0;
	if (script_read(task, head, sizeof(head), cv))
		return false;
	type = head[1] >> 32 & PERL_SV_TYPE;
	if ((type != PERL_CV && type != PERL_FM) ||
		script_read(task, k->code_bytes, 64, head[0] + f->perl.cv_package))
		return false;
	stash = CODE_WORD(k, 0);
	at = CODE_WORD(k, f->perl.cv_glob - f->perl.cv_package);
	flags = CODE_INT(k, f->perl.cv_flags - f->perl.cv_package);
	k->fixed = !(flags & PERL_CV_RENAMED);
	if (!at)
		return false;
	if (!(flags & PERL_CV_NAMED)) {
		body = perl_body(task, at, PERL_GV);
		if (!body || script_read(task, both, sizeof(both), body + f->perl.glob_name))
			return false;
		at = both[0];
		stash = both[1]; /* follows */
	}
	if (!perl_hek(task, at, name) || !at)
		return false;
	return flags & PERL_CV_LEXICAL || perl_package(task, k, f, stash, package);
}

/* The file of the statement, its line and its number, which are less than 32 bytes apart. */
static __always_inline bool perl_statement(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, __u64 statement, __u64 *file, __u32 *line, __u32 *number)
{
	__u32 from = f->perl.statement_line & ~7;

	if (script_read(task, k->code_bytes, 32, statement + from))
		return false;
	*file = CODE_WORD(k, f->perl.statement_file - from);
	*line = CODE_INT(k, f->perl.statement_line - from);
	*number = CODE_INT(k, f->perl.statement_number - from);
	return *file != 0;
}

/*
 * Compute the check of WHAT is executed (PERL_IS_*) in CV: of its name and of
 * the file of the statement that it is at.
 */
static __always_inline bool perl_code(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, __u64 cv, __u64 statement, __u32 what, __u32 *line)
{
	struct perl_name package = {}, name = {};
	__u64 hash, file, *kept;
	__u32 number;
	bool keep;

	k->code = cv;
	if (!cv || cv >> SCRIPT_AT_SHIFT || !perl_statement(task, k, f, statement, &file, line, &number))
		return script_stop(k, SCRIPT_MEMORY);
	k->place.statement = statement | what;
	k->place.cv = cv;
	k->place.hash = mix(mix(mix(k->seed, file), *line), number);
	/* another thread may run meanwhile, so that what is read does not belong together */
	keep = !task && k->first && number && statement - k->interpreter >= PERL_INTERPRETER_BYTES &&
	       !(what == PERL_IS_SUB && k->foreign);
	if (keep) {
		kept = bpf_map_lookup_elem(&perl_places, &k->place);
		if (kept) {
			k->check = *kept;
			return true;
		}
	}
	hash = mix(mix(k->seed, cv), what);
	/* each is at another place of memory with time, so its text too */
	if (file != k->file) {
		k->file_hash = hash_line(task, k, file);
		k->file = file;
	}
	hash = mix(hash, file);
	hash = mix(hash, k->file_hash);
	if (what == PERL_IS_SUB) {
		if (!perl_sub(task, k, f, cv, &package, &name))
			return script_stop(k, SCRIPT_MEMORY);
		hash = mix(hash, name.at);
		hash = mix(hash, (__u64)name.hash << 32 | (__u32)name.len);
		hash = mix(hash, package.at);
		hash = mix(hash, (__u64)package.hash << 32 | (__u32)package.len);
	}
	hash = (hash ^ hash >> 32) * (hash_key[3] | 1);
	k->check = hash >> SCRIPT_POSITION_BITS;
	if (k->reason)
		return false;
	if (keep && (what != PERL_IS_SUB || k->fixed))
		bpf_map_update_elem(&perl_places, &k->place, &k->check, BPF_ANY);
	return true;
}

/* Add the frame of k->what in k->cv. */
static __always_inline bool perl_add(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f)
{
	struct script_walk *k = &s->script;
	/* from memory: the verifier would follow each of their values */
	__u32 what = *(volatile __u32 *)&k->what, line = 0;
	__u64 cv = *(volatile __u64 *)&k->cv;
	__u32 call = k->call < k->n_calls ? k->call : k->n_calls - 1;

	if (!perl_code(task, k, f, cv, k->statement, what, &line))
		return false;
	k->hints[s->ev.scripts & (OFFCPU_SCRIPTS_MAX - 1)] = k->statement | what;
	return script_add(s, k->code, k->calls[call & (OFFCPU_DEPTH_MAX - 1)],
		line && line < SCRIPT_POSITION_NONE ? line : SCRIPT_POSITION_NONE);
}

/* Is the program itself the outermost one: not a thread, or a BEGIN block? Sets *CV to its code. */
static __always_inline bool perl_main(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u64 *cv)
{
	__u32 phase = 0;

	if (!k->main_thread || k->call >= k->n_calls)
		return false;
	if (script_read(task, &phase, 4, k->interpreter + f->perl.phase) ||
		script_read(task, cv, 8, k->interpreter + f->perl.main))
		return script_stop(k, SCRIPT_MEMORY);
	return phase == PERL_PHASE_RUN;
}

/* Read context number AT of the stack, and those below it. */
static __always_inline bool perl_context(
	struct task_struct *task, struct script_walk *k, const struct runtime_file *f, __u32 at)
{
	__u32 bytes = f->perl.context_bytes & 127, first, len;

	if (!k->window_len || at < k->window_at) {
		first = at >= PERL_CONTEXTS ? at - PERL_CONTEXTS + 1 : 0;
		len = (at - first + 1) * bytes;
		barrier_var(len);
		len &= RUNTIME_WINDOW - 1;
		if (script_read(task, k->window, len, k->contexts + (__u64)first * bytes))
			return script_stop(k, SCRIPT_MEMORY);
		k->window_at = first;
		k->window_len = len;
	}
	k->frame_at = (at - (__u32)k->window_at) * bytes;
	return true;
}

static __always_inline bool perl_step(
	struct task_struct *task, struct scratch *s, const struct runtime_file *f)
{
	struct script_walk *k = &s->script;
	__u32 type, what = PERL_IS_SUB;
	__u64 cv = 0;

	if (!k->left) {
		k->call += k->pending || k->stack_type == PERL_SI_SORT;
		k->pending = 0;
		if (k->outer_stack)
			return perl_stack(task, k, f, k->outer_stack);
		k->frame = 0;
		if (!perl_main(task, k, f, &cv))
			return false;
		what = PERL_IS_MAIN;
	} else {
		k->left--;
		if (!perl_context(task, k, f, k->left))
			return false;
		type = FRAME_BYTE(k, 0);
		if ((type & (PERL_TYPE | PERL_RE_FAKE)) != (PERL_SUB | PERL_RE_FAKE)) {
			k->call += k->pending;
			k->pending = 0;
		}
		if ((type & PERL_TYPE) == PERL_EVAL) {
			if (type & PERL_EVAL_BLOCK)
				return true;
			what = PERL_IS_EVAL;
			cv = FRAME_WORD(k, f->perl.context_eval);
		} else if ((type & PERL_TYPE) != PERL_SUB && (type & PERL_TYPE) != PERL_FORMAT) {
			return true;
		} else if (!(type & PERL_RE_FAKE)) {
			cv = FRAME_WORD(k, f->perl.context_sub);
		}
	}
	k->what = what;
	k->cv = cv;
	/* nothing was executed since it began */
	if (what == PERL_IS_SUB && cv && k->statement == FRAME_WORD(k, f->perl.context_statement))
		k->foreign = 1;
	if (cv && !perl_add(task, s, f))
		return false;
	k->foreign = !cv;
	if (what == PERL_IS_MAIN) {
		k->call++;
		return false;
	}
	if (cv)
		k->statement = FRAME_WORD(k, f->perl.context_statement);
	if (!FRAME_WORD(k, f->perl.context_return))
		k->pending = 1;
	return true;
}

/* Is the event's code, at the statement of HINT, still that of its check? */
static __always_inline bool perl_is(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, const struct offcpu_ev_code *ev, __u64 hint)
{
	__u32 line;

	if (!perl_code(task, k, f, ev->code, hint & ~(__u64)PERL_IS, hint & PERL_IS, &line))
		return false;
	if (k->check == ev->check)
		return true;
	/* a subroutine that was given another name meanwhile */
	bpf_map_delete_elem(&perl_places, &k->place);
	return false;
}

static __always_inline void perl_names(struct task_struct *task, struct script_walk *k,
	const struct runtime_file *f, struct offcpu_ev_code *ev, __u64 hint)
{
	struct perl_name package = {}, name = {};
	__u32 what = hint & PERL_IS;
	__u16 bytes = 0;

	ev->name_kind = SCRIPT_UNREADABLE;
	ev->first_line = 0;
	ev->lines_all = 0;
	ev->file_kind = script_text(task, k->file, k->file_len, ev->file, SCRIPT_FILE_BYTES, &ev->file_bytes);
	if (what == PERL_IS_MAIN) {
		script_nameless(ev, SCRIPT_MAIN);
	} else if (what == PERL_IS_EVAL) {
		script_nameless(ev, SCRIPT_EVAL);
	} else if (perl_sub(task, k, f, ev->code, &package, &name)) {
		ev->name_kind = script_text(task, name.at + f->perl.name_text, name.len, ev->name,
			SCRIPT_NAME_BYTES, &ev->name_bytes);
		if (package.at && script_text(task, package.at + f->perl.name_text, package.len, ev->lines,
					  SCRIPT_NAME_BYTES, &bytes) == SCRIPT_UNREADABLE)
			ev->name_kind = SCRIPT_UNREADABLE;
	}
	ev->lines_bytes = bytes;
}

#endif
