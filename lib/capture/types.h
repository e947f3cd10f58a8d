/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * types - the contents of a recording, as C structures.
 *
 * capture/writer.h writes these and capture/reader.h reads them; docs/capture.5
 * describes the bytes. Ids count from 0 without gaps, in order of first
 * appearance, and a record refers only to ids that came before it in the file.
 * Times are nanoseconds of CLOCK_MONOTONIC unless the name says otherwise.
 * Strings are arbitrary bytes without NUL, as the kernel gave them: escape them
 * before printing.
 */
#ifndef STACKTOOLS_CAPTURE_TYPES_H
#define STACKTOOLS_CAPTURE_TYPES_H

#include "base/base.h"

#define CAPTURE_NONE UINT32_MAX /* an id that refers to nothing */
#define CAPTURE_BUILD_ID_MAX 64 /* bytes */

struct cap_build_id {
	uint8_t len; /* 0 = none */
	uint8_t bytes[CAPTURE_BUILD_ID_MAX];
};

/* True if A and B are equal; two empty ones are. */
bool cap_build_id_same(const struct cap_build_id *a, const struct cap_build_id *b);

struct cap_host {
	const char *sysname; /* uname(2) */
	const char *release;
	const char *version;
	const char *machine; /* "x86_64" */
	const char *hostname;
	const char *boot_id; /* /proc/sys/kernel/random/boot_id */
	const char *recorder; /* "offcpu-record 0.1.0" */
	struct cap_build_id kernel_build_id; /* from /sys/kernel/notes */
	uint64_t stext; /* address of _stext, 0 = hidden */
	uint64_t start_mono_ns; /* when the recording began, CLOCK_MONOTONIC */
	uint64_t start_boot_ns; /* the same instant, CLOCK_BOOTTIME */
	uint64_t start_real_ns; /* the same instant, CLOCK_REALTIME */
	uint32_t max_stack; /* kernel.perf_event_max_stack */
	uint32_t cpus; /* online */
	uint32_t page_size;
};

#define CAPTURE_OPTION_SCHEDULER "scheduler-text" /* "START-END" in hexadecimal, END exclusive */

#define CAPTURE_OPTION_KEPT                                                                                  \
	"kept" /* "FROM-TO", times: only what ended between them is there; may be repeated */

/* A setting of the recorder, or something it found: "pid"="4242", "unwind"="fp". */
struct cap_option {
	const char *name, *value;
};

enum cap_proc_flags {
	CAPTURE_PROC_KTHREAD = 1, /* a kernel thread: no user stacks, no maps */
	CAPTURE_PROC_MAPS_LOST = 2, /* its mappings could not be read; maps_error says why */
};

/*
 * One process image: an exec or a reused PID starts another one. tgid is the PID
 * in the recorder's PID namespace, ns_tgid the one in the process's own.
 */
struct cap_proc {
	uint32_t id;
	uint32_t tgid, ns_tgid;
	uint32_t flags; /* enum cap_proc_flags */
	int32_t maps_error; /* -errno, 0 = the mappings are recorded */
	uint64_t start_boot_ns; /* when the process started, CLOCK_BOOTTIME */
	uint64_t image_ns; /* when this image began (exec or fork); 0 = before the recording */
	const char *comm; /* of the thread group leader */
	const char *exe; /* path of the executable, "" = unknown */
};

struct cap_thread {
	uint32_t proc; /* cap_proc id */
	uint32_t tid, ns_tid;
	const char *comm; /* a later record for the same (proc, tid, from_ns) replaces it */
	uint64_t from_ns; /* since when it has this name; 0 = since before its first wait */
};

/* What a thread did from one time to another, of its life and of the recording, as the scheduler counts it.
 */
struct cap_life {
	uint32_t proc, tid;
	uint64_t from_ns, to_ns;
	uint64_t on_cpu_ns;
	bool is_split; /* runnable_ns is known */
	uint64_t runnable_ns; /* on a run queue */
};

enum cap_file_flags {
	CAPTURE_FILE_DELETED = 1, /* when it was checked, the path named no file or another one */
	CAPTURE_FILE_UNREAD = 2, /* could not be opened; error says why; build ID may be unknown */
	CAPTURE_FILE_PSEUDO = 4, /* [vdso], [heap], //anon and the like: no file on disk */
};

