/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 *   debugfile --find [-s SYMFS] [-d DEBUGDIR]... [-u SECONDS] FILE
 *   debugfile --dwo [-s SYMFS] FILE DWO
 *
 * print what was found for FILE, for t/tools/debugfile.t; -u queries servers.
 *
 *   debugfile --mini FILE
 *
 * writes the file inside its .gnu_debugdata, unpacked.
 */
#include "base/clock.h"
#include "base/tap.h"
#include "../lib/elf-sections.h"
#include "elf/debuginfo.h"
#include "elf/minidebug.h"
#include "elf/symbols.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <lzma.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* --- for the shell --- */

static void print_file(const char *what, const struct elffile *f)
{
	char link[64], path[PATH_MAX];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", f ? f->fd : -1);
	if (f && debugplace_real(DEBUGPLACE_HERE, link, path, sizeof(path)))
		printf("%s=%s\n", what, path);
	else
		printf("%s=\n", what);
}

static int print_find(const struct debugfile_opts *o, const char *path)
{
	struct elffile *f = NULL;
	struct debugfile d;
	struct err e;

	if (elffile_open(o->symfs >= 0 ? o->symfs : AT_FDCWD, path, o->symfs >= 0, &f, &e) != 0 ||
		debugfile_find(o, f, path, &d, &e) != 0) {
		fprintf(stderr, "%s: %s\n", path, e.msg);
		return 2;
	}
	print_file("debug", d.debug);
	print_file("alt", d.alt);
	print_file("dwp", d.dwp);
	printf("where=%s\nmissed=%s\n", d.where, d.missed);
	debugfile_close(&d);
	elffile_close(f);
	return 0;
}

static int print_dwo(const struct debugfile_opts *o, const char *path, const char *dwo)
{
	struct elffile *f = NULL;
	struct err e;
	int rc = debugfile_dwo(o, path, dwo, &f, &e);

	print_file("dwo", f);
	printf("missed=%s\n", rc ? e.msg : "");
	elffile_close(f);
	return 0;
}

static int print_mini(const char *path)
{
	struct elffile *f = NULL;
	struct minidebug m = { 0 };
	struct err e = { 0 };
	int rc = elffile_open(AT_FDCWD, path, false, &f, &e);

	rc = rc ? rc : minidebug_open(f, 0, &m, &e);
	if (rc > 0)
		fwrite(m.bytes, 1, m.len, stdout);
	else
		fprintf(stderr, "%s: %s\n", path, rc ? e.msg : "has none");
	minidebug_close(&m);
	elffile_close(f);
	return rc > 0 ? 0 : 2;
}

static int for_shell(int argc, char **argv)
{
	const char *dirs[16];
	struct debugfile_opts o = { .symfs = -1, .dirs = dirs };
	bool dwo = strcmp(argv[1], "--dwo") == 0;
	int c;

	if (strcmp(argv[1], "--mini") == 0 && argc == 3)
		return print_mini(argv[2]);
	optind = 2;
	while ((c = getopt(argc, argv, "s:d:u:")) > 0) {
		if (c == 's')
			o.symfs = open(optarg, O_PATH | O_DIRECTORY | O_CLOEXEC);
		else if (c == 'd' && o.n_dirs < ARRAY_LEN(dirs))
			dirs[o.n_dirs++] = optarg;
		else if (c == 'u') {
			o.debuginfod = true;
			o.seconds = (unsigned int)atoi(optarg);
		} else
			return 64;
	}
	if (argc - optind != (dwo ? 2 : 1))
		return 64;
	return dwo ? print_dwo(&o, argv[optind], argv[optind + 1]) : print_find(&o, argv[optind]);
}

/* --- links --- */

static int parse(const char *bytes, size_t len, struct debuglink *l)
{
	/* of the exact size, so that a sanitizer detects a read past the section */
	char *exact = malloc(len ? len : 1);
	int rc;

	memcpy(exact, bytes, len);
	rc = debuglink_parse(exact, len, l, NULL);
	free(exact);
	return rc;
}

#define PARSE(text) parse(text, sizeof(text) - 1, &l)

