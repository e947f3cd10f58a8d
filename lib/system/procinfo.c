/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/procinfo.h"

#include <dirent.h>
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

/* NSpid lists the numbers of a process from /proc's namespace down to its own. */
bool procinfo_own_namespace(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	unsigned int mine, inner;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "NSpid:", 6) == 0)
			return sscanf(line + 6, "%u %u", &mine, &inner) == 1;
	/* a kernel without PID namespaces; where there is no /proc at all, its readers tell */
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
	/* a name may hold newlines of its own: only the last byte is the file's */
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
