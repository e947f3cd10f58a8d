/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/runtimes.h"
#include "base/bytes.h"
#include "base/intern.h"
#include "record/hotspot.h"
#include "record/perl.h"
#include "record/php.h"
#include "record/python.h"
#include "record/ruby.h"
#include "record/v8.h"
#include "system/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LINES_BYTES_MAX (64u << 20) /* of line tables; functions beyond it have no lines */

/* By enum runtime_kind. */
static const struct runtime {
	const char *name;
	bool (*layout)(struct runtime_file *ret, uint64_t state_bytes);
	/* then: what differs between files of one version; may be NULL */
	void (*places)(struct runtime_file *ret, const struct unwindtab_interpreter *i);
	/* NULL: the position is the line */
	uint32_t (*line)(uint32_t version, uint32_t first_line, const uint8_t *lines, size_t n, bool cut,
		uint32_t position);
	bool qualified; /* the class or package of a function came in place of a line table */
	const char *files[2]; /* how the names of its files begin */
	const char *proof; /* what its file must export */
	const char *stateless; /* a build that has the evaluation function and not the variable */
	const char *note; /* on waits that have no function */
} known[RUNTIME_KINDS] = {
	[RUNTIME_PYTHON] = { "python", python_layout, python_places, python_line, false,
		{ "python", "libpython" }, .proof = "_PyRuntime and _PyEval_EvalFrameDefault" },
	[RUNTIME_JAVA] = { "java", hotspot_version, NULL, hotspot_line, false, { "libjvm" },
		.proof = "gHotSpotVMStructs and gHotSpotVMTypes" },
	[RUNTIME_PHP] = { "php", php_layout, NULL, NULL, true, { "php", "libphp" },
		.proof = "executor_globals and execute_ex", .stateless = "built with thread safety" },
	[RUNTIME_PERL] = { "perl", perl_layout, NULL, NULL, true, { "perl", "libperl" },
		.proof = "PL_thr_key and Perl_runops_standard", .stateless = "built without ithreads" },
	[RUNTIME_RUBY] = { "ruby", ruby_layout, ruby_places, ruby_line, false, { "ruby", "libruby" },
		.proof = "ruby_version and ruby_native_thread_p" },
	[RUNTIME_V8] = { "v8", v8_layout, NULL, NULL, false, { "node", "libnode" },
		.proof = "v8dbg_off_fp_function and its other constants for debuggers",
		.note = "while its event loop waits, no function is being called" },
};

struct file {
	uint32_t kind, version;
	const char *refused; /* why its functions are not shown; NULL = they are */
	uint64_t processes;
};

struct function {
	uint32_t file;
	char *name, *source; /* UTF-8; NULL = not readable */
	uint32_t first_line;
	uint8_t *lines;
	uint32_t n_lines, all_lines; /* bytes that are here; that the line table has */
};

/* The methods that a place in compiled code is in: N of them from FIRST on. */
struct place {
	uint32_t first, n;
};

struct runtimes {
	bool wanted[RUNTIME_KINDS];
	uint32_t watched; /* bit set of enum runtime_kind */
	uint32_t named; /* the same: files of targets are called so */
	bool partial; /* see runtimes_watched() */
	struct file files[RUNTIMES_MAX];
	uint32_t n_files;
	struct function *functions;
	size_t n_functions, max_functions;
	struct idmap by_code; /* (code, check) -> function */
	struct place *places;
	size_t n_places, max_places;
	struct hotspot_inlined *inlined;
	size_t n_inlined, max_inlined;
	struct idmap by_place; /* (code, check and position) -> place */
	struct idmap frames; /* (function and file, line) -> script frame in the capture */
	uint32_t n_frames;
	uint64_t lines_bytes;
	struct runtimes_stats stats;
};

