/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Build IDs, compared with readelf -n, and of files that are damaged or not ELF. */
#include "base/tap.h"
#include "elf/file.h"
#include "record/files.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static void hex(const struct cap_build_id *id, char *to, size_t size)
{
	to[0] = '\0';
	for (size_t i = 0; i < id->len && 2 * i + 3 <= size; i++)
		snprintf(to + 2 * i, 3, "%02x", id->bytes[i]);
}

static void like_readelf(struct tap *t, const char *path)
{
	char cmd[512], want[2 * CAPTURE_BUILD_ID_MAX + 2] = "", got[sizeof(want)];
	struct cap_build_id id;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	FILE *f;

	if (fd < 0) {
		tap_skip(t, path, "not on this machine");
		return;
	}
	snprintf(cmd, sizeof(cmd), "readelf -n '%s' 2>/dev/null | sed -n 's/.*Build ID: //p'", path);
	f = popen(cmd, "r");
	if (!f || !fgets(want, sizeof(want), f))
		want[0] = '\0';
	if (f)
		pclose(f);
	want[strcspn(want, "\n")] = '\0';
	tap_ok(t, buildid_read(fd, &id) == 0, "%s is read", path);
	hex(&id, got, sizeof(got));
	tap_eq_str(t, got, want, "the build ID agrees with readelf");
	close(fd);
}

static int file_of(const void *bytes, size_t len)
{
	int fd = memfd_create("buildid", MFD_CLOEXEC);

	return fd >= 0 && write(fd, bytes, len) == (ssize_t)len ? fd : -1;
}

static void none(struct tap *t, const char *what, const void *bytes, size_t len)
{
	struct cap_build_id id = { .len = 9 };
	int fd = file_of(bytes, len);

	tap_ok(t, fd >= 0 && buildid_read(fd, &id) == 0 && !id.len, "%s has no build ID", what);
	close(fd);
}

/* An ELF file with one note segment, any part of which a test can damage. */
struct tiny {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Nhdr nh;
	char name[4];
	uint8_t id[20];
};

static struct tiny tiny(void)
{
	struct tiny f = {
		.eh = { .e_phoff = sizeof(Elf64_Ehdr), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1 },
		.ph = { .p_type = PT_NOTE,
			.p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			.p_filesz = 36,
			.p_align = 4 },
		.nh = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU"
	};

	memcpy(f.eh.e_ident, ELFMAG, SELFMAG);
	f.eh.e_ident[EI_CLASS] = ELFCLASS64;
	f.eh.e_ident[EI_DATA] = ELFDATA2LSB;
	for (uint8_t i = 0; i < 20; i++)
		f.id[i] = (uint8_t)(i + 1);
	return f;
}

static void spoilt(struct tap *t)
{
	struct tiny f = tiny(), g;
	struct cap_build_id id;
	bool quiet = true;

	buildid_in_image(&f, sizeof(f), &id);
	tap_ok(t, id.len == 20 && memcmp(id.bytes, f.id, 20) == 0,
		"the build ID of the smallest file with one is read");
	for (size_t len = 0; len < offsetof(struct tiny, id) + sizeof(f.id); len++) {
		buildid_in_image(&f, len, &id);
		quiet = quiet && !id.len;
	}
	tap_ok(t, quiet, "the smallest file cut at any byte has no build ID");
	g = f, g.nh.n_descsz = 0;
	none(t, "a note without contents", &g, sizeof(g));
	g = f, g.nh.n_descsz = UINT32_MAX;
	none(t, "a note longer than any file", &g, sizeof(g));
	g = f, g.nh.n_namesz = UINT32_MAX;
	none(t, "a name longer than any file", &g, sizeof(g));
	g = f, g.nh.n_type = NT_GNU_ABI_TAG;
	none(t, "a note of another type", &g, sizeof(g));
	g = f, g.name[0] = 'X';
	none(t, "a note of another owner", &g, sizeof(g));
	g = f, g.eh.e_phoff = UINT64_MAX - 8;
	none(t, "a file with program headers beyond every offset", &g, sizeof(g));
	g = f, g.ph.p_offset = INT64_MAX;
	none(t, "a note segment beyond the end", &g, sizeof(g));
	g = f, g.eh.e_phnum = UINT16_MAX;
	none(t, "a file with 65,535 program headers", &g, sizeof(g));
	g = f, g.eh.e_phentsize = 1;
	none(t, "a file with program headers of another size", &g, sizeof(g));
	g = f, g.eh.e_ident[EI_DATA] = ELFDATA2MSB;
	none(t, "a big-endian file", &g, sizeof(g));
}

