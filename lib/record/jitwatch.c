/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/jitwatch.h"
#include "record/mapfile.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define WATCHES_MAX 4096
#define FDS_MAX 256 /* files that are kept open */
#define LOOK_NS UINT64_C(100000000)
#define FORGET_NS UINT64_C(10000000000) /* all samples of an ended process are in long before */

void jitwatch_init(struct jitwatches *t)
{
	*t = (struct jitwatches){ .free = UINT32_MAX };
}

static void close_fd(struct jitwatches *t, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	t->n_fds--;
}

void jitwatch_close(struct jitwatches *t, struct jitwatch *w)
{
	close_fd(t, &w->map);
	close_fd(t, &w->dump);
}

void jitwatch_free(struct jitwatches *t)
{
	for (size_t i = 0; i < t->n; i++)
		jitwatch_close(t, &t->all[i]);
	free(t->all);
	idmap_free(&t->by_tgid);
	jitwatch_init(t);
}

static struct jitwatch *watch_of(const struct jitwatches *t, uint32_t tgid)
{
	const struct idmap_slot *s = idmap_find(&t->by_tgid, 0, tgid);
	struct jitwatch *w = s ? &t->all[s->value] : NULL;

	return w && !w->over && w->owner.pid == tgid ? w : NULL;
}

static uint32_t take_slot(struct jitwatches *t)
{
	uint32_t at = t->free;

	if (at != UINT32_MAX) {
		t->free = t->all[at].next;
		return at;
	}
	if (t->n == WATCHES_MAX || base_grow(&t->all, &t->cap, t->n + 1, sizeof(*t->all)) != 0)
		return UINT32_MAX;
	return (uint32_t)t->n++;
}

static void drop_slot(struct jitwatches *t, uint32_t at)
{
	t->all[at] = (struct jitwatch){ .over = true, .free = true, .next = t->free, .map = -1, .dump = -1 };
	t->free = at;
}

/* A new one for the process that is TGID now, if it is there; NULL. */
static struct jitwatch *add_watch(struct jitwatches *t, uint32_t tgid, uint64_t now_ns)
{
	struct jitwatch w = {
		.since_ns = now_ns, .proc = CAP_NONE, .map = -1, .dump = -1, .owner.opener = t->opener
	};
	struct idmap_slot *s;
	uint32_t at = jitfile_owner(tgid, &w.owner) ? take_slot(t) : UINT32_MAX;

	if (at == UINT32_MAX)
		return NULL;
	idmap_put(&t->by_tgid, 0, tgid, at, NULL);
	s = idmap_find(&t->by_tgid, 0, tgid);
	if (!s) {
		drop_slot(t, at);
		return NULL;
	}
	s->value = at;
	t->all[at] = w;
	return &t->all[at];
}

/* Keep FD for W in *SLOT; it is closed where there is no room. */
static void keep_fd(struct jitwatches *t, struct jitwatch *w, int *slot, int fd)
{
	if (fd < 0)
		return;
	close_fd(t, slot);
	w->no_room = t->n_fds == FDS_MAX;
	if (w->no_room) {
		close(fd);
		return;
	}
	*slot = fd;
	t->n_fds++;
}

static void take_dump(struct jitwatches *t, struct jitwatch *w, const struct procmap *m)
{
	struct stat st;

	if (w->dump < 0 && jitfile_is_dump(&w->owner, m->path))
		keep_fd(t, w, &w->dump, mapfile_open(t->opener, w->owner.pid, m, &st));
}

static bool is_anonymous(const char *path)
{
	return !*path || strcmp(path, "//anon") == 0 || strncmp(path, "[anon", 5) == 0 ||
	       strncmp(path, "/memfd:", 7) == 0;
}

static void on_code(struct jitwatches *t, const struct procevent *ev, bool tracked)
{
	const char *base = strrchr(ev->text, '/');
	bool dump = base && strncmp(base, "/jit-", 5) == 0;
	struct jitwatch *w;

	if (!dump && !is_anonymous(ev->text))
		return;
	w = watch_of(t, ev->pid);
	if (!w && tracked)
		w = add_watch(t, ev->pid, ev->time_ns);
	if (w && dump)
		take_dump(t, w,
			&(struct procmap){ .start = ev->start,
				.end = ev->end,
				.inode = ev->inode,
				.dev_major = ev->dev_major,
				.dev_minor = ev->dev_minor,
				.path = ev->text });
}

