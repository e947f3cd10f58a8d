/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/reader.h"
#include "base/search.h"
#include "base/hashtable.h"
#include "capture/counters.h"
#include "capture/format.h"
#include "capture/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#define ROOM_LEAST (256 << 10)
#define ROOM_AT_ONCE (64 << 20) /* allocate no more than this by the file's size alone */
#define BEHIND_DAMAGE (64 << 20) /* bytes to read after an invalid block header */

struct input {
	int fd;
	struct cap_bytes s;
	size_t room;
	size_t next; /* where the next block header is due; 0 before the file header is complete */
	bool framed; /* everything up to `next` is blocks */
};

/* Follow the lengths of the blocks through the bytes read so far. */
static void follow(struct input *f)
{
	struct cap_block_version v;
	struct cap_block b;

	if (!f->next) {
		enum cap_block_header h = cap_block_get_header(f->s.bytes, f->s.len, &v);

		f->framed = h == CAPTURE_BLOCK_OK || h == CAPTURE_BLOCK_SHORT;
		f->next = h == CAPTURE_BLOCK_OK ? v.header_len : 0;
		if (!f->next)
			return;
	}
	while (f->framed && f->next <= f->s.len && f->s.len - f->next >= CAPTURE_BLOCK_HEAD_LEN) {
		f->framed = cap_block_get(f->s.bytes + f->next, &b);
		if (f->framed)
			f->next += CAPTURE_BLOCK_HEAD_LEN + b.len;
	}
}

static bool enough(const struct input *f)
{
	if (!f->s.len)
		return false;
	return !f->framed && (!f->next || f->s.len - f->next > BEHIND_DAMAGE);
}

/* Not base_grow(): bytes that read(2) overwrites need no zeroing. */
static int make_room(struct input *f, size_t room)
{
	uint8_t *bytes = realloc(f->s.bytes, room);

	if (!bytes)
		return -ENOMEM;
	f->s.bytes = bytes;
	f->room = room;
	return 0;
}

/* One read(2). 1 if there may be more, 0 at the end, or -errno. */
static int more(struct input *f)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };
	ssize_t got;

	if (f->s.len == f->room && make_room(f, f->room * 2) != 0)
		return -ENOMEM;
	got = read(f->fd, f->s.bytes + f->s.len, f->room - f->s.len);
	if (got < 0 && errno == EAGAIN)
		return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 1;
	if (got < 0)
		return errno == EINTR ? 1 : -errno;
	f->s.len += (size_t)got;
	return got ? 1 : 0;
}

static int open_input(const char *path, struct err *e)
{
	const bool named = path && strcmp(path, "-") != 0;
	const int fd =
		named ? open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	int code = fd < 0 ? -errno : 0;
	struct stat st;

	if (fd >= 0)
		return fd;
	err_sys(e, code, "cannot open '%s'", path ? path : "-");
	if (named && code == -EACCES && stat(path, &st) == 0 && st.st_uid != geteuid())
		err_hint(e,
			"it belongs to user %u: run this as that user or as root, or let root give it to "
			"you: "
			"chown %u",
			st.st_uid, geteuid());
	return code;
}

static int refuse_input(const char *name, struct err *e)
{
	err_set(e, -EINVAL, "%s is a terminal, not a capture", name);
	err_hint(e, "name the file that offcpu-record -o wrote, or send one to standard input");
	return -EINVAL;
}

/* A recorder locks the file that it writes; of a file of another machine this is not known. */
static bool is_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int cap_bytes_read(const char *path, struct cap_bytes *ret, struct err *e)
{
	const char *name = path && strcmp(path, "-") != 0 ? path : "standard input";
	_cleanup_close_ int fd = open_input(path, e);
	struct input f = { .fd = fd, .framed = true };
	struct stat st;
	size_t room = ROOM_LEAST;
	int code;

	if (fd < 0)
		return fd;
	if (isatty(fd))
		return refuse_input(name, e);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		f.s.total = (uint64_t)st.st_size;
	f.s.growing = is_locked(fd);
	/* one byte more, so that the read that finds the end needs no more room */
	room = MAX(room, (size_t)MIN(f.s.total, ROOM_AT_ONCE) + 1);
	code = make_room(&f, room) ? -ENOMEM : 1;
	while (code > 0 && !enough(&f)) {
		code = more(&f);
		follow(&f);
	}
	if (code < 0) {
		free(f.s.bytes);
		return code == -ENOMEM ? err_nomem(e, name) : err_sys(e, code, "cannot read '%s'", name);
	}
	if (!code || f.s.total < f.s.len)
		f.s.total = f.s.len;
	*ret = f.s;
	return 0;
}

/*
 * cap_damage - a text that says where a capture is damaged.
 *
 * "cut at byte 12345: the block at byte 12000 (samples) is incomplete; waits
 * after 12.000 s of recording are missing"
 */

enum cap_damage_kind {
	CAPTURE_DAMAGE_END, /* nothing is wrong, except that there may be no trailer */
	CAPTURE_DAMAGE_CUT, /* the file ends inside a block */
	CAPTURE_DAMAGE_NO_BLOCK, /* no block header where one is due */
	CAPTURE_DAMAGE_CHECKSUM,
	CAPTURE_DAMAGE_SEQUENCE, /* a block is missing or repeated */
	CAPTURE_DAMAGE_RECORD, /* an intact block with a malformed record: `wrong` */
	CAPTURE_DAMAGE_REST, /* something follows the trailer */
};

struct cap_damage {
	enum cap_damage_kind kind;
	struct cap_block block; /* as far as known */
	const char *wrong; /* for CAPTURE_DAMAGE_RECORD */
	uint64_t at, total; /* bytes: where it begins, and the file's length */
	uint64_t blocks; /* accepted before it */
	uint64_t start_ns, last_flush_ns; /* start of the recording, last accepted flush; 0 = none */
};

/* Spend checksums on at most this many times the bytes after the damage. */
#define CHECKSUMS 8

/* What can still be recognized after the damage. */
struct rest {
	uint64_t blocks;
	uint64_t flush_ns; /* of the last flush; 0 = none */
	bool trailer;
};

static void scan_block(struct rest *rest, const struct cap_block *b, const uint8_t *payload)
{
	struct rd r = rd_init(payload, b->len), record;
	struct cap_flush f;

	rest->blocks++;
	if (b->type == CAPTURE_RECORD_TRAILER)
		rest->trailer = true;
	if (b->type == CAPTURE_RECORD_FLUSH && cap_record_next(&r, &record) &&
		cap_record_get_flush(&record, &f))
		rest->flush_ns = f.time_ns;
}

