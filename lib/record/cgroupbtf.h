/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroupbtf - a v1 controller's place in the kernel's css_set.subsys.
 *
 * It is a matter of the kernel's configuration; enum cgroup_subsys_id of its
 * BTF tells it.
 */
#ifndef STACKTOOLS_CGROUPBTF_H
#define STACKTOOLS_CGROUPBTF_H

#include "base/err.h"

/*
 * Of CONTROLLER ("memory", as /proc/cgroups has it) into *RET, by the BTF in
 * FILE (NULL: the running kernel's). -ENOTSUP: there is no such BTF, or it has no such
 * controller.
 */
int cgroupbtf_subsys(const char *file, const char *controller, uint32_t *ret, struct err *e);

#endif