static void test_link(struct tap *t)
{
	struct debuglink l;
	char name[DEBUGLINK_NAME_MAX + 8] = { 0 };

	tap_ok(t,
		PARSE("a.debug\0\x78\x56\x34\x12") == 0 && l.crc == 0x12345678 && !strcmp(l.name, "a.debug"),
		"a debug link is a name and a CRC");
	tap_ok(t, PARSE("abc.d\0\0\0\x01\0\0\0") == 0 && l.crc == 1,
		"the CRC of a link is at a multiple of 4");
	tap_ok(t, PARSE("abc.d\0\0\0\x01\0\0") == -EINVAL, "a link with a truncated CRC is refused");
	tap_ok(t, PARSE("abc.d\0\0") == -EINVAL, "a link that ends in its padding is refused");
	tap_ok(t, PARSE("abc.debug") == -EINVAL, "a link whose name has no NUL is refused");
	tap_ok(t, PARSE("") == -EINVAL && PARSE("\0\0\0\0\x01\0\0\0") == -EINVAL,
		"an empty link, and one with an empty name, are refused");
	tap_ok(t, PARSE("/a/b\0\0\0\0\x01\0\0\0") == -EINVAL, "a link with an absolute name is refused");
	tap_ok(t,
		PARSE("../abcd\0\x01\0\0\0") == -EINVAL && PARSE("a/../bc\0\x01\0\0\0") == -EINVAL &&
			PARSE("a/b/c..\0\x01\0\0\0") == 0 && PARSE("abcd/..\0\x01\0\0\0") == -EINVAL,
		"a link with a component \"..\" is refused");
	memset(name, 'x', DEBUGLINK_NAME_MAX - 1);
	name[DEBUGLINK_NAME_MAX] = 9;
	tap_ok(t, parse(name, DEBUGLINK_NAME_MAX + 4, &l) == 0 && l.crc == 9,
		"a link with the longest allowed name is read");
	memset(name, 'x', DEBUGLINK_NAME_MAX);
	tap_ok(t, parse(name, sizeof(name), &l) == -EINVAL, "a link with a longer name is refused");
}

static void test_alt(struct tap *t)
{
	struct debuglink l;
	char id[8 + CAPTURE_BUILD_ID_MAX + 1] = "../a/b";

	tap_ok(t,
		debuglink_parse_alt("x\0\1\2\3", 5, &l, NULL) == 0 && l.build_id.len == 3 &&
			l.build_id.bytes[2] == 3 && !strcmp(l.name, "x"),
		"an alternate link is a name and a build ID, without padding");
	tap_ok(t, debuglink_parse_alt("x\0", 2, &l, NULL) == -EINVAL,
		"an alternate link without a build ID is refused");
	tap_ok(t, debuglink_parse_alt(id, 7 + CAPTURE_BUILD_ID_MAX, &l, NULL) == 0,
		"an alternate link with the longest allowed build ID is read");
	tap_ok(t, debuglink_parse_alt(id, 8 + CAPTURE_BUILD_ID_MAX, &l, NULL) == -EINVAL,
		"an alternate link with a longer build ID is refused");
}

static int stop_now(void *ctx, uint64_t done, uint64_t total)
{
	(void)total;
	*(uint64_t *)ctx = done;
	return 1;
}

static void test_crc(struct tap *t)
{
	size_t len = 64 << 20;
	struct elffile f = { .fd = -1, .image = (const uint8_t *)"123456789", .size = 9 };
	uint32_t crc = 0;
	uint64_t done = 0;
	int fd = memfd_create("crc", MFD_CLOEXEC);

	tap_ok(t, debuglink_crc(&f, NULL, NULL, &crc, NULL) == 0 && crc == 0xcbf43926,
		"the checksum is the CRC of ISO 3309");
	f.fd = fd;
	f.size = len;
	tap_ok(t, ftruncate(fd, (off_t)len / 2) == 0 && debuglink_crc(&f, NULL, NULL, &crc, NULL) == -EIO,
		"the checksum of a file that was truncated is an error");
	tap_ok(t,
		ftruncate(fd, (off_t)len) == 0 &&
			debuglink_crc(&f, stop_now, &done, &crc, NULL) == -ECANCELED && done > 0 &&
			done < len / 2,
		"the caller can cancel a checksum");
	close(fd);
}

