/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/section.h"
#include "base/bytes.h"

#include <elf.h>
#include <errno.h>
#include <libdeflate.h>
#include <zstd.h>

#define NAMES_MAX (16 << 20)
#define ZLIB_RATIO_MAX 1032 /* best ratio of deflate */
#define ZSTD_RATIO_MAX 32768 /* a block of 128 KiB that repeats one byte takes four bytes */
#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

int elfsection_names(const struct elffile *f, struct elfsection_names *ret, struct err *e)
{
	*ret = (struct elfsection_names){ 0 };
	if (f->names >= f->n_sections || f->sections[f->names].type != SHT_STRTAB)
		return 0;
	if (f->sections[f->names].size > NAMES_MAX)
		return err_set(e, -EINVAL, "claims %llu bytes of section names",
			(unsigned long long)f->sections[f->names].size);
	if (elffile_read(f, &f->sections[f->names], &ret->bytes, &ret->len, e) != 0)
		return err_prefix(e, "its section names"), -EINVAL;
	return 0;
}

void elfsection_names_free(struct elfsection_names *n)
{
	free(n->bytes);
	*n = (struct elfsection_names){ 0 };
}

/* NAMES ends in a NUL that is not in the file, so every name is terminated. */
static const char *name_of(const struct elfsection_names *names, const struct elffile_section *s)
{
	return s->name < names->len ? (const char *)names->bytes + s->name : "";
}

/* ".debug_frame" also matches ".zdebug_frame". */
static bool is_named(const char *have, const char *name, bool *z)
{
	*z = have[0] == '.' && have[1] == 'z' && name[0] == '.' && strcmp(have + 2, name + 1) == 0;
	return *z || strcmp(have, name) == 0;
}

typedef bool unpacker(uint8_t *to, size_t size, const uint8_t *from, size_t n);

#if defined(__aarch64__)
/*
 * Before 1.15 libdeflate reads /proc/self/auxv to know this CPU, the first time that it computes
 * something: in the sandbox of a worker this system call kills the process. So do it as
 * the program starts.
 */
__attribute__((constructor)) static void know_cpu(void)
{
	libdeflate_adler32(1, "", 1);
}
#endif

/* Decompress N bytes to exactly SIZE. libdeflate is twice as fast as zlib for whole sections. */
static bool unpack_zlib(uint8_t *to, size_t size, const uint8_t *from, size_t n)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	bool done = d && libdeflate_zlib_decompress(d, from, n, to, size, NULL) == LIBDEFLATE_SUCCESS;

	libdeflate_free_decompressor(d);
	return done;
}

static bool unpack_zstd(uint8_t *to, size_t size, const uint8_t *from, size_t n)
{
	return ZSTD_decompress(to, size, from, n) == size;
}

static int unpack_into(unpacker *unpack, uint64_t ratio, const uint8_t *from, size_t n, uint64_t size,
	struct elfsection *ret, struct err *e)
{
	_cleanup_free_ uint8_t *p = NULL;

	if (size / ratio > n)
		return err_set(e, -EINVAL, "claims %llu bytes out of %zu", (unsigned long long)size, n);
	p = malloc(size + 1);
	if (!p)
		return err_nomem(e, "a section");
	if (!unpack(p, size, from, n))
		return err_set(e, -EINVAL, "cannot be uncompressed");
	p[size] = 0;
	free(ret->bytes);
	ret->bytes = TAKE_PTR(p);
	ret->len = size;
	return 0;
}

static int too_big(uint64_t size, struct err *e)
{
	return err_set(e, -E2BIG, "takes %llu bytes", (unsigned long long)size);
}

