/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "procfs/kernel_stacks.h"
#include "procfs/sampler.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096

/* A copy of LEN bytes of TEXT that ends just before an unmapped page. */
static const char *at_end(const char *text, size_t len)
{
	static char *area;

	if (!area) {
		area = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (area == MAP_FAILED || munmap(area + PAGE, PAGE) != 0)
			abort();
	}
	return memcpy(area + PAGE - len, text, len);
}

#define STAT_TAIL                                                                                            \
	" S 14047 14053 14047 0 -1 4194304 123 0 0 0 1 2 0 0 20 0 1 0 2562898 2990080 397 "                  \
	"18446744073709551615 94421990301696 94421991091101 140722425796928 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 " \
	"0 "                                                                                                 \
	"94421991324400 94421991372644 94422254186496 1 2 3 4 0\n"
#define STATUS                                                                                               \
	"Name:\tx\\nTgid:\\t1\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t4711\nNStgid:\t4711\t12\t1\n"      \
	"NSpid:\t4712\t13\t2\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n"
#define SYSCALL "202 0x7f01 0x80 0x0 0x0 0x0 0x0 0x7ffc7e337890 0x7fc09cf52aec\n"

static void schedstats(struct tap *t)
{
	static const char *const bad[] = { "", "1", "1 2", "1 2 ", "1 2 3", "1 2 x\n", "-1 2 3\n", " 1 2 3\n",
		"1  2 3\n", "18446744073709551616 1 1\n", "1\n2\n3\n" };
	struct procparse_schedstat s = { 7, 7, 7 };
	const char text[] = "101994039 74594861 161\n";

	tap_ok(t,
		procparse_schedstat(at_end(text, sizeof(text) - 1), sizeof(text) - 1, &s) &&
			s.run_ns == 101994039 && s.delay_ns == 74594861 && s.slices == 161,
		"schedstat has three numbers");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		s.run_ns = 7;
		tap_ok(t,
			!procparse_schedstat(at_end(bad[i], strlen(bad[i])), strlen(bad[i]), &s) &&
				s.run_ns == 7,
			"malformed schedstat %zu is refused and does not change the result", i);
	}
}

static void stats(struct tap *t)
{
	static const char *const comms[] = { "sleep", "a) R 1 (b", ")", "", "x\ny", "123456789012345" };
	struct procparse_stat s, other;
	char text[1024];
	size_t len, cut = 0;

	for (size_t i = 0; i < ARRAY_LEN(comms); i++) {
		len = (size_t)snprintf(text, sizeof(text), "42 (%s)" STAT_TAIL, comms[i]);
		tap_ok(t,
			procparse_stat(at_end(text, len), len, &s) && s.tid == 42 && s.ppid == 14047 &&
				s.state == 'S' && s.start_ticks == 2562898 && !s.kthread && s.image &&
				strcmp(s.comm, comms[i]) == 0,
			"the stat of a thread with name %zu is read whole", i);
	}
	len = (size_t)snprintf(text, sizeof(text),
		"42 (a) S 1 1 1 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 30 0 0 "
		"18446744073709551615 1 1 0 0\n");
	tap_ok(t, procparse_stat(at_end(text, len), len, &other) && other.kthread && !other.image,
		"a kernel thread has its flag and no image");
	len = (size_t)snprintf(text, sizeof(text),
		"42 (a) R 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 30 0 0 "
		"18446744073709551615 1 1 0 0\n");
	tap_ok(t, procparse_stat(at_end(text, len), len, &other) && !other.kthread && !other.image,
		"a process of another user, with hidden addresses, has no image");
	len = (size_t)snprintf(text, sizeof(text),
		"42 (a) R 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 30 0 0 "
		"18446744073709551615 0 0 0 0\n");
	tap_ok(t,
		procparse_stat(at_end(text, len), len, &other) && !other.kthread &&
			other.image == PROCPARSE_NO_IMAGE,
		"a stat without addresses is between two programs");
	len = (size_t)snprintf(text, sizeof(text), "42 (1234567890123456789)" STAT_TAIL);
	tap_ok(t, procparse_stat(at_end(text, len), len, &s) && strlen(s.comm) == PROCINFO_COMM_LEN - 1,
		"a name that is too long, as of kernel workers, is cut");
	len = (size_t)snprintf(text, sizeof(text), "42 (sleep)" STAT_TAIL);
	/* the last required field is the 28th */
	for (size_t n = 0; n < len; n++)
		cut += procparse_stat(at_end(text, n), n, &s) && s.start_ticks != 2562898;
	tap_ok(t, cut == 0, "a stat cut anywhere is refused, or has the right start time");
	tap_ok(t, !procparse_stat(at_end("42 (a\0b) S 1", 12), 12, &s),
		"a stat with a NUL in the name is refused");
}