/* W is another image from TIME_NS on, or none. */
static void end_watch(struct jitwatch *w, uint64_t time_ns)
{
	if (!w || time_ns < w->since_ns)
		return;
	w->over = true;
	w->owner.end_ns = time_ns;
}

void jitwatch_event(struct jitwatches *t, const struct procevent *ev, bool tracked)
{
	if (ev->type == PROCEVENT_MMAP && (ev->prot & PROT_EXEC))
		on_code(t, ev, tracked);
	else if (ev->type == PROCEVENT_EXEC || (ev->type == PROCEVENT_FORK && ev->pid != ev->parent) ||
		 (ev->type == PROCEVENT_EXIT && ev->tid == ev->pid))
		end_watch(watch_of(t, ev->pid), ev->time_ns);
}

void jitwatch_look(struct jitwatches *t, uint64_t now_ns)
{
	struct stat st;

	if (now_ns < t->look_ns)
		return;
	t->look_ns = now_ns + LOOK_NS;
	for (uint32_t i = 0; i < t->n; i++) {
		struct jitwatch *w = &t->all[i];

		if (!w->over && w->map < 0 && t->n_fds < FDS_MAX) {
			keep_fd(t, w, &w->map, jitfile_map(&w->owner, &st));
		} else if (w->over && !w->free && w->proc == CAP_NONE &&
			   now_ns > w->owner.end_ns + FORGET_NS) {
			jitwatch_close(t, w);
			drop_slot(t, i);
		}
	}
}

/* Its jitdump file may have been mapped before the recording. */
static void find_dump(
	struct jitwatches *t, struct jitwatch *w, const struct pastmap *past, const struct image *im)
{
	for (size_t i = 0; im->maps && i < im->maps->n; i++) {
		const struct mapping *m = &im->maps->maps[i];
		struct procmap pm = { .start = m->start, .end = m->end, .offset = m->offset };

		if (filetab_place(past->files, m->file, &pm))
			take_dump(t, w, &pm);
	}
}

/* The one that is known from events, else a new one; NULL. */
static struct jitwatch *find_watch(struct jitwatches *t, const struct image *im, uint64_t now_ns)
{
	for (size_t i = t->n; i-- > 0;) {
		struct jitwatch *w = &t->all[i];

		if (!w->free && w->owner.pid == im->tgid && w->proc == CAP_NONE &&
			w->since_ns >= im->begin_ns && w->since_ns < im->end_ns)
			return w;
	}
	return im->end_ns == UINT64_MAX ? add_watch(t, im->tgid, now_ns) : NULL;
}

uint32_t jitwatch_bind(struct jitwatches *t, uint32_t proc, const struct pastmap *past,
	const struct image *im, uint64_t now_ns)
{
	struct jitwatch *w = find_watch(t, im, now_ns);

	if (!w)
		return UINT32_MAX;
	w->proc = proc;
	w->owner.start_boot_ns = im->start_boot_ns;
	find_dump(t, w, past, im);
	return (uint32_t)(w - t->all);
}

/* An exit is told later than it is seen in /proc. */
void jitwatch_settle(struct jitwatches *t, uint64_t now_ns)
{
	for (size_t i = 0; i < t->n; i++) {
		struct jitfile_owner now = { .opener = t->opener };

		if (!t->all[i].over && !jitfile_owner(t->all[i].owner.pid, &now))
			end_watch(&t->all[i], now_ns);
	}
}

int jitwatch_reopen(struct jitwatches *t, struct jitwatch *w)
{
	struct stat st;
	int fd;

	/* whoever is gone may have had a successor of the same PID: its file is the one of then */
	if (w->over && w->map >= 0)
		return 0;
	fd = jitfile_map(&w->owner, &st);
	if (fd == -EMEDIUMTYPE)
		return fd;
	keep_fd(t, w, &w->map, fd);
	return 0;
}
