/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capslurp.h"
#include "capture/capblock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define ROOM_LEAST (256 << 10)
#define ROOM_AT_ONCE (64 << 20) /* a file's size is believed up to here */
#define BEHIND_DAMAGE (64 << 20) /* bytes read on behind what is no block */

struct slurp {
	int fd;
	struct capslurp s;
	size_t room;
	size_t next; /* where the next block header is due; 0 before the file header is whole */
	bool framed; /* as far as `next` all is blocks */
};

/* Follow the blocks' lengths over what is there. */
static void follow(struct slurp *f)
{
	struct capblock_version v;
	struct capblock b;

	if (!f->next) {
		enum capblock_header h = capblock_get_header(f->s.bytes, f->s.len, &v);

		f->framed = h == CAPBLOCK_OK || h == CAPBLOCK_SHORT;
		f->next = h == CAPBLOCK_OK ? v.header_len : 0;
		if (!f->next)
			return;
	}
	while (f->framed && f->next <= f->s.len && f->s.len - f->next >= CAPBLOCK_HEAD_LEN) {
		f->framed = capblock_get(f->s.bytes + f->next, &b);
		if (f->framed)
			f->next += CAPBLOCK_HEAD_LEN + b.len;
	}
}

static bool enough(const struct slurp *f)
{
	if (!f->s.len)
		return false;
	return !f->framed && (!f->next || f->s.len - f->next > BEHIND_DAMAGE);
}

/* Not base_grow(): what is read over needs no zeroes. */
static int make_room(struct slurp *f, size_t room)
{
	uint8_t *bytes = realloc(f->s.bytes, room);

	if (!bytes)
		return -ENOMEM;
	f->s.bytes = bytes;
	f->room = room;
	return 0;
}

/* One read(2). 1, 0 at the end, or -errno. */
static int more(struct slurp *f)
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
	int fd;

	if (path && strcmp(path, "-") != 0)
		fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	else
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	return fd >= 0 ? fd : err_sys(e, -errno, "cannot open '%s'", path ? path : "-");
}

static int refuse_input(const char *name, struct err *e)
{
	err_set(e, -EINVAL, "%s is a terminal, not a capture", name);
	err_hint(e, "name the file that offcpu-record -o wrote, or send one to standard input");
	return -EINVAL;
}

int capslurp_read(const char *path, struct capslurp *ret, struct err *e)
{
	const char *name = path && strcmp(path, "-") != 0 ? path : "standard input";
	_cleanup_close_ int fd = open_input(path, e);
	struct slurp f = { .fd = fd, .framed = true };
	struct stat st;
	size_t room = ROOM_LEAST;
	int code;

	if (fd < 0)
		return fd;
	if (isatty(fd))
		return refuse_input(name, e);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		f.s.total = (uint64_t)st.st_size;
	/* one byte more, so that the end is found without more room */
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
