/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "unwind/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ROWS 8192 /* of a segment: a power of two above 256 */

static char top[64]; /* the directory that holds everything made here */
static char place[96]; /* the cache's directory */

/* --- tables and names --- */

static const struct unwind_rule some_rule = { .cfa = UNWIND_CFA_REG, .reg = 7, .cfa_off = 8, .ra_off = -8 };

static void fill_segment(uint8_t *at)
{
	const unsigned int a_page = ROWS / UNWIND_SEG_PAGES;
	uint16_t *first = (uint16_t *)(void *)at, *rule = first + UNWIND_SEG_PAGES + 1;
	uint8_t *pc = (uint8_t *)(rule + ROWS);

	for (unsigned int p = 0; p <= UNWIND_SEG_PAGES; p++)
		first[p] = (uint16_t)(p * a_page);
	for (unsigned int i = 0; i < ROWS; i++) {
		rule[i] = i & 1;
		pc[i] = (uint8_t)(i % a_page * (256 / a_page));
	}
}

/* A table of N full segments; TAG distinguishes it from others. */
static uint8_t *table(uint32_t n, uint32_t tag, size_t *len)
{
	const size_t one = (UNWIND_SEG_BYTES(ROWS) + 7) & ~(size_t)7;
	const size_t front = sizeof(struct unwindtab_head) + n * sizeof(struct unwindtab_seg) +
			     2 * sizeof(struct unwind_rule);
	uint8_t *bytes = calloc(1, front + n * one);
	struct unwindtab_head *h = (struct unwindtab_head *)(void *)bytes;
	struct unwindtab_seg *segs;

	if (!bytes)
		abort();
	segs = (struct unwindtab_seg *)(void *)(h + 1);
	*len = front + n * one;
	h->machine = 62;
	h->n_segs = n;
	h->n_rules = 2;
	h->n_rows = (uint64_t)n * ROWS;
	h->n_fdes = tag;
	for (uint32_t i = 0; i < n; i++) {
		segs[i] = (struct unwindtab_seg){ .at = (uint32_t)(front + i * one), .rows = ROWS };
		fill_segment(bytes + segs[i].at);
	}
	memcpy(bytes + front - sizeof(some_rule), &some_rule, sizeof(some_rule));
	unwindtab_seal(bytes, *len);
	return bytes;
}

static struct table_cache_key key_of(uint32_t n)
{
	struct table_cache_key key = {
		.id.len = 20, .dev = 0xfe01, .inode = 77, .size = 1, .ctime_ns = ~0ULL
	};

	memcpy(key.id.bytes + 1, &n, sizeof(n));
	key.id.bytes[19] = 0xab;
	return key;
}

/* The path of the entry of key_of(N); N is below 256. */
static const char *entry(uint32_t n)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/00%02x%034dab-fe01-4d-1-0-ffffffffffffffff-5.tab", place, n, 0);
	return path;
}

static bool put(struct table_cache *c, uint32_t n, uint32_t segs)
{
	struct table_cache_key id = key_of(n);
	size_t len;
	_cleanup_free_ uint8_t *bytes = table(segs, n, &len);

	return table_cache_put(c, &id, bytes, len, NULL) == 0;
}

/* The result of table_cache_get(); 0 only if it is the table of (N, SEGS), else -EBADMSG. */
static int get(struct table_cache *c, uint32_t n, uint32_t segs, struct err *e)
{
	struct table_cache_key id = key_of(n);
	_cleanup_free_ uint8_t *got = NULL, *want = NULL;
	size_t got_len = 0, want_len;
	int rc = table_cache_get(c, &id, &got, &got_len, e);

	if (rc)
		return rc;
	want = table(segs, n, &want_len);
	return got_len == want_len && memcmp(got, want, want_len) == 0 ? 0 : -EBADMSG;
}

static struct table_cache *open_or_die(uint64_t limit)
{
	struct table_cache *c = NULL;
	struct err e = { 0 };

