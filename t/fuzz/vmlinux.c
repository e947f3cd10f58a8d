/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as a kernel's file, which is taken
 * for that of the recorded kernel, whatever build ID it has.
 */
#include "elf/kernelfiles.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* An address in the file lies in its code and comes from exactly one address. */
static void translate(const struct vmlinux *v, uint64_t addr)
{
	const struct elffile *f = v->file;
	uint64_t at = 0;
	bool inside = false;

	if (!vmlinux_vaddr(v, addr, &at))
		return;
	for (size_t i = 0; i < f->n_loads; i++)
		inside |= f->loads[i].exec && at - f->loads[i].vaddr < f->loads[i].memsz;
	if (!inside || at + v->slide != addr)
		abort();
}

static void find(const char *path, const struct cap_build_id *id)
{
	const struct vmlinux_opts o = { .file = path, .symfs = -1 };
	const struct cap_host host = { .stext = UINT64_C(0xffffffff91000000), .kernel_build_id = *id };
	struct vmlinux v;
	struct err e = { 0 };
	int rc = vmlinux_find(&o, &host, &v, &e);

	if (rc ? rc > 0 || !!v.file || !e.msg[0] : !v.file)
		abort();
	for (size_t i = 0; !rc && i < v.file->n_loads; i++) {
		translate(&v, v.file->loads[i].vaddr + v.slide);
		translate(&v, v.file->loads[i].vaddr + v.file->loads[i].memsz + v.slide);
	}
	translate(&v, 0);
	translate(&v, host.stext);
	vmlinux_close(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct elffile *f = NULL;
	char path[64];
	int fd;

	if (elffile_image(data, len, &f, NULL) != 0)
		return 0;
	fd = memfd_create("vmlinux", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	find(path, &f->build_id);
	close(fd);
	elffile_close(f);
	return 0;
}
