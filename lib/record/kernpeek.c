/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/kernpeek.h"

#include "peek.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define TASK_INTERRUPTIBLE 1 /* include/linux/sched.h */
#define NAPS 20 /* one that is over before the CPU is left is none */

struct kernpeek {
	struct peek_bpf *skel;
	struct peek *shared; /* the map: children see it too */
	uint64_t args[2];
	union bpf_attr attr;
};

int kernpeek_open(struct kernpeek **ret, struct err *e)
{
	struct kernpeek *k = calloc(1, sizeof(*k));
	int rc;

	if (!k)
		return err_nomem(e, "a look at the kernel's memory");
	k->shared = MAP_FAILED;
	k->skel = peek_bpf__open();
	rc = k->skel ? peek_bpf__load(k->skel) : -ENOMEM;
	if (!rc) {
		k->shared = mmap(NULL, sizeof(*k->shared), PROT_READ, MAP_SHARED,
			bpf_map__fd(k->skel->maps.peeked), 0);
		rc = k->shared == MAP_FAILED ? -errno : 0;
	}
	if (rc) {
		kernpeek_close(k);
		return err_sys(e, rc, "cannot load a program that reads the kernel's memory");
	}
	k->attr.test.prog_fd = (uint32_t)bpf_program__fd(k->skel->progs.peek);
	k->attr.test.ctx_in = (uintptr_t)k->args;
	k->attr.test.ctx_size_in = sizeof(k->args);
	*ret = k;
	return 0;
}

void kernpeek_close(struct kernpeek *k)
{
	if (!k)
		return;
	if (k->shared != MAP_FAILED)
		munmap(k->shared, sizeof(*k->shared));
	peek_bpf__destroy(k->skel);
	free(k);
}

const struct peek *kernpeek_at(struct kernpeek *k, uint64_t addr, size_t bytes)
{
	k->args[0] = addr;
	k->args[1] = bytes;
	return syscall(SYS_bpf, BPF_PROG_TEST_RUN, &k->attr, sizeof(k->attr)) == 0 ? k->shared : NULL;
}

void kernpeek_call(const struct kernpeek *k, struct kernpeek_call *ret)
{
	*ret = (struct kernpeek_call){ SYS_bpf, { BPF_PROG_TEST_RUN, (uintptr_t)&k->attr, sizeof(k->attr) } };
}

int kernpeek_switch(struct kernpeek *k)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	const struct peek *p = kernpeek_at(k, 0, PEEK_PIECE);
	struct bpf_link *link;

	if (!p)
		return -errno;
	k->skel->bss->watched = (uint32_t)p->pid_tgid;
	link = bpf_program__attach_raw_tracepoint(k->skel->progs.watch, "sched_switch");
	if (!link)
		return -errno;
	for (int i = 0; i < NAPS && !(p->left_state & TASK_INTERRUPTIBLE); i++)
		nanosleep(&nap, NULL);
	bpf_link__destroy(link);
	return p->left == p->task && (p->left_state & TASK_INTERRUPTIBLE) ? 0 : -ENOTSUP;
}