static void test_section(struct tap *t)
{
	struct buf b = { 0 };
	struct elffile *f = NULL;
	struct debuglink l;
	struct err e = { 0 };

	elf_section(&b, ".gnu_debuglink", "abc\0\1\0\0", 8, NULL, 0);
	tap_ok(t, elffile_image(b.p, b.len, &f, NULL) == 0 && debuglink_read(f, &l, &e) == 1 && l.crc == 1,
		"the debug link of a file is found by the name of its section");
	tap_ok(t, debuglink_alt(f, &l, &e) == 0, "a file with only a debug link has no alternate link");
	elffile_close(f);
	elf_section(&b, ".gnu_debuglink", "abc", 3, NULL, 0);
	tap_ok(t,
		elffile_image(b.p, b.len, &f, NULL) == 0 && debuglink_read(f, &l, &e) == -EINVAL &&
			strstr(e.msg, ".gnu_debuglink"),
		"the error for a malformed link names its section");
	elffile_close(f);
	buf_free(&b);
}

/* --- MiniDebugInfo --- */

/* Set B to the xz stream of the LEN bytes at P. */
static void pack(struct buf *b, const void *p, size_t len, uint32_t preset)
{
	size_t cap = lzma_stream_buffer_bound(len), at = 0;
	uint8_t *out = malloc(cap);

	buf_reset(b);
	if (lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC32, NULL, p, len, out, &at, cap) == LZMA_OK)
		buf_put(b, out, at);
	free(out);
}

/* Returns what minidebug_open() returns for a file with build ID ID and XZ as its .gnu_debugdata. */
static int mini(const struct buf *xz, const char *id, uint64_t max, struct minidebug *m, struct err *e)
{
	struct buf b = { 0 };
	struct elffile *f = NULL;
	int rc;

	elf_section(&b, ".gnu_debugdata", xz->p, xz->len, id, (uint32_t)strlen(id));
	rc = elffile_image(b.p, b.len, &f, e);
	rc = rc ? rc : minidebug_open(f, max, m, e);
	elffile_close(f);
	buf_free(&b);
	return rc;
}

static void test_mini_good(struct tap *t)
{
	struct minidebug m = { 0 };
	struct buf in = { 0 }, xz = { 0 }, twice = { 0 };
	struct err e = { 0 };
	const size_t big = 3 << 20;
	char *text = calloc(1, big);

	elf_section(&in, ".inside", text, big, "idididid", 8);
	pack(&xz, in.p, in.len, 6);
	tap_ok(t,
		mini(&xz, "idididid", 0, &m, &e) == 1 && m.len == in.len &&
			memcmp(m.bytes, in.p, in.len) == 0,
		"the embedded file is unpacked as it was packed");
	tap_ok(t, m.elf && m.elf->n_sections == 4, "the embedded file is opened as an ELF file");
	minidebug_close(&m);
	tap_ok(t, mini(&xz, "other", 0, &m, &e) == -EINVAL && strstr(e.msg, "build ID"),
		"an embedded file with another build ID is refused");
	tap_ok(t, mini(&xz, "idididid", in.len, &m, &e) == 1,
		"an embedded file may be as large as the limit");
	minidebug_close(&m);
	tap_ok(t, mini(&xz, "idididid", in.len - 1, &m, &e) == -E2BIG && !m.elf && !m.bytes,
		"an embedded file larger than the limit is refused");
	buf_put(&twice, xz.p, xz.len);
	buf_put(&twice, xz.p, xz.len);
	tap_ok(t, mini(&twice, "idididid", 0, &m, &e) == 1 && m.len == 2 * in.len,
		"several xz streams after one another are read");
	minidebug_close(&m);
	buf_free(&in);
	buf_free(&xz);
	buf_free(&twice);
	free(text);
}

