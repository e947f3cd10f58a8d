/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cap_writer - tests of a writer with existing files, full disks, and records that
 * a reader would refuse.
 */
#include "base/clock.h"
#include "base/result.h"
#include "base/tap.h"
#include "capture/format.h"
#include "capture/reader.h"
#include "../data/capture/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[] = "/tmp/unit-cap_writer.XXXXXX";

/* The last two paths that were returned stay valid. */
static const char *in_dir(const char *name)
{
	static char paths[2][64];
	static unsigned int turn;
	char *path = paths[turn++ % 2];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static off_t size_of(const char *p)
{
	struct stat st;

	return stat(p, &st) == 0 ? st.st_size : -1;
}

static mode_t mode_of(const char *p)
{
	struct stat st;

	return lstat(p, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void put_file(const char *p, const char *text, mode_t mode)
{
	int fd = open(p, O_WRONLY | O_CREAT | O_TRUNC, mode);

	if (fd < 0 || fchmod(fd, mode) != 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		abort();
	close(fd);
}

/* Open P for writing and close it at once. */
static int try_open(const char *p, bool force, struct err *e)
{
	struct cap_writer *w = NULL;
	int code = cap_writer_open(p, force, &w, e);

	cap_writer_close(w);
	return code;
}

static void test_files(struct tap *t)
{
	const char *p = in_dir("file");
	struct err e = { 0 };
	mode_t old = umask(0);
	ino_t before;
	struct stat st;

	tap_ok(t, try_open(p, false, &e) == 0 && mode_of(p) == 0600,
		"a new file has mode 0600 under umask 0");
	umask(0777);
	unlink(p);
	tap_ok(t, try_open(p, false, &e) == 0 && mode_of(p) == 0600,
		"a new file has mode 0600 under umask 0777");
	umask(old);
	tap_eq_u64(t, size_of(p), CAPTURE_BLOCK_HEADER_LEN, "the file header is written at once");
	chmod(p, 0644);
	stat(p, &st);
	before = st.st_ino;
	if (link(p, in_dir("other name")) != 0)
		abort();
	tap_ok(t, try_open(p, false, &e) == 0 && mode_of(p) == 0600,
		"an existing capture is replaced, and the new one has mode 0600");
	stat(p, &st);
	tap_ok(t, st.st_ino != before && st.st_nlink == 1,
		"the replacement is a new inode that other links to the old file do not reach");
	put_file(p, "", 0644);
	tap_ok(t, try_open(p, false, &e) == 0 && mode_of(p) == 0600, "an empty file is replaced");
	put_file(p, "precious", 0644);
	tap_ok(t,
		try_open(p, false, &e) == -EEXIST && strstr(e.msg, "not a capture") &&
			strstr(e.hint, "--force"),
		"a file that is not a capture is not replaced, and the hint names --force");
	tap_eq_u64(t, size_of(p), 8, "a file that is not replaced keeps its size");
	put_file(p, "\211stk", 0644);
	tap_ok(t, try_open(p, false, &e) == -EEXIST,
		"a file with only the beginning of the magic is not a capture");
	tap_ok(t, try_open(p, true, &e) == 0 && mode_of(p) == 0600 && size_of(p) == CAPTURE_BLOCK_HEADER_LEN,
		"with force a file that is not a capture is replaced");
	unlink(p);
}

static void test_odd_files(struct tap *t)
{
	char target[64];
	struct err e = { 0 };
	const char *p;

	snprintf(target, sizeof(target), "%s", in_dir("target"));
	p = in_dir("link");
	if (symlink(target, p) != 0)
		abort();
	tap_ok(t, try_open(p, true, &e) == -ELOOP && size_of(target) < 0,
		"a dangling symbolic link is not followed");
	put_file(target, "", 0644);
	tap_ok(t, try_open(p, true, &e) == -ELOOP && size_of(target) == 0 && strstr(e.hint, "-o -"),
		"a symbolic link to an empty file is not followed, even with force");
	tap_ok(t, try_open(dir, true, &e) == -EISDIR, "a directory is refused");
	tap_ok(t, try_open(in_dir("no/such/folder"), false, &e) == -ENOENT && strstr(e.msg, "no/such/folder"),
		"the error for a missing folder names it");
	p = in_dir("fifo");
	if (mkfifo(p, 0600) != 0)
		abort();
	tap_ok(t, try_open(p, false, &e) == -EEXIST && strstr(e.msg, "FIFO"), "a FIFO needs force");
	tap_ok(t, try_open("/dev/null", false, &e) == -EEXIST && strstr(e.msg, "device"),
		"a device needs force");
	tap_ok(t, try_open("/dev/null", true, &e) == 0, "with force a device is written to");
	tap_ok(t, try_open("/dev/full", true, &e) == -ENOSPC && strstr(e.msg, "No space left"),
		"a full device is reported");
}

static struct cap_reader *load(const char *p)
{
	struct cap_reader *c = NULL;

	return cap_reader_load(p, &c, NULL) == 0 ? c : NULL;
}

/* --- files that others have, delete and rename --- */

/* Run FN in a child: whether it returned true. */
static bool in_child(bool (*fn)(const char *p), const char *p)
{
	const pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fn(p) ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static bool is_refused(const char *p)
{
	char by[64];
	struct err e = { 0 };

	snprintf(by, sizeof(by), "process %d writes to '", (int)getppid());
	return try_open(p, true, &e) == -EBUSY && strstr(e.msg, by) && strstr(e.msg, p) &&
	       strstr(e.hint, "-o FILE");
}

static bool is_free(const char *p)
{
	return try_open(p, false, NULL) == 0;
}

/* Finish a capture in P after AFTER. Its place, which the caller frees; NULL: it is lost. */
static char *finished(const char *p, void (*after)(const char *p), int *code, struct err *e)
{
	struct cap_writer *w;
	const char *place;
	char *copy;

	if (cap_writer_open(p, false, &w, e) != 0 || sample_first(w, e) != 0)
		abort();
	after(p);
	*code = sample_second(w, e);
	place = cap_writer_place(w);
	copy = place ? strdup(place) : NULL;
	cap_writer_close(w);
	return copy;
}

static void do_nothing(const char *p)
{
	(void)p;
}

static void rename_it(const char *p)
{
	if (rename(p, in_dir("other name")) != 0)
		abort();
}

static void rename_and_replace(const char *p)
{
	rename_it(p);
	put_file(p, "another", 0644);
}

static void rename_over(const char *p)
{
	put_file(in_dir("other name"), "another", 0644);
	if (rename(in_dir("other name"), p) != 0)
		abort();
}

static void unlink_it(const char *p)
{
	unlink(p);
}

static void link_and_unlink(const char *p)
{
	if (link(p, in_dir("other name")) != 0)
		abort();
	unlink(p);
}

static void test_claims(struct tap *t)
{
	_cleanup_free_ char *p = strdup(in_dir("claimed")), *other = strdup(in_dir("other name"));
	static const struct {
		void (*after)(const char *p);
		const char *name;
	} moved[] = { { rename_it, "renamed" }, { rename_and_replace, "renamed and replaced" } },
	  lost[] = { { unlink_it, "deleted" }, { rename_over, "replaced by another" } };
	struct cap_reader *c;
	struct cap_writer *w;
	struct err e;
	struct stat st;
	ino_t before;
	char *place;
	int code;

	if (cap_writer_open(p, false, &w, NULL) != 0 || stat(p, &st) != 0)
		abort();
	before = st.st_ino;
	tap_ok(t, in_child(is_refused, p) && stat(p, &st) == 0 && st.st_ino == before,
		"a second writer is refused with the PID of the first, also with force, and changes nothing");
	cap_writer_close(w);
	tap_ok(t, in_child(is_free, p), "a file that its writer has closed is replaced");
	unlink(p);
	place = finished(p, do_nothing, &code, &e);
	tap_ok(t, code == 0 && place && strcmp(place, p) == 0, "a capture is where it was written to");
	free(place);
	unlink(p);
	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		place = finished(p, moved[i].after, &code, &e);
		c = load(other);
		tap_ok(t,
			code == -ESTALE && place && strcmp(place, other) == 0 && strstr(e.msg, other) && c &&
				c->complete,
			"%s: -ESTALE names the file that has the whole capture", moved[i].name);
		cap_reader_free(c);
		free(place);
		unlink(p);
		unlink(other);
	}
	place = finished(p, link_and_unlink, &code, &e);
	tap_ok(t, code == -ESTALE && place && strcmp(place, "(renamed)") == 0 && strstr(e.msg, "not known"),
		"with another link whose name is not known, that is reported");
	free(place);
	unlink(other);
	for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
		place = finished(p, lost[i].after, &code, &e);
		tap_ok(t, code == -ESTALE && !place && strstr(e.msg, p) && strstr(e.msg, "is lost"),
			"%s: -ESTALE says that the capture is lost", lost[i].name);
		unlink(p);
	}
}

static uid_t owner_of(const char *p)
{
	struct stat st;

	return lstat(p, &st) == 0 ? st.st_uid : (uid_t)-2;
}

/* The owner of a new capture P with these variables, not set if NULL. */
static uid_t given_to(const char *p, const char *uid, const char *gid)
{
	uid_t owner;

	unlink(p);
	if (uid)
		setenv("SUDO_UID", uid, 1);
	if (gid)
		setenv("SUDO_GID", gid, 1);
	owner = try_open(p, false, NULL) == 0 ? owner_of(p) : (uid_t)-2;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	return owner;
}

static void test_sudo(struct tap *t)
{
	static const char *const bad[] = { "", "0", "x", "1x", "-1", " 1", "4294967295", "4294967297",
		"99999999999999999999", "2147000000" /* no user */ };
	const char *p = in_dir("given");
	struct stat st;
	size_t i = 0;

	if (geteuid() != 0) {
		tap_skip(t, "a capture made by sudo(8) belongs to the user who called it", "needs root");
		return;
	}
	tap_eq_u64(t, given_to(p, "65534", "65534"), 65534,
		"a capture made by sudo(8) belongs to the user who called it");
	tap_ok(t, stat(p, &st) == 0 && st.st_gid == 65534 && mode_of(p) == 0600,
		"with that group and mode 0600");
	tap_eq_u64(t, given_to(p, "65534", NULL), 0, "without a group it stays root's");
	tap_eq_u64(t, given_to(p, NULL, "65534"), 0, "without a user it stays root's");
	while (i < ARRAY_LEN(bad) && given_to(p, bad[i], "65534") == 0)
		i++;
	tap_ok(t, i == ARRAY_LEN(bad), "a number that is no user's, or no number, changes nothing%s%s",
		i < ARRAY_LEN(bad) ? ": " : "", i < ARRAY_LEN(bad) ? bad[i] : "");
	unlink(p);
}

/* --- full disks --- */

/* Limit files to LEN bytes; a write beyond that fails with EFBIG. */
static void limit(rlim_t len)
{
	struct rlimit l;

	getrlimit(RLIMIT_FSIZE, &l);
	l.rlim_cur = len;
	setrlimit(RLIMIT_FSIZE, &l);
}

static bool good_until(const char *p, off_t room, off_t whole, const char **why)
{
	struct cap_reader *c = load(p);
	bool clean = c && c->good_bytes == c->total_bytes && (off_t)c->total_bytes <= room;
	bool reported = c && !c->complete && strstr(c->damage, "without a trailer");

	*why = !c ? "not read" : !clean ? "a partial block" : !reported ? "not reported as incomplete" : NULL;
	cap_reader_free(c);
	return !*why && size_of(p) <= room && room < whole;
}

static void test_every_room(struct tap *t)
{
	const char *p = in_dir("full"), *why = NULL;
	struct err e = { 0 };
	off_t whole, room;
	bool fine = true;

	if (sample_write(p, &e) != 0)
		abort();
	whole = size_of(p);
	for (room = CAPTURE_BLOCK_HEADER_LEN; room < whole && fine; room++) {
		unlink(p);
		limit((rlim_t)room);
		fine = sample_write(p, &e) == -EFBIG && strstr(e.hint, "kept");
		limit(RLIM_INFINITY);
		fine = fine && good_until(p, room, whole, &why);
	}
	if (!tap_ok(t, fine,
		    "disk full after any number of bytes: whole blocks stay, a partial one is removed"))
		tap_diag("%lld bytes: %s", (long long)room - 1, why ? why : e.msg);
	unlink(p);
}

static void test_sticky(struct tap *t)
{
	const char *p = in_dir("sticky");
	struct cap_writer *w;
	struct err e = { 0 };
	uint64_t bytes;
	bool first;

	if (cap_writer_open(p, false, &w, &e) != 0 || sample_first(w, &e) != 0)
		abort();
	bytes = cap_writer_bytes(w);
	tap_eq_u64(t, size_of(p), bytes, "a flush writes everything to the file");
	limit(bytes + 5);
	first = cap_writer_flush(w, MONO, &e) == -EFBIG;
	limit(RLIM_INFINITY);
	tap_ok(t, first && sample_second(w, &e) == -EFBIG,
		"every flush after a failed one returns the same error");
	tap_eq_u64(t, size_of(p), bytes, "nothing is written after a failed flush");
	tap_eq_u64(t, cap_writer_bytes(w), bytes, "bytes that were not written are not counted");
	cap_writer_close(w);
	unlink(p);
}

/* A flush whose waits fit, and its counters do not, is taken back. */
static void test_torn_flush(struct tap *t)
{
	const char *p = in_dir("torn");
	struct cap_sample s = { .tid = 4242, .ustack = 1, .count = 3, .total_ns = 30, .max_ns = 20 };
	const uint32_t n = CAPTURE_BLOCK_PAYLOAD_GOAL / 4;
	uint64_t bytes, waits, ns;
	struct cap_writer *w;
	struct cap_reader *c;
	struct err e = { 0 };

	if (cap_writer_open(p, false, &w, &e) != 0)
		abort();
	cap_writer_proc(w, &sample_procs[0]);
	cap_writer_file(w, &sample_files[0]);
	cap_writer_stack(w, &sample_stacks[0]);
	cap_writer_stack(w, &sample_stacks[1]);
	cap_writer_sample(w, &s);
	cap_writer_counter(w, &(struct cap_counter){ "waits.recorded", 3 });
	if (cap_writer_flush(w, MONO, &e) != 0)
		abort();
	bytes = cap_writer_bytes(w);
	for (uint32_t i = 0; i < n; i++) {
		s.tid = i;
		s.first_ns = i * UINT64_C(0x123456789);
		cap_writer_sample(w, &s);
	}
	cap_writer_counter(w, &(struct cap_counter){ "waits.recorded", 3 * n + 3 });
	cap_writer_waits(w, &waits, &ns);
	tap_ok(t, waits == 3 * n + 3 && ns == 30 * n + 30, "waits that are queued are counted");
	limit(bytes + UINT64_C(3) * CAPTURE_BLOCK_PAYLOAD_GOAL / 2);
	tap_ok(t, cap_writer_flush(w, MONO + 1, &e) == -EFBIG, "a flush fails among its waits");
	limit(RLIM_INFINITY);
	cap_writer_waits(w, &waits, &ns);
	tap_ok(t, waits == 3 && ns == 30 && cap_writer_bytes(w) == bytes,
		"then they are not counted any more");
	cap_writer_close(w);
	c = load(p);
	tap_ok(t,
		c && c->good_bytes == c->total_bytes && c->total_bytes == bytes && c->n_samples == 1 &&
			c->samples[0].count == cap_reader_counter(c, "waits.recorded"),
		"the capture has as many waits as its counters say");
	cap_reader_free(c);
	unlink(p);
}

/* --- records that a reader refuses --- */

static struct cap_writer *with_stacks_in(const char *path)
{
	struct cap_writer *w;

	if (cap_writer_open(path, false, &w, NULL) != 0)
		abort();
	cap_writer_proc(w, &sample_procs[0]);
	cap_writer_file(w, &sample_files[0]);
	cap_writer_stack(w, &sample_stacks[0]);
	cap_writer_stack(w, &sample_stacks[1]);
	return w;
}

static struct cap_writer *with_stacks(void)
{
	return with_stacks_in(in_dir("bad"));
}

static void refused(struct tap *t, struct cap_writer *w, const char *message, const char *name)
{
	struct err e = { 0 };

	tap_ok(t, cap_writer_flush(w, MONO, &e) == -EINVAL && strstr(e.msg, message), "refused: %s", name);
	tap_ok(t,
		cap_writer_flush(w, MONO, &e) == -EINVAL &&
			size_of(in_dir("bad")) == CAPTURE_BLOCK_HEADER_LEN,
		"a refused record is not written");
	cap_writer_close(w);
}

static void test_bad_records(struct tap *t)
{
	static const uint64_t frames[] = { 1, 2, 3 };
	static const uint32_t twice[] = { 1, 1 }, behind[] = { 3 }, first[] = { 0 };
	struct cap_writer *w = with_stacks();

	cap_writer_stack(w, &sample_stacks[3]);
	refused(t, w, "stack ids", "a skipped stack id");
	w = with_stacks();
	cap_writer_proc(w, &sample_procs[0]);
	refused(t, w, "process ids", "a repeated process id");
	w = with_stacks();
	cap_writer_file(w, &sample_files[2]);
	refused(t, w, "file ids", "a skipped file id");
	w = with_stacks();
	cap_writer_sample(w, &(struct cap_sample){ .kstack = 0, .ustack = 2 });
	refused(t, w, "stack that was not written", "a sample of a stack that was not written");
	w = with_stacks();
	cap_writer_sample(w, &(struct cap_sample){ .kstack = CAPTURE_NONE, .ustack = 1 });
	refused(t, w, "stack that was not written", "a sample without a kernel stack");
	w = with_stacks();
	cap_writer_sample(w, &(struct cap_sample){ .proc = 1, .kstack = 0, .ustack = 1 });
	refused(t, w, "process that was not written", "a sample of a process that was not written");
	w = with_stacks();
	cap_writer_sample(w, &(struct cap_sample){ .kstack = 0, .ustack = 1, .waker = 1 });
	refused(t, w, "waker that was not written", "a sample with a waker that was not written");
	w = with_stacks();
	cap_writer_wait(w, &(struct cap_sample){ .kstack = 0, .ustack = 2, .count = 1 });
	refused(t, w, "stack that was not written", "a wait by itself with a stack that was not written");
	w = with_stacks();
	cap_writer_wait(w, &(struct cap_sample){ .kstack = 0, .ustack = 1, .count = 2 });
	refused(t, w, "of several", "two waits as one");
	w = with_stacks();
	cap_writer_waker(w, &(struct cap_waker){ .id = 2, .kstack = 0, .ustack = 1 });
	refused(t, w, "waker ids", "a skipped waker id");
	w = with_stacks();
	cap_writer_waker(w, &(struct cap_waker){ .id = 1, .kstack = 0, .ustack = 1, .next = 1 });
	refused(t, w, "a waker comes before", "a waker before the one that had woken it");
	w = with_stacks();
	cap_writer_life(w, &(struct cap_life){ .proc = 1, .to_ns = 1 });
	refused(t, w, "process that was not written", "a life of a process that was not written");
	w = with_stacks();
	cap_writer_life(w, &(struct cap_life){ .from_ns = 2, .to_ns = 1 });
	refused(t, w, "ends before it begins", "a life that ends before it begins");
	w = with_stacks();
	cap_writer_map(w, &(struct cap_map){ .file = 1, .start = 1, .end = 2 });
	refused(t, w, "file that was not written", "a mapping of a file that was not written");
	w = with_stacks();
	cap_writer_map(w, &(struct cap_map){ .file = CAPTURE_NONE, .start = 2, .end = 2 });
	refused(t, w, "mapping ends", "an empty mapping");
	w = with_stacks();
	cap_writer_stack(
		w, &(struct cap_stack){ .id = 2, .len = 3, .frames = frames, .n_exact = 2, .exact = twice });
	refused(t, w, "exact frames", "a repeated exact frame");
	w = with_stacks();
	cap_writer_stack(
		w, &(struct cap_stack){ .id = 2, .len = 3, .frames = frames, .n_exact = 1, .exact = behind });
	refused(t, w, "exact frames", "an exact frame after the last frame");
	w = with_stacks();
	cap_writer_stack(
		w, &(struct cap_stack){ .id = 2, .len = 3, .frames = frames, .n_exact = 1, .exact = first });
	refused(t, w, "exact frames", "the first frame among the exact ones");
	w = with_stacks();
	cap_writer_ksym(w, &(struct cap_ksym){ 3, 2, "", "" });
	refused(t, w, "kernel symbol ends", "a kernel symbol that ends before it begins");
	w = with_stacks();
	cap_writer_jit(w, &(struct cap_jit){ .start = 2, .end = 2, .name = "", .file = "" });
	refused(t, w, "JIT code ends", "an empty piece of JIT code");
	w = with_stacks();
	cap_writer_jit(w, &(struct cap_jit){ .proc = 1, .start = 2, .end = 3, .name = "", .file = "" });
	refused(t, w, "process that was not written", "JIT code of a process that was not written");
	w = with_stacks();
	cap_writer_name(w, &(struct cap_name){ .file = 1 });
	refused(t, w, "file that was not written", "a name in a file that was not written");
}

/* --- large captures --- */

static void test_split(struct tap *t)
{
	const char *p = in_dir("much");
	const size_t n = 200000;
	uint64_t frames[60], blocks, got = 0;
	struct cap_writer *w;
	struct cap_reader *c;
	struct err e = { 0 };
	bool fine = true;

	if (cap_writer_open(p, false, &w, &e) != 0)
		abort();
	cap_writer_proc(w, &sample_procs[0]);
	for (uint32_t i = 0; i < n; i++) {
		for (size_t k = 0; k < ARRAY_LEN(frames); k++)
			frames[k] = UINT64_C(0x7f0000000000) + i * 64 + k * (k % 3);
		if (i < 60000)
			cap_writer_stack(w, &(struct cap_stack){ .id = i,
						    .kind = i % 2 ? CAPTURE_STACK_USER : CAPTURE_STACK_KERNEL,
						    .verdict = VERDICT_COMPLETE,
						    .len = ARRAY_LEN(frames),
						    .frames = frames });
		cap_writer_sample(w, &(struct cap_sample){ .tid = i,
					     .kstack = i % 30000 * 2,
					     .ustack = i % 30000 * 2 + 1,
					     .count = 1,
					     .total_ns = i,
					     .first_ns = MONO + i,
					     .last_ns = MONO + i });
	}
	if (cap_writer_finish(w, &sample_trailer, &e) != 0)
		abort();
	cap_writer_close(w);
	c = load(p);
	if (!c)
		abort();
	blocks = c->blocks;
	for (size_t i = 0; i < c->n_samples; i++) {
		got += c->samples[i].total_ns;
		fine &= c->samples[i].first_ns == MONO + i && c->samples[i].tid == i;
	}
	tap_ok(t, c->complete && c->n_stacks == 60000 && c->n_samples == n,
		"200,000 samples and 60,000 stacks are read back");
	tap_ok(t, fine && got == (uint64_t)n * (n - 1) / 2,
		"samples in several blocks are read back in order, with their times");
	tap_ok(t, blocks > 8, "many records of a type are split into several blocks");
	cap_reader_free(c);
	unlink(p);
}

/*
 * Waits by themselves, of three keys, and a sum of one of them. Starts go back and forth as those of waits do
 * that are written in the order of their ends.
 */
static void test_waits(struct tap *t)
{
	const char *p = in_dir("waits");
	const uint32_t n = 300000;
	struct cap_sample s = { .tid = 4242, .kstack = 0, .ustack = 1, .state = 1, .count = 1 };
	struct cap_reader *sums = NULL, *c = NULL;
	struct cap_writer *w = with_stacks_in(p);
	bool fine;

	for (uint32_t i = 0; i < n; i++) {
		s.flags = i % 3 == 2 ? CAPTURE_SAMPLE_PREEMPTED : 0;
		s.tid = 4242 + (i % 3 == 1);
		s.first_ns = s.last_ns = MONO + i * UINT64_C(1000) - i % 7 * 5000;
		s.total_ns = s.max_ns = i;
		s.is_split = i % 3 != 1;
		s.runnable_ns = s.is_split ? i / 2 : 0;
		cap_writer_wait(w, &s);
	}
	s = (struct cap_sample){ .tid = 4242,
		.ustack = 1,
		.state = 1,
		.count = 5,
		.total_ns = 50,
		.max_ns = 20,
		.first_ns = MONO - 90000,
		.last_ns = MONO + UINT64_C(9000000000),
		.is_split = true,
		.runnable_ns = 7 };
	cap_writer_sample(w, &s);
	if (cap_writer_finish(w, &sample_trailer, NULL) != 0)
		abort();
	tap_ok(t, cap_writer_bytes(w) < n * UINT64_C(11), "a wait by itself takes less than eleven bytes");
	cap_writer_close(w);
	if (cap_reader_load(p, &sums, NULL) != 0 || cap_reader_load_waits(p, &c, NULL) != 0)
		abort();
	fine = sums->n_samples == 3 && sums->n_waits == n && !sums->waits;
	for (uint32_t k = 0; k < 3 && fine; k++) {
		const bool sum = k == 0;
		uint64_t total = 0, runnable = 0;
		const struct cap_sample *got = NULL;

		for (uint32_t i = k; i < n; i += 3) {
			total += i;
			runnable += i / 2;
		}
		for (size_t i = 0; i < 3; i++)
			if (sums->samples[i].tid == 4242u + (k == 1) && !sums->samples[i].flags == (k != 2))
				got = &sums->samples[i];
		fine = got && got->count == n / 3 + 5 * sum && got->total_ns == total + 50 * sum &&
		       got->is_split == (k != 1) && got->runnable_ns == (k == 1 ? 0 : runnable + 7 * sum) &&
		       got->max_ns == n - 3 + k && (!sum || got->first_ns == MONO - 90000);
	}
	tap_ok(t, fine, "waits by themselves are summed with the sums of the same key");
	fine = c->complete && c->n_waits == n && c->n_samples == 3;
	for (uint32_t i = 0; i < n && fine; i++) {
		const struct cap_wait *got = &c->waits[i];
		const struct cap_sample *key = &c->samples[got->key];

		fine = got->key < 3 && got->total_ns == i &&
		       got->start_ns == MONO + i * UINT64_C(1000) - i % 7 * 5000 &&
		       got->is_split == (i % 3 != 1) && got->runnable_ns == (i % 3 == 1 ? 0 : i / 2) &&
		       key->tid == 4242u + (i % 3 == 1) && !key->flags == (i % 3 != 2) &&
		       key->first_ns <= got->start_ns && key->last_ns >= got->start_ns;
	}
	tap_ok(t, fine, "or read back one by one, each with its times and its key");
	tap_ok(t, c->samples[0].count + c->samples[1].count + c->samples[2].count == 5,
		"and then are no part of the samples' numbers");
	cap_reader_free(sums);
	cap_reader_free(c);
	unlink(p);
}

/* More keys of waits by themselves than the writer remembers, and all of them once more. */
static void test_many_keys(struct tap *t)
{
	const char *p = in_dir("keys");
	const uint32_t n = 200000;
	struct cap_sample s = { .kstack = 0, .ustack = 1, .state = 1, .count = 1 };
	struct cap_reader *c = NULL;
	struct cap_writer *w = with_stacks_in(p);
	bool fine;

	for (uint32_t i = 0; i < 2 * n; i++) {
		s.tid = 1 + i % n;
		s.first_ns = s.last_ns = MONO + i;
		s.total_ns = s.max_ns = i;
		cap_writer_wait(w, &s);
	}
	if (cap_writer_finish(w, &sample_trailer, NULL) != 0)
		abort();
	cap_writer_close(w);
	if (cap_reader_load_waits(p, &c, NULL) != 0)
		abort();
	fine = c->complete && c->n_waits == 2 * n;
	for (uint32_t i = 0; i < 2 * n && fine; i++)
		fine = c->waits[i].total_ns == i && c->samples[c->waits[i].key].tid == 1 + i % n;
	tap_ok(t, fine, "%u waits of %u threads are read back, each with its key", 2 * n, n);
	cap_reader_free(c);
	unlink(p);
}

/* Waits of the second TIME, each 1 s long. */
static void queue_second(struct cap_writer *w, uint64_t time, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		cap_writer_wait(w, &(struct cap_sample){ .tid = 4242,
					   .ustack = 1,
					   .count = 1,
					   .total_ns = 1000000000,
					   .max_ns = 1000000000,
					   .first_ns = MONO + time * 1000000000 + i,
					   .last_ns = MONO + time * 1000000000 + i });
}

static uint64_t blocks_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* Seconds FROM to TO of P are there, and nothing else. */
static bool has_seconds(const struct cap_reader *c, uint64_t n, uint64_t from, uint64_t to)
{
	uint64_t seen[64] = { 0 };

	for (size_t i = 0; i < c->n_waits; i++)
		seen[MIN((c->waits[i].start_ns - MONO) / 1000000000, UINT64_C(63))]++;
	for (uint64_t i = 0; i < ARRAY_LEN(seen); i++)
		if (seen[i] != (i >= from && i <= to ? n : 0))
			return false;
	return true;
}

static void test_ring(struct tap *t)
{
	enum { N = 30000 };
	const char *p = in_dir("ring");
	uint64_t most = 0, written = 0, lost, lost_ns;
	struct cap_writer *w = with_stacks_in(p);
	struct cap_reader *c = NULL;
	struct err e = { 0 };
	int fd = result_file_scratch(p, &e), copy = fd < 0 ? -1 : dup(fd);
	bool fine = copy >= 0;

	cap_writer_host(w, &sample_host);
	cap_writer_ring(w, fd, UINT64_C(5000000000), 0);
	for (uint64_t i = 1; i <= 40 && fine; i++) {
		queue_second(w, i, N);
		fine = i == 20 ? cap_writer_release(w, MONO + i * 1000000000, &e) == 0
			       : cap_writer_flush(w, MONO + i * 1000000000, &e) == 0;
		most = MAX(most, blocks_of(copy));
		written = i == 19 ? cap_writer_bytes(w) : written;
	}
	tap_ok(t, fine && written < 1000, "with a ring, a flush writes no waits to the capture");
	tap_ok(t, most < 8 * N * 11 && most > 5 * N * 5,
		"the ring takes the room of what it keeps: %llu bytes", (unsigned long long)most);
	cap_writer_overwritten(w, &lost, &lost_ns);
	tap_ok(t, lost == (14 + 14) * (uint64_t)N && lost_ns == lost * 1000000000,
		"what it has dropped is counted");
	fine = cap_writer_finish(w, &(struct cap_trailer){ MONO + UINT64_C(40500000000), "end" }, &e) == 0;
	cap_writer_close(w);
	tap_ok(t, blocks_of(copy) < 8192, "and once it is written, it takes none");
	close(copy);
	if (!fine || cap_reader_load_waits(p, &c, NULL) != 0)
		abort();
	tap_ok(t, c->complete, "the capture is whole");
	for (size_t i = 0; i < c->n_waits; i++)
		if (c->waits[i].start_ns >= MONO + UINT64_C(30000000000))
			c->waits[i].start_ns -= UINT64_C(15000000000);
	tap_ok(t, has_seconds(c, N, 15, 25), "it has what was kept at the request, and at the end");
	tap_eq_u64(t, cap_reader_kept_ns(c), UINT64_C(6000000000) + UINT64_C(5500000000),
		"and says how long that was");
	cap_reader_free(c);
	unlink(p);
}

/* A ring that is bounded by the capture's size: the latest seconds that fit are kept, and none half. */
static void test_max_size(struct tap *t)
{
	enum { N = 3000, MAX = 1 << 20 };
	const char *p = in_dir("bounded ring");
	struct cap_writer *w = with_stacks_in(p);
	struct cap_reader *c = NULL;
	struct err e = { 0 };
	uint64_t lost, lost_ns, most = 0;
	int fd = result_file_scratch(p, &e), copy = fd < 0 ? -1 : dup(fd);
	bool fine = copy >= 0, full = false;
	struct stat st;

	cap_writer_host(w, &sample_host);
	cap_writer_ring(w, fd, UINT64_MAX, MAX);
	for (uint64_t i = 1; i <= 60 && fine; i++) {
		queue_second(w, i, N);
		fine = cap_writer_flush(w, MONO + i * 1000000000, &e) == 0;
		full |= cap_writer_full(w);
		most = MAX(most, blocks_of(copy));
	}
	cap_writer_overwritten(w, &lost, &lost_ns);
	fine = fine &&
	       cap_writer_finish(w, &(struct cap_trailer){ MONO + UINT64_C(60500000000), "end" }, &e) == 0;
	cap_writer_close(w);
	close(copy);
	if (!fine || stat(p, &st) != 0 || cap_reader_load_waits(p, &c, NULL) != 0)
		abort();
	tap_ok(t, most < MAX + (MAX >> 4), "a bound of size is one of the disk, too: %llu bytes",
		(unsigned long long)most);
	tap_ok(t, st.st_size <= MAX && st.st_size > MAX - (MAX >> 3),
		"the capture has as much as fits: %lld bytes", (long long)st.st_size);
	tap_ok(t, c->complete && !full && c->n_waits + lost == (uint64_t)N * 60 && lost && lost % N == 0,
		"what it has and what was dropped is everything");
	tap_ok(t, has_seconds(c, N, lost / N + 1, 60), "the latest seconds are kept");
	tap_eq_u64(
		t, cap_reader_counter(c, "waits.overwritten"), lost, "and the counter says what was dropped");
	cap_reader_free(c);
	unlink(p);
}

/* What waits refer to alone is too much; and names, once there is no room for them. */
static void test_max_size_full(struct tap *t)
{
	enum { MAX = 1 << 20 };
	const char *p = in_dir("full capture");
	struct cap_writer *w = with_stacks_in(p);
	static char name[6000];
	struct cap_reader *c = NULL;
	struct err e = { 0 };
	bool fine = true;
	uint64_t i = 0;
	struct stat st;

	memset(name, 'n', sizeof(name) - 1);
	cap_writer_host(w, &sample_host);
	cap_writer_ring(w, result_file_scratch(p, NULL), UINT64_MAX, MAX);
	while (fine && !cap_writer_full(w) && i++ < 1000) {
		cap_writer_option(w, &(struct cap_option){ "text", name });
		fine = cap_writer_flush(w, MONO + i, &e) == 0;
	}
	tap_ok(t, fine && i > 120 && i < 140,
		"a capture that has no room for waits says so: after %llu records", (unsigned long long)i);
	for (uint32_t n = 0; n < 400; n++) {
		snprintf(name, sizeof(name), "%0*u", 1000, n);
		cap_writer_jit(w, &(struct cap_jit){ .proc = 0,
					  .start = 4096 + n,
					  .end = 4097 + n,
					  .to_ns = UINT64_MAX,
					  .name = name });
	}
	fine = cap_writer_finish(w, &(struct cap_trailer){ MONO + 1000, "end" }, &e) == 0;
	cap_writer_close(w);
	if (!fine || stat(p, &st) != 0 || cap_reader_load(p, &c, NULL) != 0)
		abort();
	tap_ok(t,
		c->complete && st.st_size <= MAX && !c->n_jits &&
			cap_reader_counter(c, "names.dropped") == 400,
		"names for which there is no room are dropped and counted: %lld bytes",
		(long long)st.st_size);
	cap_reader_free(c);
	unlink(p);
}

static size_t size_with_counters(const char *p, uint64_t flushes, uint64_t per_flush)
{
	struct cap_writer *w = with_stacks_in(p);
	struct err e = { 0 };
	struct stat st;
	char name[64];

	for (uint64_t i = 1; i <= flushes; i++) {
		for (uint64_t k = 0; k < 100; k++) {
			snprintf(name, sizeof(name), "some.counter_with_a_name_%llu", (unsigned long long)k);
			cap_writer_counter(w, &(struct cap_counter){ name, k < 10 ? i * per_flush * k : k });
		}
		/* in both directions, and around */
		cap_writer_counter(w, &(struct cap_counter){ "down", UINT64_MAX - i * per_flush });
		cap_writer_counter(w, &(struct cap_counter){ "around", i % 2 ? UINT64_MAX : 1 });
		/* one that is not there from the start */
		if (i > 3)
			cap_writer_counter(w, &(struct cap_counter){ "late", i });
		if (cap_writer_flush(w, MONO + i, &e) != 0)
			abort();
	}
	cap_writer_close(w);
	return stat(p, &st) == 0 ? (size_t)st.st_size : 0;
}

/* Without an end: what the flushes have must do. */
static void test_counters(struct tap *t)
{
	const char *p = in_dir("counters");
	const size_t one = size_with_counters(p, 4, 1000), many = size_with_counters(p, 104, 1000);
	struct cap_reader *c = NULL;

	tap_ok(t, many > one && (many - one) / 100 < 100,
		"of 103 counters a flush has what has changed: %zu bytes", (many - one) / 100);
	if (cap_reader_load(p, &c, NULL) != 0)
		abort();
	tap_ok(t,
		c->n_counters == 103 && cap_reader_counter(c, "some.counter_with_a_name_9") == 104 * 9000 &&
			cap_reader_counter(c, "some.counter_with_a_name_99") == 99 &&
			cap_reader_counter(c, "down") == UINT64_MAX - 104000 &&
			cap_reader_counter(c, "around") == 1 && cap_reader_counter(c, "late") == 104,
		"and the reader has their last values");
	cap_reader_free(c);
	unlink(p);
}

static void test_full_ring(struct tap *t)
{
	enum { N = 30000 };
	const char *p = in_dir("full ring");
	struct cap_writer *w = with_stacks_in(p);
	struct cap_reader *c = NULL;
	struct err e = { 0 };
	uint64_t n, ns;
	bool fine = true;

	cap_writer_host(w, &sample_host);
	cap_writer_ring(w, result_file_scratch(p, NULL), UINT64_C(500000000000), 0);
	for (uint64_t i = 1; i <= 20 && fine; i++) {
		queue_second(w, i, N);
		fine = cap_writer_flush(w, MONO + i * 1000000000, &e) == 0;
	}
	queue_second(w, 21, N);
	limit(1000);
	tap_ok(t,
		fine && cap_writer_flush(w, MONO + UINT64_C(21000000000), &e) == -EFBIG &&
			strstr(e.msg, "cannot write to '"),
		"a ring that cannot be written is an error");
	limit(RLIM_INFINITY);
	cap_writer_waits(w, &n, &ns);
	tap_ok(t, !n && !ns, "what is in the ring does not count as written then");
	cap_writer_close(w);
	if (cap_reader_load_waits(p, &c, NULL) != 0)
		abort();
	tap_ok(t, !c->complete && !c->n_waits && c->n_stacks == 2, "the capture has what others refer to");
	cap_reader_free(c);
	unlink(p);
	tap_ok(t, result_file_scratch(in_dir("no/such/capture"), &e) == -ENOENT && strstr(e.msg, "no/such'"),
		"the error for a ring in a missing folder names it");
	tap_ok(t, result_file_scratch("/proc/self/capture", &e) < 0 && strstr(e.msg, "'/proc/self'"),
		"and so does that for a file system without");
}

/* Fill the disk that P is on with a file of that name. */
static void fill_disk(const char *p)
{
	static const char page[4096];
	int fd = open(p, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		abort();
	while (write(fd, page, sizeof(page)) > 0)
		;
	close(fd);
}

/* What others refer to is written while the disk is full: the oldest of the ring makes room for it. */
static void test_full_disk(struct tap *t)
{
	enum { N = 20000, FILES = 1000 };
	const char *const names[] = { "a ring on a full disk makes room for what is no wait",
		"what it dropped is counted, and the rest is there",
		"a disk without any room is an error, and no wait of the ring counts as written" };
	struct cap_file file = sample_files[0];
	struct cap_reader *c = NULL;
	struct cap_writer *w;
	struct err e = { 0 };
	uint64_t lost, lost_ns, n, ns;
	bool fine = true;
	char disk[64], p[80];

	snprintf(disk, sizeof(disk), "%s", in_dir("disk"));
	snprintf(p, sizeof(p), "%s/capture", disk);
	if (mkdir(disk, 0700) != 0)
		abort();
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("none", disk, "tmpfs", 0, "size=4m") != 0) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			tap_skip(t, names[i], "no tmpfs can be mounted here");
		rmdir(disk);
		return;
	}
	w = with_stacks_in(p);
	cap_writer_host(w, &sample_host);
	cap_writer_ring(w, result_file_scratch(p, NULL), UINT64_C(500000000000), 0);
	for (uint64_t i = 1; i <= 4 && fine; i++) {
		queue_second(w, i, N);
		fine = cap_writer_flush(w, MONO + i * 1000000000, &e) == 0;
	}
	snprintf(p, sizeof(p), "%s/other", disk);
	fill_disk(p);
	for (file.id = 1; file.id <= FILES; file.id++)
		cap_writer_file(w, &file);
	tap_ok(t, fine && cap_writer_flush(w, MONO + UINT64_C(5000000000), &e) == 0, "%s", names[0]);
	cap_writer_overwritten(w, &lost, &lost_ns);
	unlink(p);
	snprintf(p, sizeof(p), "%s/capture", disk);
	fine = cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = MONO + UINT64_C(6000000000) }, &e) == 0;
	cap_writer_close(w);
	tap_ok(t,
		fine && cap_reader_load_waits(p, &c, NULL) == 0 && c->complete && c->n_files == FILES + 1 &&
			lost >= N && lost < UINT64_C(4) * N && c->n_waits == 4 * N - lost,
		"%s", names[1]);
	cap_reader_free(c);
	unlink(p);
	w = with_stacks_in(p);
	cap_writer_ring(w, result_file_scratch(p, NULL), UINT64_C(500000000000), 0);
	snprintf(p, sizeof(p), "%s/other", disk);
	fill_disk(p);
	for (file.id = 1; file.id <= FILES; file.id++)
		cap_writer_file(w, &file);
	queue_second(w, 1, N);
	fine = cap_writer_flush(w, MONO + 1000000000, &e) == -ENOSPC;
	cap_writer_waits(w, &n, &ns);
	cap_writer_overwritten(w, &lost, &lost_ns);
	tap_ok(t, fine && !n && !ns && lost == N, "%s", names[2]);
	cap_writer_close(w);
	umount(disk);
	rmdir(disk);
}

