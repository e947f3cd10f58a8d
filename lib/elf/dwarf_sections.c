/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwarf_sections.h"

#include <errno.h>

#define BLOCK (16 << 10) /* bytes of strings per read */
#define STRING_MAX (64 << 10)

static const char *const names[DWARF_SECTION_COUNT] = {
	[DWARF_SECTION_INFO] = ".debug_info",
	[DWARF_SECTION_TYPES] = ".debug_types",
	[DWARF_SECTION_ABBREV] = ".debug_abbrev",
	[DWARF_SECTION_STR] = ".debug_str",
	[DWARF_SECTION_LINE] = ".debug_line",
	[DWARF_SECTION_LINE_STR] = ".debug_line_str",
	[DWARF_SECTION_STR_OFFSETS] = ".debug_str_offsets",
	[DWARF_SECTION_ADDR] = ".debug_addr",
	[DWARF_SECTION_RANGES] = ".debug_ranges",
	[DWARF_SECTION_RNGLISTS] = ".debug_rnglists",
	[DWARF_SECTION_CU_INDEX] = ".debug_cu_index",
	[DWARF_SECTION_TU_INDEX] = ".debug_tu_index",
};

/*
 * A block of a string section, and the string that begins in it and ends in a
 * later block. There is at most one; all requested suffixes are part of it.
 */
struct block {
	char *bytes; /* NULL = not read yet */
	uint32_t len, tail_from; /* where the tail begins; len = there is none */
	char *tail;
};

struct section {
	char name[32];
	uint64_t offset, size; /* in the file */
	bool packed;
	struct elfsection whole; /* of a compressed one, after first use */
	int failed; /* -errno of decompressing it, returned again */
	char *why;
	struct block *blocks; /* of a string section */
};

struct dwarf_sections {
	const struct elffile *f;
	struct elfsection_names names;
	uint64_t max, held;
	struct section of[DWARF_SECTION_COUNT];
};

/* The indexes of a .dwp describe split DWARF but are not part of it. */
static bool is_index(size_t id)
{
	return id == DWARF_SECTION_CU_INDEX || id == DWARF_SECTION_TU_INDEX;
}

static void find_section(struct dwarf_sections *s, size_t id, bool dwo)
{
	struct section *x = &s->of[id];
	const struct elffile_section *h;

	snprintf(x->name, sizeof(x->name), "%s%s", names[id], dwo && !is_index(id) ? ".dwo" : "");
	h = elfsection_find(s->f, &s->names, x->name, &x->packed);
	if (!h)
		return;
	x->offset = h->offset;
	x->size = h->size;
}

DEFINE_CLEANUP(struct dwarf_sections *, dwarf_sections_close);

int dwarf_sections_open(
	const struct elffile *f, bool dwo, uint64_t max_bytes, struct dwarf_sections **ret, struct err *e)
{
	CLEANUP(dwarf_sections_close_p) struct dwarf_sections *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(e, "debug sections");
	s->f = f;
	s->max = max_bytes;
	rc = elfsection_names(f, &s->names, e);
	if (rc)
		return rc;
	for (size_t id = 0; id < DWARF_SECTION_COUNT; id++)
		find_section(s, id, dwo);
	*ret = TAKE_PTR(s);
	return 0;
}

static uint64_t n_blocks(const struct section *x)
{
	return x->size / BLOCK + 1;
}

static void drop(struct section *x)
{
	for (uint64_t i = 0; x->blocks && i < n_blocks(x); i++) {
		free(x->blocks[i].bytes);
		free(x->blocks[i].tail);
	}
	free(x->blocks);
	free(x->why);
	elfsection_free(&x->whole);
}

void dwarf_sections_close(struct dwarf_sections *s)
{
	if (!s)
		return;
	for (size_t id = 0; id < DWARF_SECTION_COUNT; id++)
		drop(&s->of[id]);
	elfsection_names_free(&s->names);
	free(s);
}

/* --- pieces --- */

static int unpack(struct dwarf_sections *s, struct section *x, struct err *e)
{
	struct err why = { 0 };
	int rc;

	if (x->whole.bytes)
		return 0;
	if (x->failed)
		return err_set(e, x->failed, "%s", x->why ? x->why : x->name);
	rc = elfsection_load(s->f, &s->names, x->name, s->max - s->held, &x->whole, &why);
	if (rc == 1) {
		s->held += x->whole.len;
		return 0;
	}
	x->failed = rc ? rc : -EINVAL;
	x->why = strdup(why.msg);
	if (e)
		*e = why;
	return x->failed;
}

uint64_t dwarf_sections_size(struct dwarf_sections *s, enum dwarf_section_id id)
{
	struct section *x = &s->of[id];

	return x->packed && unpack(s, x, NULL) == 0 ? x->whole.len : x->size;
}

