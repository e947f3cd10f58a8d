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

/* Is BTF of WRONG refused, and M named, when the running kernel is that of RIGHT? */
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

/* An argument of its own since 5.18: after preempt, prev and next, all behind the tracepoint's data. */
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
		tap_skip(&t, "kernshape", "programs that read the kernel's memory need root");
		return tap_done(&t);
	}
	rc = task_layout_trial_run(&shape, &e);
	tap_ok(&t, rc == 0, "tasks of our own can be looked at");
	for (int i = 0; i < TASK_LAYOUT_MEMBERS; i++)
		missing += shape.at[i] < 0;
	tap_ok(&t, missing == 0, "every member is found");
	tap_ok(&t, task_layout_missing(&shape) == -1, "so nothing is missing");
	tap_ok(&t, shape.regs_from_stack >= 4096, "so are the registers of a system call");
	tap_ok(&t, (shape.raw_switch == 0) == switch_has_state(),
		"whether the raw tracepoint tells the state of who leaves is found, as BTF has it");
	tap_ok(&t, task_layout_btf_read(&shape, VMLINUX, fd, &e) == 0,
		"the kernel's own BTF says the same of each");
	close(fd);

	fd = memfd_create("types", MFD_CLOEXEC);
	path_of(fd, path);
	tap_ok(&t, task_layout_btf_write(&shape, fd, &e) == 0, "BTF can be written of what was found");
	rc = memfd_create("types", MFD_CLOEXEC);
	tap_ok(&t, task_layout_btf_read(&shape, path, rc, &e) == 0, "and read again");
	close(rc);
	close(fd);
	for (int i = 0; i < TASK_LAYOUT_MEMBERS; i++) {
		other = shape;
		other.at[i] += 8;
		tap_ok(&t, refused(&shape, &other, (enum task_layout_member)i),
			"BTF that has %s elsewhere is of another kernel",
			task_layout_name((enum task_layout_member)i));
	}
	other = shape;
	other.at[TASK_LAYOUT_COMM] = -1;
	fd = memfd_create("to", MFD_CLOEXEC);
	tap_ok(&t, task_layout_btf_read(&other, VMLINUX, fd, &e) == -EINVAL,
		"where ids and name were not found no BTF is believed");
	tap_ok(&t, task_layout_missing(&other) == TASK_LAYOUT_COMM, "and the name is what is missing");
	close(fd);
	return tap_done(&t);
}