	if (table_cache_open(limit, &c, &e) != 0) {
		printf("Bail out! %s\n", e.msg);
		exit(1);
	}
	return c;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static size_t files_in(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	for (const struct dirent *x; d && (x = readdir(d));)
		n += x->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void write_file(const char *path, const uint8_t *bytes, size_t len, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	fchmod(fd, mode);
	close(fd);
}

static void empty_place(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s' && mkdir -m 700 '%s'", place, place);
	if (system(command) != 0)
		abort();
}

/* --- the tests --- */

/* How many keys that differ from key_of(1) in one number find nothing? */
static unsigned int strangers(struct table_cache *c)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 5; i++) {
		struct table_cache_key key = key_of(1);
		uint64_t *const parts[] = { &key.dev, &key.inode, &key.size, &key.mtime_ns, &key.ctime_ns };
		uint8_t *got = NULL;
		size_t len;

		*parts[i] ^= 16;
		n += table_cache_get(c, &key, &got, &len, NULL) == -ENOENT;
		free(got);
	}
	return n;
}

static void keeps(struct tap *t)
{
	struct table_cache *c = open_or_die(TABLE_CACHE_BYTES_DEFAULT);
	struct diskcache_stats s;
	struct table_cache_key none = { .inode = 1 }, longest = { { .len = CAPTURE_BUILD_ID_MAX }, ~0ULL,
		~0ULL, ~0ULL, ~0ULL, ~0ULL };
	size_t len;
	_cleanup_free_ uint8_t *bytes = table(1, 9, &len), *got = NULL;
	struct stat st;
	struct err e = { 0 };

	tap_ok(t, get(c, 1, 1, &e) == -ENOENT && strstr(e.msg, place),
		"a table that was never put gives ENOENT and names the directory");
	tap_ok(t, put(c, 1, 1) && put(c, 2, 40), "tables can be put");
	tap_ok(t, get(c, 1, 1, NULL) == 0 && get(c, 2, 40, NULL) == 0, "tables come back unchanged");
	tap_ok(t, put(c, 1, 3) && get(c, 1, 3, NULL) == 0,
		"a second table under the same key replaces the first");
	tap_ok(t, stat(entry(1), &st) == 0 && (st.st_mode & 07777) == 0600,
		"an entry's name has build ID and file, and its mode is 0600");
	tap_eq_u64(t, strangers(c), 5, "another device, inode, size or time finds no entry");
	tap_ok(t, files_in(place) == 2, "the directory has no other files");
	tap_ok(t, table_cache_put(c, &none, bytes, len, &e) == -EINVAL && strstr(e.msg, "build ID"),
		"a table with an empty build ID is not kept");
	tap_ok(t, table_cache_get(c, &none, &got, &len, &e) == -ENOENT && strstr(e.msg, "build ID"),
		"an empty build ID finds nothing");
	tap_ok(t,
		table_cache_put(c, &longest, bytes, len, NULL) == 0 &&
			table_cache_get(c, &longest, &got, &len, NULL) == 0,
		"a table with the longest possible key is kept and found");
	table_cache_stats(c, &s);
	tap_ok(t, s.hits == 4 && s.misses == 7 && s.puts == 4 && !s.bad && !s.removed,
		"hits, misses and puts are counted");
	table_cache_close(c);
	table_cache_close(NULL);
}

static void put_back(const uint8_t *bytes, size_t len)
{
	write_file(entry(7), bytes, len, 0600);
}

static void add_byte(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (write(fd, "", 1) != 1)
		abort();
}