/* A mapped file. There is one record for each (device, inode, path, build ID). */
struct cap_file {
	uint32_t id;
	uint32_t dev_major, dev_minor;
	uint32_t flags; /* enum cap_file_flags */
	int32_t error; /* -errno for CAPTURE_FILE_UNREAD */
	uint64_t inode;
	uint64_t size; /* bytes, 0 = unknown */
	uint64_t mtime_ns; /* CLOCK_REALTIME, 0 = unknown */
	struct cap_build_id build_id;
	const char *path; /* in the process's mount namespace, without " (deleted)" */
};

/*
 * An executable mapping of PROC, valid from FROM_NS (0: since before the
 * recording) until a later record of the same process overlaps it. prot is
 * PROT_* bits, flags MAP_SHARED or MAP_PRIVATE.
 */
struct cap_map {
	uint32_t proc, file; /* file CAPTURE_NONE = anonymous */
	uint32_t prot, flags;
	uint64_t from_ns;
	uint64_t start, end; /* addresses, end exclusive */
	uint64_t offset; /* bytes into the file */
};

/* The bytes of an ELF image that is not in a file: the vdso. */
struct cap_image {
	uint32_t file; /* cap_file id */
	uint32_t len;
	const uint8_t *bytes;
};

/* A kernel symbol that covers a recorded kernel address. */
struct cap_ksym {
	uint64_t start, end; /* end exclusive: where the next symbol, section or module begins */
	const char *name;
	const char *module; /* "" = the kernel itself, "bpf" = a BPF program */
};

/*
 * A piece of code that a JIT compiler named and that recorded frames lie in: a
 * function, or one line of it if the compiler reported lines. Code that a newer
 * function has overwritten is not part of the piece, so the pieces of a process
 * are disjoint in address or in time.
 */
enum cap_jit_kind { CAPTURE_JIT_PERFMAP = 1, CAPTURE_JIT_JITDUMP = 2 };
struct cap_jit {
	uint32_t proc;
	uint8_t kind; /* enum cap_jit_kind */
	uint64_t from_ns, to_ns; /* when the code was there; 0 and UINT64_MAX = not known */
	uint64_t start, end; /* addresses, end exclusive */
	const char *name;
	const char *file; /* source, "" = not known */
	uint32_t line; /* 0 = not known */
	uint64_t offset; /* of start, from the function's first byte */
};

/*
 * What the recorder knew about an address in a file, for readers that do not
 * have the file. The innermost frame is first; the last one is the symbol that
 * covers the address.
 */
struct cap_name_frame {
	const char *name; /* demangled, for display; "" = only the line is known */
	const char *linkage; /* as in the symbol table */
	const char *file; /* source, "" = not known */
	uint32_t line, column; /* 0 = not known */
};
struct cap_name {
	uint32_t file; /* cap_file id */
	uint64_t offset; /* into the file, of the byte looked up: for a return address, the byte before it */
	uint64_t symbol_offset; /* from the first byte of the symbol, or of the FDE, to that byte */
	uint8_t source; /* enum sym_answer_source */
	uint8_t reason; /* enum sym_answer_reason */
	uint32_t n;
	const struct cap_name_frame *frames;
	uint64_t vaddr; /* the byte at OFFSET as an address of the file, as symbol tables count */
};

enum cap_stack_kind { CAPTURE_STACK_KERNEL = 1, CAPTURE_STACK_USER = 2 };

/* How far the walk got. */
enum cap_verdict {
	VERDICT_COMPLETE = 1, /* the outermost frame was reached */
	/*
	 * At least one step was taken by frame pointer: frames can be missing
	 * anywhere after it. With a reason, it also ended early, at stop_pc.
	 */
	VERDICT_UNVERIFIED = 2,
	VERDICT_TRUNCATED = 3, /* cut at the depth limit: outer frames are missing */
	VERDICT_STOPPED = 4, /* ended early at stop_pc for `reason` */
	VERDICT_FAILED = 5, /* no frames at all, for `reason` */
};

