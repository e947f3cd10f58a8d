/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The BPF maps of a recorder that runs, for programs that disturb it. */
#ifndef STACKTOOLS_WORK_MAPS_H
#define STACKTOOLS_WORK_MAPS_H

#include <dirent.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* Is FD the map NAME? Sets *SIZE to that of a value. */
static int is_map(int fd, const char *name, uint32_t *size)
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
	return strcmp(info.name, name) == 0;
}

/* The number behind "map_id:" in /proc/RECORDER/fdinfo/FD; 0 = there is none. */
static uint32_t map_id(const char *recorder, const char *fd)
{
	char path[300], line[256];
	unsigned int id = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/fdinfo/%s", recorder, fd);
	f = fopen(path, "re");
	while (f && !id && fgets(line, sizeof(line), f))
		sscanf(line, "map_id: %u", &id);
	if (f)
		fclose(f);
	return id;
}

/* The map NAME of process RECORDER; -1: it has none. */
static int map_of(const char *recorder, const char *name, uint32_t *size)
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
		if (is_map(fd, name, size))
			break;
		close(fd);
		fd = -1;
	}
	if (d)
		closedir(d);
	return fd;
}

#endif
