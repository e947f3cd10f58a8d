/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/procwalk.h"
#include "procfs/ptstack.h"

#include <errno.h>
#include <sys/syscall.h>

/* The first time it is told why. */
static bool refuse(struct proctold *told, const struct err *e)
{
	if (!told->no_user_walk++)
		snprintf(told->walk_why, sizeof(told->walk_why), "%.300s%s%.200s", e->msg,
			e->hint[0] ? "; " : "", e->hint);
	return false;
}

static struct ptstack *walker(const struct ptreach *r, struct procset_process *p, struct err *e)
{
	struct ptstack *w = p->walker;

	if (w || p->no_walker) {
		err_set(e, -ESRCH, "the process cannot be traced");
		return w;
	}
	p->no_walker = ptstack_open(r, p->tgid, &w, e) != 0;
	p->walker = p->no_walker ? NULL : w;
	return p->walker;
}

/* The look came first: meanwhile the thread may have gone on to wait elsewhere. */
static bool is_there_still(const struct proclook_seen *s, const struct cap_stack *stack)
{
	return !s->has_syscall || !stack->len || stack->frames[0] == s->syscall.pc;
}

bool procwalk_take(const struct ptreach *r, struct procset_thread *t, const struct proclook_seen *s,
	struct cap_stack *ret, struct proctold *told)
{
	struct err e = { 0 };
	struct ptstack *w = walker(r, t->proc, &e);
	struct ptstack_stats before, after;
	int rc;

	if (!w)
		return refuse(told, &e);
	ptstack_stats(w, &before);
	rc = ptstack_take(w, t->look.tid, ret, &e);
	ptstack_stats(w, &after);
	t->stopped = after.stops != before.stops;
	told->stops += after.stops - before.stops;
	told->stopped_ns += after.stopped_ns - before.stopped_ns;
	told->longest_stop_ns = MAX(told->longest_stop_ns, after.longest_ns);
	if (rc)
		return refuse(told, &e);
	return is_there_still(s, ret);
}

void procwalk_end(struct procset_process *p)
{
	ptstack_close(p->walker);
	p->walker = NULL;
	p->no_walker = false;
}

bool procwalk_waits_on(struct procset_thread *t, const struct proclook_seen *s)
{
	const struct procparse_syscall *was = &t->call, *is = &s->syscall;

	/* a thread that is still on its way back is asked for again at the next look */
	if (!t->stopped || !s->waiting)
		return false;
	t->stopped = false;
	if (!t->has_call || !s->has_syscall)
		return false;
	return was->sp == is->sp && was->pc == is->pc && (was->nr == is->nr || is->nr == SYS_restart_syscall);
}