static int want(struct runtimes *r, const char *name, size_t len, struct err *e)
{
	char names[128];

	for (size_t k = 1; k < RUNTIME_KINDS; k++) {
		if (known[k].name && strlen(known[k].name) == len && memcmp(known[k].name, name, len) == 0) {
			r->wanted[k] = true;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "unknown runtime '%.*s'; it takes auto, none, or a list of %s", (int)len,
		name, runtimes_list(~0U, names, sizeof(names)));
}

int runtimes_new(const char *list, struct runtimes **ret, struct err *e)
{
	struct runtimes *r = calloc(1, sizeof(*r));
	int rc = r ? 0 : err_nomem(e, "the table of runtimes");

	for (size_t k = 1; r && k < RUNTIME_KINDS && (!list || strcmp(list, "auto") == 0); k++)
		r->wanted[k] = true;
	while (!rc && list && strcmp(list, "auto") != 0) {
		size_t len = strcspn(list, ",");

		rc = want(r, list, len, e);
		if (!list[len])
			break;
		list += len + 1;
	}
	if (rc) {
		runtimes_free(r);
		return rc;
	}
	r->n_files = 1;
	*ret = r;
	return 0;
}

void runtimes_free(struct runtimes *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_functions; i++) {
		free(r->functions[i].name);
		free(r->functions[i].source);
		free(r->functions[i].lines);
	}
	free(r->functions);
	free(r->places);
	free(r->inlined);
	idmap_free(&r->by_place);
	idmap_free(&r->by_code);
	idmap_free(&r->frames);
	free(r);
}

int runtimes_check(const char *list, struct err *e)
{
	struct runtimes *r = NULL;
	int rc = !list || strcmp(list, "none") == 0 ? 0 : runtimes_new(list, &r, e);

	runtimes_free(r);
	return rc;
}

uint32_t runtimes_file(struct runtimes *r, const struct unwindtab_interpreter *i, struct runtime_file *ret)
{
	struct file *f;

	if (!r || !i->kind || i->kind >= RUNTIME_KINDS || !known[i->kind].name || !r->wanted[i->kind] ||
		r->n_files == RUNTIMES_MAX)
		return 0;
	*ret = (struct runtime_file){ .kind = i->kind,
		.version = i->version,
		.state = i->state,
		.eval = { i->eval[0], i->eval[1] },
		.cold = { i->cold[0], i->cold[1] } };
	f = &r->files[r->n_files];
	*f = (struct file){ .kind = i->kind, .version = i->version };
	if (!i->state && known[i->kind].stateless)
		f->refused = known[i->kind].stateless;
	else if (!known[i->kind].layout(ret, i->state_bytes))
		f->refused = "version not known";
	if (f->refused)
		*ret = (struct runtime_file){ 0 };
	else if (known[i->kind].places)
		known[i->kind].places(ret, i);
	return r->n_files++;
}

bool runtimes_hotspot(
	struct runtimes *r, uint32_t file, const struct unwindtab_hotspot *h, struct hotspot_file *ret)
{
	struct file *f = r && file && file < r->n_files ? &r->files[file] : NULL;

	if (!f || f->kind != RUNTIME_JAVA || f->refused)
		return false;
	f->refused = hotspot_layout(f->version, h, ret) ? NULL : "version not known";
	return !f->refused;
}

bool runtimes_walks_java(const struct runtimes *r)
{
	bool known_all = false;

	for (uint32_t i = 1; r && i < r->n_files; i++) {
		if (r->files[i].kind != RUNTIME_JAVA)
			continue;
		if (r->files[i].refused)
			return false;
		known_all = true;
	}
	return known_all;
}

void runtimes_process(struct runtimes *r, uint32_t file)
{
	if (r && file && file < r->n_files)
		r->files[file].processes++;
}

static void put_utf8(struct buf *b, uint32_t c)
{
	uint8_t text[4];
	size_t n = 0;

	if (!c || c > 0x10ffff)
		c = '?';
	/* a byte of a file name that is not UTF-8, as Python stores it (surrogateescape) */
	if (c >= 0xdc80 && c <= 0xdcff) {
		text[n++] = (uint8_t)(c - 0xdc00);
	} else if (c < 0x80) {
		text[n++] = (uint8_t)c;
	} else if (c < 0x800) {
		text[n++] = (uint8_t)(0xc0 | c >> 6);
		text[n++] = (uint8_t)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		text[n++] = (uint8_t)(0xe0 | c >> 12);
		text[n++] = (uint8_t)(0x80 | (c >> 6 & 63));
		text[n++] = (uint8_t)(0x80 | (c & 63));
	} else {
		text[n++] = (uint8_t)(0xf0 | c >> 18);
		text[n++] = (uint8_t)(0x80 | (c >> 12 & 63));
		text[n++] = (uint8_t)(0x80 | (c >> 6 & 63));
		text[n++] = (uint8_t)(0x80 | (c & 63));
	}
	buf_put(b, text, n);
}