/* Is there an intact block at P? Each checksum takes the bytes it covers from *BUDGET. */
static bool is_block(const uint8_t *p, size_t len, uint64_t *budget, struct cap_block *b)
{
	if (!cap_block_get(p, b) || b->len > len - CAPTURE_BLOCK_HEAD_LEN || b->len > *budget)
		return false;
	*budget -= b->len;
	return cap_block_intact(p, b);
}

static struct rest survey(const uint8_t *p, size_t len)
{
	const uint8_t sync[] = { CAPTURE_BLOCK_SYNC & 255, CAPTURE_BLOCK_SYNC >> 8 & 255,
		CAPTURE_BLOCK_SYNC >> 16 & 255, CAPTURE_BLOCK_SYNC >> 24 };
	const uint8_t *end = p + len;
	uint64_t budget = (uint64_t)len * CHECKSUMS;
	struct cap_block b;
	struct rest rest = { 0 };

	while ((p = memmem(p, (size_t)(end - p), sync, sizeof(sync)))) {
		if (end - p < CAPTURE_BLOCK_HEAD_LEN)
			break;
		if (is_block(p, (size_t)(end - p), &budget, &b)) {
			scan_block(&rest, &b, p + CAPTURE_BLOCK_HEAD_LEN);
			p += CAPTURE_BLOCK_HEAD_LEN + b.len;
		} else {
			p++;
		}
	}
	return rest;
}

struct text {
	char *buf;
	size_t len, cap;
};

static void say(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, t->cap - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len = MIN(t->len + (size_t)n, t->cap - 1);
}

static void say_where(struct text *t, const struct cap_damage *d)
{
	const char *type = cap_record_type_name(d->block.type);

	switch (d->kind) {
	case CAPTURE_DAMAGE_END:
		say(t, "ends at byte %" PRIu64 " without a trailer: the recorder was stopped, or still runs",
			d->total);
		return;
	case CAPTURE_DAMAGE_CUT:
		say(t, "cut at byte %" PRIu64 ": the block at byte %" PRIu64 " (%s) is incomplete", d->total,
			d->at, type);
		return;
	case CAPTURE_DAMAGE_NO_BLOCK:
		say(t, "no block where one is due");
		break;
	case CAPTURE_DAMAGE_CHECKSUM:
		say(t, "wrong checksum of a block (%s)", type);
		break;
	case CAPTURE_DAMAGE_SEQUENCE:
		say(t, "block %" PRIu32 " (%s) where block %" PRIu64 " is due", d->block.seq, type,
			d->blocks);
		break;
	case CAPTURE_DAMAGE_RECORD:
		say(t, "%s in a block (%s)", d->wrong, type);
		break;
	case CAPTURE_DAMAGE_REST:
		say(t, "something follows the trailer");
		break;
	}
	say(t, ", at byte %" PRIu64 " of %" PRIu64, d->at, d->total);
}

static double since_start(const struct cap_damage *d, uint64_t time_ns)
{
	return time_ns > d->start_ns ? (double)(time_ns - d->start_ns) / 1e9 : 0;
}

static void say_missing(struct text *t, const struct cap_damage *d, const struct rest *rest)
{
	if (d->last_flush_ns)
		say(t, "; waits after %.3f s of recording are missing", since_start(d, d->last_flush_ns));
	else
		say(t, "; waits are missing from the start of recording on");
	if (rest->flush_ns && d->start_ns)
		say(t, ", %s %.3f s", rest->trailer ? "up to its end at" : "at least up to",
			since_start(d, rest->flush_ns));
	if (rest->blocks)
		say(t, " (%" PRIu64 " later blocks are intact, but what they refer to may not be there)",
			rest->blocks);
}

/*
 * Describe it in BUF of CAP bytes. REST is the LEN bytes of the file from `at` on.
 * They are searched for intact blocks, to report how far the recording went.
 */
static void cap_damage_describe(
	const struct cap_damage *d, const uint8_t *rest, size_t len, char *buf, size_t cap)
{
	struct text t = { .buf = buf, .cap = cap };
	struct rest found = { 0 };

	say_where(&t, d);
	if (d->kind == CAPTURE_DAMAGE_REST) {
		say(&t, "; no waits are missing");
		return;
	}
	/* skip one byte: the block at `at` is the damaged one */
	if (len > 1)
		found = survey(rest + 1, len - 1);
	say_missing(&t, d, &found);
}

/*
 * cap_store - the records of a capture's blocks, checked and collected.
 *
 * Every reference is checked against what came before it. A block is accepted as
 * a whole or not at all. Samples with the same key are merged as they come, so
 * memory grows with the number of distinct waits, not with the length of the
 * recording.
 */

/* Elements of each array; in `room`, allocated elements. */
struct cap_store_counts {
	size_t options, procs, threads, lives, files, maps, images, ksyms, scripts, stacks, kinds, wakers,
		keys, samples, waits, counters, counts, changes, frames, exact, places, pending, singles;
};

/* What single waits have in common, and the sample that sums them: HASHTABLE_NONE until the first one comes.
 */
struct cap_key {
	struct cap_sample of;
	uint32_t sample;
};

struct cap_store {
	struct cap_store_counts n, room;
	struct cap_host host;
	struct cap_option *options;
	struct cap_proc *procs;
	struct cap_thread *threads;
	struct cap_life *lives;
	struct cap_file *files;
	struct cap_map *maps;
	struct cap_image *images;
	struct cap_ksym *ksyms;
	struct cap_script *scripts;
	struct cap_stack *stacks;
	struct cap_waker *wakers;
	struct cap_key *keys; /* index = id */
	struct cap_sample *samples;
	struct cap_wait *waits;
	struct cap_counter *counts; /* in the order of the capture, which changes refer to */
	struct cap_counter *counters; /* by name, once each */
	struct cap_change *changes; /* of the block being decoded */
	uint8_t *kinds; /* of each stack; an array of its own, so that every sample's check hits a cache */
	uint64_t *frames; /* of all stacks in order */
	uint32_t *exact; /* likewise: indexes of exact frames */
	struct cap_script_at *places; /* likewise: script frames */
	struct cap_code_names names;
	struct cap_trailer trailer;
	uint64_t last_flush_ns;
	bool has_host, has_trailer;

