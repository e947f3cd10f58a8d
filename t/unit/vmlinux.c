/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of elf/kernelfiles.h: a small ELF file stands for vmlinux, and a
 * directory for the root of the machine.
 */
#include "base/tap.h"
#include "elf/kernelfiles.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define STEXT UINT64_C(0xffffffff81000000)
#define SLIDE UINT64_C(0x1c000000)
#define RELEASE "1.2.3-made"

/* An executable load of 0x10000 bytes at STEXT - 0x1000, and a load of data. */
struct image {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[2];
	Elf64_Shdr sh[4];
	Elf64_Nhdr note;
	char owner[4];
	uint8_t id[20];
	Elf64_Sym syms[3];
	char strings[32];
};

static char root[PATH_MAX];
static int root_fd = -1;

static void fill_image(struct image *img, uint8_t id, const char *symbol)
{
	memset(img, 0, sizeof(*img));
	memcpy(img->eh.e_ident, "\177ELF\2\1\1", 7);
	img->eh.e_type = ET_EXEC;
	img->eh.e_machine = EM_X86_64;
	img->eh.e_phoff = offsetof(struct image, ph);
	img->eh.e_phentsize = sizeof(Elf64_Phdr);
	img->eh.e_phnum = 2;
	img->eh.e_shoff = offsetof(struct image, sh);
	img->eh.e_shentsize = sizeof(Elf64_Shdr);
	img->eh.e_shnum = 4;
	img->ph[0] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_vaddr = STEXT - 0x1000, .p_memsz = 0x10000
	};
	img->ph[1] = (Elf64_Phdr){
		.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_vaddr = STEXT + 0x20000, .p_memsz = 0x10000
	};
	img->sh[1] = (Elf64_Shdr){ .sh_type = SHT_NOTE,
		.sh_offset = offsetof(struct image, note),
		.sh_size = sizeof(img->note) + sizeof(img->owner) + sizeof(img->id),
		.sh_addralign = 4 };
	img->sh[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
		.sh_link = 3,
		.sh_offset = offsetof(struct image, syms),
		.sh_size = sizeof(img->syms),
		.sh_entsize = sizeof(Elf64_Sym) };
	img->sh[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct image, strings),
		.sh_size = sizeof(img->strings) };
	img->note = (Elf64_Nhdr){ 4, sizeof(img->id), NT_GNU_BUILD_ID };
	memcpy(img->owner, "GNU", 4);
	memset(img->id, id, sizeof(img->id));
	strcpy(img->strings + 1, "_stextra");
	strcpy(img->strings + 10, symbol);
	img->syms[1] = (Elf64_Sym){ .st_name = 1, .st_shndx = 1, .st_value = 1 };
	img->syms[2] = (Elf64_Sym){ .st_name = 10, .st_shndx = 1, .st_value = STEXT };
}

/* Create PATH under the root, with the directories that it needs. */
static void put_file(const char *path, uint8_t id, const char *symbol)
{
	char full[2 * PATH_MAX];
	struct image img;
	int fd;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	fill_image(&img, id, symbol);
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, &img, sizeof(img)) != (ssize_t)sizeof(img))
		printf("Bail out! cannot write %s\n", full);
	close(fd);
}

