/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text is kept as it was read, with NULs put behind names. `syms` holds
 * every symbol in address order. From it `starts` and `seg` are made: the
 * address space cut into segments, each of one symbol or of none, so that an
 * end is simply the next start. `bucket` cuts the same range into equal
 * pieces, each knowing the first segment that can matter: a look-up is one
 * index and a binary search over the few segments of one piece.
 */
#include "kallsyms.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define LIVE "/proc/kallsyms"
#define FILE_MAX (256u << 20)
#define READ_AHEAD (256u << 10) /* parsed while it is still in the cache */
#define SLACK 16 /* zeroed bytes behind the text: words are read across its end */
#define PAGE 4096u
#define KERNEL_HALF (UINT64_C(1) << 63)

struct sym {
	uint64_t start;
	uint32_t name; /* offset in text; the type letter is two bytes before it */
	uint32_t module; /* offset in text, 0 = the kernel: no module's name is there */
};

struct seg {
	uint32_t name; /* offset in text, 0 = no symbol here */
	uint32_t module;
};

struct kallsyms {
	char *text;
	size_t text_len, text_cap;
	struct sym *syms;
	size_t n, cap;
	uint64_t *starts; /* nseg, then UINT64_MAX */
	struct seg *seg;
	size_t nseg;
	uint32_t *bucket; /* nbucket + 1 */
	size_t nbucket;
	unsigned int shift;
	size_t lines, low; /* low: nonzero, but no kernel address */
	uint64_t any; /* all addresses or-ed */
	bool unsorted, odd;
};

DEFINE_CLEANUP(struct kallsyms *, kallsyms_free);

void kallsyms_free(struct kallsyms *ks)
{
	if (!ks)
		return;
	free(ks->text);
	free(ks->syms);
	free(ks->starts);
	free(ks->seg);
	free(ks->bucket);
	free(ks);
}

/* ---- a line ---- */

#define ONES (~UINT64_C(0) / 255)
#define HIGHS (ONES * 0x80)

