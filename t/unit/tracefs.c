/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "system/tracefs.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD                                                                                                 \
	"name: sched_switch\nID: 372\nformat:\n"                                                             \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                               \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char good[] = HEAD "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
				"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
				"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\n"
				"print fmt: \"x\", \tfield:int ghost;\toffset:1;\tsize:4;\n"
				"\tfield:int ghost;\toffset:1;\tsize:4;\tsigned:1;\n";

static int one(const char *text, const char *name, uint16_t size, uint16_t *offset, struct err *e)
{
	struct tracefs_field f = { name, size, 0 };
	int rc = tracefs_parse(text, "sched/sched_switch", &f, 1, e);

	*offset = f.offset;
	return rc;
}

/*
 * Only root can read the files of tracefs, and an ordinary user with
 * CAP_DAC_READ_SEARCH, if it is mounted. Runs in a child, which mounts a tracefs.
 */
static int as_a_user(void)
{
	const cap_value_t read_all = CAP_DAC_READ_SEARCH;
	cap_t caps = cap_init();

	/* EBUSY: it is mounted already */
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		(mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) != 0 && errno != EBUSY))
		return 77;
	if (prctl(PR_SET_KEEPCAPS, 1) != 0 || setresgid(1234, 1234, 1234) != 0 ||
		setresuid(1234, 1234, 1234) != 0 || !caps ||
		cap_set_flag(caps, CAP_PERMITTED, 1, &read_all, CAP_SET) != 0 ||
		cap_set_flag(caps, CAP_EFFECTIVE, 1, &read_all, CAP_SET) != 0 || cap_set_proc(caps) != 0)
		return 77;
	return tracefs_event_id("sched/sched_switch", NULL) > 0 ? 0 : 1;
}

static void of_a_user(struct tap *t)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(as_a_user());
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) == 77)
		tap_skip(t, "a user with CAP_DAC_READ_SEARCH reads a mounted tracefs",
			"not permitted to mount one");
	else
		tap_ok(t, WEXITSTATUS(status) == 0,
			"a user with CAP_DAC_READ_SEARCH reads a mounted tracefs");
}

int main(void)
{
	struct tracefs_field two[] = { { "prev_state", 8, 0 }, { "prev_pid", 4, 0 } };
	struct tracefs_field real[] = { { "prev_comm", 16, 0 }, { "prev_pid", 4, 0 } };
	struct tap t = { 0 };
	struct err e = { 0 };
	uint16_t at;
	int id;

	tap_ok(&t, tracefs_parse(good, "e", two, 2, &e) == 0 && two[0].offset == 32 && two[1].offset == 24,
		"fields are found in any order");
	tap_ok(&t, one(good, "prev_comm", 16, &at, &e) == 0 && at == 8, "an array is found by its name");
	tap_ok(&t, one(good, "prev_state", 4, &at, &e) == -EINVAL, "a field of another size is refused");
	tap_ok(&t, strstr(e.msg, "'prev_state' of 4 bytes") && strstr(e.msg, "sched/sched_switch"),
		"the message names event, field and size");
	tap_ok(&t, one(good, "pid", 4, &at, &e) == -EINVAL, "the end of a field's name does not match");
	tap_ok(&t, one(good, "prev_com", 16, &at, &e) == -EINVAL,
		"the beginning of a field's name does not match");
	tap_ok(&t, one(good, "ghost", 4, &at, &e) == -EINVAL, "text behind the print format is not a field");
	tap_ok(&t,
		one(HEAD "\tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n", "comm", 4, &at,
			&e) == -EINVAL,
		"a field with __data_loc is refused");
	tap_ok(&t,
		one(HEAD "\tfield:int x;\toffset:99999;\tsize:4;\tsigned:1;\n", "x", 4, &at, &e) == -EINVAL,
		"a field with an offset beyond any record is refused");
	tap_ok(&t, one(HEAD "\tfield:int x;\tsize:4;\toffset:8;\n", "x", 4, &at, &e) == -EINVAL,
		"a field in another format is refused");
	tap_ok(&t, one(HEAD "\tfield:int x", "x", 4, &at, &e) == -EINVAL, "a truncated field is refused");
	tap_ok(&t, one("", "x", 4, &at, &e) == -EINVAL && one("\n\n", "x", 4, &at, &e) == -EINVAL,
		"empty text has no fields");
	/* the header before the fields is longer on real-time kernels */
	id = tracefs_fields("sched/sched_switch", real, 2, &e);
	if (id == -EPERM || id == -EACCES)
		tap_skip(&t, "the running kernel's sched_switch has prev_comm and prev_pid", "%s", e.msg);
	else
		tap_ok(&t, id == 0 && real[0].offset >= 8 && real[1].offset == real[0].offset + 16,
			"the running kernel's sched_switch has prev_comm and prev_pid");
	tap_ok(&t, tracefs_fields("sched/no_such", two, 2, &e) < 0,
		"a tracepoint that does not exist is an error");
	of_a_user(&t);
	return tap_done(&t);
}
