/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptstack - user stacks of the threads of one process, for somebody without
 * BPF: ptrace(2)'s permissions on the process do, which one has on one's own
 * without any capability. Floor 6.
 *
 * A thread that is blocked is read without being stopped (ptquiet.h); that
 * gives PC, SP and the stack, which is enough for most. If its walk needs another register, or it runs, the
 * thread is stopped for a moment (ptstop.h): some tens of microseconds. The walk comes
 * after that, by libdwfl, in a process that has no privileges (ptchild.h) and lives as
 * long as the object. That process dying of a file costs the stack at hand;
 * it is begun again a few times.
 *
 * A thread is not stopped that is in a system call whose time limit would
 * begin anew (ptquiet_is_timed(), and those of which a stop has shown it): its
 * walk ends where the register is missing. Where that could not be told before,
 * sockets with SO_RCVTIMEO for one, one call was lengthened once.
 *
 * After a stop /proc/PID/task/TID/syscall may say restart_syscall where it said nanosleep,
 * poll or futex; its arguments are the same. Stops count as context switches.
 */
#ifndef STACKTOOLS_PTSTACK_H
#define STACKTOOLS_PTSTACK_H

#include "capture.h"
#include "ptwhy.h"

struct ptstack;

/*
 * For process PID, of which nothing is looked at yet. -ESRCH when it is gone, or out of
 * memory and descriptors.
 */
int ptstack_open(uint32_t pid, struct ptstack **ret, struct err *e);
void ptstack_close(struct ptstack *p); /* NULL is fine */

/*
 * The user stack of thread TID now. Frames and exact of *RET are P's, until
 * the next call. COMPLETE where its row says that the outermost frame was reached, or a
 * row led to a return address of zero; UNVERIFIED where a frame pointer did;
 * TRUNCATED beyond 512 frames or 256 KiB of stack; else STOPPED with the reason. id is 0.
 *
 * -errno where there is none, with the story, counted by reason. -EIO for good when the process
 * that walks has ended too often.
 */
int ptstack_take(struct ptstack *p, uint32_t tid, struct cap_stack *ret, struct err *e);

struct ptstack_stats {
	uint64_t stacks; /* that were taken */
	uint64_t stops; /* how often a thread was stopped for them */
	uint64_t stopped_ns, longest_ns; /* in all, and the longest */
	uint64_t quiet; /* stacks for which none was stopped */
	uint64_t spared; /* cut short rather than stop a call that would have begun anew */
	uint64_t again; /* calls begun anew all the same */
	uint64_t walkers_died;
	uint64_t maps_cut; /* executable mappings beyond the limits of ptfiles.h, at most at any time */
	uint64_t files_unread; /* files that could not be had, at most at any time: walks end in them */
	uint64_t refused[PTWHY_COUNT];
};

void ptstack_stats(const struct ptstack *p, struct ptstack_stats *ret);

#endif