/* NULL = out of memory. */
static char *end_text(struct buf *b)
{
	buf_put(b, "", 1);
	if (!b->failed)
		return (char *)b->p;
	buf_free(b);
	return NULL;
}

/* The N bytes at P as UTF-8; NULL = not readable, or out of memory. */
static char *to_utf8(unsigned int kind, const uint8_t *p, size_t n)
{
	static const char *const nameless[] = {
		[SCRIPT_MAIN] = "{main}", [SCRIPT_EVAL] = "(eval)", [SCRIPT_ANONYMOUS] = "(anonymous)"
	};
	const size_t width = kind == SCRIPT_UCS4 ? 4 : kind == SCRIPT_UCS2 ? 2 : 1;
	struct buf b = { 0 };

	if (kind < ARRAY_LEN(nameless) && nameless[kind])
		return strdup(nameless[kind]);
	if (kind == SCRIPT_UNREADABLE || kind > SCRIPT_UTF8)
		return NULL;
	for (; kind == SCRIPT_UTF8 && n; p++, n--)
		buf_put(&b, *p ? p : (const uint8_t *)"?", 1);
	for (; n >= width; p += width, n -= width) {
		uint32_t c = 0;

		memcpy(&c, p, width);
		put_utf8(&b, c);
	}
	return end_text(&b);
}

static void keep_lines(struct runtimes *r, struct function *f, const uint8_t *lines, uint32_t n)
{
	if (!n || r->lines_bytes + n > LINES_BYTES_MAX)
		return;
	f->lines = malloc(n);
	if (!f->lines)
		return;
	memcpy(f->lines, lines, n);
	f->n_lines = n;
	r->lines_bytes += n;
}

/* CLASS::NAME, of the N bytes at CLASS; NAME alone if there are none. Consumes NAME; NULL = out of memory. */
static char *qualify(char *name, const uint8_t *class, size_t n)
{
	struct buf b = { 0 };

	if (!name || !n)
		return name;
	/* the rest of the name of one of PHP's anonymous classes, after a NUL, is where it was defined */
	buf_put(&b, class, strnlen((const char *)class, n));
	buf_put(&b, "::", 2);
	buf_put(&b, name, strlen(name));
	free(name);
	return end_text(&b);
}

/* Put the texts of an event, which are without gaps, where struct offcpu_ev_code has them. */
static bool unpack(const void *event, size_t len, struct offcpu_ev_code *ret)
{
	const uint8_t *p = (const uint8_t *)event + offsetof(struct offcpu_ev_code, name);

	if (len < offsetof(struct offcpu_ev_code, name))
		return false;
	memcpy(ret, event, offsetof(struct offcpu_ev_code, name));
	len -= offsetof(struct offcpu_ev_code, name);
	if (ret->name_bytes > sizeof(ret->name) || ret->file_bytes > sizeof(ret->file) ||
		ret->lines_bytes > sizeof(ret->lines) ||
		len < (size_t)ret->name_bytes + ret->file_bytes + ret->lines_bytes)
		return false;
	memcpy(ret->name, p, ret->name_bytes);
	p += ret->name_bytes;
	memcpy(ret->file, p, ret->file_bytes);
	p += ret->file_bytes;
	memcpy(ret->lines, p, ret->lines_bytes);
	return true;
}