static bool damage_is_seen(struct buf *xz)
{
	const size_t len = xz->len;
	struct minidebug m = { 0 };
	struct err e = { 0 };
	size_t wrong = 0;

	for (xz->len = 0; xz->len < len; xz->len++)
		wrong += mini(xz, "id", 0, &m, &e) >= 0 || m.elf || m.bytes;
	for (size_t bit = 0; bit < 8 * len; bit++) {
		xz->p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		wrong += mini(xz, "id", 1 << 20, &m, &e) >= 0 || m.elf || m.bytes;
		xz->p[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	return !wrong;
}

static void test_mini_bad(struct tap *t)
{
	struct minidebug m = { 0 };
	struct buf xz = { 0 };
	struct err e = { 0 };
	uint8_t *zeros = calloc(1, 100 << 20);

	pack(&xz, zeros, 100 << 20, 0);
	tap_ok(t, xz.len < (100 << 20) / 1000 && mini(&xz, "id", 1 << 20, &m, &e) == -E2BIG,
		"a small stream that unpacks to more than the limit is refused");
	pack(&xz, "no ELF file", 11, 0);
	tap_ok(t, mini(&xz, "id", 0, &m, &e) == -EINVAL && strstr(e.msg, "not an ELF file"),
		"an embedded file that is not an ELF file is reported");
	pack(&xz, zeros, 100, 0);
	xz.len -= 4;
	tap_ok(t, mini(&xz, "id", 0, &m, &e) == -EINVAL && strstr(e.msg, "cut"),
		"a truncated stream is reported");
	xz.len += 4;
	xz.p[xz.len / 2] ^= 1;
	tap_ok(t, mini(&xz, "id", 0, &m, &e) == -EINVAL, "a damaged stream is refused");
	xz.p[xz.len / 2] ^= 1;
	tap_ok(t, damage_is_seen(&xz), "a stream cut at any byte, or with any bit changed, is refused");
	buf_reset(&xz);
	buf_put(&xz, "garbage, not a stream xxx", 25);
	tap_ok(t, mini(&xz, "id", 0, &m, &e) == -EINVAL && strstr(e.msg, "not an xz"),
		"data that is not an xz stream is reported");
	buf_reset(&xz);
	tap_ok(t, mini(&xz, "id", 0, &m, &e) == -EINVAL, "an empty section is refused");
	buf_free(&xz);
	free(zeros);
}

static void test_mini_decoder(struct tap *t)
{
	struct minidebug m = { 0 };
	struct buf xz = { 0 };
	struct err e = { 0 };
	lzma_options_lzma o;
	lzma_filter filters[] = { { LZMA_FILTER_LZMA2, &o }, { LZMA_VLI_UNKNOWN, NULL } };
	uint8_t out[4096];
	size_t at = 0;

	lzma_lzma_preset(&o, 0);
	o.dict_size = 512 << 20;
	o.mode = LZMA_MODE_FAST;
	if (lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL, (const uint8_t *)"x", 1, out, &at,
		    sizeof(out)) != LZMA_OK) {
		tap_skip(t, "a stream that needs too much memory is refused", "liblzma does not create one");
		return;
	}
	buf_put(&xz, out, at);
	tap_ok(t, mini(&xz, "id", 0, &m, &e) == -EOPNOTSUPP && strstr(e.msg, "memory"),
		"a stream that needs too much memory is refused");
	buf_free(&xz);
}

/* --- places --- */

static void test_places(struct tap *t, const char *dir)
{
	char path[PATH_MAX], real[PATH_MAX];
	struct elffile *f = NULL;
	struct err e;
	int root = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	int seen = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	snprintf(path, sizeof(path), "%s/fifo", dir);
	tap_ok(t, mkfifo(path, 0600) == 0 && debugplace_open(-1, path, &f, &e) == -EINVAL,
		"a FIFO is refused without waiting");
	tap_ok(t, debugplace_open(root, "/fifo", &f, &e) == -EINVAL && strstr(e.msg, "regular"),
		"a FIFO below a directory is refused without waiting");
	tap_ok(t,
		inotify_add_watch(seen, path, IN_OPEN) >= 0 && debugplace_open(-1, path, &f, &e) == -EINVAL &&
			read(seen, real, sizeof(real)) < 0 && errno == EAGAIN,
		"a FIFO is not even opened");
	close(seen);
	unlink(path);
	tap_ok(t, debugplace_open(-1, "/dev/zero", &f, &e) == -EINVAL, "a device is refused");
	tap_ok(t, debugplace_open(-1, dir, &f, &e) == -EINVAL, "a directory is refused");
	snprintf(path, sizeof(path), "%s/out", dir);
	tap_ok(t, symlink("/proc/self/exe", path) == 0 && debugplace_open(root, "/out", &f, &e) < 0,
		"a symbolic link does not lead out of the directory");
	tap_ok(t, debugplace_open(-1, path, &f, &e) == 0, "without a directory a symbolic link is followed");
	elffile_close(f);
	tap_ok(t, !debugplace_real(root, "/out", real, sizeof(real)),
		"a dangling symbolic link has no real path");
	unlink(path);
	snprintf(path, sizeof(path), "%s/a", dir);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/in", dir);
	tap_ok(t,
		symlink("/a", path) == 0 && debugplace_real(root, "in", real, sizeof(real)) &&
			!strcmp(real, "/a"),
		"a real path is relative to the directory");
	unlink(path);
	snprintf(path, sizeof(path), "%s/a", dir);
	rmdir(path);
	close(root);
}

/* --- servers --- */

/* Start a server that accepts connections and never answers. Returns its socket; -1 on error. */
static int deaf_server(char *url, size_t cap)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(a);

	if (bind(fd, (struct sockaddr *)&a, len) != 0 || listen(fd, 5) != 0 ||
		getsockname(fd, (struct sockaddr *)&a, &len) != 0)
		return -1;
	snprintf(url, cap, "http://127.0.0.1:%u/", ntohs(a.sin_port));
	return fd;
}

