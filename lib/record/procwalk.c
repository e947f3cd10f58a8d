/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procwalk.h"
#if __has_include("ptstack.h")
#include "ptstack.h"
#define HAVE_PTSTACK 1
#else
#define HAVE_PTSTACK 0
#endif

#include <sys/syscall.h>

#if HAVE_PTSTACK
static struct ptstack *walker(struct procset_process *p)
{
	struct ptstack *w = p->walker;

	if (w || p->no_walker)
		return w;
	p->no_walker = ptstack_open(p->tgid, &w, NULL) != 0;
	p->walker = p->no_walker ? NULL : w;
	return p->walker;
}

bool procwalk_take(
	struct procset_thread *t, struct procstacks *places, struct offcpu_stack_id *ret, struct proctold *told)
{
	struct ptstack *w = walker(t->proc);
	struct ptstack_stats before, after;
	struct cap_stack stack;
	int rc;

	if (!w) {
		told->no_user_walk++;
		return false;
	}
	ptstack_stats(w, &before);
	rc = ptstack_take(w, t->look.tid, &stack, NULL);
	ptstack_stats(w, &after);
	t->stopped = after.stops != before.stops;
	told->disturbed += after.stops - before.stops;
	if (rc || !stack.len) {
		told->no_user_walk++;
		return false;
	}
	procstacks_walked(places, &stack, ret);
	return true;
}

void procwalk_end(struct procset_process *p)
{
	ptstack_close(p->walker);
	p->walker = NULL;
	p->no_walker = false;
}
#else
bool procwalk_take(
	struct procset_thread *t, struct procstacks *places, struct offcpu_stack_id *ret, struct proctold *told)
{
	(void)t, (void)places, (void)ret;
	told->no_user_walk++;
	return false;
}

void procwalk_end(struct procset_process *p)
{
	(void)p;
}
#endif

bool procwalk_waits_on(struct procset_thread *t, const struct proclook_seen *s)
{
	const struct procparse_syscall *was = &t->call, *is = &s->syscall;
	bool stopped = t->stopped;

	t->stopped = false;
	if (!stopped || !s->waiting || !t->has_call || !s->has_syscall)
		return false;
	return was->sp == is->sp && was->pc == is->pc && (was->nr == is->nr || is->nr == SYS_restart_syscall);
}
