/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profile - a recording as the formats of lib/export need it: tables, and the records that refer to them.
 *
 * It is read from the JSON of symbolize --format=tables (docs/symbolize.1). Every reference is checked:
 * indexes are in range, so users need no checks of their own. Every text is valid UTF-8 without NUL, and
 * interned; text 0 is "".
 */
#ifndef STACKTOOLS_EXPORT_PROFILE_H
#define STACKTOOLS_EXPORT_PROFILE_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/intern.h"

#define PROFILE_NONE UINT32_MAX /* an index that refers to nothing */

/* The number of a text: see profile_str(). */
typedef uint32_t profile_text;

struct profile_mapping {
	uint32_t file; /* PROFILE_NONE: anonymous memory */
	profile_text name; /* the file's path, or what text has as the module: "[python]" */
	profile_text build_id; /* in hexadecimal digits */
	/*
	 * Of the kernel and its modules, which have no file: from their first page that is known to the last
	 * one with a frame. 0: the frames in it have a module, but no mapping that is known.
	 */
	uint64_t start, end, offset;
	bool kernel;
	bool has_lines, has_inlined; /* of any of its frames */
};

struct profile_process {
	uint32_t pid, ns_pid;
	profile_text comm, exe; /* exe 0 = not known */
	bool kthread;
};

struct profile_thread {
	uint32_t process;
	uint32_t tid, ns_tid;
	profile_text comm; /* its last name */
};

/* A function that is executed, and where. */
struct profile_call {
	profile_text name, linkage, file; /* LINKAGE, before demangling, and FILE: 0 = not known */
	uint32_t line, column; /* 0 = not known */
};

struct profile_frame {
	uint64_t address; /* 0 = none: of a script, or in place of missing frames */
	uint64_t module_address; /* the same in the file, as symbol tables count */
	uint32_t mapping; /* PROFILE_NONE: nothing is known of it */
	uint32_t first,
		n; /* of `calls`: the inlined ones, innermost first, then the function itself; n >= 1 */
	bool in_module; /* MODULE_ADDRESS is known */
	bool exact; /* ADDRESS is a PC, not a return address */
	bool kernel;
};

struct profile_stack {
	size_t first;
	uint32_t n; /* of `stacked`: frames, leaf first */
};

struct profile_waker {
	uint32_t thread; /* PROFILE_NONE: an interrupt, or hidden */
	uint32_t stack;
	uint32_t next; /* who had woken this one; PROFILE_NONE = not known */
	profile_text name; /* the thread's, or "[timer]", "[interrupt]", "[hidden]" */
};

struct profile_record {
	uint64_t total_ns, max_ns, runnable_ns, count; /* at most INT64_MAX each */
	uint64_t first_ns, last_ns; /* when the first and the last of them began, CLOCK_MONOTONIC */
	uint32_t thread, stack, waker; /* waker PROFILE_NONE = not known */
	profile_text kind, state; /* 0 = not known */
	profile_text comm; /* the name of the thread at that time */
	bool is_sample; /* of a thread that ran; else waits */
	bool is_split; /* runnable_ns is known */
	bool open, initial, preempted;
};

struct profile {
	struct intern texts;
	struct buf name; /* scratch */
	profile_text hostname, release, machine, recorder, boot_id, kernel_build_id;
	profile_text damage; /* 0 = the capture is complete */
	uint64_t start_real_ns, start_mono_ns, duration_ns;
	uint64_t lost; /* sum of what the recording counted as lost */

	struct profile_mapping *mappings;
	struct profile_process *processes;
	struct profile_thread *threads;
	struct profile_call *calls;
	struct profile_frame *frames;
	struct profile_stack *stacks;
	uint32_t *stacked;
	struct profile_waker *wakers; /* `next` is a smaller index */
	struct profile_record *records; /* in the order of the input */
	size_t n_mappings, n_processes, n_threads, n_calls, n_frames, n_stacks, n_stacked, n_wakers,
		n_records;

	uint64_t waits, samples; /* sums of `count` */
	bool has_waits, has_samples, has_split; /* records of them */
};

/* The text as a string that ends in NUL, in SCRATCH; "" when memory runs out. */
const char *profile_cstr(const struct profile *p, profile_text text, struct buf *scratch);

/*
 * Read FD to its end. PATH is for messages. 0 or -errno: -EINVAL if it is something else than such JSON, or
 * breaks off. Release P, which must be zeroed before, with profile_free() in any case.
 */
int profile_read(struct profile *p, int fd, const char *path, struct err *e);
void profile_free(struct profile *p);

/* The records in groups: those of group G are order[first[G]] to order[first[G + 1] - 1]. */
struct profile_groups {
	uint32_t *order;
	size_t *first; /* n + 1 */
	size_t n;
};

/*
 * By thread, each with its waits in group 2 * thread, and its samples in the next one, by the time of the
 * last of them. 0 or -ENOMEM. Release RET, which must be zeroed before, with profile_groups_free() in any
 * case.
 */
int profile_by_thread(const struct profile *p, struct profile_groups *ret);

/* Those with the same thread, its name, stack, kind, state, name of the waker and flags, in the order of the
 * input. */
int profile_by_identity(const struct profile *p, struct profile_groups *ret);
/* By GROUP_OF, the numbers of their groups, below N. */
int profile_group(const struct profile *p, const uint32_t *group_of, size_t n, struct profile_groups *ret);
void profile_groups_free(struct profile_groups *g);

/* The number of the text S; INTERN_NONE when memory runs out. */
profile_text profile_put(struct profile *p, const char *s);

/*
 * An address in the call: a return address may be the first byte of the next function, or of the next
 * mapping.
 */
static inline uint64_t profile_call_address(const struct profile_frame *f)
{
	return f->address - (f->address && !f->exact);
}

static inline const char *profile_str(const struct profile *p, profile_text text, size_t *len)
{
	return intern_text(&p->texts, text, len);
}

#endif
