/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ptstack - user stacks of the threads of one process, for somebody without
 * BPF: what ptrace(2) asks for is enough, which one has on one's own processes
 * without any capability.
 *
 * A thread that is blocked is read without being stopped (ptquiet.h). That
 * gives PC, SP and stack, which is all that most walks need. One that runs, or
 * whose walk lacks a register, is stopped for a moment (ptstop.h), and again
 * where the stack is larger than 64 KiB or goes on in another place. The walk
 * comes after that, by libdwfl, in a process without privileges (ptchild.h)
 * that lives as long as the object. Should that one die of a file, the stack
 * at hand is lost, and it is begun again a few times.
 *
 * A thread is not stopped in a system call whose time limit would begin anew
 * (ptquiet_is_timed(), and those that a stop has shown to be such): its walk
 * ends where the register is missing. What could not be known before, sockets
 * with SO_RCVTIMEO for one, has one wait lengthened.
 *
 * Seen from outside: after a stop /proc/PID/task/TID/syscall says
 * restart_syscall where it said nanosleep, poll or futex, with the same
 * arguments. Stops count as context switches, and the recorder gets SIGCHLD.
 * The walker ends with the thread that took the first stack: take all from one.
 */
#ifndef STACKTOOLS_PTSTACK_H
#define STACKTOOLS_PTSTACK_H

#include "capture/types.h"
#include "procfs/ptreach.h"
#include "procfs/ptwhy.h"

struct ptstack;

/*
 * For process PID, of which nothing is looked at yet, reached by R (a copy is
 * kept). -ESRCH when there is none; -ENOMEM, -EMFILE.
 */
int ptstack_open(const struct ptreach *r, uint32_t pid, struct ptstack **ret, struct err *e);
void ptstack_close(struct ptstack *p); /* NULL is fine */

/*
 * The user stack of thread TID now. Frames and exact of *RET are P's, until
 * the next call; its id is 0. COMPLETE where a row says that the outermost frame
 * was reached, or led to a return address of zero; UNVERIFIED where a frame
 * pointer did; TRUNCATED beyond 512 frames or 256 KiB; else STOPPED with the
 * reason. A thread that may be read but not stopped has what was found without.
 *
 * -errno where there is no stack, with the story, and counted by reason:
 * -ESRCH gone, -EPERM and -EACCES not allowed, -ENOEXEC 32-bit, -ETIMEDOUT it
 * did not stop, or the walk took too long; -EIO when the process that walks
 * has ended, in the end for good.
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
