/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of a walk, and access to the memory and registers of the thread.
 * Part of unwind.bpf.h.
 *
 * The state is in map memory, not in registers: the verifier would follow every
 * value through the loop.
 */
#ifndef STACKTOOLS_UNWIND_WALK_BPF_H
#define STACKTOOLS_UNWIND_WALK_BPF_H

#define UNWIND_STACKS_MAX 8 /* switches of stack in a walk, except by signals */
#define UNWIND_NULL_BYTES 4096 /* nothing is mapped there: a call through a null pointer led there */
#define UNWIND_WINDOW 1024 /* bytes of stack read at once: about ten frames for the price of one word */

#define UNWIND_GO_WORDS 8 /* a power of 2; see go_word() */

/* How the walk came through the last UNWIND_CFA_GO_TLS. */
enum unwind_go_came { GO_NOT_YET = 0, GO_BY_GOROUTINE = 1, GO_BY_CALLBACK = 2 };

enum unwind_bx_from { BX_LOST = 0, BX_AT_ENTRY = 1, BX_IN_MEMORY = 2, BX_READ = 3 };

/* A frame of Java that the walk has passed. */
struct java_frame {
	__u64 what; /* the nmethod, or the frame pointer of an interpreted frame | JAVA_INTERPRETED; index <<
		       48 */
	__u64 place; /* of an nmethod: its number << 32 | offset in its code */
};

#define JAVA_INTERPRETED 1

/* The same of JavaScript: the frame pointer | these bits; its PC. */
enum v8_noted { V8_EXIT = 1, V8_BUILTIN = 2 };

struct unwind_walk {
	__u64 pc, sp, fp; /* of the current frame */
	__u64 cfa;
	__u64 regs; /* kernel address of struct pt_regs, in the innermost frame; else 0 */
	/* of the signal frame that interrupted the current frame: its SP; of i386, its sigcontext; else 0 */
	__u64 ucontext;
	__u64 need; /* remote: address of a missing word; the frame must then be repeated */
	__u64 need_code; /* the same for the words of code around an address: */
	struct unwind_code here; /* of the current frame, */
	struct unwind_code there; /* and of what may be its caller */
	__u64 entry_regs; /* kernel address of struct pt_regs */
	__u64 bx_at; /* address of the second callee-saved register, or its value: see bx_from */
	__u64 now_ns;
	__u64 map_start, map_end, bias, word; /* the last mapping */
	__u32 maps_chunk, maps_at, n_maps; /* the process's mappings */
	__u32 len; /* frames so far */
	__u8 exact; /* pc was interrupted: it is not a return address */
	__u8 fp_known;
	__u8 by_fp; /* at least one step was taken by frame pointer */
	__u8 verdict, reason;
	__u8 in_syscall; /* the innermost frame waits inside a system call */
	__u8 retry; /* no row before the return address: try the address itself, see step_by_table() */
	__u8 stacks; /* switches of stack so far */
	__u8 bx_from; /* for bx_at: enum unwind_bx_from */
	__u8 go_came; /* enum unwind_go_came */
	__u8 go_copies; /* the last frame had UNWIND_GO_COPIES */
	__u8 bytes; /* of a word: 8; 4 while the thread executes i386 code */
	__u64 mask; /* of the bits of a word */
	__u32 go_have; /* words in go_words */
	__u64 go_words[UNWIND_GO_WORDS]; /* read for the current frame */
	__u64 go_sp, go_next; /* GO_BY_CALLBACK: where the thread's own stack is next; the same once this
				 frame is left */
	__u64 go_ra; /* address of the return address */
	__u64 tls; /* remote: the thread's TLS base; 0 = not known */
	__u32 serial; /* of the mappings */
	__u64 task; /* remote: kernel address of the task */
	__u64 other; /* read_other() */
	__u32 runtime; /* see struct unwind_proc */
	__u32 trail; /* the number of the one that the walk leaves; 0 = none (trail.bpf.h); PYTHON_KEEPS */
	__u64 runtime_bias;
	__u64 blob_at; /* hotspot.bpf.h: the PC that the next three belong to; 0 = none */
	__u64 need_blob; /* remote: the caller must find them, and repeat the frame */
	__u32 blob_bytes; /* of a frame */
	__u8 blob_kind; /* enum hotspot_kind */
	__u8 blobs; /* 0 = where the code heaps are was not read yet, 1 = read, 2 = not readable */
	/* arm64: a step by frame pointer led here, which does not say where the frame ends: no rule by SP */
	__u8 sp_lost;
	__u8 found; /* enum trail_found */
	__u64 blob; /* the address of an nmethod; 0 = it is none */
	__u64 blob_place; /* struct java_frame.place of it */
	__u32 n_java;
	__u16 v8_table; /* of the file with V8's builtins, + 1; 0 = not looked up yet */
	__u16 n_found; /* frames, if `found` is TRAIL_HAS_FRAMES */
	__u64 v8_bias; /* from that file's own addresses to those of its table */
	__u64 v8_copy; /* where builtins were proved to be as well; 0 = not known */
	__u64 v8_low, v8_high; /* where code that V8 has made was proved to be */
	struct java_frame java[OFFCPU_DEPTH_MAX];
	__u64 tag; /* known_tag(), for the cache of known rules */
	__u64 fp_from; /* the address that fp was read at, or enum trail_fp */
	__u64 missed; /* the next word that known_steps() needs, if it is not in the window; else 0 */
	__u64 window_at, window_starts; /* address; number of bytes where a word may begin, 0 = empty */
	__u8 window[UNWIND_WINDOW + 8]; /* the mask of an offset proves only UNWIND_WINDOW */
};