/* Many addresses with the same name: its strings are not repeated. */
static void test_strings(struct tap *t)
{
	static const struct cap_name_frame frames[] = { { "a_function_of_some_length",
		"a_function_of_some_length", "/usr/src/project/with/a/path/file.c", 1000, 0 } };
	const char *p = in_dir("strings");
	const uint32_t n = 100000;
	struct cap_writer *w;
	struct cap_reader *c;
	bool fine = true;

	if (cap_writer_open(p, false, &w, NULL) != 0)
		abort();
	cap_writer_file(w, &sample_files[0]);
	for (uint32_t i = 0; i < n; i++) {
		cap_writer_name(w, &(struct cap_name){ .offset = i, .n = 1, .frames = frames });
		if (i == n / 2 && cap_writer_flush(w, MONO, NULL) != 0)
			abort();
	}
	if (cap_writer_finish(w, &sample_trailer, NULL) != 0)
		abort();
	cap_writer_close(w);
	tap_ok(t, size_of(p) < 20 * (off_t)n, "repeated names take a few bytes each");
	c = load(p);
	if (!c)
		abort();
	for (uint32_t i = 0; i < c->n_names; i++)
		fine &= c->names[i].offset == i && strcmp(c->names[i].frames[0].file, frames[0].file) == 0;
	tap_ok(t, fine && c->complete && c->n_names == n,
		"repeated names are read back across blocks and flushes");
	cap_reader_free(c);
	unlink(p);
}

