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

/* Wait until PID sleeps under its new name. */
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

/* Is a process that never sleeps on a CPU in one of some samples? */
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
	tap_eq_str(&t, st.comm, name, "a name with parentheses and spaces is read");
	tap_ok(&t, st.state == 'S', "a sleeping process has state S");
	tap_ok(&t, st.flags & 0x40, "a forked process without an exec has PF_FORKNOEXEC");
	tap_ok(&t, st.start_boot_ns + THREADSTAT_TICK_NS > before && st.start_boot_ns <= after,
		"the start time is the time of the fork, by CLOCK_BOOTTIME");
	tap_eq_u64(&t, st.start_boot_ns % THREADSTAT_TICK_NS, 0, "the start time is a multiple of a tick");
	tap_ok(&t, st.start_code > 4096 && st.end_code > st.start_code && st.start_stack > st.end_code,
		"the owner can read the addresses of code and stack");
	tap_eq_u64(&t, threadstat_own_id(id, id), id,
		"threadstat_own_id() in the same PID namespace gives the same ID");
	tap_ok(&t, threadstat_ran(id, id) > 0 && threadstat_ran(id, id) == threadstat_ran(id, id),
		"the run time of a sleeping process is not 0 and does not grow");
	tap_ok(&t, threadstat_is_off_cpu(id, id), "a sleeping process is off CPU");
	tap_ok(&t, seen_running(), "a process that never sleeps is seen on CPU");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tap_ok(&t, threadstat_read(id, id, &st) < 0 && st.comm[0] == '\0',
		"reading a process that is gone is an error");
	tap_eq_u64(&t, threadstat_own_id(id, id), id,
		"threadstat_own_id() of a process that is gone gives the requested ID");
	tap_eq_u64(&t, threadstat_ran(id, id), 0, "the run time of a process that is gone is 0");
	return tap_done(&t);
}