/* Why there are no frames, or no more of them. capture_reason_*() return names and texts. */
enum cap_reason {
	REASON_NONE = 0,
	REASON_ERRNO = 1, /* the kernel's helper failed: see error */
	REASON_KTHREAD = 2, /* a kernel thread has no user stack */
	REASON_EXEC = 3, /* inside execve: the old registers do not fit the new address space */
	REASON_NOT_RECORDED = 4, /* -U or -K: this half of the stack was not requested */
	REASON_NOT_SEEN = 5, /* the wait began before the recording and ended before it could be examined */
	REASON_LOST = 6, /* taken, but the ring buffer was full; counted */
	REASON_EXITING = 7, /* the thread had released its address space */
	REASON_COMPAT = 8, /* code of the other kind, i386 or x86-64; without frames: a 32-bit task */
	REASON_EMPTY = 9, /* the kernel returned a stack without frames */
	REASON_MEMORY = 10, /* stack memory could not be read */
	REASON_NO_MAPPING = 11, /* the PC lies in no known executable mapping */
	REASON_NO_ROW = 12, /* the unwind table of the PC's file has no row for it */
	REASON_EXPRESSION = 13, /* the row holds an expression that tables cannot express */
	REASON_REGISTER = 14, /* RBP, or another register that the row needs, is not known */
	REASON_LOOP = 15, /* the stack pointer did not advance: a loop, or a corrupt stack */
	REASON_NOT_READY = 16, /* the wait began before the unwind table was ready */
	REASON_DROPPED = 17, /* the table was dropped or refused for lack of memory */
	REASON_NO_FRAME_POINTER = 18, /* no table covers the PC, and RBP leads to no caller */
	REASON_PC_ONLY = 19, /* /proc shows only the PC */
	REASON_BETWEEN = 20, /* the wait fell between two samples of /proc */
	REASON_NAMES_ONLY = 21, /* /proc shows names instead of a kernel stack */
	REASON_DEPTH = 22, /* an unverified stack was cut at the depth limit */
	REASON_USER_MODE = 23, /* the thread was not in the kernel */
	REASON_COUNT
};

/*
 * Kernel addresses from here up to CAPTURE_SYNTHETIC_END (exclusive) are not
 * addresses but numbers of names. They are the frames of a kernel stack whose
 * addresses were unavailable. Each has a kernel symbol of CAPTURE_SYNTHETIC_STEP
 * bytes in the module CAPTURE_SYNTHETIC_MODULE. Linux has nothing in the last
 * 2 MiB of any address space. The range excludes the last page, which has error
 * pointers.
 */
#define CAPTURE_SYNTHETIC_START UINT64_C(0xffffffffffe00000)
#define CAPTURE_SYNTHETIC_END UINT64_C(0xfffffffffffff000)
#define CAPTURE_SYNTHETIC_STEP 16
#define CAPTURE_SYNTHETIC_MODULE "procfs"

/*
 * A place in a function of a program that an interpreter executes. Empty
 * function: its name could not be read.
 */
struct cap_script {
	uint32_t id;
	const char *runtime; /* "python" */
	const char *function; /* UTF-8, as the runtime names it */
	const char *file; /* source, "" = not known */
	uint32_t line; /* 0 = not known */
	uint32_t first_line; /* of the function, 0 = not known */
};

/* A script frame of a stack: the interpreter's native frame AT, its caller in the list, executed it. */
struct cap_script_at {
	uint32_t at; /* index of a native frame */
	uint32_t frame; /* cap_script id */
	/* set by the reader: it is what the native frame executes itself, so it stands in its place */
	bool instead;
};

/*
 * A distinct call stack, leaf first. In a user stack, frames[0] is the exact PC.
 * The others are return addresses, except a frame that a signal interrupted and
 * the trampoline that its handler returns to. A kernel stack has only return
 * addresses.
 */
struct cap_stack {
	uint32_t id;
	uint8_t kind; /* enum cap_stack_kind */
	uint8_t verdict; /* enum cap_verdict */
	uint8_t reason; /* enum cap_reason */
	int32_t error; /* -errno for REASON_ERRNO */
	uint64_t stop_pc; /* where it ended early, for VERDICT_STOPPED and VERDICT_UNVERIFIED; else 0 */
	uint32_t len, n_exact;
	const uint64_t *frames;
	const uint32_t *exact; /* indexes of other frames that are exact PCs, ascending, without 0 */
	/*
	 * Script frames, leaf first: `at` never descends. Those with the same `at` are callers of each
	 * other; they follow frames[at] and come before frames[at + 1].
	 */
	uint32_t n_scripts;
	const struct cap_script_at *scripts;
};

enum cap_waker_flags {
	CAPTURE_WAKER_INTERRUPT = 1, /* no thread: an interrupt, whose frames the kernel stack has */
	CAPTURE_WAKER_HIDDEN = 2, /* a thread that the recorder could not see, or had no memory for */
};

/*
 * Who ended waits: a thread in one place, and who had woken that one. Wakers
 * alone have ids from 1, so that 0 is none.
 */
struct cap_waker {
	uint32_t id;
	uint32_t flags; /* enum cap_waker_flags; above them a mapping epoch, as in samples */
	uint32_t proc; /* CAPTURE_NONE: no thread, or not known */
	uint32_t tid;
	uint32_t kstack, ustack; /* cap_stack ids; the stack at the wake-up */
	uint32_t next; /* the waker of this one when it was woken last; 0 = not known, or not requested */
	uint64_t first_ns; /* when a wait began that it ended; others are later */
};

