/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

static bool read_status(FILE *f, struct procinfo_status *ret)
{
	char line[256];

	*ret = (struct procinfo_status){ 0 };
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &ret->state);
		if (sscanf(line, "Tgid: %u", &ret->tgid) == 1)
			return true;
	}
	return false;
}

/* NSpid lists the IDs of a process from the namespace of /proc down to its own. */
bool procinfo_own_namespace(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	unsigned int mine, inner;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "NSpid:", 6) == 0)
			return sscanf(line + 6, "%u %u", &mine, &inner) == 1;
	/* a kernel without PID namespaces; if there is no /proc at all, its readers report that */
	return f || access("/proc/self", F_OK) == 0 || access("/proc/1", F_OK) != 0;
}

bool procinfo_status(uint32_t id, struct procinfo_status *ret)
{
	char path[64];
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%u/status", id);
	f = fopen(path, "re");
	return read_status(f, ret);
}

static bool lives(uint32_t id)
{
	struct procinfo_status st;

	return procinfo_status(id, &st) && st.state != 'Z' && st.state != 'X';
}

bool procinfo_lives(int fd)
{
	_cleanup_fclose_ FILE *f = fdopen(fd, "r");
	struct procinfo_status st;

	if (!f)
		close(fd);
	return read_status(f, &st) && st.state != 'Z' && st.state != 'X';
}

uint32_t procinfo_living(uint32_t pid)
{
	char path[64];
	uint32_t found = 0;
	DIR *tasks;

	if (lives(pid))
		return pid;
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	for (struct dirent *d; tasks && !found && (d = readdir(tasks));) {
		uint32_t tid = (uint32_t)strtoul(d->d_name, NULL, 10);

		if (tid && lives(tid))
			found = tid;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

void procinfo_comm(uint32_t pid, char comm[PROCINFO_COMM_LEN])
{
	char path[64];
	_cleanup_fclose_ FILE *f = NULL;
	size_t n;

	comm[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	/* a name may contain newlines: the kernel added only the last one */
	n = fread(comm, 1, PROCINFO_COMM_LEN - 1, f);
	if (n && comm[n - 1] == '\n')
		n--;
	comm[n] = '\0';
}

char *procinfo_exe(uint32_t pid)
{
	char path[64], target[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return NULL;
	target[n] = '\0';
	procinfo_strip_deleted(target);
	return strdup(target);
}

bool procinfo_strip_deleted(char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path), cut = sizeof(mark) - 1;

	if (len <= cut || strcmp(path + len - cut, mark) != 0)
		return false;
	path[len - cut] = '\0';
	return true;
}

/* Read FILE of the thread into TEXT, cut to SIZE with its NUL. Its length, or -errno. */
static ssize_t read_text(uint32_t tgid, uint32_t tid, const char *file, char *text, size_t size)
{
	char path[64];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task/%" PRIu32 "/%s", tgid, tid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

/* The offset of this time namespace for CLOCK_BOOTTIME, in ticks. */
static int64_t ticks_added(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/timens_offsets", "re");
	char line[128];
	int64_t s = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "boottime %" SCNd64, &s) == 1)
			break;
	return s * (1000000000 / THREADSTAT_TICK_NS);
}

/* A name may contain parentheses and spaces: it ends at the last ')'. */
static bool take_name(const char *text, const char *end, char comm[16])
{
	const char *begin = strchr(text, '(');
	size_t len = begin ? (size_t)(end - begin - 1) : 16;

	if (!begin || begin >= end || len > 64)
		return false;
	len = MIN(len, 15);
	memcpy(comm, begin + 1, len);
	comm[len] = '\0';
	return true;
}

int threadstat_read(uint32_t tgid, uint32_t tid, struct threadstat *ret)
{
	char text[1024];
	ssize_t n = read_text(tgid, tid, "stat", text, sizeof(text));
	const char *end = n > 0 ? strrchr(text, ')') : NULL;
	uint64_t ticks;

	*ret = (struct threadstat){ 0 };
	if (n < 0)
		return (int)n;
	if (!end || !take_name(text, end, ret->comm))
		return -EINVAL;
	/* fields 3 to 28 */
	if (sscanf(end + 1,
		    " %c %" SCNu32 " %*d %*d %*d %*d %" SCNu32
		    " %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64 " %*u %*d %*u %" SCNu64
		    " %" SCNu64 " %" SCNu64,
		    &ret->state, &ret->ppid, &ret->flags, &ticks, &ret->start_code, &ret->end_code,
		    &ret->start_stack) != 7)
		return -EINVAL;
	ret->start_boot_ns = (ticks - (uint64_t)ticks_added()) * THREADSTAT_TICK_NS;
	return 0;
}

uint64_t threadstat_ran(uint32_t tgid, uint32_t tid)
{
	char text[128];

	return read_text(tgid, tid, "schedstat", text, sizeof(text)) > 0 ? strtoull(text, NULL, 10) : 0;
}

bool threadstat_is_off_cpu(uint32_t tgid, uint32_t tid)
{
	char text[256];

	return read_text(tgid, tid, "syscall", text, sizeof(text)) <= 0 ||
	       strncmp(text, "running", strlen("running")) != 0;
}

uint32_t threadstat_own_id(uint32_t tgid, uint32_t tid)
{
	char text[4096];
	const char *line;
	uint32_t id = tid;
	int used;

	if (read_text(tgid, tid, "status", text, sizeof(text)) <= 0)
		return tid;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return tid;
	/* from our namespace to the innermost one */
	for (line += strlen("\nNSpid:"); sscanf(line, "%*[ \t]%" SCNu32 "%n", &id, &used) == 1; line += used)
		;
	return id;
}