static void is_damaged(struct tap *t)
{
	struct table_cache *c;
	struct diskcache_stats s;
	struct err e = { 0 };
	size_t len, small_len, bad = 0, tried = 0;
	_cleanup_free_ uint8_t *bytes = table(2, 7, &len), *small = table(0, 7, &small_len);

	empty_place();
	c = open_or_die(TABLE_CACHE_BYTES_DEFAULT);
	for (size_t cut = 0; cut < len; cut += cut < 512 ? 1 : 509, tried++) {
		put_back(bytes, cut);
		bad += get(c, 7, 2, &e) == -EINVAL && !exists(entry(7));
	}
	tap_eq_u64(t, bad, tried, "an entry cut at any place is not used, and removed");
	tap_ok(t, strstr(e.msg, "damaged") && strstr(e.msg, place),
		"the message about a cut entry says that it is damaged");
	bad = 0;
	for (size_t i = 0; i < small_len; i++) {
		small[i] ^= 0x10;
		put_back(small, small_len);
		small[i] ^= 0x10;
		bad += get(c, 7, 0, NULL) == -EINVAL && !exists(entry(7));
	}
	tap_eq_u64(t, bad, small_len, "an entry with any byte changed is not used, and removed");
	put_back(small, small_len);
	tap_ok(t, get(c, 7, 0, NULL) == 0, "the unchanged entry is used");
	put_back(bytes, len);
	add_byte(entry(7));
	tap_ok(t, get(c, 7, 2, NULL) == -EINVAL, "an entry with a trailing byte is not used");
	tap_ok(t, truncate(entry(7), 0) != 0, "the entry with a trailing byte is removed");
	put_back(small, small_len);
	tap_ok(t, truncate(entry(7), (off_t)1 << 40) == 0 && get(c, 7, 2, NULL) == -EINVAL,
		"a sparse entry of a terabyte is not used");
	tap_ok(t, put(c, 7, 2) && get(c, 7, 2, NULL) == 0, "a good table can be put in its place");
	table_cache_stats(c, &s);
	tap_eq_u64(t, s.bad, tried + small_len + 2, "each bad entry is counted");
	table_cache_close(c);
}

static void is_planted(struct tap *t)
{
	struct table_cache *c;
	struct err e = { 0 };
	size_t len;
	_cleanup_free_ uint8_t *bytes = table(1, 7, &len);
	char elsewhere[128];

	empty_place();
	c = open_or_die(TABLE_CACHE_BYTES_DEFAULT);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", top);
	write_file(elsewhere, bytes, len, 0600);
	tap_ok(t,
		symlink(elsewhere, entry(7)) == 0 && get(c, 7, 1, &e) == -EINVAL && strstr(e.msg, "not used"),
		"a symbolic link is not followed");
	tap_ok(t, put(c, 7, 3) && get(c, 7, 3, NULL) == 0 && exists(elsewhere),
		"put replaces the symbolic link and not the file it points to");
	unlink(entry(7));
	tap_ok(t, mkfifo(entry(7), 0600) == 0 && get(c, 7, 1, NULL) == -EINVAL,
		"a FIFO is not used, and opening it does not block");
	tap_ok(t, put(c, 7, 1) && get(c, 7, 1, NULL) == 0, "put replaces the FIFO");
	unlink(entry(7));
	tap_ok(t, mkdir(entry(7), 0700) == 0 && get(c, 7, 1, NULL) == -EINVAL && exists(entry(7)),
		"a directory is not used");
	tap_ok(t, !put(c, 7, 1) && files_in(place) == 1,
		"a directory is not replaced, and no other file is left");
	rmdir(entry(7));
	write_file(entry(7), bytes, len, 0620);
	tap_ok(t, get(c, 7, 1, NULL) == -EINVAL && exists(entry(7)),
		"an entry that its group can write to is not used");
	chmod(entry(7), 0644);
	tap_ok(t, get(c, 7, 1, NULL) == 0, "an entry that everyone can read is used");
	if (geteuid() != 0) {
		tap_skip(t, "another user's file is not used", "not root");
	} else {
		tap_ok(t, chown(entry(7), 65534, 65534) == 0 && get(c, 7, 1, NULL) == -EINVAL,
			"another user's file is not used");
	}
	table_cache_close(c);
}

