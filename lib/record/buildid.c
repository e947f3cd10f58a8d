/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/buildid.h"
#include "base/bytes.h"
#include "elf/file.h"

#include <elf.h>
#include <errno.h>

#define PHDRS_MAX 1024
#define NOTES_MAX (1u << 20) /* bytes of all segments: a thousand of a megabyte would take seconds */

/* Bytes at an offset of a file or an image; short reads are an end of file. */
struct source {
	int fd;
	const uint8_t *image;
	size_t len;
};

static ssize_t fetch(const struct source *s, void *to, size_t n, uint64_t off)
{
	size_t done = 0;

	if (s->image) {
		if (off >= s->len)
			return 0;
		n = MIN(n, s->len - (size_t)off);
		memcpy(to, s->image + off, n);
		return (ssize_t)n;
	}
	while (done < n && off <= INT64_MAX - n) {
		ssize_t r = pread(s->fd, (char *)to + done, n - done, (off_t)(off + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

struct segment {
	uint32_t type;
	uint64_t offset, size, align;
};

static struct segment segment_read(struct rd *r, bool is64)
{
	struct segment s = { .type = rd_u32(r) };

	if (is64) {
		rd_u32(r); /* p_flags */
		s.offset = rd_u64(r);
		rd_bytes(r, 16); /* p_vaddr, p_paddr */
		s.size = rd_u64(r);
		rd_bytes(r, 8); /* p_memsz */
		s.align = rd_u64(r);
	} else {
		s.offset = rd_u32(r);
		rd_bytes(r, 8);
		s.size = rd_u32(r);
		rd_bytes(r, 8); /* p_memsz, p_flags */
		s.align = rd_u32(r);
	}
	return s;
}

static int scan_notes(
	const struct source *src, const struct segment *seg, size_t *budget, struct cap_build_id *ret)
{
	size_t size = (size_t)MIN(seg->size, *budget);
	_cleanup_free_ uint8_t *notes = malloc(size ? size : 1);
	ssize_t n;

	if (!notes)
		return -ENOMEM;
	*budget -= size;
	n = fetch(src, notes, size, seg->offset);
	if (n > 0)
		elfnote_build_id(notes, (size_t)n, seg->align, ret);
	return n < 0 ? (int)n : 0;
}

static int scan(const struct source *src, struct cap_build_id *ret)
{
	uint8_t head[64], table[PHDRS_MAX * 56];
	ssize_t n = fetch(src, head, sizeof(head), 0);
	bool is64;
	uint64_t phoff;
	uint16_t phentsize, phnum;
	size_t budget = NOTES_MAX;

	ret->len = 0;
	if (n < 0)
		return (int)n;
	if (n < 52 || memcmp(head, ELFMAG, SELFMAG) != 0 || head[EI_DATA] != ELFDATA2LSB ||
		(head[EI_CLASS] != ELFCLASS64 && head[EI_CLASS] != ELFCLASS32))
		return 0;
	is64 = head[EI_CLASS] == ELFCLASS64;

	struct rd r = rd_init(head + (is64 ? 32 : 28), is64 ? 32 : 24);

	phoff = is64 ? rd_u64(&r) : rd_u32(&r);
	rd_bytes(&r, is64 ? 14 : 10); /* e_shoff, e_flags, e_ehsize */
	phentsize = rd_u16(&r);
	phnum = rd_u16(&r);
	if (phentsize != (is64 ? 56 : 32) || phnum > PHDRS_MAX)
		return 0;
	n = fetch(src, table, (size_t)phentsize * phnum, phoff);
	if (n < 0)
		return (int)n;
	r = rd_init(table, (size_t)n);
	while (rd_left(&r) >= phentsize && !ret->len) {
		struct segment seg = segment_read(&r, is64);
		int rc = seg.type == PT_NOTE ? scan_notes(src, &seg, &budget, ret) : 0;

		if (rc)
			return rc;
	}
	return 0;
}

int buildid_read(int fd, struct cap_build_id *ret)
{
	struct source src = { .fd = fd };

	return scan(&src, ret);
}

void buildid_in_image(const void *image, size_t len, struct cap_build_id *ret)
{
	struct source src = { .fd = -1, .image = image, .len = len };

	scan(&src, ret);
}