static inline uint64_t word_at(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

/* Eight hex digits at P, most significant first; sets *BAD on anything else. */
static inline uint32_t hex8(const char *p, bool *bad)
{
	uint64_t w = word_at(p), lower = w | (ONES * 0x20);
	/* per byte, high bit set: above '9', above 'f', below 'a', below '0' */
	uint64_t not_digit = (w + ONES * (0x7f - '9')) | ~(w + ONES * (0x80 - '0'));
	uint64_t not_alpha = (lower + ONES * (0x7f - 'f')) | ~(lower + ONES * (0x80 - 'a'));

	if ((w | (not_digit & not_alpha)) & HIGHS)
		*bad = true;
	w = (w & ONES * 0x0f) + ((w & ONES * 0x40) >> 6) * 9;
	w = __builtin_bswap64(w);
	w = (w | w >> 4) & UINT64_C(0x00ff00ff00ff00ff);
	w = (w | w >> 8) & UINT64_C(0x0000ffff0000ffff);
	return (uint32_t)(w | w >> 16);
}

/* "<hex> " at P, of 16 digits as every 64-bit kernel prints it, or fewer: what follows, or NULL. */
static char *parse_address(char *p, uint64_t *ret)
{
	bool bad = false;
	uint64_t v = 0;
	int digits = 0;

	*ret = (uint64_t)hex8(p, &bad) << 32;
	if (!bad) {
		*ret |= hex8(p + 8, &bad);
		if (!bad && p[16] == ' ')
			return p + 17;
	}
	for (; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++, digits++)
		v = v << 4 | (uint64_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
	*ret = v;
	return digits && digits <= 16 && *p == ' ' ? p + 1 : NULL;
}

/* The first byte below '!' at or after P; one is always there. Tells of bytes that are not ASCII. */
static inline char *end_of_word(char *p, bool *odd)
{
	for (;; p += 8) {
		uint64_t w = word_at(p), high = w & HIGHS;
		uint64_t below = (w - ONES * '!') & ~w & HIGHS;

		if (high)
			*odd = true;
		if (below)
			return p + (__builtin_ctzll(below) >> 3);
	}
}

static char *end_of_name(char *p, bool *odd)
{
	for (;;) {
		p = end_of_word(p, odd);
		if (*p == '\n' || *p == '\t' || *p == ' ' || *p == '\0')
			return p;
		*odd = true;
		p++;
	}
}

/* "[name]\n" at P: the offset of NAME, 0 when it is malformed; *END is the newline. */
static uint32_t parse_module(struct kallsyms *ks, char *p, uint32_t last, char **end)
{
	char *name = p + 1;

	if (*p != '[')
		return 0;
	*end = end_of_name(name, &ks->odd);
	if (**end != '\n' || (*end)[-1] != ']' || *end - name < 2)
		return 0;
	(*end)[-1] = '\0';
	/* neighbours share one module: then they share the name too */
	return last && strcmp(ks->text + last, name) == 0 ? last : (uint32_t)(name - ks->text);
}

/* One line at P; the next line, or NULL when it is malformed. The line has its newline. */
static char *parse_line(struct kallsyms *ks, char *p, uint32_t *module)
{
	struct sym s = {0};
	char *type = parse_address(p, &s.start), *name, *end;

	if (!type || !(isalpha((unsigned char)*type) || *type == '?') || type[1] != ' ')
		return NULL;
	name = type + 2;
	end = end_of_name(name, &ks->odd);
	if (end == name || (*end != '\n' && *end != '\t'))
		return NULL;
	s.name = (uint32_t)(name - ks->text);
	if (*end == '\t') {
		*end++ = '\0';
		*module = parse_module(ks, end, *module, &end);
		if (!*module)
			return NULL;
		s.module = *module;
	}
	*end = '\0';
	ks->any |= s.start;
	if (s.start >= KERNEL_HALF) {
		if (ks->n && s.start < ks->syms[ks->n - 1].start)
			ks->unsorted = true;
		ks->syms[ks->n++] = s;
	} else if (s.start) {
		ks->low++;
	}
	return end + 1;
}

/* ---- the file ---- */

static int bad_file(const char *file, size_t line, const char *why, struct err *e)
{
	if (line)
		err_set(e, -EINVAL, "'%s' is no copy of /proc/kallsyms: line %zu %s", file, line, why);
	else
		err_set(e, -EINVAL, "'%s' is no copy of /proc/kallsyms: %s", file, why);
	err_hint(e, "make one with 'kallsyms-resolve --save FILE'");
	return -EINVAL;
}

/* Not base_grow(), which zeroes megabytes that are about to be written. */
static int grow_syms(struct kallsyms *ks)
{
	size_t cap = ks->cap ? ks->cap * 2 : 128u << 10;
	struct sym *syms = realloc(ks->syms, cap * sizeof(*syms));

	if (!syms)
		return -ENOMEM;
	ks->syms = syms;
	ks->cap = cap;
	return 0;
}

/* Parse the whole lines of text[*DONE .. text_len). */
static int parse_lines(struct kallsyms *ks, size_t *done, uint32_t *module, const char *file, struct err *e)
{
	char *last = memrchr(ks->text + *done, '\n', ks->text_len - *done);

	for (char *p = ks->text + *done; last && p <= last;) {
		if (ks->n == ks->cap && grow_syms(ks) < 0)
			return err_nomem(e, "the kernel's symbols");
		ks->lines++;
		p = parse_line(ks, p, module);
		if (!p)
			return bad_file(file, ks->lines, "is not '<address> <type> <name>'", e);
		*done = (size_t)(p - ks->text);
	}
	return 0;
}

static int make_room(struct kallsyms *ks, const char *file, struct err *e)
{
	size_t cap = ks->text_cap ? ks->text_cap * 2 : 8u << 20;
	char *text;

	if (ks->text_len > FILE_MAX)
		return err_sys(e, -EFBIG, "cannot read '%s'", file);
	if (ks->text_cap - ks->text_len >= READ_AHEAD + SLACK)
		return 0;
	text = realloc(ks->text, cap);
	if (!text)
		return err_nomem(e, "the kernel's symbols");
	ks->text = text;
	ks->text_cap = cap;
	return 0;
}

/* Fill the next READ_AHEAD bytes; *EOF_SEEN at the end. */
static int read_piece(struct kallsyms *ks, int fd, const char *file, bool *eof_seen, struct err *e)
{
	size_t want = READ_AHEAD;

	while (want) {
		/* a read of /proc/kallsyms gives a page at most, whatever is asked for */
		ssize_t got = read(fd, ks->text + ks->text_len, want);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, -errno, "cannot read '%s'", file);
		if (got == 0) {
			*eof_seen = true;
			break;
		}
		ks->text_len += (size_t)got;
		want -= (size_t)got;
	}
	memset(ks->text + ks->text_len, 0, SLACK);
	return 0;
}

static int read_all(struct kallsyms *ks, int fd, const char *file, struct err *e)
{
	/* offset 0 means "none": nothing is ever named by the first byte, an address digit */
	uint32_t module = 0;
	bool eof_seen = false;
	size_t done = 0;
	int err = 0;

	while (!err && !eof_seen) {
		err = make_room(ks, file, e);
		if (!err)
			err = read_piece(ks, fd, file, &eof_seen, e);
		if (!err)
			err = parse_lines(ks, &done, &module, file, e);
	}
	if (err)
		return err;
	if (!ks->text_len)
		return bad_file(file, 0, "it is empty", e);
	if (done != ks->text_len)
		return bad_file(file, ks->lines + 1, "is cut off", e);
	return 0;
}

static int check_addresses(const struct kallsyms *ks, const char *file, struct err *e)
{
	if (ks->n)
		return 0;
	if (ks->low)
		return bad_file(file, 0, "it holds no kernel address", e);
	err_sys(e, -EACCES, "no usable address in '%s'", file);
	if (strcmp(file, LIVE) == 0)
		err_hint(e, "kernel.kptr_restrict hides them; run with CAP_SYSLOG");
	else
		err_hint(e, "kernel.kptr_restrict hid them; save the copy again with CAP_SYSLOG");
	return -EACCES;
}

/* ---- order ---- */

/*
 * A stable radix sort, one byte a pass, and only of bytes that differ. The
 * kernel's own symbols come sorted; modules come in the order of loading.
 */
static int sort_syms(struct kallsyms *ks, struct err *e)
{
	_cleanup_free_ struct sym *tmp = NULL;
	uint64_t differ = 0;

	if (!ks->unsorted)
		return 0;
	tmp = malloc(ks->cap * sizeof(*tmp));
	if (!tmp)
		return err_nomem(e, "sorting the kernel's symbols");
	for (size_t i = 0; i < ks->n; i++)
		differ |= ks->syms[i].start ^ ks->syms[0].start;
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		size_t at[257] = {0};
		struct sym *swap = ks->syms;

		if (!(differ >> shift & 0xff))
			continue;
		for (size_t i = 0; i < ks->n; i++)
			at[(ks->syms[i].start >> shift & 0xff) + 1]++;
		for (size_t b = 1; b < 256; b++)
			at[b] += at[b - 1];
		for (size_t i = 0; i < ks->n; i++)
			tmp[at[ks->syms[i].start >> shift & 0xff]++] = ks->syms[i];
		ks->syms = tmp;
		tmp = swap;
	}
	ks->unsorted = false;
	return 0;
}