/* Opening fails with CODE, a message that has TEXT, and a hint. */
static bool refuses(int code, const char *text)
{
	struct table_cache *c = NULL;
	struct err e = { 0 };
	int rc = table_cache_open(TABLE_CACHE_BYTES_DEFAULT, &c, &e);
	bool ok = rc == code && e.code == code && strstr(e.msg, text) && e.hint[0];

	if (!ok)
		tap_diag("%d: %s (%s)", rc, e.msg, e.hint);
	table_cache_close(c);
	return ok;
}

static void is_no_place(struct tap *t)
{
	char path[192], too_long[5000];
	struct err e = { 0 };
	struct table_cache *c = NULL;

	setenv("STACKTOOLS_CACHE", "", 1);
	tap_ok(t, table_cache_open(1, &c, &e) == -ENOENT && strstr(e.msg, "turned off"),
		"an empty STACKTOOLS_CACHE turns the cache off");
	empty_place();
	setenv("STACKTOOLS_CACHE", place, 1);
	chmod(place, 0770);
	tap_ok(t, refuses(-EPERM, "others can write"), "a directory that its group can write to is refused");
	chmod(place, 0707);
	tap_ok(t, refuses(-EPERM, "others can write"), "a directory that everyone can write to is refused");
	chmod(place, 0755);
	c = open_or_die(1);
	tap_ok(t, true, "a directory that everyone can read is accepted");
	table_cache_close(c);
	snprintf(path, sizeof(path), "%s/link", top);
	setenv("STACKTOOLS_CACHE", path, 1);
	tap_ok(t, symlink(place, path) == 0 && refuses(-ENOTDIR, path),
		"a symbolic link instead of a directory is refused");
	unlink(path);
	write_file(path, (const uint8_t *)"x", 1, 0600);
	tap_ok(t, refuses(-ENOTDIR, path), "a file instead of a directory is refused");
	strcat(path, "/below");
	setenv("STACKTOOLS_CACHE", path, 1);
	tap_ok(t, refuses(-ENOTDIR, path), "a path below a file is refused");
	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	setenv("STACKTOOLS_CACHE", too_long, 1);
	c = NULL;
	tap_ok(t, table_cache_open(1, &c, &e) == -ENAMETOOLONG && !c, "a path that is too long is refused");
	setenv("STACKTOOLS_CACHE", "/proc/nowhere/cache", 1);
	tap_ok(t, refuses(-ENOTDIR, "/proc/nowhere/cache"),
		"a directory that cannot be created is an error, not a disabled cache");
	if (geteuid() == 0) {
		int given = chown(place, 65534, 65534);

		setenv("STACKTOOLS_CACHE", place, 1);
		tap_ok(t, !given && refuses(-EPERM, "belongs to user 65534"),
			"another user's directory is refused");
	} else {
		tap_skip(t, "another user's directory is refused", "not root");
	}
	empty_place();
	setenv("STACKTOOLS_CACHE", place, 1);
}

static bool is_private_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 07777) == 0700;
}

/* Runs in a child, so that the user can be changed. Returns a bit for each failed check. */
static int as_a_user(void)
{
	char path[192], text[256];
	struct table_cache *c = NULL;
	struct err e = { 0 };
	int bad = 0;

	umask(0);
	unsetenv("STACKTOOLS_CACHE");
	snprintf(path, sizeof(path), "%s/user/a/b", top);
	setenv("XDG_CACHE_HOME", path, 1);
	setenv("HOME", "/nonexistent", 1);
	snprintf(text, sizeof(text), "%s/stacktools", path);
	bad |= table_cache_open(1, &c, &e) != 0 || !is_private_dir(text) || !is_private_dir(path) ? 1 : 0;
	table_cache_close(c);
	c = NULL;
	setenv("XDG_CACHE_HOME", "relative", 1);
	snprintf(path, sizeof(path), "%s/user", top);
	setenv("HOME", path, 1);
	snprintf(text, sizeof(text), "%s/.cache/stacktools", path);
	bad |= table_cache_open(1, &c, &e) != 0 || !is_private_dir(text) || exists("relative") ? 2 : 0;
	table_cache_close(c);
	c = NULL;
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	bad |= table_cache_open(1, &c, &e) != -ENXIO || !strstr(e.msg, "HOME") || !e.hint[0] ? 4 : 0;
	setenv("HOME", "/proc", 1);
	bad |= table_cache_open(1, &c, &e) != -ENOTDIR || !e.hint[0] ? 8 : 0;
	return bad;
}

