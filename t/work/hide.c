/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hide THREAD RECORDER - makes a recorder believe that the thread runs on a CPU, and was never seen leaving
 * one: as if this kernel had not reported that it waits. The thread's storage becomes that of one that is not
 * known, but for `start`, which is OFFCPU_ON_CPU.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* Is FD the map of the storage? Sets *SIZE. */
static int is_waits(int fd, uint32_t *size)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr about = { 0 };

	about.info.bpf_fd = (uint32_t)fd;
	about.info.info_len = sizeof(info);
	about.info.info = (uintptr_t)&info;
	*size = 0;
	if (fd < 0 || bpf(BPF_OBJ_GET_INFO_BY_FD, &about) != 0)
		return 0;
	*size = info.value_size;
	return info.type == BPF_MAP_TYPE_TASK_STORAGE && strcmp(info.name, "waits") == 0;
}

/* The number behind "map_id:" in /proc/RECORDER/fdinfo/NAME; 0 = there is none. */
static uint32_t map_id(const char *recorder, const char *name)
{
	char path[128], line[256];
	unsigned int id = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", recorder, name);
	f = fopen(path, "re");
	while (f && !id && fgets(line, sizeof(line), f))
		sscanf(line, "map_id: %u", &id);
	if (f)
		fclose(f);
	return id;
}

/* The map of RECORDER's storage; -1: it has none. Sets *SIZE to that of a value. */
static int waits_of(const char *recorder, uint32_t *size)
{
	char path[128];
	const struct dirent *e;
	int fd = -1;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo", recorder);
	d = opendir(path);
	while (d && (e = readdir(d)) != NULL) {
		union bpf_attr by_id = { .map_id = map_id(recorder, e->d_name) };

		fd = by_id.map_id ? (int)bpf(BPF_MAP_GET_FD_BY_ID, &by_id) : -1;
		if (is_waits(fd, size))
			break;
		close(fd);
		fd = -1;
	}
	if (d)
		closedir(d);
	return fd;
}

int main(int argc, char **argv)
{
	uint64_t value[128] = { 1 }; /* OFFCPU_ON_CPU */
	union bpf_attr set = { 0 };
	uint32_t size;
	int map, thread;

	if (argc != 3)
		return 64;
	map = waits_of(argv[2], &size);
	if (map < 0) {
		fprintf(stderr, "hide: process %s does not record in mode btf\n", argv[2]);
		return 1;
	}
	thread = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	set.map_fd = (uint32_t)map;
	set.key = (uintptr_t)&thread;
	set.value = (uintptr_t)value;
	if (thread >= 0 && size <= sizeof(value) && bpf(BPF_MAP_UPDATE_ELEM, &set) == 0)
		return 0;
	fprintf(stderr, "hide: thread %s, %u bytes: %s\n", argv[1], size, strerror(errno));
	return 1;
}
