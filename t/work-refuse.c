/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Run a command in which system calls are refused with EPERM, as container
 * runtimes do:
 *
 *	work-refuse bpf,perf_event_open COMMAND [ARG]...
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
	fprintf(stderr, "work-refuse: no call '%s'\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	struct sock_filter code[CALLS_MAX * 2 + 2] = { BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)) };
	struct sock_fprog program = { .len = 1, .filter = code };

	if (argc < 3)
		return 64;
	for (char *name = strtok(argv[1], ","); name && program.len < CALLS_MAX * 2;
		name = strtok(NULL, ",")) {
		code[program.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number_of(name), 0, 1);
		code[program.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	/* without no_new_privs only CAP_SYS_ADMIN may filter, and file capabilities would be void */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0 &&
		(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)) {
		perror("work-refuse: seccomp");
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