void runtimes_code(struct runtimes *r, const struct offcpu_ev_code *event, size_t len)
{
	struct offcpu_ev_code code, *ev = &code;
	struct function *f;
	uint32_t at, kind;
	bool added;

	if (!r || !unpack(event, len, ev) || !ev->runtime || ev->runtime >= r->n_files ||
		base_grow(&r->functions, &r->max_functions, r->n_functions + 1, sizeof(*r->functions)) != 0)
		return;
	at = idmap_put(&r->by_code, ev->code, ev->check, (uint32_t)r->n_functions, &added);
	if (at == UINT32_MAX || !added)
		return;
	kind = r->files[ev->runtime].kind;
	f = &r->functions[r->n_functions++];
	*f = (struct function){
		.file = ev->runtime, .first_line = ev->first_line, .all_lines = ev->lines_all
	};
	f->name = to_utf8(ev->name_kind, ev->name, ev->name_bytes);
	f->source = to_utf8(ev->file_kind, ev->file, ev->file_bytes);
	if (known[kind].qualified)
		f->name = qualify(f->name, ev->lines, ev->lines_bytes);
	else
		keep_lines(r, f, ev->lines, ev->lines_bytes);
	r->stats.functions += f->name != NULL;
}

/*
 * A symbol of HotSpot, in its form of UTF-8, in which NUL and characters beyond
 * U+FFFF have more bytes: 0xc0 0x80, and two surrogates of three bytes.
 */
static void put_symbol(struct buf *b, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t c = p[i++];
		unsigned int more = c >= 0xe0 ? 2 : c >= 0xc0 ? 1 : 0;

		c = more == 2 ? c & 15 : more ? c & 31 : c;
		for (; more && i < n && (p[i] & 0xc0) == 0x80; more--)
			c = c << 6 | (p[i++] & 63);
		if (c >= 0xd800 && c < 0xdc00 && n - i >= 3 && p[i] == 0xed && (p[i + 1] & 0xf0) == 0xb0) {
			c = 0x10000 + ((c & 0x3ff) << 10 | (p[i + 1] & 15u) << 6 | (p[i + 2] & 63u));
			i += 3;
		}
		put_utf8(b, c >= 0xd800 && c < 0xe000 ? 0 : c);
	}
}

/* "java.lang.Thread.sleep": class and method. A hidden class has a number after its name: "+" becomes "/". */
static char *method_name(const struct offcpu_ev_method *ev)
{
	uint8_t class[HOTSPOT_CLASS_BYTES];
	struct buf b = { 0 };

	if (!ev->class_bytes || !ev->name_bytes)
		return NULL;
	for (size_t i = 0; i < ev->class_bytes; i++)
		class[i] = ev->class[i] == '/' ? '.' : ev->class[i] == '+' ? '/' : ev->class[i];
	put_symbol(&b, class, ev->class_bytes);
	buf_put(&b, ".", 1);
	put_symbol(&b, ev->name, ev->name_bytes);
	return end_text(&b);
}

void runtimes_method(struct runtimes *r, const struct offcpu_ev_method *ev, size_t len)
{
	struct buf source = { 0 };
	struct function *f;
	bool added;
	uint32_t at;

	if (!r || len < offsetof(struct offcpu_ev_method, lines) ||
		len - offsetof(struct offcpu_ev_method, lines) < ev->lines_bytes || !ev->runtime ||
		ev->runtime >= r->n_files || ev->class_bytes > sizeof(ev->class) ||
		ev->name_bytes > sizeof(ev->name) || ev->file_bytes > sizeof(ev->file) ||
		base_grow(&r->functions, &r->max_functions, r->n_functions + 1, sizeof(*r->functions)) != 0)
		return;
	at = idmap_put(&r->by_code, ev->code, ev->check, (uint32_t)r->n_functions, &added);
	if (at == UINT32_MAX || !added)
		return;
	f = &r->functions[r->n_functions++];
	*f = (struct function){ .file = ev->runtime,
		.all_lines = ev->lines_bytes + (ev->lines_cut ? 1u : 0u) };
	f->name = method_name(ev);
	if (ev->file_bytes) {
		put_symbol(&source, ev->file, ev->file_bytes);
		f->source = end_text(&source);
	}
	keep_lines(r, f, ev->lines, ev->lines_bytes);
	r->stats.functions += f->name != NULL;
}

/* Positions have 24 bits, and a check 40. */
static uint64_t place_key(uint64_t check, uint64_t position)
{
	return check | position << 40;
}