static void finds_its_place(struct tap *t)
{
	char path[128];
	int status = -1;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/user", top);
	mkdir(path, 0755);
	if (geteuid() == 0 && (chown(path, 65534, 65534) != 0 || chmod(top, 0755) != 0))
		abort();
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(geteuid() == 0 && setresuid(65534, 65534, 65534) != 0 ? 128 : as_a_user());
	waitpid(pid, &status, 0);
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 255;
	tap_ok(t, !(status & 129),
		"the directory in XDG_CACHE_HOME is created, and new directories are private");
	tap_ok(t, !(status & 130), "a relative XDG_CACHE_HOME is ignored and HOME is used");
	tap_ok(t, !(status & 132), "without HOME there is no cache, with a hint");
	tap_ok(t, !(status & 136), "with an unusable HOME there is no cache, with a hint");
}

/* Does entry N exist? This check does not count as a use of it. */
static bool kept(uint32_t n)
{
	return exists(entry(n));
}

/* Set the times of entries 1 to N as if they had been used in this order, long ago. */
static void age(uint32_t n)
{
	for (uint32_t i = 1; i <= n; i++) {
		struct timespec at[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };

		utimensat(AT_FDCWD, entry(i), at, 0);
	}
}

static void has_a_limit(struct tap *t)
{
	struct diskcache_stats s;
	struct table_cache *c;
	struct err e = { 0 };
	struct table_cache_key id = key_of(99);
	struct timespec old[2] = { { .tv_sec = 5 }, { .tv_sec = 5 } };
	char other[192], fresh[192], stale[192];
	size_t one;
	_cleanup_free_ uint8_t *bytes = table(1, 0, &one);

	empty_place();
	snprintf(other, sizeof(other), "%s/README", place);
	snprintf(fresh, sizeof(fresh), "%s/new-0123456789abcdef", place);
	snprintf(stale, sizeof(stale), "%s/new-fedcba9876543210", place);
	write_file(other, bytes, one, 0600);
	write_file(fresh, bytes, one, 0600);
	write_file(stale, bytes, one, 0600);
	utimensat(AT_FDCWD, stale, old, 0);
	utimensat(AT_FDCWD, other, old, 0);
	c = open_or_die(10 * one);
	for (uint32_t i = 1; i <= 10; i++)
		put(c, i, 1);
	table_cache_stats(c, &s);
	tap_ok(t, s.puts == 10 && !s.removed && kept(1), "below the limit no entry is removed");
	age(10);
	tap_ok(t, get(c, 1, 1, NULL) == 0 && put(c, 11, 1), "an entry beyond the limit can be put");
	tap_ok(t, !kept(2) && !kept(3) && !kept(4), "the least recently used entries are removed");
	tap_ok(t, kept(1) && kept(5) && kept(10) && kept(11), "an entry that was just used is not removed");
	table_cache_stats(c, &s);
	tap_eq_u64(t, s.removed, 3, "removed entries are counted");
	tap_ok(t, exists(other) && exists(fresh),
		"files that are not entries, and a recent partial file, stay");
	tap_ok(t, !exists(stale), "an old partial file is removed");
	tap_ok(t, table_cache_put(c, &id, bytes, 11 * one, &e) == -EFBIG && kept(5),
		"a table larger than the limit is refused and no entry is removed for it");
	table_cache_close(c);

	/* entries that another recorder added are seen */
	empty_place();
	for (int turn = 0; turn < 2; turn++) {
		c = open_or_die(10 * one);
		for (uint32_t i = 0; i < 8; i++)
			put(c, 10 * (uint32_t)turn + i + 1, 1);
		table_cache_close(c);
	}
	tap_ok(t, files_in(place) <= 10, "entries that another recorder added count towards the limit");
}

