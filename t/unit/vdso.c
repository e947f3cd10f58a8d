/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The images of vdsos: which mapping has which, and what the kernel gives. */
#include "base/tap.h"
#include "record/vdso.h"
#include "unwind/compile.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

static enum vdso_kind kind(uint64_t start, uint64_t end, const char *path)
{
	const struct procmap m = { .start = start, .end = end, .path = path };

	return vdso_kind(&m);
}

static void test_own(struct tap *t)
{
	const void *own = (const void *)getauxval(AT_SYSINFO_EHDR);
	size_t len;
	uint8_t *image = vdso_image(VDSO_WIDE, &len);

	tap_ok(t, image ? own && memcmp(image, own, len) == 0 : !own,
		"the vdso of 64-bit programs is that of this one");
	free(image);
	tap_ok(t, vdso_image(VDSO_NONE, &len) == NULL && len == 0, "what is not a vdso has no image");
}

static void test_i386(struct tap *t)
{
	struct elffile *f = NULL;
	uint8_t *table = NULL;
	size_t len, table_len;
	uint8_t *image = vdso_image(VDSO_I386, &len), *again;
	struct unwindtab v;

	if (!image) {
		tap_skip(t, "the vdso of i386 programs", "this kernel does not show it");
		return;
	}
	again = vdso_image(VDSO_I386, &len);
	tap_ok(t, again && memcmp(again, image, len) == 0, "the vdso of i386 programs is the same each time");
	tap_ok(t, elffile_image(image, len, &f, NULL) == 0 && !f->is64 && f->machine == EM_386,
		"it is an i386 file");
	tap_ok(t,
		f && unwindcomp(f, &table, &table_len, NULL) == 0 &&
			unwindtab_view(table, table_len, &v, NULL) == 0 && v.head->n_rows > 10,
		"it has an unwind table");
	tap_ok(t, memmem(image, len, "__kernel_vsyscall", sizeof("__kernel_vsyscall")) != NULL,
		"it has the function for system calls");
	tap_ok(t, getauxval(AT_SYSINFO_EHDR) != 0 && ((const uint8_t *)getauxval(AT_SYSINFO_EHDR))[0] == 0x7f,
		"this process has kept its own vdso");
	elffile_close(f);
	free(table);
	free(again);
	free(image);
}

int main(void)
{
	struct tap t = { 0 };

	tap_ok(&t, kind(0x7fff00000000, 0x7fff00002000, "[vdso]") == VDSO_WIDE,
		"a vdso above 4 GiB is x86-64's");
	tap_ok(&t, kind(0xf7f00000, 0xf7f02000, "[vdso]") == VDSO_I386, "a vdso below 4 GiB is i386's");
	tap_ok(&t,
		kind(0xf7f00000, 0xf7f02000, "/lib/[vdso]") == VDSO_NONE && kind(1, 2, "[vvar]") == VDSO_NONE,
		"anything else is not a vdso");
	test_own(&t);
	test_i386(&t);
	return tap_done(&t);
}
