/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../lib/self.h"
#include "base/tap.h"
#include "elf/file.h"
#include "elf/symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static int open_kind(const char *path)
{
	struct elffile *f = NULL;
	int rc = elffile_open(AT_FDCWD, path, false, &f, NULL);

	elffile_close(f);
	return rc;
}

static void test_kinds(struct tap *t, const char *dir)
{
	char fifo[128];

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	tap_ok(t, mkfifo(fifo, 0600) == 0 && open_kind(fifo) == -EINVAL, "a FIFO is refused without waiting");
	unlink(fifo);
	tap_ok(t, open_kind("/dev/zero") == -EINVAL, "a device is refused");
	tap_ok(t, open_kind("/etc") == -EINVAL, "a directory is refused");
	tap_ok(t, open_kind("/etc/passwd") == -EINVAL, "a text file is refused");
	tap_ok(t, open_kind("/nonexistent") == -ENOENT, "a missing file is -ENOENT");
	tap_ok(t, open_kind("/proc/self/exe") == 0, "this program is an ELF file");
}

static void test_in_root(struct tap *t, const char *dir)
{
	char link[128];
	struct elffile *f = NULL;
	int fd = open(dir, O_PATH | O_DIRECTORY);

	snprintf(link, sizeof(link), "%s/out", dir);
	tap_ok(t, symlink("/proc/self/exe", link) == 0,
		"an absolute link that leads outside the root is created");
	tap_ok(t, elffile_open(fd, "/out", true, &f, NULL) < 0, "an absolute link cannot leave the root");
	unlink(link);
	tap_ok(t, symlink("../../../../../../../../proc/self/exe", link) == 0,
		"a relative link that leads outside the root is created");
	tap_ok(t, elffile_open(fd, "/out", true, &f, NULL) < 0, "a relative link cannot leave the root");
	tap_ok(t, elffile_open(fd, "../../../../../../proc/self/exe", true, &f, NULL) < 0,
		"a path with .. cannot leave the root");
	unlink(link);
	close(fd);
}

static void test_vaddr(struct tap *t)
{
	struct elffile_load loads[] = { { 0, 0x400000, 0x900, 0x900, false },
		{ 0x900, 0x401900, 0x500, 0x500, true }, { 0x2000, 0x600000, 0, 0x1000, false } };
	struct elffile f = { .fd = -1, .loads = loads, .n_loads = 3 };
	uint64_t v = 0;

	tap_ok(t, elffile_vaddr(&f, 0x950, &v) && v == 0x401950,
		"an offset is converted by the load that contains it");
	tap_ok(t, elffile_vaddr(&f, 0x8ff, &v) && v == 0x4008ff,
		"an offset before a load is converted by the load before it");
	tap_ok(t, elffile_vaddr(&f, 0xe00, &v) && v == 0x401e00,
		"an offset in the rest of a load's page is converted by that load");
	tap_ok(t, !elffile_vaddr(&f, 0x2000, &v), "a load without bytes in the file contains no offset");
	tap_ok(t, !elffile_vaddr(&f, UINT64_MAX, &v), "the largest offset is in no load");
}

/* A copy of LEN bytes that ends before an inaccessible page, so that a read past its end faults. */
static uint8_t *before_hole(const void *from, size_t len)
{
	size_t room = (len + 4095) & ~(size_t)4095;
	uint8_t *p = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	mprotect(p + room, 4096, PROT_NONE);
	memcpy(p + room - len, from, len);
	return p + room - len;
}

static void drop(uint8_t *p, size_t len)
{
	size_t room = (len + 4095) & ~(size_t)4095;

	munmap(p + len - room, room + 4096);
}

static void use(const uint8_t *p, size_t len)
{
	struct elffile *f = NULL;
	struct elfsym *s = NULL;
	struct elfsym_hit hit;
	uint64_t v;

	if (elffile_image(p, len, &f, NULL) == 0) {
		elffile_vaddr(f, 0x1000, &v);
		if (elfsym_load(f, &s, NULL) == 0)
			elfsym_find(s, 0x1100, &hit);
		elfsym_free(s);
	}
	elffile_close(f);
}

static void test_damage(struct tap *t)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	size_t len = 0;
	const uint8_t *elf = self_vdso(&len);

	if (!elf) {
		tap_skip(t, "damaged files", "this process has no vdso");
		return;
	}
	for (size_t cut = 0; cut < len; cut += cut < 1024 ? 1 : 61) {
		uint8_t *p = before_hole(elf, cut ? cut : 1);

		use(p, cut);
		drop(p, cut ? cut : 1);
	}
	tap_ok(t, true, "a file cut anywhere is read within its bounds");
	uint8_t *p = before_hole(elf, len);

	for (size_t i = 0; i < len; i++) {
		uint8_t was = p[i];

		for (size_t k = 0; k < sizeof(values); k++) {
			p[i] = values[k];
			/* only the headers and tables: the code between them is not read */
			if (i < 4096 || i > len - 4096)
				use(p, len);
		}
		p[i] = was;
	}
	drop(p, len);
	tap_ok(t, true, "a file with any byte changed is read within its bounds");
}

int main(void)
{
	char dir[] = "/tmp/unit-elffile.XXXXXX";
	struct tap t = { 0 };

	if (!mkdtemp(dir))
		return 2;
	test_kinds(&t, dir);
	test_in_root(&t, dir);
	test_vaddr(&t);
	test_damage(&t);
	rmdir(dir);
	return tap_done(&t);
}