/* Put and get in a loop. Returns the number of failures. */
static unsigned int hammer(uint64_t limit, uint32_t from, unsigned int rounds)
{
	struct table_cache *c = open_or_die(limit);
	struct diskcache_stats s;
	unsigned int bad = 0;

	for (unsigned int i = 0; i < rounds; i++) {
		uint32_t n = 1 + (from + i) % 5;
		int rc;

		bad += !put(c, n, n);
		rc = get(c, n % 5 + 1, n % 5 + 1, NULL);
		bad += rc != 0 && rc != -ENOENT;
	}
	table_cache_stats(c, &s);
	bad += s.bad != 0;
	table_cache_close(c);
	return bad;
}

static void is_shared(struct tap *t)
{
	size_t one;
	_cleanup_free_ uint8_t *bytes = table(1, 0, &one);

	/* once with room for all tables, once with so little that tables are removed all the time */
	for (int tight = 0; tight < 2; tight++) {
		uint64_t limit = tight ? 9 * one : TABLE_CACHE_BYTES_DEFAULT;
		int status = -1;
		unsigned int bad;
		pid_t pid;

		empty_place();
		fflush(stdout);
		pid = fork();
		if (pid == 0)
			_exit(hammer(limit, 0, 300) != 0);
		bad = hammer(limit, 2, 300);
		waitpid(pid, &status, 0);
		tap_ok(t, !bad && status == 0, "two recorders at once never read a bad table%s",
			tight ? ", though tables are removed all the time" : "");
		tap_ok(t, files_in(place) <= 5, "two recorders at once leave no other files");
	}
}

/* Runs in a mount namespace of its own. Returns a bit for each failed check; 128 = cannot be tested. */
static int on_mounts(void)
{
	struct table_cache *c;
	struct err e = { 0 };
	struct table_cache_key id = key_of(2);
	size_t len;
	_cleanup_free_ uint8_t *bytes = table(8, 2, &len);
	int bad = 0, rc;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("none", place, "tmpfs", 0, "size=128k,mode=700") != 0)
		return 128;
	c = open_or_die(TABLE_CACHE_BYTES_DEFAULT);
	bad |= !put(c, 1, 1) ? 1 : 0;
	rc = table_cache_put(c, &id, bytes, len, &e);
	bad |= rc != -ENOSPC || !strstr(e.msg, "No space") || !strstr(e.msg, place) ? 1 : 0;
	bad |= files_in(place) != 1 || get(c, 1, 1, NULL) != 0 ? 2 : 0;
	if (mount("none", place, NULL, MS_REMOUNT | MS_RDONLY, "size=128k,mode=700") != 0)
		return 128;
	rc = table_cache_put(c, &id, bytes, len, &e);
	bad |= rc != -EROFS || !strstr(e.msg, "Read-only") ? 4 : 0;
	bad |= get(c, 1, 1, NULL) != 0 ? 8 : 0;
	table_cache_close(c);
	return bad;
}

static void on_bad_disks(struct tap *t)
{
	static const char *const names[] = { "a full disk is reported",
		"a full disk leaves no partial file, and existing entries stay usable",
		"a read-only directory is reported", "entries in a read-only directory are used" };
	int status = -1;
	pid_t pid;

	empty_place();
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(on_mounts());
	waitpid(pid, &status, 0);
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 127;
	for (unsigned int i = 0; i < ARRAY_LEN(names); i++) {
		if (status == 128)
			tap_skip(t, names[i], "no mount namespace");
		else
			tap_ok(t, !(status >> i & 1), "%s", names[i]);
	}
}

