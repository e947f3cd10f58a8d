/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the verifier says of a program that it refuses: which one, why, and the whole log. */
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
		"nor do statistics alone");
	reason_is(t, "0: (85) call 1\nR1 type=scalar\nprocessed 1 insns\n", "R1 type=scalar",
		"the reason is the last line before the statistics");
	reason_is(t, "R1 !read_ok\nverification time 3 usec\nstack depth 0\nprocessed 1 insns\n",
		"R1 !read_ok", "those of later kernels too");
	reason_is(t,
		"0: (79) r0 = *(u64 *)(r2 +0)\nR2 !read_ok\n\nVerification failed: a kind of failure\n\n"
		"Reason:\n  more words\n\nSuggestion:\n  advice\n\nprocessed 1 insns\n",
		"R2 !read_ok", "so is what Linux 7.3 reports behind the reason");
	reason_is(t, "Verification failed: nothing before\nprocessed 1 insns\n",
		"Verification failed: nothing before", "unless there is nothing else");
	reason_is(t, "first\nlast", "last", "a log that is cut has a reason, too");
	reason_is(t, "\n\nonly\n\n", "only", "empty lines are none");
}

/* The contents of FD, cut. */
static const char *text_of(int fd, char *buf, size_t cap)
{
	ssize_t n = pread(fd, buf, cap - 1, 0);

	buf[MAX(n, 0)] = '\0';
	return buf;
}

/* A filter of packets may not ask for stacks. */
static void test_refusal(struct tap *t)
{
	struct probe_bpf *skel = probe_bpf__open();
	int file = memfd_create("log", 0), rc;
	struct verifier_log log = { 0 };
	struct err e = { 0 };
	char text[65536];

	bpf_program__set_type(skel->progs.take_stack, BPF_PROG_TYPE_SOCKET_FILTER);
	tap_ok(t, verifier_log_open(&log, skel->obj, &e) == 0, "programs are watched");
	rc = probe_bpf__load(skel);
	tap_ok(t, rc < 0 && verifier_log_refused(&log, rc, file, &e),
		"a refusal by the verifier is known as one");
	tap_eq_u64(t, (uint64_t)-e.code, (uint64_t)-rc, "with the code of the load");
	if (!tap_ok(t,
		    strstr(e.msg, "the kernel's verifier refuses the program 'take_stack': ") &&
			    (strstr(e.msg, "cannot use helper") || strstr(e.msg, "unknown func")),
		    "the program and the reason are named"))
		tap_diag("%s", e.msg);
	if (!tap_ok(t, strstr(e.hint, "no privilege") && !strstr(e.msg, "permitted"),
		    "it is no matter of permission"))
		tap_diag("%s; %s", e.msg, e.hint);
	text_of(file, text, sizeof(text));
	tap_ok(t, strncmp(text, "program 'take_stack':\n", 22) == 0 && strstr(text, "\n0: "),
		"the whole log is kept");
	tap_ok(t, !strstr(text, " = 0xffff8") && !strstr(text, " = 0xff11"),
		"without addresses of the kernel");
	verifier_log_close(&log);
	probe_bpf__destroy(skel);
	close(file);
}

/* No map, no program: a load that fails before the verifier is asked. */
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
		"what fails for another reason is none of the verifier's");
	verifier_log_close(&log);
	probe_bpf__destroy(skel);
	verifier_log_close(&(struct verifier_log){ 0 });
}

/* Of its megabytes only what a log fills is ever touched, also by the next one of the same process. */
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
		tap_skip(&t, "a real refusal", "%s", why);
	} else {
		test_refusal(&t);
		test_other(&t);
	}
	return tap_done(&t);
}
