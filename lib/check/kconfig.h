/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kconfig - the configuration that a kernel was built with.
 *
 * Format: Documentation/kbuild/kconfig.rst of Linux; lines "CONFIG_X=value"
 * and "# CONFIG_X is not set". Looked for, in this order, in proc/config.gz,
 * boot/config-RELEASE, lib/modules/RELEASE/config and
 * lib/modules/RELEASE/build/.config; any of them may be compressed by gzip.
 */
#ifndef STACKTOOLS_KCONFIG_H
#define STACKTOOLS_KCONFIG_H

#include "base/fs.h"

struct kconfig;

/*
 * The first usable file for RELEASE. On success *RET is the caller's; release
 * it with kconfig_free(). -ENOENT where there is no file at all (the message
 * lists where it was looked for); otherwise the error of the first that is
 * there but of no use: cut, not gzip, larger than 16 MiB, no configuration.
 */
int kconfig_load(const struct root *r, const char *release, struct kconfig **ret, struct err *e);
void kconfig_free(struct kconfig *kc); /* NULL is fine */

/* Take the LEN bytes of a file, compressed or not, as found at PATH. Errors as above. */
int kconfig_parse(const char *path, const void *data, size_t len, struct kconfig **ret, struct err *e);

/* Where it was found, with a leading slash; belongs to KC. */
const char *kconfig_path(const struct kconfig *kc);

/* What was wrong with a file that came before it in the order; "" = nothing. Belongs to KC. */
const char *kconfig_complaint(const struct kconfig *kc);

/*
 * The value of OPTION ("CONFIG_BPF") into BUF: "y", "m", a number or a quoted
 * string, cut to CAP. False with BUF "" where it is not set or not known to
 * that kernel: the same, as what depends on it is not built.
 */
bool kconfig_find(const struct kconfig *kc, const char *option, char *buf, size_t cap);

#endif