/* ---- which name, and where it ends ---- */

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

static bool is_code(char type)
{
	return strchr("tTwWiI", type) != NULL;
}

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

/* It names a place, and nothing of what follows is its own. */
static bool is_bare_marker(char type, const char *name)
{
	static const char *const places[] = {"_etext", "_einittext", "_eextratext", "_edata", "_end",
	        "_sdata", "_brk_end", "__brk_base", "__brk_limit", "__bss_start", "__bss_stop",
	        "__init_begin", "__init_end", "__per_cpu_start", "__per_cpu_end"};

	if (name[0] != '_')
		return false;
	if (name[1] == '_' && ends_with(name, "text_end"))
		return true;
	if (!is_code(type) && (starts_with(name, "__start_") || starts_with(name, "__stop_") ||
	                              starts_with(name, "__end_")))
		return true;
	return is_one_of(name, places, ARRAY_LEN(places));
}

/* A section's start among code: what follows it without a name of its own is called by it. */
static bool is_code_start(const char *name)
{
	static const char *const places[] = {"_text", "_stext", "_sinittext", "_sextratext"};

	return name[0] == '_' && ((name[1] == '_' && ends_with(name, "text_start")) ||
	                                 is_one_of(name, places, ARRAY_LEN(places)));
}

/* The lower, the better; the rule is in the header. */
static unsigned int rank_of(char type, const char *name)
{
	unsigned int rank = 0, underscores = 0;

	while (name[underscores] == '_' && underscores < 7)
		underscores++;
	if (is_bare_marker(type, name))
		rank |= 1u << 9;
	if (is_code_start(name))
		rank |= 1u << 8;
	if (starts_with(name, "__pfx_") || starts_with(name, "__cfi_"))
		rank |= 1u << 7;
	if (!is_code(type))
		rank |= 1u << 6;
	if ((type | 0x20) == 'w')
		rank |= 1u << 5;
	if (type >= 'a')
		rank |= 1u << 4;
	rank |= underscores << 1;
	if (starts_with(name, "__ia32_"))
		rank |= 1;
	return rank;
}

