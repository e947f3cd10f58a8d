/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwarf_lines.h"
#include "base/search.h"

#include <errno.h>

struct dwarf_rows_program {
	struct rd ops;
	uint8_t min_inst, max_ops, line_range, opcode_base; /* as in the heading; the last two are not 0 */
	int8_t line_base;
	const uint8_t *lengths; /* the number of operands of opcode 1, 2, ... below opcode_base */
	uint64_t top; /* the highest possible address */
	bool zero_ok; /* code may be at address 0 */
	/* called for DW_LNE_define_file with what follows the opcode. 0, -EINVAL, -ENOMEM */
	int (*define_file)(void *ctx, struct rd *r);
	void *ctx;
};

enum { /* DW_LNS_* */
	LNS_COPY = 1,
	LNS_ADVANCE_PC,
	LNS_ADVANCE_LINE,
	LNS_SET_FILE,
	LNS_SET_COLUMN,
	LNS_NEGATE_STMT,
	LNS_SET_BASIC_BLOCK,
	LNS_CONST_ADD_PC,
	LNS_FIXED_ADVANCE_PC,
	LNS_SET_PROLOGUE_END,
	LNS_SET_EPILOGUE_BEGIN,
	LNS_SET_ISA
};

/*
 * Limits for addresses that several sequences cover: a few functions that the
 * linker folded, or a program that was made to waste time.
 */
#define OVERLAPS_MAX 64
#define OVERLAPS_PER_BYTE 8

enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS, LNE_DEFINE_FILE }; /* DW_LNE_* */

/*
 * Most bytes of a program are special opcodes, and most rows contain no
 * address: a row costs two additions and one comparison with `trigger`.
 */
struct run {
	const struct dwarf_rows_program *p;
	const uint64_t *vaddrs;
	size_t n, next; /* vaddrs[next] is the first one that is not below the last row */
	struct dwarf_line_row *rows;
	uint64_t *starts; /* start of the sequence that set rows[i], plus one; 0 = none */
	uint64_t settled, settled_max; /* rows set */
	uint64_t trigger; /* a row at this address or above needs work */
	uint64_t start; /* of the sequence */
	bool begun, dead; /* it has a row; it is discarded code */
	uint64_t at; /* address of the last row, and the row */
	struct dwarf_line_row row;
	uint64_t address; /* the registers */
	uint32_t op_index;
	struct dwarf_line_row now;
	uint32_t address_of[256]; /* advances of the special opcodes, when max_ops is 1 */
	int32_t line_of[256];
};

/* Most operands are one byte. */
static inline uint64_t uleb(struct rd *r)
{
	return r->p < r->end && *r->p < 0x80 ? *r->p++ : rd_uleb(r);
}

static inline int64_t sleb(struct rd *r)
{
	return r->p < r->end && *r->p < 0x80 ? (*r->p++ ^ 0x40) - 0x40 : rd_sleb(r);
}

static void set_trigger(struct run *x)
{
	if (x->dead)
		x->trigger = UINT64_MAX;
	else if (!x->begun)
		x->trigger = 0;
	else if (x->next < x->n && x->vaddrs[x->next] < UINT64_MAX)
		x->trigger = x->vaddrs[x->next] + 1;
	else
		x->trigger = UINT64_MAX;
}

/* Set the last row for the addresses below END. */
static void settle(struct run *x, uint64_t end)
{
	for (; x->next < x->n && x->vaddrs[x->next] < end; x->next++) {
		x->settled++;
		if (x->starts[x->next] > x->start)
			continue;
		x->rows[x->next] = x->row;
		x->starts[x->next] = x->start + 1;
	}
}

static void begin(struct run *x)
{
	size_t low = PARTITION_POINT(0, x->n, mid, x->vaddrs[mid] < x->address);

	x->next = low;
	x->start = x->address;
	x->begun = true;
}

static __attribute__((noinline)) void triggered(struct run *x)
{
	if (x->dead)
		return;
	if (x->begun)
		settle(x, x->address);
	else
		begin(x);
	set_trigger(x);
}

static inline void add_row(struct run *x)
{
	if (x->address >= x->trigger)
		triggered(x);
	x->at = x->address;
	x->row = x->now;
}

/* End the sequence here, without a known end. */
static void interrupt(struct run *x)
{
	x->begun = false;
	set_trigger(x);
}

