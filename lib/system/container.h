/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * container - the cgroup of a container, found by the name that its runtime gave it.
 *
 * No runtime is contacted, so none has to be present or trusted. Known names, for
 * an ID of 64 hexadecimal digits:
 *
 *   docker-ID.scope                   Docker, systemd driver
 *   docker/ID, kubepods/.../ID, NAMESPACE/ID   cgroupfs driver; containerd
 *   cri-containerd-ID.scope           containerd, Kubernetes
 *   libpod-ID.scope, libpod-ID        Podman; below libpod_parent too
 *   crio-ID.scope                     CRI-O
 *
 * and for another NAME: lxc.payload.NAME (LXC), machine-NAME.scope and
 * systemd-nspawn@NAME.service (systemd-nspawn), NAME (containerd).
 * The monitors of containers (crio-conmon-, libpod-conmon-) are not containers.
 */
#ifndef STACKTOOLS_SYSTEM_CONTAINER_H
#define STACKTOOLS_SYSTEM_CONTAINER_H

#include "system/cgroup.h"

#define CONTAINER_ID_LEN 64
#define CONTAINER_ABBREVIATED 12 /* digits, as "docker ps" prints them */

/* The container id or name in NAME, the name of a cgroup: *LEN bytes. NULL = not a container. */
const char *container_id(const char *name, size_t *len);

/*
 * Open the cgroup of container ID: a whole id, at least its first
 * CONTAINER_ABBREVIATED digits, or a name. cgroup v2 is searched before v1, and
 * the first hierarchy with a match is used. -ENOENT: not found, the hint lists
 * some that exist; -ENOTUNIQ: several match, the hint lists them; -EINVAL: not an
 * id. Release *RET with cgroup_close().
 */
int container_open(const char *id, struct cgroup **ret, struct err *e);

#endif