enum cap_sample_flags {
	/* the wait had not ended when the recording stopped, or when its thread left the cgroup */
	CAPTURE_SAMPLE_OPEN = 1,
	CAPTURE_SAMPLE_INITIAL = 2, /* it had begun when the recording started; counted from there */
	CAPTURE_SAMPLE_PREEMPTED = 4, /* the thread stayed runnable: it lost the CPU, it did not block */
	/* samples of a thread that ran: each stands for one period of the clock, and its times are when it
	   fired */
	CAPTURE_SAMPLE_ON_CPU = 8,
	/* of a futex, of signals, poll or select: the system call has a timeout; of the last two: and waits
	   for no descriptor */
	CAPTURE_SAMPLE_TIMED = 32,
	CAPTURE_SAMPLE_NO_DESCRIPTORS = 64,
	CAPTURE_SAMPLE_THROTTLED = 16, /* it could have run on, but for the CPU quota of its cgroup */
	/*
	 * The bits from here up are a number, the mapping epoch. Samples with
	 * different epochs were taken while addresses of the process meant
	 * different things, or their thread had another name: never sum them.
	 */
	CAPTURE_SAMPLE_EPOCH = 1 << 8,
};

/*
 * The waits of one thread with the same stacks, state, flags and waker. The same key
 * appears once for each flush in which it had waits: sum these records.
 */
struct cap_sample {
	uint32_t proc, tid;
	uint32_t kstack, ustack; /* cap_stack ids, never CAPTURE_NONE */
	uint32_t state; /* the kernel's prev_state bits */
	uint32_t flags; /* enum cap_sample_flags */
	uint64_t total_ns, count, max_ns;
	uint64_t first_ns, last_ns; /* when the first and the last of these waits began */
	bool is_split; /* runnable_ns is known */
	uint64_t runnable_ns; /* of total_ns: on a run queue, after the wake-up or since it lost the CPU */
	uint32_t waker; /* cap_waker id; 0 = not known */
};

/*
 * One wait, or one sample of a thread that ran, of a recording that keeps each by itself. In a file KEY is
 * the id of a key, a cap_sample without its numbers; in what the reader returns it is the index of a
 * sample, in which the wait is included.
 */
struct cap_wait {
	uint32_t key;
	bool is_split; /* runnable_ns is known */
	uint64_t start_ns, total_ns;
	uint64_t runnable_ns; /* of total_ns: on a run queue */
};

/* Have A and B all in common but numbers and times? A hash of just that. */
bool cap_sample_same_key(const struct cap_sample *a, const struct cap_sample *b);
uint64_t cap_sample_hash(const struct cap_sample *s);

/*
 * A count since the recording began. It is written at the first flush and at the
 * end; in between changes are written; the last value holds. Names are stable: "waits.recorded",
 * "waits.recorded_ns", "filtered.preempted", "lost.ring_full" ... Counters whose name begins with "lost."
 * count something that is missing.
 */
struct cap_counter {
	const char *name;
	uint64_t value;
};

/* What was added to a counter, modulo 2^64, since it was last written. */
struct cap_change {
	uint32_t counter; /* how many counters were written before that one was, for the first time */
	uint64_t difference;
};

/* A flush: everything up to TIME_NS is in the file before this record. */
struct cap_flush {
	uint64_t time_ns;
};

/* The recording is complete. */
struct cap_trailer {
	uint64_t stop_ns;
	const char *why; /* "SIGINT", "duration", "target exited", ... */
};

/* A short word ("kernel-thread") and a readable text. Never NULL, whatever the value. */
const char *capture_reason_name(unsigned int reason);
const char *capture_reason_text(unsigned int reason);
const char *capture_verdict_name(unsigned int verdict);

/* Whether a stack with this verdict and reason ended early, at a place that it names; was cut at the depth
 * limit. */
bool capture_stopped(unsigned int verdict, unsigned int reason);
bool capture_truncated(unsigned int verdict, unsigned int reason);

/* Mark S as cut at the depth limit. */
void capture_truncate(struct cap_stack *s);
const char *capture_kind_name(unsigned int kind); /* "kernel", "user" */

/*
 * The letters of ps(1) for a kernel state mask: "S", "D", "I", "T", "t", "Z",
 * "P", "X"; "R" for 0; several letters if several bits are set; the number itself
 * ("0x200") if no bit has a letter. Returns BUF.
 */
const char *capture_state_letter(uint32_t state, char buf[16]);

#endif
