/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/files.h"
#include "record/vdso.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hashtable.h"
#include "elf/file.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define CHANGE_TICK_NS                                                                                       \
	UINT64_C(10000000) /* a file's times are those of the last timer tick, 100 a second or more */

bool mapfile_is_pseudo(const char *path)
{
	return path[0] != '/' || strncmp(path, "//", 2) == 0;
}

/* Open the file of FD, an O_PATH descriptor, for reading. */
static int reopen(int fd)
{
	char again[64];
	int ret;

	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	ret = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return ret < 0 ? -errno : ret;
}

/* Open PATH for reading if it is a regular file: check first, because opening a device can have effects. */
static int open_regular(const char *path, struct stat *st)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, st) != 0)
		return -errno;
	return S_ISREG(st->st_mode) ? reopen(fd) : -EMEDIUMTYPE;
}

/*
 * An O_PATH descriptor of M's file, by its path as this process sees it; -1 if
 * that is not certainly the file. This works for most files and saves a request
 * to the broker. Another process chooses the path, so it is followed only if
 * that cannot block (RESOLVE_CACHED, since Linux 5.12).
 */
static int find_here(const struct procmap *m, struct stat *st)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
	_cleanup_close_ int fd =
		m->deleted ? -1 : (int)syscall(SYS_openat2, AT_FDCWD, m->path, &how, sizeof(how));
	struct statx sx;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_TYPE, &sx) != 0 ||
		!S_ISREG(sx.stx_mode) || sx.stx_ino != m->inode || sx.stx_dev_major != m->dev_major ||
		sx.stx_dev_minor != m->dev_minor || fstat(fd, st) != 0)
		return -1;
	return TAKE_FD(fd);
}

static bool same_inode(const struct stat *st, const struct procmap *m)
{
	return st->st_ino == m->inode;
}

/* The broker's result; our own if there is no broker. */
static int either(int own, int requested)
{
	return requested == -ENOTCONN ? own : requested;
}

static void put_link(char link[96], uint32_t pid, const struct procmap *m)
{
	snprintf(link, 96, "/proc/%u/map_files/%llx-%llx", pid, (unsigned long long)m->start,
		(unsigned long long)m->end);
}

static int open_mapping(struct worker *o, uint32_t pid, const struct procmap *m, struct stat *st)
{
	char link[96];
	int fd;

	put_link(link, pid, m);
	fd = open_regular(link, st);
	return fd >= 0 || fd == -EMEDIUMTYPE ? fd : either(fd, broker_mapping(o, pid, m->start, m->end, st));
}

static int stat_mapping(struct worker *o, uint32_t pid, const struct procmap *m, struct stat *st)
{
	char link[96];

	put_link(link, pid, m);
	return stat(link, st) == 0 ? 0 : either(-errno, broker_mapping_stat(o, pid, m->start, m->end, st));
}

/* Open PATH below the root of PID, 0 = ours. */
static int open_path(struct worker *o, uint32_t pid, const char *path, struct stat *st)
{
	_cleanup_free_ char *full = NULL;
	int fd;

	if (pid && asprintf(&full, "/proc/%u/root%s", pid, path) < 0)
		return -ENOMEM;
	fd = open_regular(pid ? full : path, st);
	return fd >= 0 || fd == -EMEDIUMTYPE ? fd : either(fd, broker_path(o, pid, path, st));
}

static int stat_path(struct worker *o, uint32_t pid, const char *path, struct stat *st)
{
	_cleanup_free_ char *full = NULL;

	if (pid && asprintf(&full, "/proc/%u/root%s", pid, path) < 0)
		return -ENOMEM;
	return stat(pid ? full : path, st) == 0 ? 0 : either(-errno, broker_path_stat(o, pid, path, st));
}

/* Is the file of FD, which may be deleted, at PATH? */
static bool is_named(int fd, const char *path)
{
	const size_t len = strlen(path);
	char link[64], name[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n < (ssize_t)len || strncmp(name, path, len) != 0)
		return false;
	name[n] = '\0';
	return !name[len] || strcmp(name + len, " (deleted)") == 0;
}