static void set_address(struct run *x, uint64_t address)
{
	x->dead = address >= x->p->top - 1 || (address == 0 && !x->p->zero_ok);
	if (x->dead || (x->begun && address < x->at))
		x->begun = false;
	x->address = address;
	x->op_index = 0;
	set_trigger(x);
}

static void reset(struct run *x)
{
	x->begun = false;
	x->now = (struct dwarf_line_row){ .file = 1, .line = 1 };
	set_address(x, 0);
}

static void move(struct run *x, uint64_t bytes)
{
	x->address += bytes;
	if (x->begun && x->address < x->at)
		interrupt(x);
}

/* Advance by COUNT operations: instructions, or slots in one if it holds several. */
static void advance(struct run *x, uint64_t count)
{
	if (x->p->max_ops > 1) {
		count += x->op_index;
		x->op_index = (uint32_t)(count % x->p->max_ops);
		count /= x->p->max_ops;
	}
	move(x, count * x->p->min_inst);
}

static void one_special(struct run *x, uint8_t op)
{
	unsigned int adjusted = (unsigned int)op - x->p->opcode_base;

	advance(x, adjusted / x->p->line_range);
	x->now.line += (uint32_t)x->line_of[op];
	add_row(x);
}

/* Run consecutive special opcodes. */
static void specials(struct run *x, struct rd *r)
{
	const uint8_t *p = r->p, base = x->p->opcode_base;
	uint64_t address = x->address;
	uint32_t line = x->now.line, last = x->row.line;

	for (; p < r->end && *p >= base; p++) {
		address += x->address_of[*p];
		line += (uint32_t)x->line_of[*p];
		if (address >= x->trigger) {
			x->address = address;
			x->row.line = last;
			triggered(x);
		}

		x->row.file = x->now.file;
		x->row.column = x->now.column;
		last = line;
	}
	x->at = x->address = address;
	x->row.line = x->now.line = line;
	r->p = p;
}

static int extended(struct run *x, struct rd *r)
{
	uint64_t len = uleb(r);
	const uint8_t *bytes = rd_bytes(r, len);
	struct rd in = rd_init(bytes, bytes ? len : 0);

	if (!bytes || !len)
		return bytes ? 0 : -EINVAL;
	switch (rd_u8(&in)) {
	case LNE_END_SEQUENCE:
		if (x->begun && !x->dead)
			settle(x, x->address);
		reset(x);
		return 0;
	case LNE_SET_ADDRESS:
		if (rd_left(&in) == 0 || rd_left(&in) > 8)
			return -EINVAL;
		set_address(x, rd_fixed(&in, rd_left(&in)));
		return 0;
	case LNE_DEFINE_FILE:
		return x->p->define_file(x->p->ctx, &in);
	default: /* discriminators and extensions */
		return 0;
	}
}