static const struct sym *best_of(const struct kallsyms *ks, size_t from, size_t to)
{
	const struct sym *best = &ks->syms[from];
	unsigned int least = UINT_MAX;

	for (size_t i = from; to - from > 1 && i < to; i++) {
		const char *name = ks->text + ks->syms[i].name;
		unsigned int rank = rank_of(name[-2], name);

		if (rank < least) {
			least = rank;
			best = &ks->syms[i];
		}
	}
	return best;
}

/* Programs and trampolines, each allocated by itself. */
static bool stands_alone(const char *module)
{
	return strcmp(module, "bpf") == 0 || starts_with(module, "__builtin__");
}

/* Where S ends; NEXT is the symbol at the next address, NULL for the last. */
static uint64_t end_of(const struct kallsyms *ks, const struct sym *s, const struct sym *next)
{
	const char *name = ks->text + s->name, *module = s->module ? ks->text + s->module : "";
	uint64_t limit = next ? next->start : UINT64_MAX;
	uint64_t page_end = (s->start | (PAGE - 1)) + 1;

	if (is_bare_marker(name[-2], name))
		return s->start + 1;
	if (!page_end) /* the last page of all */
		page_end = UINT64_MAX;
	if (next && s->module == next->module && !s->module)
		return limit;
	if (next && s->module && next->module && strcmp(module, ks->text + next->module) == 0 &&
	        is_code(name[-2]) == is_code(ks->text[next->name - 2]) && !stands_alone(module))
		return limit;
	return MIN(limit, page_end);
}

static void add_seg(struct kallsyms *ks, uint64_t start, uint32_t name, uint32_t module)
{
	ks->starts[ks->nseg] = start;
	ks->seg[ks->nseg++] = (struct seg){.name = name, .module = module};
}

static int build_segs(struct kallsyms *ks, struct err *e)
{
	const struct sym *prev = NULL;

	free(ks->starts);
	free(ks->seg);
	ks->nseg = 0;
	ks->starts = malloc((2 * ks->n + 1) * sizeof(*ks->starts));
	ks->seg = malloc((2 * ks->n + 1) * sizeof(*ks->seg));
	if (!ks->starts || !ks->seg)
		return err_nomem(e, "the kernel's symbols");
	for (size_t i = 0, j; i < ks->n; i = j) {
		const struct sym *s;

		for (j = i + 1; j < ks->n && ks->syms[j].start == ks->syms[i].start; j++)
			;
		s = best_of(ks, i, j);
		if (prev && end_of(ks, prev, s) < s->start)
			add_seg(ks, end_of(ks, prev, s), 0, 0);
		add_seg(ks, s->start, s->name, s->module);
		prev = s;
	}
	if (prev && prev->start != UINT64_MAX)
		add_seg(ks, end_of(ks, prev, NULL), 0, 0);
	ks->starts[ks->nseg] = UINT64_MAX;
	return 0;
}