void runtimes_inlined(struct runtimes *r, const struct offcpu_ev_inlined *ev, size_t len)
{
	bool added;
	uint32_t at;

	if (!r || len < sizeof(*ev) || ev->n > HOTSPOT_INLINED_MAX ||
		base_grow(&r->places, &r->max_places, r->n_places + 1, sizeof(*r->places)) != 0 ||
		base_grow(&r->inlined, &r->max_inlined, r->n_inlined + ev->n, sizeof(*r->inlined)) != 0)
		return;
	at = idmap_put(
		&r->by_place, ev->code, place_key(ev->check, ev->position), (uint32_t)r->n_places, &added);
	if (at == UINT32_MAX || !added)
		return;
	r->places[r->n_places++] = (struct place){ .first = (uint32_t)r->n_inlined, .n = ev->n };
	memcpy(r->inlined + r->n_inlined, ev->methods, ev->n * sizeof(*ev->methods));
	r->n_inlined += ev->n;
}

/* The id of a frame in function AT (UINT32_MAX = unknown) at LINE; its record is written if it is new. */
static uint32_t frame(struct runtimes *r, uint32_t kind, uint32_t at, uint32_t line, struct cap_writer *w)
{
	const struct function *f = at != UINT32_MAX ? &r->functions[at] : NULL;
	bool added;
	uint32_t id = idmap_put(&r->frames, (uint64_t)kind << 32 | at, line, r->n_frames, &added);

	if (id == UINT32_MAX || !added)
		return id;
	r->n_frames++;
	r->stats.frames++;
	cap_writer_script(w, &(struct cap_script){ .id = id,
				     .runtime = known[kind].name,
				     .function = f && f->name ? f->name : "",
				     .file = f && f->source ? f->source : "",
				     .line = line,
				     .first_line = f ? f->first_line : 0 });
	return id;
}

bool runtimes_instead(const struct runtimes *r, uint32_t file)
{
	return r && file < r->n_files &&
	       (r->files[file].kind == RUNTIME_JAVA || r->files[file].kind == RUNTIME_V8);
}

/* The id of a frame of KIND and VERSION at POSITION of the function (CODE, CHECK). */
static uint32_t frame_at(struct runtimes *r, const struct file *file, uint64_t code, uint64_t check,
	uint32_t position, struct cap_writer *w)
{
	const struct idmap_slot *slot = idmap_find(&r->by_code, code, check);
	const struct function *f = slot ? &r->functions[slot->value] : NULL;
	uint32_t line = position;

	if (!f || !f->name) {
		r->stats.unnamed++;
		return frame(r, file->kind, UINT32_MAX, 0, w);
	}
	if (known[file->kind].line)
		line = known[file->kind].line(file->version, f->first_line, f->lines, f->n_lines,
			f->n_lines < f->all_lines, position);
	else if (position == SCRIPT_POSITION_NONE)
		line = 0;
	return frame(r, file->kind, slot->value, line, w);
}

size_t runtimes_frames(struct runtimes *r, uint32_t file, uint64_t code, uint64_t position,
	struct cap_writer *w, uint32_t *ids)
{
	const struct file *f = file < r->n_files ? &r->files[file] : NULL;
	uint64_t check = SCRIPT_CHECK(position);
	const struct idmap_slot *slot;
	size_t n = 1;

	if (!f || f->kind == RUNTIME_NONE)
		return 0;
	slot = runtimes_instead(r, file) ? idmap_find(&r->by_place, SCRIPT_CODE(code),
						   place_key(check, SCRIPT_POSITION(position)))
					 : NULL;
	if (slot && r->places[slot->value].n) {
		const struct place *p = &r->places[slot->value];

		for (n = 0; n < p->n; n++) {
			const struct hotspot_inlined *m = &r->inlined[p->first + n];

			ids[n] = frame_at(r, f, m->code, m->check, (uint32_t)m->position, w);
			if (ids[n] == CAPTURE_NONE)
				return n;
		}
		return n;
	}
	ids[0] = frame_at(r, f, SCRIPT_CODE(code), check, SCRIPT_POSITION(position), w);
	return ids[0] != CAPTURE_NONE;
}

uint32_t runtimes_of_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (uint32_t k = 1; k < RUNTIME_KINDS; k++)
		for (size_t i = 0; i < ARRAY_LEN(known[k].files); i++)
			if (known[k].files[i] &&
				strncmp(name, known[k].files[i], strlen(known[k].files[i])) == 0)
				return 1U << k;
	return 0;
}