	struct cap_sample *pending; /* of the block being decoded, */
	struct cap_wait *singles; /* likewise */
	bool keep_waits;
	uint64_t n_waits;
	struct hashtable by_key; /* the samples */
};

static const char malformed[] = "a malformed record";
static const char no_memory[] = ""; /* as in cap_code_names_take_*() */

/* Make room for COUNT elements in an array whose capacity is the field of `room` with its name. */
#define ROOM(s, array, count) (base_grow(&(s)->array, &(s)->room.array, (count), sizeof(*(s)->array)) == 0)

/*
 * Each of these decodes a record into the place after the last one and checks
 * what it refers to. NULL if the record is accepted, else what is wrong.
 */
static const char *take_host(struct cap_store *s, struct rd *r)
{
	if (s->has_host)
		return "a second host record";
	s->has_host = true;
	return cap_record_get_host(r, &s->host) ? NULL : malformed;
}

static const char *take_option(struct cap_store *s, struct rd *r)
{
	if (!ROOM(s, options, s->n.options + 1))
		return no_memory;
	return cap_record_get_option(r, &s->options[s->n.options++]) ? NULL : malformed;
}

static const char *take_file(struct cap_store *s, struct rd *r)
{
	if (!ROOM(s, files, s->n.files + 1))
		return no_memory;
	if (!cap_record_get_file(r, &s->files[s->n.files]))
		return malformed;
	s->n.files++;
	return s->files[s->n.files - 1].id == s->n.files - 1 ? NULL : "a file id out of order";
}

static const char *take_proc(struct cap_store *s, struct rd *r)
{
	if (!ROOM(s, procs, s->n.procs + 1))
		return no_memory;
	if (!cap_record_get_proc(r, &s->procs[s->n.procs]))
		return malformed;
	s->n.procs++;
	return s->procs[s->n.procs - 1].id == s->n.procs - 1 ? NULL : "a process id out of order";
}

static const char *take_thread(struct cap_store *s, struct rd *r)
{
	if (!ROOM(s, threads, s->n.threads + 1))
		return no_memory;
	if (!cap_record_get_thread(r, &s->threads[s->n.threads]))
		return malformed;
	return s->threads[s->n.threads++].proc < s->n.procs ? NULL
							    : "a thread of a process that is not there";
}

static const char *take_life(struct cap_store *s, struct rd *r)
{
	const struct cap_life *l;

	if (!ROOM(s, lives, s->n.lives + 1))
		return no_memory;
	if (!cap_record_get_life(r, &s->lives[s->n.lives]))
		return malformed;
	l = &s->lives[s->n.lives++];
	if (l->to_ns < l->from_ns)
		return "the life of a thread that ends before it begins";
	return l->proc < s->n.procs ? NULL : "the life of a thread of a process that is not there";
}

static const char *take_map(struct cap_store *s, struct rd *r)
{
	const struct cap_map *m;

	if (!ROOM(s, maps, s->n.maps + 1))
		return no_memory;
	if (!cap_record_get_map(r, &s->maps[s->n.maps]))
		return malformed;
	m = &s->maps[s->n.maps++];
	if (m->proc >= s->n.procs)
		return "a mapping of a process that is not there";
	return m->file == CAPTURE_NONE || m->file < s->n.files ? NULL
							       : "a mapping of a file that is not there";
}

static const char *take_image(struct cap_store *s, struct rd *r)
{
	if (!ROOM(s, images, s->n.images + 1))
		return no_memory;
	if (!cap_record_get_image(r, &s->images[s->n.images]))
		return malformed;
	return s->images[s->n.images++].file < s->n.files ? NULL : "an image of a file that is not there";
}

static const char *take_ksym(struct cap_store *s, struct rd *r)
{
	if (!ROOM(s, ksyms, s->n.ksyms + 1))
		return no_memory;
	return cap_record_get_ksym(r, &s->ksyms[s->n.ksyms++]) ? NULL : malformed;
}

static const char *take_script(struct cap_store *s, struct rd *r)
{
	if (!ROOM(s, scripts, s->n.scripts + 1))
		return no_memory;
	if (!cap_record_get_script(r, &s->scripts[s->n.scripts]))
		return malformed;
	s->n.scripts++;
	return s->scripts[s->n.scripts - 1].id == s->n.scripts - 1 ? NULL : "a script frame id out of order";
}

static const char *take_places(
	struct cap_store *s, struct rd *r, const struct cap_stack *k, struct cap_script_at *places)
{
	if (!cap_record_get_scripts(r, places, k))
		return malformed;
	for (uint32_t i = 0; i < k->n_scripts; i++)
		if (places[i].frame >= s->n.scripts)
			return "a stack with a script frame that is not there";
	return NULL;
}

static const char *take_stack(struct cap_store *s, struct rd *r)
{
	struct cap_stack *k;

	if (!ROOM(s, stacks, s->n.stacks + 1) || !ROOM(s, kinds, s->n.stacks + 1))
		return no_memory;
	k = &s->stacks[s->n.stacks];
	if (!cap_record_get_stack(r, k))
		return malformed;
	s->kinds[s->n.stacks] = k->kind;
	if (k->id != s->n.stacks++)
		return "a stack id out of order";
	if (!ROOM(s, frames, s->n.frames + k->len))
		return no_memory;
	s->n.frames += k->len;
	if (!cap_record_get_frames(r, s->frames + s->n.frames - k->len, k->len))
		return malformed;
	if (!cap_record_get_n_exact(r, k))
		return malformed;
	if (!ROOM(s, exact, s->n.exact + k->n_exact))
		return no_memory;
	s->n.exact += k->n_exact;
	if (!cap_record_get_exact(r, s->exact + s->n.exact - k->n_exact, k) ||
		!cap_record_get_n_scripts(r, k))
		return malformed;
	if (!ROOM(s, places, s->n.places + k->n_scripts))
		return no_memory;
	s->n.places += k->n_scripts;
	return take_places(s, r, k, s->places + s->n.places - k->n_scripts);
}

static bool is_stack(const struct cap_store *s, uint32_t id, enum cap_stack_kind kind)
{
	return id < s->n.stacks && s->kinds[id] == kind;
}

