/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * container - the cgroup of a container, by the name that its runtime gave it.
 * No runtime is asked, so none has to be there, or to be trusted.
 *
 * Names that are known, for an ID of 64 hexadecimal digits:
 *
 *   docker-ID.scope                   Docker, systemd driver
 *   docker/ID, kubepods/.../ID, NAMESPACE/ID   cgroupfs driver; containerd
 *   cri-containerd-ID.scope           containerd, Kubernetes
 *   libpod-ID.scope, libpod-ID        Podman; below libpod_parent too
 *   crio-ID.scope                     CRI-O
 *
 * and for another NAME: lxc.payload.NAME (LXC), machine-NAME.scope and
 * systemd-nspawn@NAME.service (systemd-nspawn), NAME (containerd).
 * The monitors of containers (crio-conmon-, libpod-conmon-) are none.
 */
#ifndef STACKTOOLS_SYSTEM_CONTAINER_H
#define STACKTOOLS_SYSTEM_CONTAINER_H

#include "system/cgroup.h"

#define CONTAINER_ID_LEN 64
#define CONTAINER_ABBREVIATED 12 /* digits, as "docker ps" prints them */

/* The id or name of the container whose cgroup has this NAME, NULL = none; of *LEN bytes, within NAME. */
const char *container_id(const char *name, size_t *len);

/*
 * The cgroup of container ID: the whole, at least its first
 * CONTAINER_ABBREVIATED digits, or a name. Hierarchies are searched in the
 * order cgroup v2, v1; the first that has it is taken. -ENOENT: none, the hint
 * lists some that are there; -ENOTUNIQ: several, the hint lists them; -EINVAL:
 * no id at all. Release *RET with cgroup_close().
 */
int container_open(const char *id, struct cgroup **ret, struct err *e);

#endif