static int add_named(void *ctx, const struct procmap *m)
{
	uint32_t *found = ctx;

	*found |= runtimes_of_name(m->path);
	return 0;
}

uint32_t runtimes_mapped(const uint32_t *ids, size_t n, bool *unknown)
{
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++)
		*unknown |= procmaps_each(ids[i], add_named, &found, NULL) != 0;
	return found;
}

const char *runtimes_list(uint32_t kinds, char *to, size_t size)
{
	*to = '\0';
	for (uint32_t k = 1; k < RUNTIME_KINDS; k++) {
		size_t len = strlen(to);

		if (kinds >> k & 1)
			snprintf(to + len, size - len, "%s%s", len ? ", " : "", known[k].name);
	}
	return to;
}

uint32_t runtimes_wanted(const struct runtimes *r)
{
	uint32_t set = 0;

	for (uint32_t k = 1; k < RUNTIME_KINDS; k++)
		set |= (uint32_t)r->wanted[k] << k;
	return set;
}

void runtimes_watched(struct runtimes *r, uint32_t kinds, uint32_t named, bool partial)
{
	r->watched = kinds;
	r->named = named;
	r->partial = partial;
}

static const char unwatched_text[] =
	" (its functions are not shown: no target had an interpreter when the recording began; name it with "
	"--runtimes)";
static const char partial_text[] = " (its functions are not shown in waits that began before the recording: "
				   "this kernel refused the program for these)";

static void put_summary(
	const struct runtimes *r, char *to, size_t size, const struct file *f, uint64_t processes)
{
	const char *text = r->watched >> f->kind & 1 ? (r->partial ? partial_text : "") : unwatched_text;
	const char *note = f->refused || *text ? NULL : known[f->kind].note;
	size_t len = strlen(to);

	snprintf(to + len, size - len, "%s%s %u.%u%s%s%s, %" PRIu64 " process%s%s%s%s%s", len ? "; " : "",
		known[f->kind].name, f->version >> 24, f->version >> 16 & 0xff, f->refused ? " (" : "",
		f->refused ? f->refused : "", f->refused ? ", its functions are not shown)" : "", processes,
		processes == 1 ? "" : "es", f->refused ? "" : text, note ? " (" : "", note ? note : "",
		note ? ")" : "");
}

/* Targets map files that are called like a runtime of KIND: is one of them the runtime? */
static bool put_unproved(const struct runtimes *r, char *to, size_t size, uint32_t kind)
{
	size_t len = strlen(to);

	for (uint32_t i = 1; i < r->n_files; i++)
		if (r->files[i].kind == kind && r->files[i].processes)
			return false;
	snprintf(to + len, size - len,
		"%s%s (not recognised: no file that could be read exports %s; its functions are not shown)",
		len ? "; " : "", known[kind].name, known[kind].proof);
	return true;
}

/* Files of the same version count as one runtime. */
static bool is_first(const struct runtimes *r, uint32_t i)
{
	for (uint32_t k = 1; k < i; k++)
		if (r->files[k].kind == r->files[i].kind &&
			r->files[k].version >> 16 == r->files[i].version >> 16)
			return false;
	return true;
}

void runtimes_stats(const struct runtimes *r, struct runtimes_stats *ret)
{
	*ret = r ? r->stats : (struct runtimes_stats){ 0 };
	for (uint32_t i = 1; r && i < r->n_files; i++) {
		uint64_t processes = 0;

		if (r->files[i].refused)
			ret->refused_processes += r->files[i].processes;
		else
			ret->processes += r->files[i].processes;
		if (!is_first(r, i))
			continue;
		for (uint32_t k = i; k < r->n_files; k++)
			if (r->files[k].kind == r->files[i].kind &&
				r->files[k].version >> 16 == r->files[i].version >> 16)
				processes += r->files[k].processes;
		if (processes)
			put_summary(r, ret->summary, sizeof(ret->summary), &r->files[i], processes);
	}
	for (uint32_t k = 1; r && k < RUNTIME_KINDS; k++)
		if (r->named >> k & 1)
			ret->unproved += put_unproved(r, ret->summary, sizeof(ret->summary), k);
}