static uint32_t clamp(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static void standard(struct run *x, uint8_t op, struct rd *r)
{
	switch (op) {
	case LNS_COPY:
		add_row(x);
		break;
	case LNS_ADVANCE_PC:
		advance(x, uleb(r));
		break;
	case LNS_ADVANCE_LINE:
		x->now.line += (uint32_t)sleb(r);
		break;
	case LNS_SET_FILE:
		x->now.file = clamp(uleb(r));
		break;
	case LNS_SET_COLUMN:
		x->now.column = clamp(uleb(r));
		break;
	case LNS_CONST_ADD_PC:
		advance(x, (255U - x->p->opcode_base) / x->p->line_range);
		break;
	case LNS_FIXED_ADVANCE_PC:
		x->op_index = 0;
		move(x, rd_u16(r));
		break;
	case LNS_NEGATE_STMT:
	case LNS_SET_BASIC_BLOCK:
	case LNS_SET_PROLOGUE_END:
	case LNS_SET_EPILOGUE_BEGIN:
		break;
	case LNS_SET_ISA:
		uleb(r);
		break;
	default:
		for (uint8_t i = 0; i < x->p->lengths[op - 1]; i++)
			uleb(r);
	}
}

static int run(struct run *x)
{
	struct rd r = x->p->ops;

	while (rd_left(&r)) {
		uint8_t op = *r.p;
		int rc = 0;

		if (op >= x->p->opcode_base && x->p->max_ops <= 1) {
			specials(x, &r);
			continue;
		}
		r.p++;
		if (op >= x->p->opcode_base)
			one_special(x, op);
		else if (op == 0)
			rc = extended(x, &r);
		else
			standard(x, op, &r);
		if (rc || r.bad || x->settled > x->settled_max)
			return rc ? rc : -EINVAL;
	}
	return 0;
}

static void set_advances(struct run *x)
{
	const struct dwarf_rows_program *p = x->p;

	for (unsigned int op = p->opcode_base; op < 256; op++) {
		unsigned int adjusted = op - p->opcode_base;

		x->address_of[op] = adjusted / p->line_range * p->min_inst;
		x->line_of[op] = p->line_base + (int32_t)(adjusted % p->line_range);
	}
}

/*
 * Set ROWS[i] for VADDRS[i] (ascending). Rows that no sequence covers stay
 * unchanged. -EINVAL if the program breaks off or is malformed: the rows set
 * before are kept. -ENOMEM.
 */
static int dwarf_rows_run(
	const struct dwarf_rows_program *p, const uint64_t *vaddrs, size_t n, struct dwarf_line_row *rows)
{
	_cleanup_free_ uint64_t *starts = calloc(n ? n : 1, sizeof(*starts));
	struct run x = { .p = p, .vaddrs = vaddrs, .n = n, .rows = rows, .starts = starts };

	if (!starts)
		return -ENOMEM;
	x.settled_max = OVERLAPS_MAX * (uint64_t)n + OVERLAPS_PER_BYTE * (uint64_t)rd_left(&p->ops);
	set_advances(&x);
	reset(&x);
	return run(&x);
}

#define FIRST_READ 4096 /* enough for most C units */
#define PATH_BYTES_MAX 4096
#define PATHS_BYTES_MAX (64 << 20) /* one long directory may belong to many files */

#define LENGTH_64BIT 0xffffffff
#define LENGTH_RESERVED 0xfffffff0

enum { LNCT_PATH = 1, LNCT_DIRECTORY_INDEX }; /* DW_LNCT_* */

enum { /* DW_FORM_* that may occur in a heading */
	FORM_BLOCK2 = 0x03,
	FORM_BLOCK4 = 0x04,
	FORM_DATA2 = 0x05,
	FORM_DATA4 = 0x06,
	FORM_DATA8 = 0x07,
	FORM_STRING = 0x08,
	FORM_BLOCK = 0x09,
	FORM_BLOCK1 = 0x0a,
	FORM_DATA1 = 0x0b,
	FORM_FLAG = 0x0c,
	FORM_SDATA = 0x0d,
	FORM_STRP = 0x0e,
	FORM_UDATA = 0x0f,
	FORM_SEC_OFFSET = 0x17,
	FORM_STRX = 0x1a,
	FORM_STRP_SUP = 0x1d,
	FORM_DATA16 = 0x1e,
	FORM_LINE_STRP = 0x1f,
	FORM_STRX1 = 0x25,
	FORM_STRX2 = 0x26,
	FORM_STRX3 = 0x27,
	FORM_STRX4 = 0x28,
	FORM_GNU_STRP_ALT = 0x1f21
};

/* A name inside the heading, or its offset in a string section, or (zeroed) one that cannot be read. */
struct name {
	const char *str;
	uint64_t at;
	enum dwarf_section_id section; /* DWARF_SECTION_STR, DWARF_SECTION_LINE_STR; else no offset */
};

struct file {
	struct name name;
	uint32_t dir;
	bool joined;
	char *path; /* after the first request */
};

struct dwarf_line {
	struct dwarf_sections *s;
	struct dwarf_piece unit;
	char *comp_dir, *name;
	bool cut; /* the section ends before the program does */
	bool wide; /* the 64-bit form */
	uint16_t version;
	struct dwarf_rows_program program;
	struct name *dirs;
	struct file *files;
	struct file own; /* file 0 before DWARF 5 */
	size_t n_dirs, dirs_cap, n_files, files_cap;
	size_t n_head_files; /* without those that the program defines */
	uint64_t paths_bytes;
};

/* --- the heading: files and directories --- */

static const char *rd_string(struct rd *r)
{
	const uint8_t *nul = memchr(r->p, 0, rd_left(r));

	if (!nul)
		r->bad = true;
	return nul ? rd_bytes(r, (size_t)(nul + 1 - r->p)) : NULL;
}

/* Read one value of an entry: a number or a name. */
static uint64_t rd_form(struct rd *r, uint64_t form, bool wide, struct name *name)
{
	*name = (struct name){ .section = DWARF_SECTION_COUNT };
	switch (form) {
	case FORM_STRING:
		name->str = rd_string(r);
		return 0;
	case FORM_STRP:
	case FORM_LINE_STRP:
		name->section = form == FORM_STRP ? DWARF_SECTION_STR : DWARF_SECTION_LINE_STR;
		name->at = rd_fixed(r, wide ? 8 : 4);
		return 0;
	case FORM_STRP_SUP:
	case FORM_GNU_STRP_ALT:
	case FORM_SEC_OFFSET:
		return rd_fixed(r, wide ? 8 : 4);
	case FORM_UDATA:
	case FORM_STRX:
		return rd_uleb(r);
	case FORM_SDATA:
		return (uint64_t)rd_sleb(r);
	case FORM_DATA1:
	case FORM_STRX1:
	case FORM_FLAG:
		return rd_u8(r);
	case FORM_DATA2:
	case FORM_STRX2:
		return rd_u16(r);
	case FORM_STRX3:
		return rd_fixed(r, 3);
	case FORM_DATA4:
	case FORM_STRX4:
		return rd_u32(r);
	case FORM_DATA8:
		return rd_u64(r);
	case FORM_DATA16:
		rd_bytes(r, 16);
		return 0;
	case FORM_BLOCK:
		rd_bytes(r, rd_uleb(r));
		return 0;
	case FORM_BLOCK1:
		rd_bytes(r, rd_u8(r));
		return 0;
	case FORM_BLOCK2:
		rd_bytes(r, rd_u16(r));
		return 0;
	case FORM_BLOCK4:
		rd_bytes(r, rd_u32(r));
		return 0;
	default: /* unknown size */
		r->bad = true;
		return 0;
	}
}

static int add_dir(struct dwarf_line *l, const struct name *name)
{
	if (base_grow(&l->dirs, &l->dirs_cap, l->n_dirs + 1, sizeof(*l->dirs)) != 0)
		return -ENOMEM;
	l->dirs[l->n_dirs++] = *name;
	return 0;
}

static int add_file(struct dwarf_line *l, const struct name *name, uint64_t dir)
{
	if (base_grow(&l->files, &l->files_cap, l->n_files + 1, sizeof(*l->files)) != 0)
		return -ENOMEM;
	l->files[l->n_files++] = (struct file){ .name = *name, .dir = clamp(dir) };
	return 0;
}

/* Read a file as before DWARF 5 and in DW_LNE_define_file, behind its name. */
static int rd_old_file(struct dwarf_line *l, struct rd *r, const char *name)
{
	struct name n = { .str = name, .section = DWARF_SECTION_COUNT };
	uint64_t dir = rd_uleb(r);

	rd_uleb(r); /* time */
	rd_uleb(r); /* length */
	return r->bad ? -EINVAL : add_file(l, &n, dir);
}

static int rd_old_tables(struct dwarf_line *l, struct rd *r)
{
	struct name dir = { .section = DWARF_SECTION_COUNT };
	const char *name;
	int rc = 0;

	while (!rc && (dir.str = rd_string(r)) && dir.str[0])
		rc = add_dir(l, &dir);
	while (!rc && (name = rd_string(r)) && name[0])
		rc = rd_old_file(l, r, name);
	return rc ? rc : r->bad ? -EINVAL : 0;
}

/* Read one table of DWARF 5: its format, its length, its entries. */
static int rd_table(struct dwarf_line *l, struct rd *r, bool files)
{
	struct {
		uint64_t type, form;
	} format[255];
	uint8_t n_format = rd_u8(r);
	uint64_t n;
	int rc = 0;

	for (uint8_t i = 0; i < n_format; i++) {
		format[i].type = rd_uleb(r);
		format[i].form = rd_uleb(r);
	}
	n = rd_uleb(r);
	/* each value takes at least one byte, so the bytes bound the loop */
	if (r->bad || n > (n_format ? rd_left(r) : 0))
		return -EINVAL;
	for (uint64_t k = 0; !rc && k < n; k++) {
		struct name name = { .section = DWARF_SECTION_COUNT }, value;
		uint64_t dir = 0;

		for (uint8_t i = 0; i < n_format; i++) {
			uint64_t v = rd_form(r, format[i].form, l->wide, &value);

			if (format[i].type == LNCT_PATH)
				name = value;
			else if (format[i].type == LNCT_DIRECTORY_INDEX)
				dir = v;
		}
		rc = r->bad ? -EINVAL : files ? add_file(l, &name, dir) : add_dir(l, &name);
	}
	return rc;
}

static int rd_tables(struct dwarf_line *l, struct rd *r)
{
	int rc = l->version < 5 ? rd_old_tables(l, r) : rd_table(l, r, false);

	return rc || l->version < 5 ? rc : rd_table(l, r, true);
}

/* --- the heading: the rest --- */

static int malformed(const struct dwarf_line *l, const char *what, struct err *e)
{
	return err_set(e, -EINVAL, "its line program at 0x%llx %s", (unsigned long long)l->unit.at, what);
}

/* Read the bytes of the unit behind its length. */
static int read_unit(struct dwarf_line *l, uint64_t offset, struct rd *r, struct err *e)
{
	uint64_t left, length;
	int rc = dwarf_sections_read(l->s, DWARF_SECTION_LINE, offset, FIRST_READ, &l->unit, e);

	if (rc)
		return rc;
	*r = rd_init(l->unit.bytes, l->unit.len);
	length = rd_u32(r);
	l->wide = length == LENGTH_64BIT;
	if (l->wide)
		length = rd_u64(r);
	else if (length >= LENGTH_RESERVED)
		return malformed(l, "has a length of no known form", e);
	if (r->bad)
		return malformed(l, "breaks off in its heading", e);
	left = dwarf_sections_size(l->s, DWARF_SECTION_LINE) - offset - (l->wide ? 12 : 4);
	l->cut = length > left;
	length = MIN(length, left);
	if (length > rd_left(r)) {
		rc = dwarf_sections_read(
			l->s, DWARF_SECTION_LINE, offset, length + (l->wide ? 12 : 4), &l->unit, e);
		if (rc)
			return rc;
		*r = rd_init(l->unit.bytes, l->unit.len);
		rd_bytes(r, l->wide ? 12 : 4);
	}
	*r = rd_init(r->p, MIN(length, rd_left(r)));
	return 0;
}

/* Read from the version to the length of the heading. *R then ends with the heading. */
static int read_start(struct dwarf_line *l, struct rd *r, struct err *e)
{
	uint64_t length;

	l->version = rd_u16(r);
	if (r->bad || l->version < 2 || l->version > 5)
		return malformed(l, "is of no known version", e);
	if (l->version >= 5)
		rd_u16(r); /* sizes of an address and a segment selector */
	length = rd_fixed(r, l->wide ? 8 : 4);
	if (r->bad || length > rd_left(r))
		return malformed(l, "is shorter than its heading", e);
	l->program.ops = rd_init(r->p + length, rd_left(r) - length);
	r->end = r->p + length;
	return 0;
}

static int read_heading(struct dwarf_line *l, uint64_t offset, struct err *e)
{
	struct dwarf_rows_program *p = &l->program;
	struct rd r;
	int rc = read_unit(l, offset, &r, e);

	rc = rc ? rc : read_start(l, &r, e);
	if (rc)
		return rc;
	p->min_inst = rd_u8(&r);
	p->max_ops = l->version >= 4 ? rd_u8(&r) : 1;
	rd_u8(&r); /* default_is_stmt */
	p->line_base = (int8_t)rd_u8(&r);
	p->line_range = rd_u8(&r);
	p->opcode_base = rd_u8(&r);
	p->lengths = rd_bytes(&r, p->opcode_base ? p->opcode_base - 1 : 0);
	if (r.bad || !p->opcode_base || !p->line_range)
		return malformed(l, "has a heading that makes no sense", e);
	rc = rd_tables(l, &r);
	l->n_head_files = l->n_files;
	if (rc == -ENOMEM)
		return err_nomem(e, "the files of a line program");
	return rc ? malformed(l, "has tables of files that make no sense", e) : 0;
}

static int define_file(void *ctx, struct rd *r)
{
	const char *name = rd_string(r);

	return r->bad ? -EINVAL : rd_old_file(ctx, r, name);
}

DEFINE_CLEANUP(struct dwarf_line *, dwarf_line_close);

static bool copy_of(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

int dwarf_line_open(
	struct dwarf_sections *s, const struct dwarf_line_opts *o, struct dwarf_line **ret, struct err *e)
{
	CLEANUP(dwarf_line_close_p) struct dwarf_line *l = calloc(1, sizeof(*l));
	int rc;

	if (!l || !copy_of(o->comp_dir, &l->comp_dir) || !copy_of(o->name, &l->name))
		return err_nomem(e, "a line program");
	l->s = s;
	l->program.top = o->addr_size == 4 ? UINT32_MAX : UINT64_MAX;
	l->program.zero_ok = o->zero_ok;
	l->program.define_file = define_file;
	l->program.ctx = l;
	l->own.name = (struct name){ .str = l->name, .section = DWARF_SECTION_COUNT };
	rc = read_heading(l, o->offset, e);
	if (rc)
		return rc;
	*ret = TAKE_PTR(l);
	return 0;
}

static void drop_files(struct dwarf_line *l, size_t from)
{
	for (size_t i = from; i < l->n_files; i++)
		free(l->files[i].path);
	l->n_files = MIN(l->n_files, from);
}

void dwarf_line_close(struct dwarf_line *l)
{
	if (!l)
		return;
	drop_files(l, 0);
	dwarf_piece_free(&l->unit);
	free(l->own.path);
	free(l->files);
	free(l->dirs);
	free(l->comp_dir);
	free(l->name);
	free(l);
}

int dwarf_line_run(
	struct dwarf_line *l, const uint64_t *vaddrs, size_t n, struct dwarf_line_row *rows, struct err *e)
{
	int rc;

	drop_files(l, l->n_head_files);
	rc = dwarf_rows_run(&l->program, vaddrs, n, rows);
	if (rc == -ENOMEM)
		return err_nomem(e, "the rows of a line program");
	if (rc || l->cut)
		return malformed(l, "breaks off", e);
	return 0;
}

/* --- paths --- */

static const char *text_of(struct dwarf_line *l, const struct name *n)
{
	if (n->str)
		return n->str;
	return n->section < DWARF_SECTION_COUNT ? dwarf_sections_string(l->s, n->section, n->at) : NULL;
}

/*
 * Get the directory DIR of a file. Returns false if it cannot be read.
 * *IN_COMP: it is relative to the unit's directory.
 */
static bool dir_of(struct dwarf_line *l, uint32_t dir, const char **text, bool *in_comp)
{
	*in_comp = l->version < 5 || dir != 0;
	*text = "";
	if (l->version < 5 && dir-- == 0)
		return true;
	if (dir >= l->n_dirs)
		return false;
	*text = text_of(l, &l->dirs[dir]);
	return *text != NULL;
}

/* Append PART to the path of *LEN bytes, with a slash between them. */
static bool append(char *path, size_t *len, const char *part)
{
	size_t n = strlen(part), slash = n && *len && path[*len - 1] != '/';

	if (n + slash >= PATH_BYTES_MAX - *len)
		return false;
	path[*len] = '/';
	memcpy(path + *len + slash, part, n + 1);
	*len += slash + n;
	return true;
}

static bool join(struct dwarf_line *l, const struct file *f, char *path, size_t *len)
{
	const char *name = text_of(l, &f->name), *dir;
	bool in_comp;

	if (!name || !name[0])
		return false;
	if (name[0] == '/')
		return append(path, len, name);
	if (!dir_of(l, f->dir, &dir, &in_comp))
		return false;
	if (in_comp && dir[0] != '/' && l->comp_dir && !append(path, len, l->comp_dir))
		return false;
	return append(path, len, dir) && append(path, len, name);
}

static struct file *file_of(struct dwarf_line *l, uint32_t file)
{
	if (l->version < 5 && file == 0)
		return &l->own;
	file -= l->version < 5;
	return file < l->n_files ? &l->files[file] : NULL;
}

const char *dwarf_line_file(struct dwarf_line *l, uint32_t file)
{
	struct file *f = file_of(l, file);
	char path[PATH_BYTES_MAX];
	size_t len = 0;

	if (!f)
		return NULL;
	if (f->joined)
		return f->path;
	f->joined = true;
	if (join(l, f, path, &len) && len < PATHS_BYTES_MAX - l->paths_bytes) {
		f->path = strdup(path);
		l->paths_bytes += len + 1;
	}
	return f->path;
}

uint64_t dwarf_line_bytes(const struct dwarf_line *l)
{
	return sizeof(*l) + l->unit.cap + l->dirs_cap * sizeof(*l->dirs) + l->files_cap * sizeof(*l->files) +
	       l->paths_bytes;
}
