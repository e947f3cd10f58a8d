/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_stacks - user stacks of the threads of one process, for somebody without
 * BPF: what ptrace(2) asks for is enough, which one has on one's own processes
 * without any capability.
 *
 * A thread that is blocked is read without being stopped (procfs/thread_copy.h). That
 * gives PC, SP and stack, which is all that most walks need. One that runs, or
 * whose walk lacks a register, is stopped for a moment (procfs/thread_copy.h), and again
 * where the stack is larger than 64 KiB or goes on in another place. The walk
 * comes after that, by libdwfl, in a process without privileges (ptchild_*())
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
#ifndef STACKTOOLS_PROCFS_USER_STACKS_H
#define STACKTOOLS_PROCFS_USER_STACKS_H

#include "base/err.h"
#include "capture/types.h"
#include "procfs/helper.h"

#include <sys/types.h>

/*
 * ptwire - what a recorder and the process that walks the stacks of its
 * threads say to each other.
 *
 * Over a SOCK_SEQPACKET socket pair. The recorder tells what the process has
 * mapped, one message a mapping with the file's descriptor if it has one, then asks
 * for walks of what the copy (procfs/thread_copy.h) holds; each walk is answered. The
 * walker's first message is an answer too: it is ready, or why it is not.
 */

#define PTWIRE_FRAMES 512 /* of a stack, at most */

enum ptwire_what {
	PTWIRE_FORGET = 1, /* all mappings: others follow */
	PTWIRE_MAP, /* an executable one */
	PTWIRE_WALK, /* what is in the copy now */
};

struct ptwire_request {
	uint32_t what; /* enum ptwire_what */
	uint32_t pad;
	uint64_t start, end, offset; /* of PTWIRE_MAP */
};

struct ptwire_answer {
	int32_t error; /* 0, or -errno with the message in `why` */
	uint32_t n; /* frames */
	uint8_t verdict, reason, missed,
		pad[5]; /* enum cap_verdict, cap_reason; did it lack memory at `wanted`? */
	uint64_t stop_pc;
	uint64_t wanted; /* where memory that was not copied was needed */
	union {
		char why[256]; /* ends in NUL */
		uint64_t frames[PTWIRE_FRAMES];
	};
};

_Static_assert(
	sizeof(struct ptwire_answer) == 32 + 8 * PTWIRE_FRAMES, "no padding that would carry memory away");
int ptwire_answer(int sock, const struct ptwire_answer *a);

/*
 * ptchild - the process that walks stacks (ptwalk_*()), as the recorder sees it:
 * begun in a sandbox (system/sandbox.h), talked to (ptwire_*()), ended.
 */

struct ptchild {
	pid_t pid; /* 0 = none */
	int sock; /* -1 = none */
};

/* COPY is the file of the copy (procfs/thread_copy.h), open for reading. It has said that it is ready; else
 * -errno. */
int ptchild_start(struct ptchild *c, int copy, struct err *e);

/* As ptwire_ask(), and what is answered. After an error other than one of R's own it has been ended. */
int ptchild_tell(struct ptchild *c, const struct ptwire_request *r, int fd, struct err *e);
int ptchild_walk(struct ptchild *c, struct ptwire_answer *ret, struct err *e);

/* End it whatever it does; harmless where there is none. */
void ptchild_stop(struct ptchild *c);

/*
 * ptwhy - why a thread may not be looked at.
 * Sources: ptrace(2), "Ptrace access mode checking"; Documentation/admin-guide/LSM/Yama.rst.
 */

enum ptwhy {
	PTWHY_GONE, /* ended, or another process has its number */
	PTWHY_KTHREAD,
	PTWHY_COMPAT, /* a 32-bit program */
	PTWHY_TRACED, /* by somebody else: gdb, strace */
	PTWHY_OTHERS, /* another user's */
	PTWHY_PRIVILEGED, /* it has capabilities that are missing here */
	PTWHY_UNDUMPABLE, /* it has switched that off, or its file may not be read */
	PTWHY_YAMA, /* kernel.yama.ptrace_scope */
	PTWHY_FORBIDDEN, /* by something else: a seccomp filter, a security module */
	PTWHY_LATE, /* it did not stop: it waits for something that cannot be interrupted */
	PTWHY_WALKER, /* the process that walks ended, or did not answer */
	PTWHY_OTHER,
	PTWHY_COUNT
};

const char *ptwhy_name(enum ptwhy why); /* a short word, "" beyond the last */

/*
 * Why CODE came of thread TID of process PID, told in *E with that code;
 * -ESRCH for one that is gone. PRIVILEGED: who was refused has CAP_SYS_PTRACE,
 * though this process may have given it up.
 */
enum ptwhy ptwhy_tell(pid_t pid, pid_t tid, int code, bool privileged, struct err *e);

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
 * -errno where there is no stack, with the message, and counted by reason:
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
	uint64_t maps_cut; /* executable mappings beyond the limits of ptfiles_*(), at most at any time */
	uint64_t files_unread; /* files that could not be had, at most at any time: walks end in them */
	uint64_t refused[PTWHY_COUNT];
};

void ptstack_stats(const struct ptstack *p, struct ptstack_stats *ret);

#endif
