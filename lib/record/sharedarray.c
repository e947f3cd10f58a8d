/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/sharedarray.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/mman.h>

#define PAGE 4096

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

int sharedarray_open(struct sharedarray *a, const char *name, size_t size, uint32_t n, struct err *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_close_ int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(uint32_t), (uint32_t)size, n, &opts);
	size_t bytes = whole_pages(size * n);
	void *p;

	*a = (struct sharedarray){ 0 };
	if (fd < 0)
		return err_sys(e, fd, "cannot create the map '%s'", name);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(e, -errno, "cannot map the map '%s'", name);
	*a = (struct sharedarray){ .fd = TAKE_FD(fd), .p = p, .bytes = bytes };
	return 0;
}

void sharedarray_close(struct sharedarray *a)
{
	if (!a->p)
		return;
	munmap(a->p, a->bytes);
	close(a->fd);
	*a = (struct sharedarray){ 0 };
}

uint64_t sharedarray_bytes(size_t size, uint32_t n)
{
	return whole_pages(size * n) + PAGE;
}