/* --- the format --- */

/* clang-format off */
static const uint8_t golden[] = {
	0x89, 's', 't', 'k', 'c', 'a', 'p', '\n',	/* magic */
	4, 3, 2, 1,					/* byte order mark */
	24, 0, 0, 0,					/* length of this header */
	1, 0, 7, 0,					/* version 1.7 */
	0x7c, 0x89, 0xd3, 0xce,				/* checksum of the 20 bytes before */

	'S', 'b', 'l', 'k',				/* sync */
	2, 0, 0, 0,					/* type: options; flags */
	10, 0, 0, 0,					/* length of the payload */
	0, 0, 0, 0,					/* sequence number */
	0x6a, 0x81, 0xb8, 0xdd,				/* checksum */
	9,						/* a record of 9 bytes */
	3, 'p', 'i', 'd', 0,				/* name */
	2, '4', '2', 0,					/* value */

	'S', 'b', 'l', 'k', 9, 0, 0, 0, 14, 0, 0, 0, 1, 0, 0, 0, 0xa8, 0x71, 0x7a, 0x1f,
	13,						/* a stack of 13 bytes */
	0, 2, 4, 10,					/* id, user, stopped, memory */
	0x72,						/* error: -14 */
	0x80, 0x20,					/* stop_pc: 0x1000 */
	2,						/* frames */
	0x80, 0x20, 0x7f,				/* 0x1000, then 1 less */
	1, 1,						/* one more exact frame, number 1 */

	'S', 'b', 'l', 'k', 12, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0x20, 0x1a, 0x73, 0x14,
	2, 0xac, 0x02,					/* flush: time 300 */

	'S', 'b', 'l', 'k', 13, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 0x54, 0x60, 0x71, 0x54,
	7, 0xac, 0x02, 3, 'e', 'n', 'd', 0,		/* trailer: time 300, why */
};
/* clang-format on */

