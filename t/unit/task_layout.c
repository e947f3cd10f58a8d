/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "record/task_layout.h"

#include <bpf/btf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define VMLINUX "/sys/kernel/btf/vmlinux"

static void path_of(int fd, char path[32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
}

/* Is BTF made from WRONG refused with M in the message, if the running kernel has the layout RIGHT? */
static bool refused(
	const struct task_layout *right, const struct task_layout *wrong, enum task_layout_member m)
{
	int fd = memfd_create("wrong", MFD_CLOEXEC), to = memfd_create("to", MFD_CLOEXEC);
	struct err e = { 0 };
	char path[32];
	int rc;

	path_of(fd, path);
	rc = task_layout_btf_write(wrong, fd, &e);
	rc = rc ? 0 : task_layout_btf_read(right, path, to, &e);
	close(fd);
	close(to);
	return rc == -EINVAL && strstr(e.msg, task_layout_name(m)) && strstr(e.msg, "another kernel");
}

/* Since 5.18 the state is an argument of its own, after the tracepoint's data, preempt, prev and next. */
static bool switch_has_state(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF) : -1;
	const struct btf_type *type =
		id > 0 ? btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type) : NULL;
	bool has = type && btf_vlen(btf__type_by_id(btf, type->type)) == 5;

	btf__free(btf);
	return has;
}

int main(void)
{
	struct tap t = { 0 };
	struct task_layout shape, other;
	struct err e = { 0 };
	int missing = 0, fd = memfd_create("types", MFD_CLOEXEC), rc;
	char path[32];

	if (geteuid() != 0) {
		tap_skip(&t, "the layout of the kernel's tasks",
			"programs that read the kernel's memory need root");
		return tap_done(&t);
	}
	rc = task_layout_trial_run(&shape, &e);
	tap_ok(&t, rc == 0, "a trial finds the layout of tasks");
	for (int i = 0; i < TASK_LAYOUT_MEMBERS; i++)
		missing += shape.at[i] < 0;
	tap_ok(&t, missing == 0, "every member has an offset");
	tap_ok(&t, task_layout_missing(&shape) == -1, "task_layout_missing() reports no member");
	tap_ok(&t, shape.regs_from_stack >= 4096, "the registers of a system call are found");
	tap_ok(&t, (shape.raw_switch == 0) == switch_has_state(),
		"the trial and BTF agree whether the raw tracepoint has the previous task's state");
	tap_ok(&t, task_layout_btf_read(&shape, VMLINUX, fd, &e) == 0,
		"the kernel's own BTF agrees on every member");
	if (e.msg[0])
		tap_diag("%s", e.msg);
	close(fd);

	fd = memfd_create("types", MFD_CLOEXEC);
	path_of(fd, path);
	tap_ok(&t, task_layout_btf_write(&shape, fd, &e) == 0, "BTF can be written from the layout");
	rc = memfd_create("types", MFD_CLOEXEC);
	tap_ok(&t, task_layout_btf_read(&shape, path, rc, &e) == 0, "the written BTF is accepted");
	close(rc);
	close(fd);
	for (int i = 0; i < TASK_LAYOUT_MEMBERS; i++) {
		other = shape;
		other.at[i] += 8;
		tap_ok(&t, refused(&shape, &other, (enum task_layout_member)i),
			"BTF that has %s elsewhere is refused as another kernel's",
			task_layout_name((enum task_layout_member)i));
	}
	other = shape;
	other.at[TASK_LAYOUT_COMM] = -1;
	fd = memfd_create("to", MFD_CLOEXEC);
	tap_ok(&t, task_layout_btf_read(&other, VMLINUX, fd, &e) == -EINVAL,
		"BTF is refused if the task's name was not found");
	tap_ok(&t, task_layout_missing(&other) == TASK_LAYOUT_COMM,
		"task_layout_missing() reports the task's name");
	close(fd);
	return tap_done(&t);
}