static void drop_file(const char *path)
{
	char full[2 * PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	unlink(full);
	for (*strrchr(full, '/') = '\0'; strlen(full) > strlen(root); *strrchr(full, '/') = '\0')
		rmdir(full);
}

static struct cap_host host_of(uint8_t id)
{
	struct cap_host h = { .release = RELEASE, .stext = STEXT + SLIDE };

	h.kernel_build_id.len = 20;
	memset(h.kernel_build_id.bytes, id, 20);
	return h;
}

static int find(const struct cap_host *h, const char *file, struct vmlinux *v, struct err *e)
{
	const struct vmlinux_opts o = { .file = file, .symfs = root_fd };

	return vmlinux_find(&o, h, v, e);
}

/* Is a file at PATH found for H? */
static void found_at(struct tap *t, const struct cap_host *h, const char *path, const char *name)
{
	struct vmlinux v = { 0 };

	put_file(path, 7, "_stext");
	tap_eq_str(t, find(h, NULL, &v, NULL) == 0 && v.file ? v.where : v.missed, path, name);
	vmlinux_close(&v);
	drop_file(path);
}

static void test_places(struct tap *t)
{
	struct cap_host h = host_of(7);
	struct vmlinux v = { 0 };

	found_at(t, &h, "/usr/lib/debug/.build-id/07/07070707070707070707070707070707070707.debug",
		"the kernel's file is found by its build ID");
	found_at(t, &h, "/usr/lib/debug/boot/vmlinux-" RELEASE,
		"the kernel's file is found where Debian and Ubuntu put it");
	found_at(t, &h, "/usr/lib/debug/lib/modules/" RELEASE "/vmlinux",
		"the kernel's file is found where Fedora puts it");
	found_at(t, &h, "/usr/lib/debug/usr/lib/modules/" RELEASE "/vmlinux",
		"the kernel's file is found with a merged /usr");
	found_at(t, &h, "/lib/modules/" RELEASE "/build/vmlinux",
		"the kernel's file is found where the kernel was built");
	tap_ok(t, find(&h, NULL, &v, NULL) == 0 && !v.file && !v.missed[0],
		"finding no file is not an error, and no file was rejected");
	vmlinux_close(&v);
}

static void test_addresses(struct tap *t)
{
	struct cap_host h = host_of(7);
	struct vmlinux v = { 0 };
	uint64_t at = 0;

	put_file("/usr/lib/debug/boot/vmlinux-" RELEASE, 7, "_stext");
	if (!tap_ok(t, find(&h, NULL, &v, NULL) == 0 && v.file, "a kernel that was moved up has its file"))
		return;
	tap_ok(t, vmlinux_vaddr(&v, STEXT + SLIDE + 0x123, &at) && at == STEXT + 0x123,
		"addresses are moved back by the same amount");
	tap_ok(t, !vmlinux_vaddr(&v, STEXT + SLIDE + 0x20100, &at), "an address of data is not in the code");
	tap_ok(t, !vmlinux_vaddr(&v, STEXT + 0x123, &at), "an address before the kernel is not in its code");
	tap_ok(t, !vmlinux_vaddr(&v, UINT64_C(0xffffffffc0001000), &at),
		"an address of a module is not in the kernel's code");
	vmlinux_close(&v);
	h.stext = STEXT - 0x1000000;
	tap_ok(t, find(&h, NULL, &v, NULL) == 0 && vmlinux_vaddr(&v, h.stext + 5, &at) && at == STEXT + 5,
		"a kernel may also have been moved down");
	vmlinux_close(&v);
	drop_file("/usr/lib/debug/boot/vmlinux-" RELEASE);
}

static void test_wrong(struct tap *t)
{
	struct cap_host h = host_of(8);
	struct vmlinux v = { 0 };
	struct err e = { 0 };
	char full[2 * PATH_MAX];

	put_file("/boot/vmlinux-" RELEASE, 7, "_stext");
	snprintf(full, sizeof(full), "%s/boot/vmlinux-" RELEASE, root);
	tap_ok(t, find(&h, NULL, &v, NULL) == 0 && !v.file && strstr(v.missed, "another kernel's"),
		"a file of the same release with another build ID is not used, and reported");
	vmlinux_close(&v);
	tap_ok(t, find(&h, full, &v, &e) == -EINVAL && !v.file && strstr(e.msg, "another kernel's"),
		"a named file with another build ID is an error");
	h = host_of(7);
	tap_ok(t, find(&h, full, &v, NULL) == 0 && v.file && v.slide == SLIDE,
		"a named file with the right build ID is used");
	vmlinux_close(&v);
	tap_ok(t, find(&h, "/nonexistent/vmlinux", &v, &e) == -ENOENT && !v.file,
		"a named file that does not exist is an error");
	h.stext = 0;
	tap_ok(t, find(&h, NULL, &v, NULL) == 0 && !v.file && strstr(v.missed, "address of its kernel"),
		"hidden addresses are reported as the reason");
	tap_ok(t, find(&h, full, &v, &e) == -EINVAL, "hidden addresses are an error for a named file");
	h = host_of(7);
	h.kernel_build_id.len = 0;
	tap_ok(t, find(&h, NULL, &v, NULL) == 0 && !v.file && strstr(v.missed, "build ID"),
		"without a build ID in the capture no file is used");
	h = host_of(7);
	h.release = "../boot/../boot/vmlinux-" RELEASE;
	tap_ok(t, find(&h, NULL, &v, NULL) == 0 && !v.file && !v.missed[0],
		"a release that is a path finds no file");
	put_file("/boot/vmlinux-" RELEASE, 7, "_text");
	h = host_of(7);
	tap_ok(t, find(&h, NULL, &v, NULL) == 0 && !v.file && strstr(v.missed, "_stext"),
		"a file without _stext is not used, and reported");
	drop_file("/boot/vmlinux-" RELEASE);
}

/* Overwrite the file at FULL with LEN bytes and look for it. */
static int take_bytes(const char *full, const void *bytes, size_t len, struct vmlinux *v)
{
	const struct cap_host h = host_of(7);
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		printf("Bail out! cannot write %s\n", full);
	close(fd);
	return find(&h, full, v, NULL);
}

/* Does the found file have the build ID, and code at the addresses that it gives? */
static bool holds(const struct vmlinux *v)
{
	uint64_t at = 0;
	bool inside = false;

	if (!v->file || v->file->build_id.len != 20 || v->file->build_id.bytes[19] != 7)
		return false;
	if (!vmlinux_vaddr(v, STEXT + SLIDE, &at))
		return true;
	for (size_t i = 0; i < v->file->n_loads; i++)
		inside |= v->file->loads[i].exec && at - v->file->loads[i].vaddr < v->file->loads[i].memsz;
	return inside && at + v->slide == STEXT + SLIDE;
}

static void test_damaged(struct tap *t)
{
	const size_t needed = offsetof(struct image, strings) + 10 + sizeof("_stext");
	char full[2 * PATH_MAX];
	struct image img;
	struct vmlinux v;
	size_t wrong = 0, refused = 0;

	snprintf(full, sizeof(full), "%s/vmlinux", root);
	fill_image(&img, 7, "_stext");
	for (size_t len = 0; len < needed; len++) {
		wrong += take_bytes(full, &img, len, &v) != -EINVAL || v.file;
		vmlinux_close(&v);
	}
	tap_eq_u64(t, wrong, 0, "a file that is cut before the name of its last symbol is refused");
	for (size_t bit = 0; bit < 8 * sizeof(img); bit++) {
		int rc;

		((uint8_t *)&img)[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rc = take_bytes(full, &img, sizeof(img), &v);
		refused += rc != 0;
		wrong += rc ? !!v.file : !holds(&v);
		vmlinux_close(&v);
		((uint8_t *)&img)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	tap_ok(t, !wrong && refused > 500, "a file with any bit changed is refused or consistent");
	unlink(full);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");
	struct tap t = { 0 };

	snprintf(root, sizeof(root), "%s/stacktools-t.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(root) || (root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		printf("Bail out! no temporary directory\n");
		return 1;
	}
	test_places(&t);
	test_addresses(&t);
	test_wrong(&t);
	test_damaged(&t);
	close(root_fd);
	rmdir(root);
	return tap_done(&t);
}
