/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/clock.h"
#include "base/tap.h"
#include "system/proc.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static pid_t start(const char *name)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_NAME, name);
	for (;;)
		pause();
}

/* Until PID sleeps under its new name. */
static int asleep(pid_t pid, struct threadstat *st, const char *name)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	int rc = 0;

	for (int i = 0; i < 5000 && !rc; i++) {
		rc = threadstat_read((uint32_t)pid, (uint32_t)pid, st);
		if (st->state == 'S' && strcmp(st->comm, name) == 0)
			break;
		nanosleep(&moment, NULL);
	}
	return rc;
}

/* A process that never sleeps is on a CPU at one of some looks. */
static bool seen_running(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	pid_t pid = fork();
	bool seen = false;

	if (pid == 0)
		for (;;)
			now_ns();
	for (int i = 0; i < 5000 && !seen; i++) {
		seen = !threadstat_is_off_cpu((uint32_t)pid, (uint32_t)pid);
		nanosleep(&moment, NULL);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return seen;
}

int main(void)
{
	static const char name[] = "a) S (b c) 1";
	uint64_t before = now_on(CLOCK_BOOTTIME), after;
	pid_t pid = start(name);
	struct threadstat st;
	struct tap t = { 0 };
	uint32_t id = (uint32_t)pid;

	tap_ok(&t, asleep(pid, &st, name) == 0, "a process is read");
	after = now_on(CLOCK_BOOTTIME);
	tap_eq_str(&t, st.comm, name, "whatever its name looks like");
	tap_ok(&t, st.state == 'S', "it sleeps");
	tap_ok(&t, st.flags & 0x40, "and was forked without an exec (PF_FORKNOEXEC)");
	tap_ok(&t, st.start_boot_ns + THREADSTAT_TICK_NS > before && st.start_boot_ns <= after,
		"it began when it was forked, by CLOCK_BOOTTIME");
	tap_eq_u64(&t, st.start_boot_ns % THREADSTAT_TICK_NS, 0, "to whole ticks");
	tap_ok(&t, st.start_code > 4096 && st.end_code > st.start_code && st.start_stack > st.end_code,
		"where its code and stack are is told to its owner");
	tap_eq_u64(&t, threadstat_own_id(id, id), id, "its id is the same to itself");
	tap_ok(&t, threadstat_ran(id, id) > 0 && threadstat_ran(id, id) == threadstat_ran(id, id),
		"it has run for some time, and does not now");
	tap_ok(&t, threadstat_is_off_cpu(id, id), "it is off its CPU");
	tap_ok(&t, seen_running(), "one that never sleeps is not");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(&t, threadstat_read(id, id, &st) < 0 && st.comm[0] == '\0', "one that is gone is an error");
	tap_eq_u64(&t, threadstat_own_id(id, id), id, "whose own id is not known");
	tap_eq_u64(&t, threadstat_ran(id, id), 0, "nor its time");
	return tap_done(&t);
}