/*
 * Do these programs walk tasks that are not current? The iterators do, and no others. A constant of each of
 * the two objects by itself (record/bpf.c), so that the verifier follows only what is executed there. Mode
 * raw has no iterators that walk.
 */
#ifdef OFFCPU_RAW
enum { remote = 0 };
#else
const volatile bool remote SEC(".rodata.part") = false;
#endif

/*
 * Global functions: the verifier checks each once, not once for every state in
 * which it is called. They take numbers and find the memory themselves, because
 * memory as an argument needs Linux 5.12, and could not be a map key before
 * 6.2: that of the walk of these programs.
 */
static __always_inline struct unwind_walk *this_walk(void);

/* What made the code at a PC, by the virtual machine that the process runs. */
enum hotspot_kind { HOTSPOT_NONE = 0, HOTSPOT_SIZED = 1, HOTSPOT_INTERPRETER = 2, HOTSPOT_ENTRY = 3 };

/* The same of V8, in the same place. */
enum v8_kind { V8_NONE = 0, V8_BUILTINS = 1, V8_MADE = 2 };

__noinline int hotspot_own(void);
__noinline int v8_own(void);

static __always_inline bool stop(struct unwind_walk *w, __u32 reason)
{
	w->verdict = VERDICT_STOPPED;
	w->reason = reason;
	return false;
}

/* Number of bytes readable at ADDR without touching the next page, which may not be present. */
static __always_inline __u32 window_len(const struct unwind_walk *w, __u64 addr)
{
	__u32 len = 4096 - (addr & 4095);

	if (len < w->bytes)
		len = w->bytes & 15;
	return len > UNWIND_WINDOW ? UNWIND_WINDOW : len;
}

/* Read the window of current's walk, starting at ADDR; false if ADDR is not readable. */
__noinline int read_window(__u64 addr)
{
	struct unwind_walk *w = this_walk();
	__u32 len;

	if (!w)
		return 0;
	len = window_len(w, addr);
	w->window_starts = 0;
	if (bpf_probe_read_user(w->window, len, (void *)addr))
		return 0;
	w->window_at = addr;
	w->window_starts = len - w->bytes + 1;
	return 1;
}

/*
 * One word of the process's memory, through the window. For a task that is not
 * current the caller has to read it: see `need`.
 */
static __always_inline bool user_word(struct unwind_walk *w, __u64 addr, __u64 *value)
{
	__u64 at = addr - w->window_at;

	if (at >= w->window_starts) {
		if (remote) {
			w->window_starts = 0;
			w->need = addr;
			return false;
		}
		if (!read_window(addr))
			return false;
		at = 0;
	}
	*value = *(__u64 *)(w->window + (at & (UNWIND_WINDOW - 1))) & w->mask;
	return true;
}

/*
 * The words of code around ADDR, in C: `here` for the current frame, else
 * `there`. False only if the caller has to read them: see `need_code`.
 */
static __always_inline bool code_around(struct unwind_walk *w, struct unwind_code *c, __u64 addr)
{
	if (c->at == addr)
		return true;
	if (remote) {
		w->need_code = addr;
		return false;
	}
	c->at = addr;
	if (bpf_probe_read_user(&c->before, 16, (void *)(addr - 8)) == 0)
		return true;
	/* the next page may be missing */
	c->after = 0;
	if (bpf_probe_read_user(&c->before, 8, (void *)(addr - 8)))
		c->before = 0;
	return true;
}

static __always_inline bool is_narrow(const struct unwind_walk *w)
{
	return w->bytes == 4;
}

/* Register REG in the struct pt_regs at kernel address REGS. */
static __always_inline bool saved_register(const struct unwind_walk *w, __u64 regs, __u32 reg, __u64 *value)
{
	if (bpf_probe_read_kernel(value, 8, (void *)(regs + arch_in_pt_regs(reg))))
		return false;
	*value &= w->mask;
	return true;
}

/* From `ucontext` to register REG in it. */
static __always_inline __u64 in_ucontext(const struct unwind_walk *w, __u32 reg)
{
	return arch_in_ucontext(reg, w->bytes);
}

/* Set w->other to a register other than SP, FP and PC, for other_register(). */
__noinline int read_other(__u32 reg)
{
	struct unwind_walk *w = this_walk();

	if (!w || reg >= ARCH_REGS)
		return false;
	barrier_var(reg);
	reg &= ARCH_REGS - 1;
	if (w->regs)
		return saved_register(w, w->regs, reg, &w->other);
	return w->ucontext && user_word(w, w->ucontext + in_ucontext(w, reg), &w->other);
}

/*
 * A register other than SP, FP and PC. Known only where the thread entered the
 * kernel and where a signal interrupted it.
 */
static __always_inline bool other_register(struct unwind_walk *w, __u32 reg, __u64 *value)
{
	if (!read_other(reg))
		return false;
	*value = w->other;
	return true;
}

#endif