static const char *take_waker(struct cap_store *s, struct rd *r)
{
	const struct cap_waker *k;

	if (!ROOM(s, wakers, s->n.wakers + 1))
		return no_memory;
	if (!cap_record_get_waker(r, &s->wakers[s->n.wakers]))
		return malformed;
	k = &s->wakers[s->n.wakers++];
	if (k->id != s->n.wakers)
		return "a waker id out of order";
	if (k->proc != CAPTURE_NONE && k->proc >= s->n.procs)
		return "a waker of a process that is not there";
	if (!is_stack(s, k->kstack, CAPTURE_STACK_KERNEL) || !is_stack(s, k->ustack, CAPTURE_STACK_USER))
		return "a waker with a stack that is not there";
	return k->next < k->id ? NULL : "a waker whose own waker is not there";
}

static const char *check_key(const struct cap_store *s, const struct cap_sample *k)
{
	if (k->proc >= s->n.procs)
		return "a sample of a process that is not there";
	if (!is_stack(s, k->kstack, CAPTURE_STACK_KERNEL) || !is_stack(s, k->ustack, CAPTURE_STACK_USER))
		return "a sample with a stack that is not there";
	return k->waker <= s->n.wakers ? NULL : "a sample with a waker that is not there";
}

static const char *take_sample(struct cap_store *s, struct rd *r, struct cap_record_state *state)
{
	const struct cap_sample *k;

	if (!ROOM(s, pending, s->n.pending + 1))
		return no_memory;
	if (!cap_record_get_sample(r, &s->pending[s->n.pending], state))
		return malformed;
	k = &s->pending[s->n.pending++];
	if (k->runnable_ns > k->total_ns)
		return "a sample that was runnable for longer than it took";
	return check_key(s, k);
}

static const char *take_key(struct cap_store *s, struct rd *r)
{
	struct cap_key *k;
	uint32_t id;

	if (!ROOM(s, keys, s->n.keys + 1))
		return no_memory;
	k = &s->keys[s->n.keys];
	k->sample = HASHTABLE_NONE;
	if (!cap_record_get_key(r, &id, &k->of))
		return malformed;
	if (id != s->n.keys++)
		return "a key id out of order";
	return check_key(s, &k->of);
}

static const char *take_wait(struct cap_store *s, struct rd *r, struct cap_record_state *state)
{
	const struct cap_wait *k;

	if (!ROOM(s, singles, s->n.singles + 1))
		return no_memory;
	if (!cap_record_get_wait(r, &s->singles[s->n.singles], state))
		return malformed;
	k = &s->singles[s->n.singles++];
	if (k->key >= s->n.keys)
		return "a wait with a key that is not there";
	return k->runnable_ns <= k->total_ns ? NULL : "a wait that was runnable for longer than it took";
}

static const char *take_counter(struct cap_store *s, struct rd *r)
{
	struct cap_counter *k;

	if (!ROOM(s, counts, s->n.counts + 1))
		return no_memory;
	k = &s->counts[s->n.counts++];
	if (!cap_record_get_counter(r, k))
		return malformed;
	k->name = counter_name(k->name);
	return NULL;
}

static const char *take_change(struct cap_store *s, struct rd *r)
{
	struct cap_change *c;

	if (!ROOM(s, changes, s->n.changes + 1))
		return no_memory;
	c = &s->changes[s->n.changes++];
	if (!cap_record_get_change(r, c))
		return malformed;
	return c->counter < s->n.counts ? NULL : "a change of a counter that is not there";
}

static const char *take_flush(struct cap_store *s, struct rd *r)
{
	struct cap_flush f = { 0 };
	bool fine = cap_record_get_flush(r, &f);

	s->last_flush_ns = f.time_ns;
	return fine ? NULL : malformed;
}

static const char *take_trailer(struct cap_store *s, struct rd *r)
{
	s->has_trailer = true;
	return cap_record_get_trailer(r, &s->trailer) ? NULL : malformed;
}

static const char *take_record(
	struct cap_store *s, unsigned int type, struct rd *r, struct cap_record_state *state)
{
	switch (type) {
	case CAPTURE_RECORD_HOST:
		return take_host(s, r);
	case CAPTURE_RECORD_OPTION:
		return take_option(s, r);
	case CAPTURE_RECORD_FILE:
		return take_file(s, r);
	case CAPTURE_RECORD_PROC:
		return take_proc(s, r);
	case CAPTURE_RECORD_THREAD:
		return take_thread(s, r);
	case CAPTURE_RECORD_LIFE:
		return take_life(s, r);
	case CAPTURE_RECORD_MAP:
		return take_map(s, r);
	case CAPTURE_RECORD_IMAGE:
		return take_image(s, r);
	case CAPTURE_RECORD_KSYM:
		return take_ksym(s, r);
	case CAPTURE_RECORD_SCRIPT:
		return take_script(s, r);
	case CAPTURE_RECORD_STACK:
		return take_stack(s, r);
	case CAPTURE_RECORD_WAKER:
		return take_waker(s, r);
	case CAPTURE_RECORD_SAMPLE:
		return take_sample(s, r, state);
	case CAPTURE_RECORD_KEY:
		return take_key(s, r);
	case CAPTURE_RECORD_WAIT:
		return take_wait(s, r, state);
	case CAPTURE_RECORD_COUNTER:
		return take_counter(s, r);
	case CAPTURE_RECORD_CHANGE:
		return take_change(s, r);
	case CAPTURE_RECORD_FLUSH:
		return take_flush(s, r);
	case CAPTURE_RECORD_TRAILER:
		return take_trailer(s, r);
	case CAPTURE_RECORD_JIT:
		return cap_code_names_take_jit(&s->names, r, s->n.procs);
	case CAPTURE_RECORD_NAME:
		return cap_code_names_take_name(&s->names, r, s->n.files);
	case CAPTURE_RECORD_STRING:
		return cap_code_names_take_string(&s->names, r);
	default:
		return "a record of an unknown type";
	}
}

/* --- merging samples --- */

static void add_sample(struct cap_sample *into, const struct cap_sample *k)
{
	into->total_ns = add_saturating(into->total_ns, k->total_ns);
	into->count = add_saturating(into->count, k->count);
	into->max_ns = MAX(into->max_ns, k->max_ns);
	into->first_ns = MIN(into->first_ns, k->first_ns);
	into->last_ns = MAX(into->last_ns, k->last_ns);
	into->is_split = into->is_split && k->is_split;
	into->runnable_ns = into->is_split ? add_saturating(into->runnable_ns, k->runnable_ns) : 0;
}