static void test_golden(struct tap *t)
{
	const uint64_t frames[] = { 0x1000, 0xfff };
	const uint32_t exact[] = { 1 };
	const char *p = in_dir("golden");
	uint8_t got[sizeof(golden) + 1];
	struct cap_writer *w;
	struct err e;
	FILE *f;
	size_t len;

	if (cap_writer_open(p, false, &w, &e) != 0)
		abort();
	cap_writer_stack(w, &(struct cap_stack){ .kind = CAPTURE_STACK_USER,
				    .verdict = VERDICT_STOPPED,
				    .reason = REASON_MEMORY,
				    .error = -14,
				    .stop_pc = 0x1000,
				    .len = 2,
				    .n_exact = 1,
				    .frames = frames,
				    .exact = exact });
	cap_writer_option(w, &(struct cap_option){ "pid", "42" });
	tap_ok(t, cap_writer_finish(w, &(struct cap_trailer){ 300, "end" }, &e) == 0,
		"a tiny capture is written");
	cap_writer_close(w);
	f = fopen(p, "r");
	if (!f)
		abort();
	len = fread(got, 1, sizeof(got), f);
	fclose(f);
	tap_ok(t, len == sizeof(golden) && memcmp(got, golden, len) == 0,
		"the bytes of a tiny capture are as in capture(5)");
	for (size_t i = 0; i < MIN(len, sizeof(golden)); i++)
		if (got[i] != golden[i])
			tap_diag("byte %zu: got %02x, want %02x", i, got[i], golden[i]);
	unlink(p);
}