static int give_up(void *ctx, const char *what, uint64_t done, uint64_t total)
{
	(void)what;
	(void)done;
	(void)total;
	return ++*(int *)ctx >= 2;
}

static void test_no_server(struct tap *t)
{
	const struct cap_build_id id = { .len = 2, .bytes = { 1, 2 } };
	struct debugserver_opts o = { .library = "/nonexistent/libdebuginfod.so.1" };
	struct err e = { 0 };
	int fd = -1;

	unsetenv("DEBUGINFOD_URLS");
	tap_ok(t, !debugserver_wanted() && debugserver_find(&o, &id, &fd, &e) == -ENOENT,
		"without DEBUGINFOD_URLS no server is queried");
	setenv("DEBUGINFOD_URLS", " ", 1);
	tap_ok(t, !debugserver_wanted(), "with an empty DEBUGINFOD_URLS no server is queried");
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
	tap_ok(t,
		debugserver_wanted() && debugserver_find(&o, &id, &fd, &e) == -ELIBACC &&
			strstr(e.msg, "libdebuginfod") && *e.hint,
		"with DEBUGINFOD_URLS a missing library is reported, with a hint");
}

static void test_deaf_server(struct tap *t)
{
	const struct cap_build_id id = { .len = 2, .bytes = { 1, 3 } };
	int calls = 0, fd = -1, rc;
	char url[64];
	int server = deaf_server(url, sizeof(url));
	struct debugserver known = { 0 };
	struct debugserver_opts o = { .seconds = 1, .server = &known };
	struct err e = { 0 };
	uint64_t began;

	setenv("DEBUGINFOD_URLS", url, 1);
	began = now_ns();
	rc = debugserver_find(&o, &id, &fd, &e);
	if (rc == -ELIBACC) {
		tap_skip(t, "a server that does not answer", "libdebuginfod is not installed");
		close(server);
		return;
	}
	tap_ok(t, rc == -ETIMEDOUT && now_ns() - began < UINT64_C(4000000000) && *e.hint,
		"a server that does not answer takes no longer than the time limit (%.1f s)",
		(double)(now_ns() - began) / 1e9);
	began = now_ns();
	tap_ok(t, debugserver_find(&o, &id, &fd, &e) == -ETIMEDOUT && now_ns() - began < 50000000,
		"a server that did not answer is not queried for the next file");
	o = (struct debugserver_opts){ .progress = give_up, .progress_ctx = &calls };
	began = now_ns();
	tap_ok(t,
		debugserver_find(&o, &id, &fd, &e) == -ECANCELED && now_ns() - began < UINT64_C(3000000000) &&
			calls == 2,
		"the caller can cancel a download");
	o = (struct debugserver_opts){ .seconds = 4 };
	tap_ok(t, debugserver_find(&o, &id, &fd, &e) == -ETIMEDOUT,
		"a file whose download was cancelled is not remembered as absent");
	tap_ok(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no child process is left");
	close(server);
	o = (struct debugserver_opts){ .seconds = 60, .server = &known };
	known.silent = 0;
	tap_ok(t, debugserver_find(&o, &id, &fd, &e) == -ECONNREFUSED && known.silent,
		"a server that is down is reported");
	unsetenv("DEBUGINFOD_URLS");
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/unit-debugfile.XXXXXX";
	struct tap t = { 0 };

	if (argc > 1)
		return for_shell(argc, argv);
	if (!mkdtemp(dir))
		return 2;
	setenv("DEBUGINFOD_CACHE_PATH", dir, 1);
	test_link(&t);
	test_alt(&t);
	test_crc(&t);
	test_section(&t);
	test_mini_good(&t);
	test_mini_bad(&t);
	test_mini_decoder(&t);
	test_places(&t, dir);
	test_no_server(&t);
	test_deaf_server(&t);
	nftw(dir, drop, 8, FTW_DEPTH | FTW_PHYS);
	return tap_done(&t);
}