/* Is a build ID found after SEGMENTS segments of notes, each of them SIZE bytes of zeros? */
static bool found_behind(size_t segments, uint64_t size)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph[1024];
		struct tiny last;
	} *f = calloc(1, sizeof(*f));
	struct cap_build_id id = { .len = 0 };
	int fd;

	if (!f)
		return false;
	f->last = tiny();
	f->eh = f->last.eh;
	f->eh.e_phnum = (uint16_t)(segments + 1);
	for (size_t i = 0; i < segments; i++)
		f->ph[i] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_offset = 1 << 20, .p_filesz = size };
	f->ph[segments] = f->last.ph;
	f->ph[segments].p_offset = sizeof(*f) - sizeof(f->last) + offsetof(struct tiny, nh);
	fd = file_of(f, sizeof(*f));
	if (ftruncate(fd, 2 << 20) != 0 || buildid_read(fd, &id) != 0)
		id.len = 0;
	close(fd);
	free(f);
	return id.len == 20;
}

static void bombs(struct tap *t)
{
	tap_ok(t, found_behind(1000, 1000), "a build ID after a thousand segments of notes is found");
	tap_ok(t, !found_behind(1000, 1 << 20), "a build ID after a gigabyte of notes is not searched for");
}

/* In a segment aligned to 8 bytes the second note is at another offset than with 4. */
static void behind_another(struct tap *t)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph;
		Elf64_Nhdr first;
		char owner[4], contents[4], pad[4];
		Elf64_Nhdr second;
		char name[4];
		uint8_t id[20];
	} f = { .eh = tiny().eh,
		.ph = tiny().ph,
		.first = { .n_namesz = 4, .n_descsz = 4, .n_type = 1 },
		.owner = "abc",
		.second = tiny().nh,
		.name = "GNU",
		.id = "twenty bytes of an i" };
	struct elffile *file = NULL;
	char path[64];
	int fd;

	f.eh.e_type = ET_DYN, f.eh.e_machine = EM_X86_64, f.eh.e_ehsize = sizeof(f.eh);
	f.eh.e_ident[EI_VERSION] = EV_CURRENT, f.eh.e_version = EV_CURRENT;
	f.ph.p_align = 8, f.ph.p_filesz = sizeof(f) - f.ph.p_offset;
	fd = file_of(&f, sizeof(f));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	like_readelf(t, path);
	tap_ok(t,
		elffile_image(&f, sizeof(f), &file, NULL) == 0 && file->build_id.len == 20 &&
			memcmp(file->build_id.bytes, f.id, 20) == 0,
		"elffile finds the build ID in notes aligned to 8 bytes");
	elffile_close(file);
	close(fd);
}

/* Notes that end at an inaccessible page: a read past them crashes. */
static void at_the_edge(struct tap *t)
{
	static const uint8_t note[] = { 4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0 };
	uint8_t *area = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct cap_build_id id;
	bool none = area != MAP_FAILED && mprotect(area + 4096, 4096, PROT_NONE) == 0;

	for (size_t len = 0; none && len <= sizeof(note); len++) {
		memcpy(area + 4096 - len, note, len);
		none = !elfnote_build_id(area + 4096 - len, len, 4, &id);
	}
	tap_ok(t, none, "notes cut at any byte have no build ID and are not read past their end");
}

int main(void)
{
	struct tap t = { 0 };
	struct cap_build_id id;
	uint8_t longest[12 + 4 + 64] = { 4, 0, 0, 0, 64, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U' };

	char self[4096] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		self[0] = '\0';
	like_readelf(&t, self);
	like_readelf(&t, "/bin/bash");
	like_readelf(&t, "/lib/x86_64-linux-gnu/libc.so.6");
	like_readelf(&t, "/lib64/ld-linux-x86-64.so.2");
	none(&t, "an empty file", "", 0);
	none(&t, "a text file",
		"#!/bin/sh\necho this is a script and longer than an ELF header would be, by far\n", 77);
	spoilt(&t);
	bombs(&t);
	behind_another(&t);
	at_the_edge(&t);
	tap_ok(&t, elfnote_build_id(longest, sizeof(longest), 4, &id) && id.len == 64,
		"a build ID of 64 bytes is accepted");
	longest[4] = 65;
	tap_ok(&t, !elfnote_build_id(longest, sizeof(longest), 4, &id),
		"a build ID that extends past its notes is refused");
	tap_ok(&t, buildid_read(-1, &id) == -EBADF, "a failed read returns its errno");
	return tap_done(&t);
}
