/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/btf.h"
#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KINDS 20
#define BYTES_MAX (256 << 20)

void btf_image_release(struct btf_image *b)
{
	if (b->mapped)
		munmap((void *)(uintptr_t)b->bytes, b->len);
	else
		free((void *)(uintptr_t)b->bytes);
	free(b->at);
}

/*
 * Linux 6.16 and later can map their BTF, which saves copying some megabytes.
 * Any other file is read: it may shrink meanwhile, and a reader that maps it
 * would be killed by SIGBUS.
 */
int btf_image_read(struct btf_image *b, int fd, const char *name, bool fixed, struct err *e)
{
	struct stat st;
	uint8_t *p;
	ssize_t got = 1;

	if (fstat(fd, &st) != 0)
		return err_sys(e, -errno, "cannot read the kernel's BTF, '%s'", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%s' is not a regular file", name);
	if (st.st_size > BYTES_MAX)
		return err_set(
			e, -EINVAL, "'%s' is too large for BTF: %lld bytes", name, (long long)st.st_size);
	p = fixed ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (p != MAP_FAILED) {
		*b = (struct btf_image){ .bytes = p, .len = (size_t)st.st_size, .mapped = true };
		return 0;
	}
	p = malloc((size_t)st.st_size + 1);
	if (!p)
		return err_nomem(e, "the kernel's BTF");
	*b = (struct btf_image){ .bytes = p };
	while (got > 0 && b->len < (size_t)st.st_size) {
		got = read(fd, p + b->len, (size_t)st.st_size - b->len);
		b->len += got > 0 ? (size_t)got : 0;
	}
	if (got >= 0)
		return 0;
	got = -errno;
	btf_image_release(b);
	*b = (struct btf_image){ 0 };
	return err_sys(e, (int)got, "cannot read the kernel's BTF, '%s'", name);
}

static int find_sections(struct btf_image *b)
{
	struct btf_header h;

	if (b->len < sizeof(h))
		return -EINVAL;
	memcpy(&h, b->bytes, sizeof(h));
	if (h.magic != BTF_MAGIC || h.version != BTF_VERSION || h.hdr_len < sizeof(h) ||
		(uint64_t)h.hdr_len + h.type_off + h.type_len > b->len ||
		(uint64_t)h.hdr_len + h.str_off + h.str_len > b->len || h.hdr_len % 4 || h.type_off % 4)
		return -EINVAL;
	b->types = b->bytes + h.hdr_len + h.type_off;
	b->types_len = h.type_len;
	b->strings = (const char *)b->bytes + h.hdr_len + h.str_off;
	b->strings_len = h.str_len;
	return h.str_len && !b->strings[h.str_len - 1] ? 0 : -EINVAL;
}

/* The number of bytes after a struct btf_type. */
static uint32_t tail_bytes(uint32_t kind, uint32_t vlen)
{
	static const struct {
		uint8_t fixed, each;
	} tail[KINDS] = { [BTF_KIND_INT] = { 4, 0 },
		[BTF_KIND_ARRAY] = { sizeof(struct btf_array), 0 },
		[BTF_KIND_STRUCT] = { 0, sizeof(struct btf_member) },
		[BTF_KIND_UNION] = { 0, sizeof(struct btf_member) },
		[BTF_KIND_ENUM] = { 0, sizeof(struct btf_enum) },
		[BTF_KIND_FUNC_PROTO] = { 0, sizeof(struct btf_param) },
		[BTF_KIND_VAR] = { sizeof(struct btf_var), 0 },
		[BTF_KIND_DATASEC] = { 0, sizeof(struct btf_var_secinfo) },
		[BTF_KIND_DECL_TAG] = { sizeof(struct btf_decl_tag), 0 },
		[BTF_KIND_ENUM64] = { 0, sizeof(struct btf_enum64) } };

	return tail[kind].fixed + vlen * tail[kind].each;
}

const struct btf_type *btf_image_type(const struct btf_image *b, uint32_t id)
{
	return id && id < b->n ? (const void *)(b->types + b->at[id]) : NULL;
}

const char *btf_image_name(const struct btf_image *b, uint32_t off)
{
	return off < b->strings_len ? b->strings + off : NULL;
}

/* Record the offset of every id. */
static int index_types(struct btf_image *b)
{
	struct btf_type t;
	uint32_t at = 0, kind;

	b->n = 1;
	while (at < b->types_len) {
		if (b->types_len - at < sizeof(t))
			return -EINVAL;
		memcpy(&t, b->types + at, sizeof(t));
		kind = BTF_INFO_KIND(t.info);
		if (!kind || kind >= KINDS || t.name_off >= b->strings_len ||
			b->types_len - at - sizeof(t) < tail_bytes(kind, BTF_INFO_VLEN(t.info)))
			return -EINVAL;
		if (b->n >= b->cap && base_grow(&b->at, &b->cap, b->n + 1, sizeof(*b->at)) != 0)
			return -ENOMEM;
		b->at[b->n++] = at;
		at += (uint32_t)sizeof(t) + tail_bytes(kind, BTF_INFO_VLEN(t.info));
	}
	return 0;
}

int btf_image_parse(struct btf_image *b)
{
	int rc = find_sections(b);

	return rc ? rc : index_types(b);
}
