/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * proclook - one look at one thread through /proc: is it waiting, where, and
 * what has the scheduler accounted?
 *
 * schedstat is read first: where it is as before, the thread has not run
 * since, so everything else is as it was, and is not read again. It is read
 * once more at the end: a thread that has run meanwhile was not seen waiting.
 *
 * Whose process has no privileges any more has a looker (looker.h) that
 * copies what takes them. schedstat and status anybody may read.
 *
 * The files stay open between looks, as many of all threads as the limit of
 * descriptors allows; the others are opened for each look. An open file of
 * /proc is that of one thread for good: a number that is used again does not
 * lead to another one.
 */
#ifndef STACKTOOLS_PROCLOOK_H
#define STACKTOOLS_PROCLOOK_H

#include "procfs/looker.h"
#include "procfs/procparse.h"

/* What all looks share. */
struct proclook {
	struct looker *looker; /* NULL = our own rights are all there are */
	unsigned int wanted; /* bits of enum procfile: syscall, stack and wchan may be left out */
	size_t n_open, max_open; /* descriptors */
	int no_stack; /* -errno: stack is refused for every thread; 0 = not */
	unsigned int given; /* files of the thread at hand whose text the looker has read: */
	struct looker_texts texts;
	char text[PROCFILE_TEXT]; /* of the last `stack` or `status` that was read */
};

/* A thread. Zeroed, with its ids set and `fd` -1, it is one that was never looked at. */
struct proclook_thread {
	uint32_t pid, tid;
	int fd[PROCFILE_LOOK];
	int refused[PROCFILE_LOOK]; /* -errno of those that may not be read; 0 = they may */
	bool kept; /* files of it are open in the looker */
	bool looked; /* what follows is of the last look: */
	bool has_schedstat;
	struct procparse_schedstat sched;
	struct procparse_status status;
};

struct proclook_seen {
	uint64_t at_ns; /* CLOCK_MONOTONIC, right before schedstat was read */
	bool same; /* the thread has not run since the last look: nothing below but `sched` and `status` is
		      set */
	bool has_schedstat;
	bool waiting; /* off the CPU, all the while it was looked at */
	struct procparse_schedstat sched; /* zeroes without */
	struct procparse_status status;
	struct procparse_stat stat;
	bool has_syscall;
	struct procparse_syscall syscall;
	char wchan[128]; /* "" = not known; cut to fit */
	const char *stack; /* in struct proclook, until the next look; NULL = not known */
	size_t stack_len;
};

/*
 * Up to half of the descriptors that this process may have are used; the soft
 * limit is raised to that end. LOOKER, which has to stay, reads what takes
 * privileges; should it end, our own rights are what is left.
 */
void proclook_init(struct proclook *l, unsigned int wanted, struct looker *looker);

/*
 * Look at T. -ESRCH: it is gone, or a zombie. Another -errno with the story:
 * it is there, but nothing of it can be read.
 */
int proclook_take(struct proclook *l, struct proclook_thread *t, struct proclook_seen *s, struct err *e);

void proclook_forget(struct proclook *l, struct proclook_thread *t); /* close what is open of it */

/* The bits of include/linux/sched.h for a letter of stat; UINT32_MAX for a letter that is no wait. */
uint32_t proclook_state(char letter);

#endif