int mapfile_open(struct worker *o, uint32_t pid, const struct procmap *m, struct stat *st)
{
	_cleanup_close_ int here = find_here(m, st);
	int fd = here < 0 ? here : reopen(here), first;

	if (fd >= 0)
		return fd;
	first = fd = open_mapping(o, pid, m, st);
	/* another file may be mapped there by now; a file system in layers may show another inode */
	if (fd >= 0 && !same_inode(st, m) && !is_named(fd, m->path)) {
		close(fd);
		first = fd = -ESTALE;
	}
	if (fd >= 0 || fd == -EMEDIUMTYPE)
		return fd;
	fd = open_path(o, pid, m->path, st);
	if (fd < 0)
		fd = open_path(o, 0, m->path, st);
	if (fd >= 0 && same_inode(st, m))
		return fd;
	if (fd >= 0) {
		close(fd);
		return -ESTALE; /* another file has this path */
	}
	return first == -ENOENT || first == -ESRCH ? fd : first;
}

int mapfile_stat(struct worker *o, uint32_t pid, const struct procmap *m, struct stat *st)
{
	_cleanup_close_ int here = find_here(m, st);
	int rc = here < 0 ? stat_mapping(o, pid, m, st) : 0;

	if (!rc)
		return 0;
	if ((stat_path(o, pid, m->path, st) == 0 || stat_path(o, 0, m->path, st) == 0) && same_inode(st, m))
		return 0;
	return rc;
}