/* The caller has made room for another sample. Returns its index. */
static uint32_t merge_sample(struct cap_store *s, const struct cap_sample *k)
{
	uint64_t hash = cap_sample_hash(k);
	uint32_t at = HASHTABLE_FIND(&s->by_key, hash, i, cap_sample_same_key(&s->samples[i], k));

	if (at == HASHTABLE_NONE) {
		at = (uint32_t)s->n.samples++;
		s->samples[at] = *k;
		hashtable_add(&s->by_key, hash, at);
	} else {
		add_sample(&s->samples[at], k);
	}
	return at;
}

/*
 * The table is larger than a cache. So prefetch what a sample will touch while
 * those before it are merged: first its slot, then the sample that the slot names.
 */
static void fetch_ahead(const struct cap_store *s, size_t i)
{
	enum { SLOT_AHEAD = 16, SAMPLE_AHEAD = 8 };
	uint32_t at;

	if (i + SLOT_AHEAD >= s->n.pending)
		return;
	hashtable_prefetch(&s->by_key, cap_sample_hash(&s->pending[i + SLOT_AHEAD]));
	at = hashtable_guess(&s->by_key, cap_sample_hash(&s->pending[i + SAMPLE_AHEAD]));
	if (at != HASHTABLE_NONE)
		__builtin_prefetch(&s->samples[at]);
}

static bool merge_pending(struct cap_store *s)
{
	size_t most = s->n.samples + s->n.pending;

	if (!s->n.pending)
		return true;
	if (hashtable_reserve(&s->by_key, s->n.pending) != 0 || !ROOM(s, samples, most))
		return false;
	for (size_t i = 0; i < s->n.pending; i++) {
		fetch_ahead(s, i);
		merge_sample(s, &s->pending[i]);
	}
	return true;
}

/* Add the single waits to the samples of their keys, and to `waits` if these are kept. */
static bool merge_singles(struct cap_store *s)
{
	if (!s->n.singles)
		return true;
	if (s->keep_waits && !ROOM(s, waits, s->n.waits + s->n.singles))
		return false;
	for (size_t i = 0; i < s->n.singles; i++) {
		const struct cap_wait *w = &s->singles[i];
		struct cap_key *key = &s->keys[w->key];
		struct cap_sample one = key->of;

		one.total_ns = one.max_ns = w->total_ns;
		one.count = 1;
		one.first_ns = one.last_ns = w->start_ns;
		one.is_split = w->is_split;
		one.runnable_ns = w->runnable_ns;
		if (s->keep_waits) {
			one.total_ns = one.count = one.max_ns = one.runnable_ns = 0;
			one.is_split = true;
		}
		if (key->sample != HASHTABLE_NONE)
			add_sample(&s->samples[key->sample], &one);
		else if (hashtable_reserve(&s->by_key, 1) != 0 || !ROOM(s, samples, s->n.samples + 1))
			return false;
		else
			key->sample = merge_sample(s, &one);
		if (s->keep_waits) {
			s->waits[s->n.waits] = *w;
			s->waits[s->n.waits++].key = key->sample;
		}
	}
	s->n_waits += s->n.singles;
	return true;
}

/* --- a block --- */

/* What a block changes; of the arrays, only the counts n. */
struct before {
	struct cap_store_counts n;
	struct cap_code_names_counts names;
	struct cap_host host;
	struct cap_trailer trailer;
	uint64_t last_flush_ns;
	bool has_host, has_trailer;
};

static void put_back(struct cap_store *s, const struct before *b)
{
	s->n = b->n;
	s->names.n = b->names;
	s->host = b->host;
	s->trailer = b->trailer;
	s->last_flush_ns = b->last_flush_ns;
	s->has_host = b->has_host;
	s->has_trailer = b->has_trailer;
}

/*
 * Add the records of block B, which is intact and of a known type. PAYLOAD must
 * outlive S. 0; -ENOMEM; or -EBADMSG with *WRONG (a constant: "a mapping of a
 * file that is not there") and S unchanged.
 */
static int cap_store_take(
	struct cap_store *s, const struct cap_block *b, const uint8_t *payload, const char **wrong)
{
	const struct before before = { s->n, s->names.n, s->host, s->trailer, s->last_flush_ns, s->has_host,
		s->has_trailer };
	struct rd r = rd_init(payload, b->len), record;
	struct cap_record_state state = { 0 };
	const char *complaint = NULL;

	s->n.pending = s->n.singles = s->n.changes = 0;
	while (!complaint && cap_record_next(&r, &record))
		complaint = take_record(s, b->type, &record, &state);
	if (!complaint && r.bad)
		complaint = "a record that ends behind its block";
	if (complaint) {
		put_back(s, &before);
		*wrong = complaint;
		return !*complaint ? -ENOMEM : -EBADMSG;
	}
	for (size_t i = 0; i < s->n.changes; i++)
		s->counts[s->changes[i].counter].value += s->changes[i].difference;
	return merge_pending(s) && merge_singles(s) ? 0 : -ENOMEM;
}

/* --- after the last block --- */

static int thread_cmp(const void *a, const void *b)
{
	const struct cap_thread *x = a, *y = b;

	int c = CMP(x->proc, y->proc);

	c = c ? c : CMP(x->tid, y->tid);
	return c ? c : CMP(x->from_ns, y->from_ns);
}