/* --- pipes --- */

/* In a child, write the sample to a pipe without a reader. Returns the child's wait status. */
static int broken_pipe(bool ignore)
{
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) != 0)
		abort();
	close(fds[0]);
	pid = fork();
	if (pid == 0) {
		struct err e = { 0 };

		signal(SIGPIPE, ignore ? SIG_IGN : SIG_DFL);
		dup2(fds[1], STDOUT_FILENO);
		close(fds[1]);
		_exit(sample_write("-", &e) == -EPIPE && strstr(e.msg, "standard output") ? 0 : 1);
	}
	close(fds[1]);
	waitpid(pid, &status, 0);
	return status;
}

/* Write to a non-blocking pipe with a slow reader: the writer waits for room. */
static bool slow_pipe(void)
{
	int fds[2], status;
	struct err e = { 0 };
	pid_t pid;

	if (pipe(fds) != 0)
		abort();
	fcntl(fds[1], F_SETPIPE_SZ, 4096);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	pid = fork();
	if (pid == 0) {
		uint64_t frames[100] = { 1 };
		struct cap_writer *w;

		dup2(fds[1], STDOUT_FILENO);
		close(fds[0]);
		close(fds[1]);
		if (cap_writer_open("-", false, &w, &e) != 0)
			_exit(1);
		for (uint32_t i = 0; i < 5000; i++) {
			for (uint64_t k = 0; k < 100; k++)
				frames[k] = k * k * i << 20;
			cap_writer_stack(w,
				&(struct cap_stack){
					.id = i, .kind = CAPTURE_STACK_USER, .len = 100, .frames = frames });
		}
		_exit(cap_writer_finish(w, &sample_trailer, &e) == 0 ? 0 : 1);
	}
	close(fds[1]);
	dup2(fds[0], STDIN_FILENO);
	close(fds[0]);
	struct cap_reader *c = load("-");
	bool fine = c && c->complete && c->n_stacks == 5000 &&
		    c->stacks[4999].frames[99] == UINT64_C(9801) * 4999 << 20;

	cap_reader_free(c);
	waitpid(pid, &status, 0);
	return fine && status == 0;
}