static int build_index(struct kallsyms *ks, struct err *e)
{
	uint64_t span = ks->starts[ks->nseg - 1] - ks->starts[0];
	size_t seg = 0;

	ks->shift = 0;
	while (span >> ks->shift > 4 * ks->nseg)
		ks->shift++;
	ks->nbucket = (size_t)(span >> ks->shift) + 1;
	free(ks->bucket);
	ks->bucket = malloc((ks->nbucket + 1) * sizeof(*ks->bucket));
	if (!ks->bucket)
		return err_nomem(e, "the kernel's symbols");
	/* bucket[b]: the segment that covers the first address of piece b */
	for (size_t b = 0; b < ks->nbucket; b++) {
		uint64_t first = ((uint64_t)b << ks->shift);

		while (seg + 1 < ks->nseg && ks->starts[seg + 1] - ks->starts[0] <= first)
			seg++;
		ks->bucket[b] = (uint32_t)seg;
	}
	ks->bucket[ks->nbucket] = (uint32_t)(ks->nseg - 1);
	return 0;
}

static int build(struct kallsyms *ks, struct err *e)
{
	int err = build_segs(ks, e);

	return err ? err : build_index(ks, e);
}

int kallsyms_load_fd(int fd, const char *file, struct kallsyms **ret, struct err *e)
{
	CLEANUP(kallsyms_free_p) struct kallsyms *ks = calloc(1, sizeof(*ks));
	int err;

	*ret = NULL;
	if (!ks)
		return err_nomem(e, "the kernel's symbols");
	err = read_all(ks, fd, file, e);
	if (!err)
		err = check_addresses(ks, file, e);
	if (!err)
		err = sort_syms(ks, e);
	if (!err)
		err = build(ks, e);
	if (err)
		return err;
	*ret = TAKE_PTR(ks);
	return 0;
}

int kallsyms_load(const char *file, struct kallsyms **ret, struct err *e)
{
	_cleanup_close_ int fd = -1;

	*ret = NULL;
	if (!file)
		file = LIVE;
	fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", file);
	return kallsyms_load_fd(fd, file, ret, e);
}

/* ---- look-up ---- */

bool kallsyms_find(const struct kallsyms *ks, uint64_t addr, struct kallsyms_sym *ret)
{
	uint64_t off = addr - ks->starts[0];
	size_t b = (size_t)(off >> ks->shift), lo, n;
	const struct seg *seg;

	if (addr < ks->starts[0])
		return false;
	if (b >= ks->nbucket)
		b = ks->nbucket - 1;
	lo = ks->bucket[b];
	n = ks->bucket[b + 1] - lo + 1;
	while (n > 1) { /* starts[lo] <= addr, and the last such is among n from lo */
		size_t half = n / 2;

		lo = ks->starts[lo + half] <= addr ? lo + half : lo;
		n -= half;
	}
	seg = &ks->seg[lo];
	if (!seg->name)
		return false;
	*ret = (struct kallsyms_sym){.start = ks->starts[lo],
	        .end = ks->starts[lo + 1],
	        .name = ks->text + seg->name,
	        .module = seg->module ? ks->text + seg->module : ""};
	return true;
}

uint64_t kallsyms_address(const struct kallsyms *ks, const char *name)
{
	for (size_t i = 0; i < ks->n; i++)
		if (strcmp(ks->text + ks->syms[i].name, name) == 0)
			return ks->syms[i].start;
	return 0;
}

size_t kallsyms_count(const struct kallsyms *ks)
{
	return ks->n;
}

bool kallsyms_plain(const struct kallsyms *ks)
{
	return !ks->odd;
}

int kallsyms_relocate(struct kallsyms *ks, uint64_t stext, size_t *dropped, struct err *e)
{
	uint64_t own = kallsyms_address(ks, "_stext"), shift = stext - own;
	size_t kept = 0;

	if (!own)
		return err_set(e, -ENOENT, "cannot relocate kernel symbols that have no _stext");
	for (size_t i = 0; i < ks->n; i++)
		if (!ks->syms[i].module && ks->syms[i].start + shift < KERNEL_HALF)
			return err_set(e, -ERANGE,
			        "cannot relocate kernel symbols to _stext 0x%llx: '%s' would leave the "
			        "kernel's half",
			        (unsigned long long)stext, ks->text + ks->syms[i].name);
	for (size_t i = 0; i < ks->n; i++) {
		struct sym s = ks->syms[i];

		if (s.module)
			continue;
		s.start += shift;
		ks->syms[kept++] = s;
	}
	if (dropped)
		*dropped = ks->n - kept;
	ks->n = kept;
	return build(ks, e);
}
