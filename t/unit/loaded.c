/* SPDX-License-Identifier: GPL-2.0-or-later */
/* loaded_find() is compared with the bytes of the file, dladdr(3), and libdw for the build ID. */
#include "base/tap.h"
#include "stackmap/shot.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libelf.h>
#include <string.h>

#define BYTES 32

static void test_offset(struct tap *t, uint64_t addr, const char *file, const char *what)
{
	_cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC);
	uint8_t bytes[BYTES] = { 0 };
	struct loaded at;

	if (!tap_ok(t, loaded_find(addr, &at), "%s is in a loaded object", what))
		return;
	tap_ok(t,
		pread(fd, bytes, sizeof(bytes), (off_t)at.offset) == BYTES &&
			memcmp(bytes, (const void *)(uintptr_t)addr, BYTES) == 0,
		"%s has the same bytes in the file at its offset", what);
}

static void test_build_id(struct tap *t, uint64_t addr, const char *file, const char *what)
{
	_cleanup_close_ int fd = open(file, O_RDONLY | O_CLOEXEC);
	const void *want = NULL;
	struct loaded at;
	ssize_t len;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	len = dwelf_elf_gnu_build_id(elf, &want);
	if (len <= 0)
		tap_skip(t, what, "linked without a build ID");
	else
		tap_ok(t,
			loaded_find(addr, &at) && at.build_id && at.build_id_len == (size_t)len &&
				memcmp(at.build_id, want, (size_t)len) == 0,
			"%s has the build ID of its file", what);
	elf_end(elf);
}

int main(void)
{
	uint64_t own = (uint64_t)(uintptr_t)test_offset, libc = (uint64_t)(uintptr_t)strtol;
	struct tap t = { 0 };
	struct loaded at;
	Dl_info info;

	test_offset(&t, own, "/proc/self/exe", "a function of the program");
	test_build_id(&t, own, "/proc/self/exe", "the program");
	if (dladdr((void *)(uintptr_t)libc, &info)) {
		test_offset(&t, libc, info.dli_fname, "a function of libc");
		test_build_id(&t, libc, info.dli_fname, "libc");
		loaded_find(libc, &at);
		tap_eq_str(&t, at.path, info.dli_fname, "libc's path is the loader's");
		tap_eq_u64(&t, at.vaddr, libc - (uint64_t)(uintptr_t)info.dli_fbase,
			"an address in libc is converted to the file's virtual address");
	}
	loaded_find(own, &at);
	tap_eq_str(&t, at.path, "", "the program itself has no path");
	tap_ok(&t, !loaded_find(0, &at), "address 0 is in no object");
	tap_ok(&t, !loaded_find((uint64_t)(uintptr_t)&at, &at), "the stack is in no object");
	return tap_done(&t);
}
