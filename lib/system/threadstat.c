/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/threadstat.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* Text of FILE of the thread, cut at SIZE; its length, or -errno. */
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

/* What this time namespace adds to CLOCK_BOOTTIME, in ticks. */
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

/* A name may hold parentheses and spaces: it ends at the last one. */
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
		    " %c %*d %*d %*d %*d %*d %" SCNu32
		    " %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64 " %*u %*d %*u %" SCNu64
		    " %" SCNu64 " %" SCNu64,
		    &ret->state, &ret->flags, &ticks, &ret->start_code, &ret->end_code,
		    &ret->start_stack) != 6)
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
	/* from our namespace inwards */
	for (line += strlen("\nNSpid:"); sscanf(line, "%*[ \t]%" SCNu32 "%n", &id, &used) == 1; line += used)
		;
	return id;
}