static int room_for(struct dwarf_piece *p, uint64_t len, struct err *e)
{
	size_t cap = MAX(len + 1, MIN(2 * (uint64_t)p->cap, len + len / 2));
	uint8_t *own;

	if (p->cap > len)
		return 0;
	own = malloc(cap);
	if (!own)
		return err_nomem(e, "a piece of debug information");
	free(p->own);
	p->own = own;
	p->cap = cap;
	return 0;
}

static int copy_out(
	struct dwarf_sections *s, const struct section *x, uint64_t at, void *to, size_t len, struct err *e)
{
	int rc;

	if (x->whole.bytes) {
		memcpy(to, x->whole.bytes + at, len);
		return 0;
	}
	if (x->offset > UINT64_MAX - at)
		return err_set(e, -EINVAL, "its %s points outside the file", x->name);
	rc = elffile_read_at(s->f, x->offset + at, to, len, e);
	if (rc)
		err_prefix(e, "its %s", x->name);
	return rc;
}

int dwarf_sections_read(struct dwarf_sections *s, enum dwarf_section_id id, uint64_t at, uint64_t len,
	struct dwarf_piece *p, struct err *e)
{
	struct section *x = &s->of[id];
	uint64_t size = dwarf_sections_size(s, id);
	int rc;

	p->len = 0;
	if (x->packed && (rc = unpack(s, x, e)) != 0)
		return rc;
	if (at >= size)
		return err_set(
			e, -EINVAL, "its %s ends before offset 0x%llx", x->name, (unsigned long long)at);
	len = MIN(len, size - at);
	if (len > s->max)
		return err_set(e, -E2BIG, "its %s: %llu bytes at once", x->name, (unsigned long long)len);
	rc = room_for(p, len, e);
	rc = rc ? rc : copy_out(s, x, at, p->own, len, e);
	if (rc)
		return rc;
	p->own[len] = 0;
	p->bytes = p->own;
	p->len = len;
	p->at = at;
	return 0;
}

void dwarf_piece_free(struct dwarf_piece *p)
{
	free(p->own);
	*p = (struct dwarf_piece){ 0 };
}

/* --- strings --- */

static char *read_new(struct dwarf_sections *s, const struct section *x, uint64_t at, uint64_t len)
{
	_cleanup_free_ char *p = NULL;

	if (len > s->max - s->held)
		return NULL;
	p = malloc(len + 1);
	if (!p || copy_out(s, x, at, p, len, NULL) != 0)
		return NULL;
	p[len] = 0;
	s->held += len;
	return TAKE_PTR(p);
}

static bool make_blocks(struct dwarf_sections *s, struct section *x)
{
	uint64_t bytes = n_blocks(x) * sizeof(*x->blocks);

	if (x->offset > s->f->size || x->size > s->f->size - x->offset || bytes > s->max - s->held)
		return false;
	x->blocks = calloc(1, bytes);
	s->held += x->blocks ? bytes : 0;
	return x->blocks != NULL;
}

static bool load_block(struct dwarf_sections *s, struct section *x, uint64_t i)
{
	struct block *b;
	const char *nul;

	if (!x->blocks && !make_blocks(s, x))
		return false;
	b = &x->blocks[i];
	if (b->bytes)
		return true;
	b->len = (uint32_t)MIN(x->size - i * BLOCK, BLOCK);
	b->bytes = read_new(s, x, i * BLOCK, b->len);
	if (!b->bytes)
		return false;
	nul = memrchr(b->bytes, 0, b->len);
	b->tail_from = nul ? (uint32_t)(nul + 1 - b->bytes) : 0;
	return true;
}

/* The string at IN of block I if it is the one that ends in a later block. */
static const char *from_tail(struct dwarf_sections *s, struct section *x, uint64_t i, size_t in)
{
	struct block *b = &x->blocks[i];
	uint64_t at = i * BLOCK + b->tail_from;

	if (!b->tail)
		b->tail = read_new(s, x, at, MIN(x->size - at, (uint64_t)STRING_MAX + BLOCK));
	return b->tail ? b->tail + (in - b->tail_from) : NULL;
}

/* A NUL is always found, but the one behind the section does not end a string. */
static const char *checked(const char *str, uint64_t left)
{
	return str && strnlen(str, MIN(left, STRING_MAX)) < MIN(left, STRING_MAX) ? str : NULL;
}

const char *dwarf_sections_string(struct dwarf_sections *s, enum dwarf_section_id id, uint64_t at)
{
	struct section *x = &s->of[id];
	uint64_t i = at / BLOCK, in = at % BLOCK;

	if (x->packed) {
		if (unpack(s, x, NULL) != 0 || at >= x->whole.len)
			return NULL;
		return checked((const char *)x->whole.bytes + at, x->whole.len - at);
	}
	if (at >= x->size || !load_block(s, x, i))
		return NULL;
	if (in < x->blocks[i].tail_from)
		return x->blocks[i].bytes + in;
	return checked(from_tail(s, x, i, in), x->size - at);
}

uint64_t dwarf_sections_bytes(const struct dwarf_sections *s)
{
	return s->held;
}
