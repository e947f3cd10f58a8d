/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capproc.h"
#include "system/events.h"
#include "system/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define KALLSYMS_LINES 5000 /* many at the beginning may be per-CPU ones, which are zero for everybody */

/* The first bytes of PATH. */
static int read_some(const char *path, void *to, size_t len, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", path);
	n = read(fd, to, len);
	if (n < 0)
		return err_sys(e, -errno, "cannot read '%s'", path);
	return n ? 0 : err_set(e, -ENODATA, "'%s' is empty", path);
}

static int read_of(pid_t pid, const char *what, struct err *e)
{
	char path[64], some[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	rc = read_some(path, some, sizeof(some), e);
	return rc == -ENODATA ? 0 : rc; /* the stack of a process that runs just then is empty */
}

int capproc_maps(const struct capworld *w, pid_t pid, struct err *e)
{
	(void)w;
	return read_of(pid, "maps", e);
}

int capproc_syscall(const struct capworld *w, pid_t pid, struct err *e)
{
	(void)w;
	return read_of(pid, "syscall", e);
}

int capproc_stack(const struct capworld *w, pid_t pid, struct err *e)
{
	(void)w;
	return read_of(pid, "stack", e);
}

int capproc_root(const struct capworld *w, pid_t pid, struct err *e)
{
	char path[sizeof(w->common.path) + 32], some[4];

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, w->common.path);
	return read_some(path, some, sizeof(some), e);
}

static void map_files_path(const struct capworld_map *m, pid_t pid, char path[96])
{
	snprintf(path, 96, "/proc/%d/map_files/%zx-%zx", (int)pid, (size_t)m->start, (size_t)m->end);
}

int capproc_map_files(const struct capworld *w, pid_t pid, struct err *e)
{
	char path[96], some[4];

	map_files_path(&w->common, pid, path);
	return read_some(path, some, sizeof(some), e);
}

static int is_magic(uint64_t got, const char *how, struct err *e)
{
	return got == CAPWORLD_MAGIC ? 0 : err_set(e, -EBADMSG, "something else is read by %s", how);
}

int capproc_own_file(const struct capworld *w, pid_t pid, struct err *e)
{
	uint64_t got = 0;
	char path[96];
	int rc;

	map_files_path(&w->own, pid, path);
	rc = read_some(path, &got, sizeof(got), e);
	return rc ? rc : is_magic(got, "map_files", e);
}

int capproc_memory(const struct capworld *w, pid_t pid, struct err *e)
{
	uint64_t got = 0;
	struct iovec here = { &got, sizeof(got) }, there = { (void *)w->own.start, sizeof(got) };

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0)
		return err_sys(e, -errno, "cannot read the memory of process %d", (int)pid);
	return is_magic(got, "process_vm_readv", e);
}

int capproc_mem_file(const struct capworld *w, pid_t pid, struct err *e)
{
	_cleanup_close_ int fd = -1;
	uint64_t got = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &got, sizeof(got), (off_t)w->own.start) < 0)
		return err_sys(e, -errno, "cannot read '%s'", path);
	return is_magic(got, path, e);
}

int capproc_ptrace(const struct capworld *w, pid_t pid, struct err *e)
{
	int status;

	(void)w;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
		return err_sys(e, -errno, "cannot trace process %d", (int)pid);
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, &status, __WALL) != pid ||
		ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0)
		return err_sys(e, -errno, "cannot stop process %d", (int)pid);
	return 0;
}

int capproc_event(const struct capworld *w, pid_t pid, struct err *e)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.task = 1,
	};
	_cleanup_close_ int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	(void)w;
	return fd < 0 ? err_sys(e, -errno, "cannot open a perf event for process %d", (int)pid) : 0;
}

int capproc_events(const struct capworld *w, pid_t pid, struct err *e)
{
	struct procevents *p = NULL;
	int rc = procevents_open(false, &p, e);

	(void)w, (void)pid;
	procevents_close(p);
	return rc;
}

int capproc_kallsyms(const struct capworld *w, pid_t pid, struct err *e)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];

	(void)w, (void)pid;
	if (!f)
		return err_sys(e, -errno, "cannot open '/proc/kallsyms'");
	for (int i = 0; i < KALLSYMS_LINES && fgets(line, sizeof(line), f); i++)
		if (strtoull(line, NULL, 16))
			return 0;
	return err_set(e, -EACCES, "every address in '/proc/kallsyms' is zero");
}

int capproc_btf(const struct capworld *w, pid_t pid, struct err *e)
{
	char some[24];

	(void)w, (void)pid;
	return read_some("/sys/kernel/btf/vmlinux", some, sizeof(some), e);
}

int capproc_tracefs(const struct capworld *w, pid_t pid, struct err *e)
{
	int id = tracefs_event_id("raw_syscalls/sys_enter", e);

	(void)w, (void)pid;
	return MIN(id, 0);
}

int capproc_memlock(const struct capworld *w, pid_t pid, struct err *e)
{
	struct rlimit low = { 65536, 65536 }, had;

	(void)w, (void)pid;
	if (getrlimit(RLIMIT_MEMLOCK, &had) != 0)
		return err_sys(e, -errno, "cannot get RLIMIT_MEMLOCK");
	if (had.rlim_max < low.rlim_max)
		low = (struct rlimit){ had.rlim_max, had.rlim_max };
	if (setrlimit(RLIMIT_MEMLOCK, &low) != 0)
		return err_sys(e, -errno, "cannot lower RLIMIT_MEMLOCK");
	low.rlim_max++;
	return setrlimit(RLIMIT_MEMLOCK, &low) ? err_sys(e, -errno, "cannot raise RLIMIT_MEMLOCK") : 0;
}
