/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/minidebug.h"
#include "elf/section.h"

#include <errno.h>
#include <lzma.h>
#include <string.h>

#define MAX_DEFAULT (UINT64_C(256) << 20)
#define DECODER_MAX (UINT64_C(128) << 20) /* xz -9 needs 65 MiB */
#define FIRST_ROOM (256 << 10)

static int message_of(lzma_ret rc, struct err *e)
{
	switch (rc) {
	case LZMA_MEM_ERROR:
		return err_nomem(e, "unpacking .gnu_debugdata");
	case LZMA_MEMLIMIT_ERROR:
		return err_set(e, -EOPNOTSUPP, "takes more memory to unpack than %llu MiB",
			(unsigned long long)(DECODER_MAX >> 20));
	case LZMA_OPTIONS_ERROR:
		return err_set(e, -EOPNOTSUPP, "is packed in a way that is not known");
	case LZMA_FORMAT_ERROR:
		return err_set(e, -EINVAL, "is not an xz stream");
	case LZMA_OK: /* more input is needed, but there is none */
	case LZMA_BUF_ERROR:
		return err_set(e, -EINVAL, "is cut");
	default:
		return err_set(e, -EINVAL, "is damaged");
	}
}

static int grow(struct minidebug *m, lzma_stream *z, uint64_t max, struct err *e)
{
	size_t room = m->len ? m->len * 2 : FIRST_ROOM;
	void *p;

	if (m->len >= max)
		return err_set(e, -E2BIG, "has more than %llu bytes inside", (unsigned long long)max);
	room = MIN(room, max);
	p = realloc(m->bytes, room);
	if (!p)
		return err_nomem(e, "unpacking .gnu_debugdata");
	m->bytes = p;
	z->next_out = (uint8_t *)p + m->len;
	z->avail_out = room - m->len;
	m->len = room;
	return 0;
}

/* Decompress the whole stream into M. Meanwhile M->len is the allocated size. */
static int unpack_into(lzma_stream *z, uint64_t max, struct minidebug *m, struct err *e)
{
	lzma_ret rc = lzma_stream_decoder(z, DECODER_MAX, LZMA_CONCATENATED);
	int grown = 0;

	while (rc == LZMA_OK) {
		if (z->avail_out == 0)
			grown = grow(m, z, max, e);
		if (grown)
			return grown;
		rc = lzma_code(z, LZMA_FINISH);
	}
	m->len -= z->avail_out;
	return rc == LZMA_STREAM_END ? 0 : message_of(rc, e);
}

static int unpack(const struct elfsection *s, uint64_t max, struct minidebug *m, struct err *e)
{
	lzma_stream z = LZMA_STREAM_INIT;
	int rc;

	z.next_in = s->bytes;
	z.avail_in = s->len;
	rc = unpack_into(&z, max, m, e);
	lzma_end(&z);
	return rc;
}

/* Check that it was made from F: same machine, and the same build ID if both have one. */
static int examine(const struct elffile *f, struct minidebug *m, struct err *e)
{
	int rc = elffile_image(m->bytes, m->len, &m->elf, e);
	const struct cap_build_id *is, *want = &f->build_id;

	if (rc)
		return rc;
	is = &m->elf->build_id;
	if (m->elf->machine != f->machine || m->elf->is64 != f->is64)
		return err_set(e, -EINVAL, "is of another machine");
	if (is->len && want->len && !cap_build_id_same(is, want))
		return err_set(e, -EINVAL, "is another file's: its build ID differs");
	return 0;
}

int minidebug_open(const struct elffile *f, uint64_t max_bytes, struct minidebug *ret, struct err *e)
{
	uint64_t max = max_bytes ? max_bytes : MAX_DEFAULT;
	struct elfsection_names names;
	struct elfsection s = { 0 };
	int rc = elfsection_names(f, &names, e);

	*ret = (struct minidebug){ 0 };
	if (rc)
		return rc;
	rc = elfsection_load(f, &names, ".gnu_debugdata", max, &s, e);
	elfsection_names_free(&names);
	if (rc <= 0)
		return rc;
	rc = unpack(&s, max, ret, e);
	elfsection_free(&s);
	rc = rc ? rc : examine(f, ret, e);
	if (rc) {
		err_prefix(e, "its .gnu_debugdata");
		minidebug_close(ret);
		return rc;
	}
	return 1;
}

void minidebug_close(struct minidebug *m)
{
	elffile_close(m->elf);
	free(m->bytes);
	*m = (struct minidebug){ 0 };
}
