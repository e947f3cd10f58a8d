/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/mapprobe.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static int refused(const char *what, int code, struct err *e)
{
	return err_sys(e, code, "cannot %s", what);
}

int mapprobe_plain(char *found, size_t cap, struct err *e)
{
	static const struct {
		enum bpf_map_type type;
		const char *name;
		uint32_t value;
	} kinds[] = { { BPF_MAP_TYPE_ARRAY, "array", 8 }, { BPF_MAP_TYPE_PERCPU_ARRAY, "per-CPU array", 8 },
		{ BPF_MAP_TYPE_HASH, "hash", 8 }, { BPF_MAP_TYPE_LRU_HASH, "LRU hash", 8 },
		{ BPF_MAP_TYPE_PROG_ARRAY, "program array", 4 } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		int fd = bpf_map_create(kinds[i].type, "probe", sizeof(uint32_t), kinds[i].value, 1, NULL);

		if (fd < 0)
			return err_sys(e, fd, "cannot create a map of type %s", kinds[i].name);
		close(fd);
	}
	snprintf(found, cap, "arrays, hashes and program arrays can be created");
	return 0;
}

int mapprobe_ring(char *found, size_t cap, struct err *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "probe", 0, 0, (uint32_t)page, NULL);
	void *consumer, *data;

	if (fd < 0)
		return refused("create a ring buffer", fd, e);
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	/* the producer's page, and the data twice, so that what wraps around lies in one piece */
	data = mmap(NULL, 3 * page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (consumer == MAP_FAILED || data == MAP_FAILED)
		return refused("map a ring buffer into memory", -errno, e);
	snprintf(found, cap, "a ring buffer can be created and mapped");
	close(fd);
	return 0;
}

int mapprobe_mmapable(char *found, size_t cap, struct err *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", sizeof(uint32_t), sizeof(uint64_t), 1, &opts);
	uint64_t *mapped, value = 0;
	uint32_t zero = 0;

	if (fd < 0)
		return refused("create an array that can be mapped", fd, e);
	mapped = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return refused("map an array into memory", -errno, e);
	*mapped = 0x5ca1ab1e;
	if (bpf_map_lookup_elem(fd, &zero, &value) != 0 || value != 0x5ca1ab1e)
		return err_set(e, -EIO, "what is written into a mapped array is not seen in it");
	snprintf(found, cap, "an array that is written through memory works");
	close(fd);
	return 0;
}

int mapprobe_map_in_map(char *found, size_t cap, struct err *e)
{
	_cleanup_close_ int inner =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", sizeof(uint32_t), sizeof(uint64_t), 1, NULL);
	_cleanup_close_ int outer = -1;
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner);
	uint32_t zero = 0;
	int rc;

	if (inner < 0)
		return refused("create an array", inner, e);
	outer = bpf_map_create(
		BPF_MAP_TYPE_ARRAY_OF_MAPS, "probe", sizeof(uint32_t), sizeof(uint32_t), 1, &opts);
	if (outer < 0)
		return refused("create an array of maps", outer, e);
	rc = bpf_map_update_elem(outer, &zero, &inner, BPF_ANY);
	if (rc)
		return refused("put a map into an array of maps", rc, e);
	snprintf(found, cap, "a map can be put into another");
	return 0;
}

/* The types of key and value, which such maps have to have. */
static int load_int(uint32_t *id, struct err *e)
{
	struct btf *btf = btf__new_empty();
	int rc = btf ? btf__add_int(btf, "int", 4, BTF_INT_SIGNED) : -errno;

	if (rc > 0) {
		*id = (uint32_t)rc;
		rc = btf__load_into_kernel(btf);
	}
	/* the descriptor is BTF's own: duplicated, it outlives it */
	rc = rc ? rc : dup(btf__fd(btf));
	btf__free(btf);
	return rc < 0 ? refused("load BTF into the kernel", rc, e) : rc;
}

int mapprobe_task_storage(char *found, size_t cap, struct err *e)
{
	uint32_t id = 0, want = 42, got = 0;
	_cleanup_close_ int btf = load_int(&id, e), fd = -1, self = -1;
	int rc;

	if (btf < 0)
		return btf;
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC, .btf_fd = (uint32_t)btf,
		.btf_key_type_id = id, .btf_value_type_id = id);
	fd = bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, "probe", sizeof(int), sizeof(int), 0, &opts);
	if (fd < 0)
		return refused("create task storage", fd, e);
	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self < 0)
		return refused("open a process by pidfd_open()", -errno, e);
	rc = bpf_map_update_elem(fd, &self, &want, BPF_ANY);
	rc = rc ? rc : bpf_map_lookup_elem(fd, &self, &got);
	if (rc || got != want)
		return refused("use task storage", rc ? rc : -EIO, e);
	snprintf(found, cap, "task storage keeps what is put there");
	return 0;
}

int mapprobe_memlock(char *found, size_t cap, struct err *e)
{
	const struct rlimit none = { 0 };
	int fd;

	if (setrlimit(RLIMIT_MEMLOCK, &none) != 0)
		return refused("lower RLIMIT_MEMLOCK", -errno, e);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", sizeof(uint32_t), sizeof(uint64_t), 1024, NULL);
	if (fd < 0 && fd != -EPERM)
		return refused("create an array", fd, e);
	snprintf(found, cap, "maps %s against RLIMIT_MEMLOCK", fd < 0 ? "count" : "do not count");
	if (fd >= 0)
		close(fd);
	return 0;
}