static void statuses(struct tap *t)
{
	struct procparse_status s;
	size_t len = sizeof(STATUS) - 1, wrong = 0;

	tap_ok(t,
		procparse_status(at_end(STATUS, len), len, &s) && s.tgid == 4711 && s.ns_tgid == 1 &&
			s.ns_tid == 2 && s.voluntary == 12 && s.involuntary == 3,
		"status has the ids in the innermost namespace and both counts of switches");
	for (size_t n = 0; n < len; n++)
		wrong += procparse_status(at_end(STATUS, n), n, &s);
	tap_ok(t, wrong == 0, "a status cut anywhere is refused");
	tap_ok(t, !procparse_status(at_end("Tgid:\t99999999999\n", 18), 18, &s),
		"an id of more than 32 bits is refused");
}

static void syscalls(struct tap *t)
{
	static const char *const bad[] = { "", "202", "202 0x1 0x2\n", "-2 0x1 0x2\n", "x\n",
		"202 7f01 0x80 0x0 0x0 0x0 0x0 0x7ffc7e337890 0x7fc09cf52aec\n",
		"4294967295 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n", "-1 0x1 0x11112222333344445\n" };
	struct procparse_syscall s;
	size_t len = sizeof(SYSCALL) - 1, wrong = 0;

	tap_ok(t,
		procparse_syscall(at_end(SYSCALL, len), len, &s) && !s.running && s.nr == 202 &&
			s.args[0] == 0x7f01 && s.args[1] == 0x80 && s.sp == 0x7ffc7e337890 &&
			s.pc == 0x7fc09cf52aec,
		"syscall has the number, arguments, stack pointer and PC");
	tap_ok(t,
		procparse_syscall(at_end("-1 0x10 0x20\n", 13), 13, &s) && s.nr == -1 && s.sp == 0x10 &&
			s.pc == 0x20,
		"a thread blocked outside a system call has number -1, stack pointer and PC");
	tap_ok(t, procparse_syscall(at_end("running\n", 8), 8, &s) && s.running,
		"a running thread is recognized");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		wrong += procparse_syscall(at_end(bad[i], strlen(bad[i])), strlen(bad[i]), &s);
	for (size_t n = 0; n < len; n++)
		wrong += procparse_syscall(at_end(SYSCALL, n), n, &s);
	tap_ok(t, wrong == 0, "a malformed syscall, or one cut anywhere, is refused");
}

static size_t wchan(const char *text)
{
	return procparse_wchan(at_end(text, strlen(text)), strlen(text));
}

static void frames(struct tap *t)
{
	static const char text[] = "[<0>] futex_do_wait+0x46/0xa0\n"
				   "[<ffffffff81000000>] a+b.cold+0x0/0x1 [ext4]\n"
				   "[<0>] f+0x1/0x2 [mod 0123abcd]\n"
				   "[<0>] 0xffffffffc0001234\n";
	const char *p = at_end(text, sizeof(text) - 1), *end = p + sizeof(text) - 1;
	struct procparse_frame f;
	size_t wrong = 0;

	tap_ok(t, wchan("futex_do_wait") == 13 && wchan("do_wait\n") == 7, "a wait channel has a name");
	tap_ok(t, !wchan("0") && !wchan("") && !wchan("0\n"),
		"\"0\" and an empty text are not a wait channel");
	tap_ok(t, !wchan("a b") && !wchan("a\x1b[2J"), "a text that is not a name is not a wait channel");
	tap_ok(t,
		procparse_frame(&p, end, &f) && f.name_len == 13 &&
			memcmp(f.name, "futex_do_wait", 13) == 0 && f.offset == 0x46 && f.size == 0xa0 &&
			!f.module,
		"a frame of the kernel is parsed");
	tap_ok(t,
		procparse_frame(&p, end, &f) && f.name_len == 8 && f.offset == 0 && f.size == 1 &&
			f.module_len == 4 && memcmp(f.module, "ext4", 4) == 0,
		"a frame of a module, with a + in its name, is parsed");
	tap_ok(t, procparse_frame(&p, end, &f) && f.module_len == 3 && f.offset == 1,
		"a frame of a module with a build ID is parsed");
	tap_ok(t, !procparse_frame(&p, end, &f), "a line without a name ends the stack");
	for (size_t n = 0; n < 30; n++) {
		p = at_end(text, n);
		wrong += procparse_frame(&p, p + n, &f);
	}
	tap_ok(t, wrong == 0, "a truncated line is not a frame");
}

static void names(struct tap *t)
{
	tap_eq_str(t, sysname_find(SYS_futex), "futex", "SYS_futex is called futex");
	tap_eq_str(t, sysname_find(SYS_read), "read", "SYS_read is called read");
	tap_ok(t, !sysname_find(-1) && !sysname_find(INT32_MAX) && !sysname_find(INT32_MIN),
		"an invalid number has no name");
}

int main(void)
{
	struct tap t = { 0 };

	schedstats(&t);
	stats(&t);
	statuses(&t);
	syscalls(&t);
	frames(&t);
	names(&t);
	return tap_done(&t);
}