static void leaks_nothing(struct tap *t)
{
	size_t before = files_in("/proc/self/fd");

	empty_place();
	for (uint32_t i = 0; i < 50; i++) {
		struct table_cache *c = open_or_die(400000);

		put(c, i, 1);
		get(c, i, 1, NULL);
		get(c, i + 1, 1, NULL);
		table_cache_close(c);
	}
	tap_eq_u64(t, files_in("/proc/self/fd"), before, "a closed cache leaves no descriptor open");
}

/* --- through a process of its own --- */

/* The first letters of the effective user, and of the real one, of the process PID; NULL = gone. */
static bool users_of(uint32_t pid, unsigned int *real, unsigned int *effective)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "Uid: %u %u", real, effective) == 2;
	if (f)
		fclose(f);
	return found;
}

static void apart(struct tap *t)
{
	unsigned int real = 0, effective = 1;
	struct table_cache *c = NULL;
	struct diskcache_stats s;
	struct err e = { 0 };
	struct stat st;
	size_t len;
	_cleanup_free_ uint8_t *bytes = table(1, 7, &len);

	empty_place();
	if (!tap_ok(t, table_cache_start(TABLE_CACHE_BYTES_DEFAULT, &c, &e) == 0 && table_cache_pid(c),
		    "the cache can be used through a process of its own: %s", e.msg))
		return;
	tap_ok(t, get(c, 1, 1, &e) == -ENOENT && strstr(e.msg, place),
		"through the process, a table that was never put gives ENOENT and names the directory");
	tap_ok(t, put(c, 1, 1) && put(c, 2, 40) && get(c, 1, 1, NULL) == 0 && get(c, 2, 40, NULL) == 0,
		"tables come back unchanged");
	tap_ok(t, stat(entry(1), &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 07777) == 0600,
		"the entry is a file of the caller's user");
	bytes[len - 1] ^= 1;
	write_file(entry(7), bytes, len, 0600);
	tap_ok(t, get(c, 7, 1, &e) == -EINVAL && !exists(entry(7)),
		"a damaged entry is not used, and removed: %s", e.msg);
	tap_ok(t,
		users_of(table_cache_pid(c), &real, &effective) && effective == geteuid() &&
			(geteuid() || real != 0),
		"the process has the caller's user as effective user alone");
	table_cache_stats(c, &s);
	tap_ok(t, s.puts == 2 && s.hits == 2 && s.misses == 1 && s.bad == 1, "requests are counted");
	if (table_cache_pid(c))
		kill((pid_t)table_cache_pid(c), SIGKILL);
	tap_ok(t, get(c, 1, 1, NULL) == -ENOTCONN && !put(c, 3, 1) && !table_cache_pid(c),
		"without the process there is no table, and none is kept");
	table_cache_close(c);
	setenv("STACKTOOLS_CACHE", "", 1);
	tap_ok(t, table_cache_start(1, &c, &e) == -ENOENT && strstr(e.msg, "turned off"),
		"a cache that is turned off needs no process");
	setenv("STACKTOOLS_CACHE", place, 1);
}

int main(void)
{
	struct tap t = { 0 };
	char command[256];

	snprintf(top, sizeof(top), "%s/stacktools-tabcache.XXXXXX", P_tmpdir);
	if (!mkdtemp(top))
		return 1;
	snprintf(place, sizeof(place), "%s/made/cache", top);
	setenv("STACKTOOLS_CACHE", place, 1);
	keeps(&t);
	tap_ok(&t, is_private_dir(place), "the created cache directory is private");
	is_damaged(&t);
	is_planted(&t);
	is_no_place(&t);
	has_a_limit(&t);
	is_shared(&t);
	apart(&t);
	on_bad_disks(&t);
	leaks_nothing(&t);
	finds_its_place(&t);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	if (system(command) != 0)
		return 1;
	return tap_done(&t);
}