/* A pipe that is not read: neither flushes nor the end wait for it for long, and what was sent is whole. */
static void test_stalled_pipe(struct tap *t)
{
	int fds[2], code;
	uint64_t began, seq = 0, max_ns = 0;
	static char bytes[1 << 16];
	struct cap_writer *w = NULL;
	struct err e = { 0 };
	ssize_t n, room;

	if (pipe(fds) != 0)
		abort();
	room = fcntl(fds[1], F_SETPIPE_SZ, 1 << 16);
	if (cap_writer_begin(fds[1], "-", &w, &e) != 0)
		abort();
	for (uint32_t i = 0; i < 100; i++) {
		uint64_t frames[500];

		for (size_t k = 0; k < ARRAY_LEN(frames); k++)
			frames[k] = (k + 1) * (i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 1;
		cap_writer_stack(w, &(struct cap_stack){ .id = i,
					    .kind = CAPTURE_STACK_USER,
					    .len = ARRAY_LEN(frames),
					    .frames = frames });
		began = now_ns();
		if (cap_writer_flush(w, MONO + seq++, &e) != 0)
			abort();
		max_ns = MAX(max_ns, now_ns() - began);
	}
	tap_ok(t, cap_writer_behind(w) && cap_writer_bytes(w) <= (uint64_t)room,
		"flushes go on while a pipe is full: their blocks wait in memory");
	tap_diag("the longest flush took %.3f ms", (double)max_ns / 1e6);
	n = read(fds[0], bytes, sizeof(bytes));
	tap_ok(t, n > 0 && cap_writer_service(w, &e) == 0 && cap_writer_bytes(w) > (uint64_t)n,
		"and are written once it is read again");
	began = now_ns();
	code = cap_writer_finish(w, &sample_trailer, &e);
	tap_ok(t,
		code == -ETIMEDOUT && strstr(e.msg, "its reader took") &&
			now_ns() - began >= UINT64_C(2000000000),
		"the end waits two seconds for a pipe that is not read, and reports that");
	tap_diag("%s", e.msg);
	cap_writer_close(w);
	close(fds[0]);
}

int main(void)
{
	struct tap t = { 0 };

	signal(SIGXFSZ, SIG_IGN);
	if (!mkdtemp(dir))
		abort();
	test_files(&t);
	test_odd_files(&t);
	test_claims(&t);
	test_sudo(&t);
	test_every_room(&t);
	test_sticky(&t);
	test_torn_flush(&t);
	test_bad_records(&t);
	test_split(&t);
	test_waits(&t);
	test_many_keys(&t);
	test_ring(&t);
	test_max_size(&t);
	test_max_size_full(&t);
	test_counters(&t);
	test_full_ring(&t);
	test_full_disk(&t);
	test_strings(&t);
	test_golden(&t);
	tap_ok(&t, WTERMSIG(broken_pipe(false)) == SIGPIPE,
		"writing to a pipe without a reader ends the writer by SIGPIPE");
	tap_eq_u64(&t, broken_pipe(true), 0, "with SIGPIPE ignored, EPIPE is reported");
	test_stalled_pipe(&t);
	tap_ok(&t, slow_pipe(), "a writer waits for a full non-blocking pipe");
	for (const char *const *n =
			(const char *const[]){ "file", "other name", "link", "target", "fifo", "bad", NULL };
		*n; n++)
		unlink(in_dir(*n));
	tap_ok(&t, rmdir(dir) == 0, "no other file is left behind");
	return tap_done(&t);
}
