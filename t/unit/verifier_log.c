/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors about programs that the verifier refuses: which program, why, and the whole log. */
#include "base/tap.h"
#include "system/privileges.h"
#include "system/verifier.h"

#include "probe.skel.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void reason_is(struct tap *t, const char *log, const char *want, const char *name)
{
	size_t len = 0;
	const char *reason = verifier_log_reason(log, &len);

	tap_ok(t, reason ? want && len == strlen(want) && memcmp(reason, want, len) == 0 : !want, "%s", name);
}

static void test_reason(struct tap *t)
{
	reason_is(t, "", NULL, "an empty log gives no reason");
	reason_is(t, "processed 9 insns (limit 1000000) max_states_per_insn 0\n", NULL,
		"a log of statistics alone gives no reason");
	reason_is(t, "0: (85) call 1\nR1 type=scalar\nprocessed 1 insns\n", "R1 type=scalar",
		"the reason is the last line before the statistics");
	reason_is(t, "R1 !read_ok\nverification time 3 usec\nstack depth 0\nprocessed 1 insns\n",
		"R1 !read_ok", "the reason is found before the statistics of later kernels");
	reason_is(t,
		"0: (79) r0 = *(u64 *)(r2 +0)\nR2 !read_ok\n\nVerification failed: a kind of failure\n\n"
		"Reason:\n  more words\n\nSuggestion:\n  advice\n\nprocessed 1 insns\n",
		"R2 !read_ok", "the reason is found before the explanation that Linux 7.3 adds");
	reason_is(t, "Verification failed: nothing before\nprocessed 1 insns\n",
		"Verification failed: nothing before", "an explanation alone is the reason");
	reason_is(t, "first\nlast", "last", "a truncated log has a reason");
	reason_is(t, "\n\nonly\n\n", "only", "empty lines are not a reason");
}

/* The contents of FD, truncated to CAP - 1 bytes. */
static const char *text_of(int fd, char *buf, size_t cap)
{
	ssize_t n = pread(fd, buf, cap - 1, 0);

	buf[MAX(n, 0)] = '\0';
	return buf;
}

/* The verifier refuses a socket filter that calls the helpers for stacks. */
static void test_refusal(struct tap *t)
{
	struct probe_bpf *skel = probe_bpf__open();
	int file = memfd_create("log", 0), rc;
	struct verifier_log log = { 0 };
	struct err e = { 0 };
	char text[65536];

	bpf_program__set_type(skel->progs.take_stack, BPF_PROG_TYPE_SOCKET_FILTER);
	tap_ok(t, verifier_log_open(&log, skel->obj, &e) == 0,
		"verifier logs are requested for all programs");
	rc = probe_bpf__load(skel);
	tap_ok(t, rc < 0 && verifier_log_refused(&log, rc, file, &e),
		"a refusal by the verifier is recognized");
	tap_eq_u64(t, (uint64_t)-e.code, (uint64_t)-rc, "a refusal has the error code of the load");
	if (!tap_ok(t,
		    strstr(e.msg, "the kernel's verifier refuses the program 'take_stack': ") &&
			    (strstr(e.msg, "cannot use helper") || strstr(e.msg, "unknown func")),
		    "a refusal names the program and the reason"))
		tap_diag("%s", e.msg);
	if (!tap_ok(t, strstr(e.hint, "no privilege") && !strstr(e.msg, "permitted"),
		    "a refusal is not reported as a missing permission"))
		tap_diag("%s; %s", e.msg, e.hint);
	text_of(file, text, sizeof(text));
	tap_ok(t, strncmp(text, "program 'take_stack':\n", 22) == 0 && strstr(text, "\n0: "),
		"the whole log is written");
	tap_ok(t, !strstr(text, " = 0xffff8") && !strstr(text, " = 0xff11"),
		"the written log has no kernel addresses");
	verifier_log_close(&log);
	probe_bpf__destroy(skel);
	close(file);
}

/* A map that cannot be created: the load fails before the verifier runs. */
static void test_other(struct tap *t)
{
	struct probe_bpf *skel = probe_bpf__open();
	struct verifier_log log = { 0 };
	struct err e = { 0 };
	int rc;

	bpf_map__set_value_size(skel->maps.user_stacks, 1);
	verifier_log_open(&log, skel->obj, &e);
	rc = probe_bpf__load(skel);
	tap_ok(t, rc < 0 && !verifier_log_refused(&log, rc, 0, &e) && !e.code,
		"a failure for another reason is not reported as the verifier's");
	verifier_log_close(&log);
	probe_bpf__destroy(skel);
	verifier_log_close(&(struct verifier_log){ 0 });
}

/* Of the buffer of megabytes only the part that a log fills is touched, also if a process opens several. */
static void test_memory(struct tap *t)
{
	struct probe_bpf *skel = probe_bpf__open();
	struct rusage before, after;
	struct verifier_log log = { 0 };

	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < 3; i++) {
		verifier_log_open(&log, skel->obj, NULL);
		verifier_log_close(&log);
	}
	getrusage(RUSAGE_SELF, &after);
	tap_ok(t, after.ru_minflt - before.ru_minflt < 64, "no memory is touched before there is a log");
	probe_bpf__destroy(skel);
}

int main(void)
{
	const int caps[] = { CAP_BPF, CAP_PERFMON };
	struct tap t = { 0 };
	char why[128];

	libbpf_set_print(NULL);
	test_reason(&t);
	test_memory(&t);
	if (priv_missing(caps, ARRAY_LEN(caps), why, sizeof(why))) {
		tap_skip(&t, "a refusal by the kernel's verifier", "%s", why);
	} else {
		test_refusal(&t);
		test_other(&t);
	}
	return tap_done(&t);
}