/* RET has "ZLIB", the size and the stream. */
static int uncompress_z(uint64_t max, struct elfsection *ret, struct err *e)
{
	uint64_t size = 0;

	if (ret->len < 12 || memcmp(ret->bytes, "ZLIB", 4) != 0)
		return err_set(e, -EINVAL, "is not compressed as its name says");
	for (int i = 4; i < 12; i++)
		size = size << 8 | ret->bytes[i];
	if (size > max)
		return too_big(size, e);
	return unpack_into(unpack_zlib, ZLIB_RATIO_MAX, ret->bytes + 12, ret->len - 12, size, ret, e);
}

/* RET has an Elf64_Chdr or Elf32_Chdr and the stream. */
static int uncompress_chdr(const struct elffile *f, uint64_t max, struct elfsection *ret, struct err *e)
{
	struct rd r = rd_init(ret->bytes, ret->len);
	uint32_t type = rd_u32(&r);
	uint64_t size;

	if (f->is64)
		rd_u32(&r);
	size = rd_fixed(&r, f->is64 ? 8 : 4);
	rd_fixed(&r, f->is64 ? 8 : 4); /* ch_addralign */
	if (r.bad)
		return err_set(e, -EINVAL, "is too short to be compressed");
	if (type != ELFCOMPRESS_ZLIB && type != ELFCOMPRESS_ZSTD)
		return err_set(e, -EOPNOTSUPP, "is compressed in way %u", type);
	if (size > max)
		return too_big(size, e);
	if (type == ELFCOMPRESS_ZSTD)
		return unpack_into(unpack_zstd, ZSTD_RATIO_MAX, r.p, rd_left(&r), size, ret, e);
	return unpack_into(unpack_zlib, ZLIB_RATIO_MAX, r.p, rd_left(&r), size, ret, e);
}

static int load(const struct elffile *f, const struct elffile_section *s, bool z, uint64_t max,
	struct elfsection *ret, struct err *e)
{
	struct elffile_section raw = *s;
	int rc;

	if (s->size > max)
		return too_big(s->size, e);
	raw.flags &= ~(uint64_t)SHF_COMPRESSED;
	ret->header = s;
	rc = elffile_read(f, &raw, &ret->bytes, &ret->len, e);
	if (rc == 0 && z)
		rc = uncompress_z(max, ret, e);
	else if (rc == 0 && s->flags & SHF_COMPRESSED)
		rc = uncompress_chdr(f, max, ret, e);
	if (rc)
		elfsection_free(ret);
	return rc;
}

static bool occupies(const struct elffile_section *s)
{
	return s->type != SHT_NOBITS && s->type != SHT_NULL;
}

static const struct elffile_section *find(
	const struct elffile *f, const struct elfsection_names *names, const char *name, bool *z)
{
	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];

		if (occupies(s) && is_named(name_of(names, s), name, z))
			return s;
	}
	return NULL;
}

const struct elffile_section *elfsection_find(
	const struct elffile *f, const struct elfsection_names *names, const char *name, bool *packed)
{
	bool z = false;
	const struct elffile_section *s = find(f, names, name, &z);

	*packed = s && (z || s->flags & SHF_COMPRESSED);
	return s;
}

bool elfsection_has(const struct elffile *f, const struct elfsection_names *names, const char *name)
{
	bool z;

	for (size_t i = 0; i < f->n_sections; i++)
		if (occupies(&f->sections[i]) && f->sections[i].size &&
			is_named(name_of(names, &f->sections[i]), name, &z))
			return true;
	return false;
}

int elfsection_load(const struct elffile *f, const struct elfsection_names *names, const char *name,
	uint64_t max, struct elfsection *ret, struct err *e)
{
	bool z;
	const struct elffile_section *s = find(f, names, name, &z);
	int rc;

	*ret = (struct elfsection){ 0 };
	if (!s)
		return 0;
	rc = load(f, s, z, max, ret, e);
	if (rc)
		err_prefix(e, "its %s", name);
	return rc ? rc : 1;
}

void elfsection_free(struct elfsection *s)
{
	free(s->bytes);
	*s = (struct elfsection){ 0 };
}
