/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/file.h"
#include "base/bytes.h"
#include "base/fs.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Skip to the next multiple of ALIGN, counted from START, or to the end. */
static void skip_padding(struct rd *r, const uint8_t *start, size_t align)
{
	size_t over = (size_t)(r->p - start) % align;

	rd_bytes(r, MIN(over ? align - over : 0, rd_left(r)));
}

bool elfnote_build_id(const void *notes, size_t len, uint64_t align, struct cap_build_id *ret)
{
	const size_t unit = align == 8 ? 8 : 4;
	struct rd r = rd_init(notes, len);

	while (rd_left(&r) >= sizeof(Elf64_Nhdr)) {
		const uint8_t *start = r.p;
		uint32_t namesz = rd_u32(&r), descsz = rd_u32(&r), type = rd_u32(&r);
		const char *name = rd_bytes(&r, namesz);
		const void *desc;

		skip_padding(&r, start, unit);
		desc = rd_bytes(&r, descsz);
		if (r.bad)
			return false;
		if (type == NT_GNU_BUILD_ID && namesz == 4 && memcmp(name, "GNU", 4) == 0 && descsz &&
			descsz <= CAPTURE_BUILD_ID_MAX) {
			ret->len = (uint8_t)descsz;
			memcpy(ret->bytes, desc, descsz);
			return true;
		}
		skip_padding(&r, start, unit);
	}
	return false;
}

#define HEADERS_MAX (64 << 20) /* bytes of a section header table: a million sections */
#define SECTION_MAX (UINT64_C(1) << 30)
#define PAGE 4096

/* The fields of the ELF header that are used. */
struct head {
	uint64_t phoff, shoff;
	uint64_t phnum, shnum;
	uint16_t phentsize, shentsize, shstrndx;
};

int elffile_read_at(const struct elffile *f, uint64_t offset, void *buf, size_t n, struct err *e)
{
	size_t done = 0;

	if (offset > f->size || n > f->size - offset)
		return err_set(e, -EINVAL, "points outside the file");
	if (f->fd < 0) {
		memcpy(buf, f->image + offset, n);
		return 0;
	}
	while (done < n) {
		ssize_t got = pread(f->fd, (char *)buf + done, n - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, -errno, "cannot be read");
		if (got == 0)
			return err_set(e, -EIO, "became shorter while it was read");
		done += (size_t)got;
	}
	return 0;
}

static int read_new(const struct elffile *f, uint64_t offset, uint64_t n, uint8_t **ret, struct err *e)
{
	_cleanup_free_ uint8_t *p = NULL;
	int rc;

	if (offset > f->size || n > f->size - offset)
		return err_set(e, -EINVAL, "points outside the file");
	p = malloc(n + 1);
	if (!p)
		return err_nomem(e, "a section");
	rc = elffile_read_at(f, offset, p, n, e);
	if (rc)
		return rc;
	p[n] = 0;
	*ret = TAKE_PTR(p);
	return 0;
}

/* Read a field as wide as an address of the file's class. */
static uint64_t rd_word(struct rd *r, const struct elffile *f)
{
	return rd_fixed(r, f->is64 ? 8 : 4);
}

static int read_head(struct elffile *f, struct head *h, struct err *e)
{
	uint8_t raw[64] = { 0 };
	struct rd r = rd_init(raw, sizeof(raw));
	int rc = elffile_read_at(f, 0, raw, MIN(f->size, sizeof(raw)), e);

	if (rc)
		return rc;
	if (f->size < 52 || memcmp(raw, ELFMAG, SELFMAG) != 0)
		return err_set(e, -EINVAL, "is not an ELF file");
	if (raw[EI_CLASS] != ELFCLASS64 && raw[EI_CLASS] != ELFCLASS32)
		return err_set(e, -EINVAL, "is an ELF file of unknown class %u", raw[EI_CLASS]);
	if (raw[EI_DATA] != ELFDATA2LSB)
		return err_set(e, -EINVAL, "is a big-endian ELF file");
	f->is64 = raw[EI_CLASS] == ELFCLASS64;
	rd_bytes(&r, EI_NIDENT);
	f->type = rd_u16(&r);
	f->machine = rd_u16(&r);
	rd_u32(&r); /* e_version */
	rd_word(&r, f); /* e_entry */
	h->phoff = rd_word(&r, f);
	h->shoff = rd_word(&r, f);
	rd_u32(&r); /* e_flags */
	rd_u16(&r); /* e_ehsize */
	h->phentsize = rd_u16(&r);
	h->phnum = rd_u16(&r);
	h->shentsize = rd_u16(&r);
	h->shnum = rd_u16(&r);
	h->shstrndx = rd_u16(&r);
	return 0;
}

static struct elffile_section parse_section(const struct elffile *f, const uint8_t *p, size_t len)
{
	struct rd r = rd_init(p, len);
	struct elffile_section s = { 0 };

