/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach OBJECT - loads and attaches every program of a BPF object, prints
 * "attached", and waits until a signal ends it.
 */
#include <bpf/libbpf.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct bpf_object *obj = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	struct bpf_program *prog;

	if (!obj || bpf_object__load(obj) != 0)
		return 2;
	bpf_object__for_each_program(prog, obj) if (!bpf_program__attach(prog)) return 2;
	puts("attached");
	fflush(stdout);
	pause();
	return 0;
}
