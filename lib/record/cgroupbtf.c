/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/cgroupbtf.h"

#include <bpf/btf.h>
#include <errno.h>
#include <string.h>

/* Of an enumerator NAME_cgrp_id. */
static bool find(const struct btf *btf, const char *name, uint32_t *ret)
{
	int id = btf__find_by_name_kind(btf, "cgroup_subsys_id", BTF_KIND_ENUM);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	char full[64];

	snprintf(full, sizeof(full), "%s_cgrp_id", name);
	for (uint32_t i = 0; t && i < btf_vlen(t); i++) {
		if (strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), full) == 0) {
			*ret = (uint32_t)btf_enum(t)[i].val;
			return true;
		}
	}
	return false;
}

int cgroupbtf_subsys(const char *file, const char *controller, uint32_t *ret, struct err *e)
{
	struct btf *btf = file ? btf__parse(file, NULL) : btf__load_vmlinux_btf();
	bool found;

	if (!btf)
		return err_sys(e, -ENOTSUP,
			"cannot filter by a cgroup of controller '%s' without the kernel's BTF", controller);
	/* the one that was renamed since */
	found = find(btf, strcmp(controller, "blkio") == 0 ? "io" : controller, ret);
	btf__free(btf);
	if (found)
		return 0;
	return err_set(e, -ENOTSUP, "the kernel's BTF does not know cgroup controller '%s'", controller);
}
