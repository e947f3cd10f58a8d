/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * refuse CALL[=N],... COMMAND [ARG]... - runs a command whose system calls CALL
 * fail with EPERM, as in a container; with =N only if the first argument is N:
 *
 * 	refuse bpf=17,perf_event_open COMMAND [ARG]...
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS_MAX 8

static const struct {
	const char *name;
	unsigned int nr;
} known[] = { { "bpf", SYS_bpf }, { "perf_event_open", SYS_perf_event_open }, { "ptrace", SYS_ptrace },
	{ "name_to_handle_at", SYS_name_to_handle_at }, { "process_vm_readv", SYS_process_vm_readv },
	{ "clone3", SYS_clone3 }, { "landlock_create_ruleset", SYS_landlock_create_ruleset },
	{ "pidfd_open", SYS_pidfd_open } };

static unsigned int number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i].name, name) == 0)
			return known[i].nr;
	fprintf(stderr, "refuse: no call '%s'\n", name);
	exit(2);
}

static struct sock_filter code[CALLS_MAX * 5 + 1];
static struct sock_fprog program = { .filter = code };

static void put(unsigned short op, unsigned int k, unsigned char no)
{
	code[program.len++] = (struct sock_filter){ .code = op, .jf = no, .k = k };
}

static void refuse(char *item)
{
	char *argument = strchr(item, '=');

	if (argument)
		*argument++ = '\0';
	put(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0);
	put(BPF_JMP | BPF_JEQ | BPF_K, number_of(item), argument ? 3 : 1);
	if (argument) {
		put(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]), 0);
		put(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)atoi(argument), 1);
	}
	put(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM, 0);
}

int main(int argc, char **argv)
{
	int n = 0;

	if (argc < 3)
		return 64;
	for (char *item = strtok(argv[1], ","); item && n < CALLS_MAX; item = strtok(NULL, ","), n++)
		refuse(item);
	put(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0);
	/* without no_new_privs only CAP_SYS_ADMIN may filter; with it, file capabilities have no effect */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0 &&
		(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)) {
		perror("refuse: seccomp");
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