static int counter_cmp(const void *a, const void *b)
{
	const struct cap_counter *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int ksym_cmp(const void *a, const void *b)
{
	const struct cap_ksym *x = a, *y = b;

	return CMP(x->start, y->start);
}

static void point_stacks(struct cap_store *s)
{
	size_t frame = 0, exact = 0, place = 0;

	/* functions of Java and JavaScript are native code, or are executed by code that was made for them */
	for (size_t i = 0; i < s->n.places; i++) {
		const char *runtime = s->scripts[s->places[i].frame].runtime;

		s->places[i].instead = strcmp(runtime, "java") == 0 || strcmp(runtime, "v8") == 0;
	}
	for (size_t i = 0; i < s->n.stacks; i++) {
		s->stacks[i].frames = s->frames ? s->frames + frame : NULL;
		s->stacks[i].exact = s->exact ? s->exact + exact : NULL;
		s->stacks[i].scripts = s->places ? s->places + place : NULL;
		frame += s->stacks[i].len;
		place += s->stacks[i].n_scripts;
		exact += s->stacks[i].n_exact;
	}
}

/*
 * Call after the last block. Sets the pointers of the stacks. Sorts threads by
 * process and tid, counters by name and kernel symbols by start, and keeps only
 * the last record of each key. Settles the names. Ends each symbol where the next
 * one begins. 0 or -ENOMEM.
 */
static int cap_store_settle(struct cap_store *s)
{
	point_stacks(s);
	if (!ROOM(s, counters, s->n.counts))
		return -ENOMEM;
	s->n.counters = s->n.counts;
	if (s->n.counts)
		memcpy(s->counters, s->counts, s->n.counts * sizeof(*s->counts));
	if (sortlast(&s->threads, &s->n.threads, sizeof(*s->threads), thread_cmp) != 0 ||
		sortlast(&s->counters, &s->n.counters, sizeof(*s->counters), counter_cmp) != 0 ||
		sortlast(&s->ksyms, &s->n.ksyms, sizeof(*s->ksyms), ksym_cmp) != 0 ||
		cap_code_names_settle(&s->names) != 0)
		return -ENOMEM;
	s->room.threads = s->n.threads;
	s->room.counters = s->n.counters;
	s->room.ksyms = s->n.ksyms;
	for (size_t i = 1; i < s->n.ksyms; i++)
		s->ksyms[i - 1].end = MIN(s->ksyms[i - 1].end, s->ksyms[i].start);
	return 0;
}

/* Empty, with every string "". */
static void cap_store_init(struct cap_store *s)
{
	*s = (struct cap_store){ .host = { "", "", "", "", "", "", "", .stext = 0 },
		.trailer = { .why = "" } };
}

static void cap_store_free(struct cap_store *s)
{
	free(s->options);
	free(s->procs);
	free(s->threads);
	free(s->lives);
	free(s->files);
	free(s->maps);
	free(s->images);
	free(s->ksyms);
	free(s->scripts);
	free(s->places);
	free(s->stacks);
	free(s->kinds);
	free(s->wakers);
	free(s->keys);
	free(s->samples);
	free(s->waits);
	free(s->singles);
	free(s->counters);
	free(s->counts);
	free(s->changes);
	free(s->frames);
	free(s->exact);
	free(s->pending);
	hashtable_free(&s->by_key);
	cap_code_names_free(&s->names);
}

struct load {
	struct cap_reader c; /* what the caller sees; first, so that one pointer serves for both */
	struct cap_store store; /* owns the arrays */
	struct cap_map_index *maps;
	uint8_t *owned; /* the file's bytes, if cap_reader_load() read them */
	/* cap_reader_follow() */
	int fd;
	uint8_t **payloads; /* blocks with what records point into */
	size_t n_payloads, max_payloads;
};

static int check_header(const void *bytes, size_t len, struct cap_block_version *v, struct err *e)
{
	switch (cap_block_get_header(bytes, len, v)) {
	case CAPTURE_BLOCK_OK:
		return 0;
	case CAPTURE_BLOCK_SHORT:
		return err_set(
			e, -EINVAL, "cut at byte %zu, inside the file header: nothing can be read", len);
	case CAPTURE_BLOCK_BYTE_ORDER:
		return err_set(e, -EINVAL, "a capture in the other byte order, which is not read here");
	case CAPTURE_BLOCK_DAMAGED:
		return err_set(e, -EINVAL, "the file header is damaged: nothing can be read");
	case CAPTURE_BLOCK_NEWER:
		err_set(e, -EINVAL, "a capture of format %u.%u; this reads formats up to %u", v->major,
			v->minor, CAPTURE_BLOCK_MAJOR);
		err_hint(e, "use a newer stacktools");
		return -EINVAL;
	default:
		err_set(e, -EINVAL, len ? "not a capture" : "empty, not a capture");
		err_hint(e, "a capture is what offcpu-record -o FILE writes");
		return -EINVAL;
	}
}

/* Is the block at HEADER, with LEFT bytes to the end of the file, the next one? Sets d->kind if not. */
static bool due(struct load *l, const uint8_t *header, size_t left, struct cap_damage *d)
{
	d->block = (struct cap_block){ 0 };
	if (l->store.has_trailer)
		d->kind = CAPTURE_DAMAGE_REST;
	else if (left < CAPTURE_BLOCK_HEAD_LEN)
		d->kind = CAPTURE_DAMAGE_CUT;
	else if (!cap_block_get(header, &d->block))
		d->kind = CAPTURE_DAMAGE_NO_BLOCK;
	else if (left - CAPTURE_BLOCK_HEAD_LEN < d->block.len)
		d->kind = CAPTURE_DAMAGE_CUT;
	else if (!cap_block_intact(header, &d->block))
		d->kind = CAPTURE_DAMAGE_CHECKSUM;
	else if (d->block.seq != (uint32_t)l->c.blocks)
		d->kind = CAPTURE_DAMAGE_SEQUENCE;
	return d->kind == CAPTURE_DAMAGE_END;
}

/* Accept the block at HEADER, with LEFT bytes to the end: 1; 0 if it is invalid; or -ENOMEM. */
static int take_block(struct load *l, const uint8_t *header, size_t left, struct cap_damage *d)
{
	const struct cap_block *b = &d->block;
	struct cap_reader *c = &l->c;
	int code;

	if (!due(l, header, left, d))
		return 0;
	if (!b->type || b->type >= CAPTURE_RECORD_TYPES || b->flags) {
		c->unknown_blocks++;
	} else {
		code = cap_store_take(&l->store, b, header + CAPTURE_BLOCK_HEAD_LEN, &d->wrong);
		d->kind = code ? CAPTURE_DAMAGE_RECORD : d->kind;
		if (code)
			return code == -ENOMEM ? code : 0;
	}
	c->good_bytes += CAPTURE_BLOCK_HEAD_LEN + b->len;
	c->blocks++;
	return 1;
}

/* Accept blocks from good_bytes on, until the end or the first invalid one. */
static int take_blocks(struct load *l, const uint8_t *bytes, size_t len, struct cap_damage *d)
{
	int code = 1;

	while (code > 0 && l->c.good_bytes < len)
		code = take_block(l, bytes + l->c.good_bytes, len - (size_t)l->c.good_bytes, d);
	return MIN(code, 0);
}

/* Make the store's contents visible to the caller. The store still owns them. */
static void show(struct load *l)
{
	const struct cap_store *s = &l->store;
	struct cap_reader *c = &l->c;

	c->host = s->host;
	c->trailer = s->trailer;
	c->last_flush_ns = s->last_flush_ns;
	c->options = s->options, c->n_options = s->n.options;
	c->procs = s->procs, c->n_procs = s->n.procs;
	c->threads = s->threads, c->n_threads = s->n.threads;
	c->lives = s->lives, c->n_lives = s->n.lives;
	c->files = s->files, c->n_files = s->n.files;
	c->maps = s->maps, c->n_maps = s->n.maps;
	c->images = s->images, c->n_images = s->n.images;
	c->ksyms = s->ksyms, c->n_ksyms = s->n.ksyms;
	c->scripts = s->scripts, c->n_scripts = s->n.scripts;
	c->stacks = s->stacks, c->n_stacks = s->n.stacks;
	c->wakers = s->wakers, c->n_wakers = s->n.wakers;
	c->samples = s->samples, c->n_samples = s->n.samples;
	c->waits = s->waits, c->n_waits = s->n_waits;
	c->counters = s->counters, c->n_counters = s->n.counters;
	c->jits = s->names.jits, c->n_jits = s->names.n.jits;
	c->names = s->names.names, c->n_names = s->names.n.names;
}

/* REST: the LEN bytes from good_bytes on. */
static void judge(struct load *l, struct cap_damage *d, const uint8_t *rest, size_t len)
{
	struct cap_reader *c = &l->c;

	c->complete = d->kind == CAPTURE_DAMAGE_END && l->store.has_trailer;
	if (c->complete)
		return;
	c->no_trailer = d->kind == CAPTURE_DAMAGE_END;
	d->at = c->good_bytes;
	d->total = c->total_bytes;
	d->blocks = c->blocks;
	d->start_ns = c->host.start_mono_ns;
	d->last_flush_ns = c->last_flush_ns;
	cap_damage_describe(d, rest, len, c->damage, sizeof(c->damage));
}

/* Make what was taken so far visible to the caller. */
static int settle(struct load *l)
{
	if (cap_store_settle(&l->store) != 0)
		return -ENOMEM;
	show(l);
	cap_map_index_free(l->maps);
	l->maps = NULL;
	return cap_map_index_new(l->c.maps, l->c.n_maps, l->c.n_procs, &l->maps);
}

/* TOTAL is the file's length, more than LEN if not all of it was read. WAITS: keep single ones. */
static int parse(const void *bytes, size_t len, uint64_t total, bool waits, struct load *l, struct err *e)
{
	struct cap_damage d = { .kind = CAPTURE_DAMAGE_END };
	struct cap_block_version v;
	int code = check_header(bytes, len, &v, e);

	if (code)
		return code;
	cap_store_init(&l->store);
	l->store.keep_waits = waits;
	l->c.total_bytes = total;
	l->c.good_bytes = v.header_len;
	if (take_blocks(l, bytes, len, &d) != 0 || settle(l) != 0)
		return err_nomem(e, "the capture");
	judge(l, &d, (const uint8_t *)bytes + l->c.good_bytes, len - (size_t)l->c.good_bytes);
	return 0;
}

static void prefix_name(struct err *e, const char *path)
{
	if (path && strcmp(path, "-") != 0)
		err_prefix(e, "'%s'", path);
	else
		err_prefix(e, "standard input");
}

/* OWNED (may be NULL) belongs to *RET, or is freed on failure. */
static int make(const void *bytes, size_t len, uint64_t total, uint8_t *owned, bool waits,
	struct cap_reader **ret, struct err *e)
{
	struct load *l = calloc(1, sizeof(*l));
	int code;

	if (!l) {
		free(owned);
		return err_nomem(e, "the capture");
	}
	l->owned = owned;
	code = parse(bytes, len, total, waits, l, e);
	if (code)
		cap_reader_free(&l->c);
	else
		*ret = &l->c;
	return code;
}

int cap_reader_parse(const void *bytes, size_t len, struct cap_reader **ret, struct err *e)
{
	return make(bytes, len, len, NULL, false, ret, e);
}

static int load(const char *path, bool waits, struct cap_reader **ret, struct err *e)
{
	struct cap_bytes s;
	int code = cap_bytes_read(path, &s, e);

	if (code)
		return code;
	code = make(s.bytes, s.len, s.total, s.bytes, waits, ret, e);
	if (code == -EINVAL)
		prefix_name(e, path);
	if (!code && s.growing && (*ret)->no_trailer) {
		struct cap_reader *c = *ret;
		const uint64_t start = c->host.start_mono_ns;

		snprintf(c->damage, sizeof(c->damage),
			"its recorder still runs: it is whole up to %.3f s of recording",
			c->last_flush_ns > start ? (double)(c->last_flush_ns - start) / 1e9 : 0);
	}
	return code;
}

int cap_reader_load(const char *path, struct cap_reader **ret, struct err *e)
{
	return load(path, false, ret, e);
}

int cap_reader_load_waits(const char *path, struct cap_reader **ret, struct err *e)
{
	return load(path, true, ret, e);
}

/* --- a capture that grows --- */

/* Read LEN bytes: how many were there until the end, or -errno. */
static ssize_t read_whole(int fd, uint8_t *p, size_t len)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	size_t have = 0;

	while (have < len) {
		ssize_t n = read(fd, p + have, len - have);

		if (n < 0 && errno == EAGAIN && (poll(&ready, 1, -1) >= 0 || errno == EINTR))
			continue;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	return (ssize_t)have;
}

int cap_reader_follow(const char *path, bool waits, struct cap_reader **ret, struct err *e)
{
	const char *name = path && strcmp(path, "-") != 0 ? path : "standard input";
	_cleanup_close_ int fd = open_input(path, e);
	uint8_t header[CAPTURE_BLOCK_HEADER_LEN], skipped;
	struct cap_block_version v;
	struct load *l;
	ssize_t n;
	int code;

	if (fd < 0)
		return fd;
	if (isatty(fd))
		return refuse_input(name, e);
	n = read_whole(fd, header, sizeof(header));
	code = n < 0 ? err_sys(e, (int)n, "cannot read '%s'", name) : check_header(header, (size_t)n, &v, e);
	if (code) {
		if (n >= 0)
			prefix_name(e, path);
		return code;
	}
	for (uint32_t i = sizeof(header); i < v.header_len; i++)
		(void)!read_whole(fd, &skipped, 1);
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_nomem(e, "the capture");
	cap_store_init(&l->store);
	l->store.keep_waits = waits;
	l->c.good_bytes = v.header_len;
	l->fd = TAKE_FD(fd);
	*ret = &l->c;
	return 0;
}

/* The next block: its header and payload, *LEN bytes, fewer if the capture ends within. NULL: no memory. */
static uint8_t *read_block(struct load *l, size_t *len, int *code)
{
	uint8_t header[CAPTURE_BLOCK_HEAD_LEN], *bytes;
	ssize_t n = read_whole(l->fd, header, sizeof(header)), more = 0;
	struct cap_block b = { 0 };

	*code = 0;
	if (n == sizeof(header) && !cap_block_get(header, &b))
		b.len = 0;
	bytes = malloc(sizeof(header) + b.len);
	if (bytes && n > 0) {
		memcpy(bytes, header, (size_t)n);
		if (n == sizeof(header))
			more = read_whole(l->fd, bytes + n, b.len);
	}
	if (n < 0 || more < 0)
		*code = (int)(n < 0 ? n : more);
	*len = *code ? 0 : (size_t)(n + more);
	return bytes;
}

/* Forget the numbers of the flush before. */
static void begin_flush(struct cap_store *s)
{
	for (size_t i = 0; i < s->n.samples; i++) {
		struct cap_sample *k = &s->samples[i];

		k->total_ns = k->count = k->max_ns = k->runnable_ns = 0;
		k->is_split = true;
	}
	s->n.waits = 0;
	s->n_waits = 0;
}

/* Does nothing that was taken point into a block of this TYPE? Names of counters do that are not ours. */
static bool is_spent(const struct cap_store *s, unsigned int type, const uint8_t *bytes, size_t len)
{
	if (type == CAPTURE_RECORD_COUNTER)
		for (size_t i = 0; i < s->n.counts; i++)
			if ((uintptr_t)s->counts[i].name - (uintptr_t)bytes < len)
				return false;
	return type == CAPTURE_RECORD_SAMPLE || type == CAPTURE_RECORD_WAIT || type == CAPTURE_RECORD_FLUSH ||
	       type == CAPTURE_RECORD_COUNTER || type == CAPTURE_RECORD_CHANGE;
}

/* Take the block BYTES, which is then ours. As take_block(). */
static int take_owned(struct load *l, uint8_t *bytes, size_t len, struct cap_damage *d)
{
	int code = take_block(l, bytes, len, d);

	if (is_spent(&l->store, d->block.type, bytes, len)) {
		free(bytes);
		return code;
	}
	if (base_grow(&l->payloads, &l->max_payloads, l->n_payloads + 1, sizeof(*l->payloads)) != 0) {
		free(bytes);
		return -ENOMEM;
	}
	l->payloads[l->n_payloads++] = bytes;
	return code;
}

int cap_reader_next(struct cap_reader *c, struct err *e)
{
	struct load *l = (struct load *)c;
	struct cap_damage d = { .kind = CAPTURE_DAMAGE_END };
	int code = 1, reading = 0;
	size_t len;

	begin_flush(&l->store);
	do {
		uint8_t *bytes = read_block(l, &len, &reading);

		d.block = (struct cap_block){ 0 };
		if (!bytes || reading || !len) {
			free(bytes);
			code = bytes ? 0 : -ENOMEM;
			break;
		}
		c->total_bytes = c->good_bytes + len;
		code = take_owned(l, bytes, len, &d);
	} while (code > 0 && d.block.type != CAPTURE_RECORD_FLUSH);
	if (code < 0 || settle(l) != 0)
		return err_nomem(e, "the capture");
	if (reading)
		return err_sys(e, reading, "cannot read the capture");
	if (code == 0)
		judge(l, &d, (const uint8_t *)"", 0);
	return code;
}

void cap_reader_free(struct cap_reader *c)
{
	struct load *l = (struct load *)c;

	if (!l)
		return;
	cap_store_free(&l->store);
	cap_map_index_free(l->maps);
	free(l->owned);
	for (size_t i = 0; i < l->n_payloads; i++)
		free(l->payloads[i]);
	free(l->payloads);
	if (l->fd)
		close(l->fd);
	free(l);
}

/* --- lookups --- */

const struct cap_ksym *cap_reader_ksym(const struct cap_reader *c, uint64_t addr)
{
	size_t lo = PARTITION_POINT(0, c->n_ksyms, mid, c->ksyms[mid].start <= addr);

	return lo && addr < c->ksyms[lo - 1].end ? &c->ksyms[lo - 1] : NULL;
}

const struct cap_name *cap_reader_name(const struct cap_reader *c, uint32_t file, uint64_t offset)
{
	size_t lo = PARTITION_POINT(0, c->n_names, mid,
		c->names[mid].file < file || (c->names[mid].file == file && c->names[mid].offset < offset));

	if (lo == c->n_names || c->names[lo].file != file || c->names[lo].offset != offset)
		return NULL;
	return &c->names[lo];
}

static int thread_key_cmp(const struct cap_thread *t, uint32_t proc, uint32_t tid)
{
	return t->proc != proc ? CMP(t->proc, proc) : CMP(t->tid, tid);
}

const struct cap_thread *cap_reader_thread(
	const struct cap_reader *c, uint32_t proc, uint32_t tid, uint64_t time_ns)
{
	size_t lo = PARTITION_POINT(0, c->n_threads, mid, thread_key_cmp(&c->threads[mid], proc, tid) < 0);
	size_t at = PARTITION_POINT(lo, c->n_threads, mid,
		thread_key_cmp(&c->threads[mid], proc, tid) == 0 && c->threads[mid].from_ns <= time_ns);

	at -= at > lo;
	return at < c->n_threads && thread_key_cmp(&c->threads[at], proc, tid) == 0 ? &c->threads[at] : NULL;
}

uint64_t cap_reader_kept_ns(const struct cap_reader *c)
{
	uint64_t sum = 0, from, to;

	for (size_t i = 0; i < c->n_options; i++)
		if (strcmp(c->options[i].name, CAPTURE_OPTION_KEPT) == 0 &&
			sscanf(c->options[i].value, "%" SCNu64 "-%" SCNu64, &from, &to) == 2 && from < to)
			sum = add_saturating(sum, to - from);
	return sum;
}

uint64_t cap_reader_counter(const struct cap_reader *c, const char *name)
{
	for (size_t i = 0; i < c->n_counters; i++)
		if (strcmp(c->counters[i].name, name) == 0)
			return c->counters[i].value;
	return 0;
}

const struct cap_map *cap_reader_map(const struct cap_reader *c, uint32_t proc, uint64_t addr,
	uint64_t first_ns, uint64_t last_ns, bool *unsure)
{
	return cap_map_index_find(((const struct load *)c)->maps, proc, addr, first_ns, last_ns, unsure);
}