	s.name = rd_u32(&r);
	s.type = rd_u32(&r);
	s.flags = rd_word(&r, f);
	s.addr = rd_word(&r, f);
	s.offset = rd_word(&r, f);
	s.size = rd_word(&r, f);
	s.link = rd_u32(&r);
	s.info = rd_u32(&r);
	s.align = rd_word(&r, f);
	s.entsize = rd_word(&r, f);
	return s;
}

static int read_sections(struct elffile *f, const struct head *h, struct err *e)
{
	_cleanup_free_ uint8_t *raw = NULL;
	uint64_t n = h->shnum;
	int rc;

	if (!h->shoff)
		return 0;
	if (h->shentsize != (f->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		return err_set(e, -EINVAL, "has section headers of %u bytes", h->shentsize);
	if (!n) { /* too many for e_shnum: the size of the first header is the number */
		uint8_t first[sizeof(Elf64_Shdr)];

		rc = elffile_read_at(f, h->shoff, first, h->shentsize, e);
		if (rc)
			return err_prefix(e, "its section header table"), rc;
		n = parse_section(f, first, h->shentsize).size;
	}
	if (n > HEADERS_MAX / h->shentsize)
		return err_set(e, -EINVAL, "claims %llu sections", (unsigned long long)n);
	rc = read_new(f, h->shoff, n * h->shentsize, &raw, e);
	if (rc)
		return err_prefix(e, "its section header table"), rc;
	f->sections = calloc(n ? n : 1, sizeof(*f->sections));
	if (!f->sections)
		return err_nomem(e, "section headers");
	for (size_t i = 0; i < n; i++)
		f->sections[i] = parse_section(f, raw + i * h->shentsize, h->shentsize);
	f->n_sections = n;
	f->names = h->shstrndx == SHN_XINDEX && n ? f->sections[0].link : h->shstrndx;
	return 0;
}

static bool build_id_at(struct elffile *f, uint64_t offset, uint64_t size, uint64_t align)
{
	_cleanup_free_ uint8_t *notes = NULL;

	if (size > ELFNOTE_BYTES_MAX || read_new(f, offset, size, &notes, NULL) != 0)
		return false;
	return elfnote_build_id(notes, size, align, &f->build_id);
}

static void add_load(
	struct elffile *f, uint32_t flags, uint64_t offset, uint64_t vaddr, uint64_t filesz, uint64_t memsz)
{
	f->loads[f->n_loads++] = (struct elffile_load){
		.offset = offset, .vaddr = vaddr, .filesz = filesz, .memsz = memsz, .exec = flags & PF_X
	};
}

static int read_segments(struct elffile *f, const struct head *h, struct err *e)
{
	_cleanup_free_ uint8_t *raw = NULL;
	int rc;

	if (!h->phoff || !h->phnum)
		return 0;
	if (h->phentsize != (f->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		return err_set(e, -EINVAL, "has program headers of %u bytes", h->phentsize);
	rc = read_new(f, h->phoff, h->phnum * h->phentsize, &raw, e);
	if (rc)
		return err_prefix(e, "its program header table"), rc;
	f->loads = calloc(h->phnum, sizeof(*f->loads));
	if (!f->loads)
		return err_nomem(e, "program headers");
	for (size_t i = 0; i < h->phnum; i++) {
		struct rd r = rd_init(raw + i * h->phentsize, h->phentsize);
		uint32_t type = rd_u32(&r), flags = f->is64 ? rd_u32(&r) : 0;
		uint64_t offset = rd_word(&r, f), vaddr = rd_word(&r, f), filesz, memsz, align;

		rd_word(&r, f); /* p_paddr */
		filesz = rd_word(&r, f);
		memsz = rd_word(&r, f);
		if (!f->is64)
			flags = rd_u32(&r);
		align = rd_word(&r, f);
		if (type == PT_LOAD)
			add_load(f, flags, offset, vaddr, filesz, memsz);
		else if (type == PT_NOTE && !f->build_id.len)
			build_id_at(f, offset, filesz, align);
		else if (type == PT_GNU_EH_FRAME) {
			f->eh_frame_hdr = vaddr;
			f->eh_frame_hdr_size = filesz;
		}
	}
	return 0;
}

/*
 * Sections first: a debug file keeps the program headers of the stripped file,
 * whose offsets are not valid in it.
 */
static int read_headers(struct elffile *f, struct err *e)
{
	struct head h = { 0 };
	int rc = read_head(f, &h, e);

	rc = rc ? rc : read_sections(f, &h, e);
	for (size_t i = 0; !rc && i < f->n_sections && !f->build_id.len; i++)
		if (f->sections[i].type == SHT_NOTE)
			build_id_at(f, f->sections[i].offset, f->sections[i].size, f->sections[i].align);
	return rc ? rc : read_segments(f, &h, e);
}

/* Does not block on a FIFO, and does not make a tty the controlling terminal. */
static int open_file(int dirfd, const char *path, bool in_root)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd;

	if (in_root)
		return open_in_root(dirfd, path, flags);
	fd = openat(dirfd, path, flags);
	return fd < 0 ? -errno : fd;
}

DEFINE_CLEANUP(struct elffile *, elffile_close);

/*
 * Not fstat(3), which may use a system call that takes a path: denied to a
 * process that may not open files.
 */
static int examine(int fd, struct stat *st)
{
#ifdef SYS_fstat
	return (int)syscall(SYS_fstat, fd, st);
#else
	return fstat(fd, st);
#endif
}

static int fill_from(struct elffile *f, struct err *e)
{
	struct stat st;

	if (examine(f->fd, &st) != 0)
		return err_sys(e, -errno, "cannot be examined");
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "is not a regular file");
	f->size = (uint64_t)st.st_size;
	f->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	return read_headers(f, e);
}

int elffile_fd(int fd, struct elffile **ret, struct err *e)
{
	CLEANUP(elffile_close_p) struct elffile *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_nomem(e, "an ELF file");
	f->fd = fd;
	rc = fill_from(f, e);
	if (rc) {
		f->fd = -1;
		return rc;
	}
	*ret = TAKE_PTR(f);
	return 0;
}

int elffile_open(int dirfd, const char *path, bool in_root, struct elffile **ret, struct err *e)
{
	int fd = open_file(dirfd, path, in_root), rc;

	if (fd < 0)
		return err_sys(e, fd, "cannot be opened");
	rc = elffile_fd(fd, ret, e);
	if (rc)
		close(fd);
	return rc;
}

int elffile_image(const void *bytes, size_t len, struct elffile **ret, struct err *e)
{
	CLEANUP(elffile_close_p) struct elffile *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return err_nomem(e, "an ELF image");
	f->fd = -1;
	f->image = bytes;
	f->size = len;
	rc = read_headers(f, e);
	if (rc)
		return rc;
	*ret = TAKE_PTR(f);
	return 0;
}

void elffile_close(struct elffile *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	free(f->loads);
	free(f->sections);
	free(f);
}

int elffile_read(
	const struct elffile *f, const struct elffile_section *s, uint8_t **ret, size_t *len, struct err *e)
{
	int rc;

	if (s->type == SHT_NOBITS)
		return err_set(e, -EINVAL, "occupies no space in the file");
	if (s->flags & SHF_COMPRESSED)
		return err_set(e, -EINVAL, "is compressed");
	if (s->size > SECTION_MAX)
		return err_sys(e, -EFBIG, "claims %llu bytes", (unsigned long long)s->size);
	rc = read_new(f, s->offset, s->size, ret, e);
	if (rc == 0)
		*len = s->size;
	return rc;
}

int elffile_read_vaddr(
	const struct elffile *f, uint64_t vaddr, uint64_t max, uint8_t **ret, size_t *len, struct err *e)
{
	for (size_t i = 0; i < f->n_loads; i++) {
		const struct elffile_load *l = &f->loads[i];
		uint64_t at = vaddr - l->vaddr;

		if (vaddr < l->vaddr || at >= l->filesz || l->offset > UINT64_MAX - at)
			continue;
		*len = MIN(MIN(max, l->filesz - at), SECTION_MAX);
		return read_new(f, l->offset + at, *len, ret, e);
	}
	return err_set(e, -EINVAL, "has nothing at address 0x%llx", (unsigned long long)vaddr);
}

static bool in_load(const struct elffile_load *l, uint64_t offset)
{
	return offset >= l->offset && offset - l->offset < l->filesz;
}

/*
 * The kernel maps whole pages, so bytes right before and behind a load are
 * reachable too. The page decides only if no load contains the offset.
 */
static bool in_load_page(const struct elffile_load *l, uint64_t offset)
{
	uint64_t first = l->offset & ~(uint64_t)(PAGE - 1);
	uint64_t slack = l->offset - first + PAGE - 1;

	return l->filesz && offset >= first && offset - first < ((l->filesz + slack) & ~(uint64_t)(PAGE - 1));
}

bool elffile_vaddr(const struct elffile *f, uint64_t offset, uint64_t *vaddr)
{
	const struct elffile_load *best = NULL;
	int best_rank = 0;

	for (size_t i = 0; i < f->n_loads; i++) {
		const struct elffile_load *l = &f->loads[i];
		int rank = in_load(l, offset) ? 3 : in_load_page(l, offset) ? 1 : 0;

		rank += rank && l->exec ? 1 : 0;
		if (rank > best_rank) {
			best = l;
			best_rank = rank;
		}
	}
	if (best)
		*vaddr = offset - best->offset + best->vaddr;
	return best != NULL;
}