static uint64_t changed_ns(const struct stat *st)
{
	return (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec;
}

/* Is ST the status of M's file, last changed before M was made? */
static bool is_older(const struct stat *st, const struct procmap *m, uint64_t made_ns)
{
	return same_inode(st, m) && st->st_dev == makedev(m->dev_major, m->dev_minor) &&
	       changed_ns(st) + CHANGE_TICK_NS <= made_ns;
}

static struct mapfile_proof *place_of(
	struct mapfile_proof *proofs, uint32_t pid, const struct procmap *m, uint64_t made_ns)
{
	uint64_t h = (m->start ^ (uint64_t)pid << 40 ^ made_ns) * 0x9e3779b97f4a7c15u;

	return &proofs[h >> 32 & (MAPFILE_PROOFS - 1)];
}

static bool is_of(const struct mapfile_proof *p, uint32_t pid, const struct procmap *m, uint64_t made_ns)
{
	return p->pid == pid && p->start == m->start && p->made_ns == made_ns && p->inode == m->inode &&
	       p->dev == makedev(m->dev_major, m->dev_minor);
}

#define ANSWER_NS UINT64_C(1000000000)

/*
 * Does P hold still? Either its answer is new, or the file at M's path is still the
 * same. stat(2) is safe: it was once reached without blocking.
 */
static bool is_proven(const struct mapfile_proof *p, const struct procmap *m, struct stat *st)
{
	if (p->answered_ns) {
		*st = p->answer;
		return now_ns() - p->answered_ns < ANSWER_NS;
	}
	return stat(m->path, st) == 0 && same_inode(st, m) && st->st_dev == p->dev &&
	       changed_ns(st) == p->changed_ns;
}

int mapfile_stat_then(struct worker *o, struct mapfile_proof proofs[MAPFILE_PROOFS], uint32_t pid,
	const struct procmap *m, uint64_t made_ns, struct stat *st)
{
	struct mapfile_proof *p = place_of(proofs, pid, m, made_ns);
	_cleanup_close_ int here = -1;
	struct stat named = { 0 };
	int rc;

	if (is_of(p, pid, m, made_ns) && is_proven(p, m, st))
		return 0;
	here = find_here(m, &named);
	*st = named;
	rc = here >= 0 && is_older(st, m, made_ns) ? 0 : stat_mapping(o, pid, m, st);
	if (!rc && same_inode(st, m)) {
		*p = (struct mapfile_proof){ m->start, made_ns, m->inode, makedev(m->dev_major, m->dev_minor),
			.pid = pid };
		if (here >= 0) {
			p->changed_ns = changed_ns(&named);
		} else {
			p->answered_ns = now_ns();
			p->answer = *st;
		}
		return 0;
	}
	rc = stat_path(o, 0, m->path, st);
	if (rc)
		return rc;
	return is_older(st, m, made_ns) ? 0 : -ESTALE;
}

/* Was the file of M deleted, or does its path name another one? */
static bool mapfile_is_gone(struct worker *o, uint32_t pid, const struct procmap *m)
{
	_cleanup_close_ int here = -1;
	struct stat st;

	if (m->deleted)
		return true;
	/* a link at the path would have another inode, and a mapping's path has no links */
	here = pid ? find_here(m, &st) : -1;
	return here < 0 && (stat_path(o, pid, m->path, &st) == 0 && !same_inode(&st, m));
}

#define PHDRS_MAX 1024
#define NOTES_MAX (1u << 20) /* bytes, all segments: a thousand segments of 1 MiB would take seconds */

/* A file or an image to read from; a short read means end of file. */
struct source {
	int fd;
	const uint8_t *image;
	size_t len;
};

static ssize_t fetch(const struct source *s, void *to, size_t n, uint64_t off)
{
	size_t done = 0;

	if (s->image) {
		if (off >= s->len)
			return 0;
		n = MIN(n, s->len - (size_t)off);
		memcpy(to, s->image + off, n);
		return (ssize_t)n;
	}
	while (done < n && off <= INT64_MAX - n) {
		ssize_t r = pread(s->fd, (char *)to + done, n - done, (off_t)(off + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

struct segment {
	uint32_t type;
	uint64_t offset, size, align;
};

static struct segment segment_read(struct rd *r, bool is64)
{
	struct segment s = { .type = rd_u32(r) };

	if (is64) {
		rd_u32(r); /* p_flags */
		s.offset = rd_u64(r);
		rd_bytes(r, 16); /* p_vaddr, p_paddr */
		s.size = rd_u64(r);
		rd_bytes(r, 8); /* p_memsz */
		s.align = rd_u64(r);
	} else {
		s.offset = rd_u32(r);
		rd_bytes(r, 8);
		s.size = rd_u32(r);
		rd_bytes(r, 8); /* p_memsz, p_flags */
		s.align = rd_u32(r);
	}
	return s;
}

static int scan_notes(
	const struct source *src, const struct segment *seg, size_t *budget, struct cap_build_id *ret)
{
	size_t size = (size_t)MIN(seg->size, *budget);
	_cleanup_free_ uint8_t *notes = malloc(size ? size : 1);
	ssize_t n;

	if (!notes)
		return -ENOMEM;
	*budget -= size;
	n = fetch(src, notes, size, seg->offset);
	if (n > 0)
		elfnote_build_id(notes, (size_t)n, seg->align, ret);
	return n < 0 ? (int)n : 0;
}

static int scan(const struct source *src, struct cap_build_id *ret)
{
	uint8_t head[64], table[PHDRS_MAX * 56];
	ssize_t n = fetch(src, head, sizeof(head), 0);
	bool is64;
	uint64_t phoff;
	uint16_t phentsize, phnum;
	size_t budget = NOTES_MAX;

	ret->len = 0;
	if (n < 0)
		return (int)n;
	if (n < 52 || memcmp(head, ELFMAG, SELFMAG) != 0 || head[EI_DATA] != ELFDATA2LSB ||
		(head[EI_CLASS] != ELFCLASS64 && head[EI_CLASS] != ELFCLASS32))
		return 0;
	is64 = head[EI_CLASS] == ELFCLASS64;

	struct rd r = rd_init(head + (is64 ? 32 : 28), is64 ? 32 : 24);

	phoff = is64 ? rd_u64(&r) : rd_u32(&r);
	rd_bytes(&r, is64 ? 14 : 10); /* e_shoff, e_flags, e_ehsize */
	phentsize = rd_u16(&r);
	phnum = rd_u16(&r);
	if (phentsize != (is64 ? 56 : 32) || phnum > PHDRS_MAX)
		return 0;
	n = fetch(src, table, (size_t)phentsize * phnum, phoff);
	if (n < 0)
		return (int)n;
	r = rd_init(table, (size_t)n);
	while (rd_left(&r) >= phentsize && !ret->len) {
		struct segment seg = segment_read(&r, is64);
		int rc = seg.type == PT_NOTE ? scan_notes(src, &seg, &budget, ret) : 0;

		if (rc)
			return rc;
	}
	return 0;
}

int buildid_read(int fd, struct cap_build_id *ret)
{
	struct source src = { .fd = fd };

	return scan(&src, ret);
}

void buildid_in_image(const void *image, size_t len, struct cap_build_id *ret)
{
	struct source src = { .fd = -1, .image = image, .len = len };

	scan(&src, ret);
}

struct file {
	struct cap_file cap; /* id CAPTURE_NONE until it is emitted; owns `path` */
	enum vdso_kind vdso;
	uint8_t *image; /* of the vdso; NULL = none */
	size_t image_len;
	uint32_t pid; /* the process that mapped it last, at: */
	uint64_t start, end;
};

struct file_table {
	struct file *files;
	size_t n, cap;
	struct hashtable by_key;
	uint64_t unread;
	uint32_t emitted; /* ids given so far */
	struct worker *broker;
};

int file_table_new(struct file_table **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_nomem(e, "the table of files");
}

void file_table_free(struct file_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++) {
		free((char *)(uintptr_t)t->files[i].cap.path);
		free(t->files[i].image);
	}
	free(t->files);
	hashtable_free(&t->by_key);
	free(t);
}

void file_table_broker(struct file_table *t, struct worker *o)
{
	t->broker = o;
}

static uint64_t hash_key(const struct procmap *m)
{
	uint64_t key[2] = { (uint64_t)m->dev_major << 32 | m->dev_minor, m->inode };

	return hash_bytes(m->path, strlen(m->path), hash_bytes(key, sizeof(key), 0));
}

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
}

static void identify(const struct file_table *t, struct cap_file *f, uint32_t pid, const struct procmap *m)
{
	struct stat st;
	_cleanup_close_ int fd = -1;

	if (mapfile_is_gone(t->broker, pid, m))
		f->flags |= CAPTURE_FILE_DELETED;
	fd = mapfile_open(t->broker, pid, m, &st);
	if (fd >= 0) {
		f->size = (uint64_t)st.st_size;
		f->mtime_ns = mtime_ns(&st);
		f->error = buildid_read(fd, &f->build_id);
	} else {
		f->error = fd;
	}
	if (f->error)
		f->flags |= CAPTURE_FILE_UNREAD;
}

static struct file *add_file(struct file_table *t, uint32_t pid, const struct procmap *m)
{
	struct file *f;
	char *path = strdup(m->path);

	if (!path || base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0) {
		free(path);
		return NULL;
	}
	f = &t->files[t->n];
	*f = (struct file){ 0 };
	f->cap = (struct cap_file){ .id = CAPTURE_NONE,
		.dev_major = m->dev_major,
		.dev_minor = m->dev_minor,
		.inode = m->inode,
		.path = path };
	if (mapfile_is_pseudo(path)) {
		f->cap.flags = CAPTURE_FILE_PSEUDO;
		f->vdso = vdso_kind(m);
		f->image = vdso_image(f->vdso, &f->image_len);
		if (f->image)
			buildid_in_image(f->image, f->image_len, &f->cap.build_id);
	} else {
		identify(t, &f->cap, pid, m);
	}
	t->n++;
	return f;
}

/* The process that maps it now is the most likely one to map it later. */
static uint32_t note_mapper(struct file_table *t, uint32_t at, uint32_t pid, const struct procmap *m)
{
	struct file *f = &t->files[at];

	f->pid = pid;
	f->start = m->start;
	f->end = m->end;
	return at;
}

static bool matches(const struct file *f, const struct procmap *m)
{
	const struct cap_file *c = &f->cap;

	return c->inode == m->inode && c->dev_major == m->dev_major && c->dev_minor == m->dev_minor &&
	       strcmp(c->path, m->path) == 0 && f->vdso == vdso_kind(m);
}

uint32_t file_table_get(struct file_table *t, uint32_t pid, const struct procmap *m)
{
	uint64_t hash;
	struct file *f;
	uint32_t at;

	if (!*m->path || strcmp(m->path, "//anon") == 0)
		return UINT32_MAX;
	hash = hash_key(m);
	at = HASHTABLE_FIND(&t->by_key, hash, i, matches(&t->files[i], m));
	if (at != HASHTABLE_NONE)
		return note_mapper(t, at, pid, m);
	f = hashtable_reserve(&t->by_key, 1) == 0 ? add_file(t, pid, m) : NULL;
	if (!f)
		return UINT32_MAX;
	at = (uint32_t)(f - t->files);
	hashtable_add(&t->by_key, hash, at);
	return note_mapper(t, at, pid, m);
}

const char *file_table_path(const struct file_table *t, uint32_t file)
{
	return file < t->n ? t->files[file].cap.path : "";
}

bool file_table_place(const struct file_table *t, uint32_t file, struct procmap *ret)
{
	const struct cap_file *f = file < t->n ? &t->files[file].cap : NULL;

	if (!f)
		return false;
	ret->path = f->path;
	ret->dev_major = f->dev_major;
	ret->dev_minor = f->dev_minor;
	ret->inode = f->inode;
	return true;
}

void file_table_way(const struct file_table *t, uint32_t file, struct file_table_way *ret)
{
	const struct file *f = &t->files[file];

	*ret = (struct file_table_way){ f->cap, f->pid, f->start, f->end, t->broker };
}

int file_table_open(const struct file_table_way *f)
{
	const struct procmap m = { .start = f->start,
		.end = f->end,
		.dev_major = f->cap.dev_major,
		.dev_minor = f->cap.dev_minor,
		.inode = f->cap.inode,
		.path = f->cap.path };
	struct stat st;
	int fd;

	if (f->cap.flags & CAPTURE_FILE_PSEUDO)
		return -ENOENT;
	fd = mapfile_open(f->broker, f->pid, &m, &st);
	if (fd < 0)
		return fd;
	/* the PID may have been reused, or the path may name another file */
	if (st.st_ino == f->cap.inode &&
		(f->cap.error || ((uint64_t)st.st_size == f->cap.size && mtime_ns(&st) == f->cap.mtime_ns)))
		return fd;
	close(fd);
	return -ESTALE;
}

uint32_t file_table_emit(struct file_table *t, uint32_t file, struct cap_writer *w)
{
	struct cap_file *f;

	if (file >= t->n)
		return CAPTURE_NONE;
	f = &t->files[file].cap;
	if (f->id != CAPTURE_NONE)
		return f->id;
	f->id = t->emitted++;
	t->unread += (f->flags & CAPTURE_FILE_UNREAD) != 0;
	cap_writer_file(w, f);
	if (t->files[file].image)
		cap_writer_image(w, &(struct cap_image){ f->id, (uint32_t)t->files[file].image_len,
					    t->files[file].image });
	return f->id;
}

uint64_t file_table_unread(const struct file_table *t)
{
	return t->unread;
}

const char *file_table_runtime_flags(const struct file_table *t, bool java)
{
	static const struct {
		const char *file, *flags;
	} runtimes[] = {
		{ "libjvm.so",
			"java: -XX:+PreserveFramePointer keeps frame pointers in compiled methods, 'jcmd PID "
			"Compiler.perfmap' names them" },
		{ "node", "node: where functions are not shown, --perf-basic-prof names them, "
			  "--interpreted-frames-native-stack the interpreted ones too" },
		{ "libcoreclr.so", ".NET: DOTNET_PerfMapEnabled=1 in the environment names methods" },
	};

	for (size_t i = java ? 1 : 0; i < ARRAY_LEN(runtimes); i++)
		for (size_t k = 0; k < t->n; k++) {
			const char *slash = strrchr(t->files[k].cap.path, '/');

			if (slash && strcmp(slash + 1, runtimes[i].file) == 0)
				return runtimes[i].flags;
		}
	return NULL;
}
