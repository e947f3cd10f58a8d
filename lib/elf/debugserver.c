/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/debugserver.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/loader.h"
#include "base/text.h"
#include "system/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define SECONDS_DEFAULT 30u
#define SECONDS_MAX 86400u
#define PROGRESS_MS 100 /* between two calls of `progress` */
#define LATER_SECONDS 2 /* how much longer than the parent the library waits */
#define GRACE_MS 1500 /* time for the library to remove a partial file: it checks once a second */

/* A message from the child process. */
struct word {
	bool last; /* the result, with the file if CODE is 0 */
	int code; /* 0 or -errno */
	uint64_t done, total;
};

/* --- the child process: its socket is SOCK, everything else is closed --- */

#define SOCK 3
#define LIBRARY "libdebuginfod.so.1"

/*
 * The functions of the library that are used, as in
 * debuginfod_find_debuginfo(3). Building needs no header of it.
 */
struct debuginfod_client;
typedef struct debuginfod_client *begin_fn(void);
typedef int progress_fn(struct debuginfod_client *c, long a, long b);
typedef void set_progress_fn(struct debuginfod_client *c, progress_fn *fn);
typedef int find_fn(struct debuginfod_client *c, const unsigned char *id, int len, char **path);

/*
 * Without a total, A only counts calls. Returns nonzero if the parent has gone:
 * then the library cancels and removes the partial file.
 */
static int on_progress(struct debuginfod_client *c, long a, long b)
{
	struct word w = { 0 };

	(void)c;
	if (b > 0) {
		w.done = a > 0 ? (uint64_t)a : 0;
		w.total = (uint64_t)b;
	}
	return worker_report(SOCK, &w, sizeof(w), -1, false) == -EPIPE;
}

bool debugserver_possible(void)
{
	return loader_present();
}

static int ask(const char *library, const struct cap_build_id *id)
{
	void *lib = loader_open(library ? library : LIBRARY);
	struct debuginfod_client *c;
	set_progress_fn *set_progress;
	begin_fn *begin;
	find_fn *find;

	if (!lib)
		return -ELIBACC;
	begin = (begin_fn *)loader_symbol(lib, "debuginfod_begin");
	set_progress = (set_progress_fn *)loader_symbol(lib, "debuginfod_set_progressfn");
	find = (find_fn *)loader_symbol(lib, "debuginfod_find_debuginfo");
	if (!begin || !set_progress || !find)
		return -ELIBACC;
	c = begin();
	if (!c)
		return -ENOMEM;
	set_progress(c, on_progress);
	return find(c, id->bytes, id->len, NULL);
}

/*
 * Keep standard error if DEBUGINFOD_VERBOSE is set: the library writes to it.
 * Turn off its own progress, which would mix with the caller's, and its
 * retries, which would triple the time limit. Its own limit comes later than
 * the parent's: what times out there is cached as absent, see fetch().
 */
static void settle(int sock, unsigned int seconds)
{
	bool verbose = getenv("DEBUGINFOD_VERBOSE") != NULL;
	char text[16];
	int null = open("/dev/null", O_RDWR);

	dup2(null, 0);
	dup2(null, 1);
	if (!verbose)
		dup2(null, 2);
	dup2(sock, SOCK);
	close_range(SOCK + 1, ~0U, 0);
	unsetenv("DEBUGINFOD_PROGRESS");
	snprintf(text, sizeof(text), "%u", seconds + LATER_SECONDS);
	setenv("DEBUGINFOD_TIMEOUT", text, 1);
	setenv("DEBUGINFOD_RETRY_LIMIT", "0", 0);
}

struct question {
	const char *library;
	const struct cap_build_id *id;
	unsigned int seconds;
};

static int run(void *arg, int sock)
{
	const struct question *q = arg;
	struct word w = { .last = true };
	int fd;

	settle(sock, q->seconds);
	fd = ask(q->library, q->id);
	w.code = fd < 0 ? fd : 0;
	worker_report(SOCK, &w, sizeof(w), fd, true);
	return 0;
}

/* --- the parent process --- */

struct waiting {
	const struct debugserver_opts *o;
	struct worker *worker;
	uint64_t limit_ns, began, moved; /* moved: when the last byte came */
	struct word last;
};

/* Is a time limit over, or does the caller cancel? */
static int patience(struct waiting *w)
{
	uint64_t now = now_ns();

	if (w->o->progress &&
		w->o->progress(w->o->progress_ctx, w->o->what, w->last.done, w->last.total) != 0)
		return -ECANCELED;
	if (now - w->moved > w->limit_ns || now - w->began > w->limit_ns * DEBUGSERVER_PATIENCE)
		return -ETIMEDOUT;
	return 0;
}

/* Wait for the result: 0 and *FD, or -errno. */
static int wait_for(struct waiting *w, int *fd)
{
	struct worker_reply reply;
	struct word word;
	uint64_t checked_ns = w->began;
	int rc;

	for (;;) {
		rc = worker_receive(w->worker, PROGRESS_MS, &word, sizeof(word), true, &reply);
		if (rc < 0)
			return -ECHILD;
		if (rc && (reply.len != sizeof(word) || word.last)) {
			*fd = reply.fd;
			return reply.len != sizeof(word) ? -EPROTO
			       : word.code               ? word.code
			       : reply.fd < 0            ? -EPROTO
							 : 0;
		}
		if (rc && word.done > w->last.done)
			w->moved = now_ns();
		if (rc)
			w->last = word;
		if (now_ns() - checked_ns < PROGRESS_MS * (SECOND / 1000))
			continue;
		checked_ns = now_ns();
		rc = patience(w);
		if (rc)
			return rc;
	}
}

static int fetch(
	const struct debugserver_opts *o, unsigned int seconds, const struct cap_build_id *id, int *fd)
{
	struct question q = { o->library, id, seconds };
	const struct worker_opts opts = { .who = "the process that asks a debuginfod server",
		.keep_stdio = true,
		.reports = true,
		.run = run,
		.arg = &q };
	struct waiting w = { .o = o, .limit_ns = seconds * SECOND };
	bool nothing_came;
	int rc;

	w.began = w.moved = now_ns();
	rc = worker_start(&opts, &w.worker, NULL);
	if (rc)
		return rc;
	rc = wait_for(&w, fd);
	if (rc == -ENOENT && w.last.total) /* libdebuginfod 0.188, if it should retry */
		rc = -EPIPE;
	/*
	 * The child may end by itself when it finds that the parent has gone.
	 * If no byte has arrived, the library would cache for ten minutes that
	 * there is no such file, so it gets no time for that.
	 */
	nothing_came = (rc == -ETIMEDOUT || rc == -ECANCELED) && !w.last.total;
	worker_stop(w.worker, nothing_came ? 0 : GRACE_MS, NULL);
	worker_free(w.worker);
	return rc;
}

static unsigned int seconds_of(const struct debugserver_opts *o)
{
	const char *env = getenv("DEBUGINFOD_TIMEOUT");
	unsigned long n = env ? strtoul(env, NULL, 10) : 0;

	if (o->seconds)
		return MIN(o->seconds, SECONDS_MAX);
	return n && n <= SECONDS_MAX ? (unsigned int)n : SECONDS_DEFAULT;
}

static int explain(int code, unsigned int seconds, struct err *e)
{
	switch (code) {
	case -ENOENT:
		return err_set(e, code, "no server of DEBUGINFOD_URLS has it");
	case -ELIBACC:
		if (!debugserver_possible()) {
			err_set(e, code, "DEBUGINFOD_URLS is set, but a static program cannot load %s",
				LIBRARY);
			err_hint(e, "use a symbolize that is not static, or unset DEBUGINFOD_URLS");
			return code;
		}
		err_set(e, code, "DEBUGINFOD_URLS is set, but %s cannot be loaded", LIBRARY);
		err_hint(e, "install it (Debian: libdebuginfod1), or unset DEBUGINFOD_URLS");
		return code;
	case -ETIME:
	case -ETIMEDOUT:
		err_set(e, -ETIMEDOUT, "no server of DEBUGINFOD_URLS gave it within %u s", seconds);
		err_hint(e, "DEBUGINFOD_TIMEOUT is the limit in seconds; without DEBUGINFOD_URLS no server "
			    "is asked");
		return -ETIMEDOUT;
	case -ECANCELED:
		return err_set(e, code, "the servers of DEBUGINFOD_URLS were not waited for");
	case -EPIPE:
		return err_set(e, code, "a server of DEBUGINFOD_URLS began to send it and broke off");
	case -ECHILD:
		return err_set(
			e, code, "the process that queries the servers of DEBUGINFOD_URLS ended early");
	default:
		return err_sys(e, code, "the servers of DEBUGINFOD_URLS cannot be queried");
	}
}

bool debugserver_wanted(void)
{
	/*
	 * a program with privileges that its caller lacks (owner.h) must not
	 * use a server of the caller's choice
	 */
	const char *urls = secure_getenv("DEBUGINFOD_URLS");

	return urls && urls[strspn(urls, " \t\n")];
}

/* Append the URLs of FILE, one a line, to BUF. */
static void add_urls(const struct root *r, const char *file, char *buf, size_t cap)
{
	_cleanup_free_ char *text = NULL;
	char path[512], *line, *rest;

	if ((size_t)snprintf(path, sizeof(path), "etc/debuginfod/%s", file) >= sizeof(path) ||
		root_read(r, path, 4096, &text, NULL, NULL) != 0)
		return;
	for (line = text; (line = strtok_r(line, " \t\n", &rest)); line = NULL) {
		const size_t len = strlen(buf);

		if (strncmp(line, "http", 4) == 0 && buftext_is_plain(line, strlen(line)) &&
			!strpbrk(line, "'$`") && len + strlen(line) + 2 <= cap)
			snprintf(buf + len, cap - len, "%s%s", len ? " " : "", line);
	}
}

static void configured(const struct root *r, char *buf, size_t cap)
{
	const int fd = root_openat(r, "etc/debuginfod", O_RDONLY | O_DIRECTORY, NULL);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *d;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (d = readdir(dir))) {
		const size_t len = strlen(d->d_name);

		if (len > 5 && strcmp(d->d_name + len - 5, ".urls") == 0)
			add_urls(r, d->d_name, buf, cap);
	}
	if (dir)
		closedir(dir);
}

/* Does the value of KEY in the lines of os-release(5) have WORD? */
static bool is_of(const char *text, const char *key, const char *word)
{
	const size_t n = strlen(key), len = strlen(word);

	for (const char *p = text; p; p = strchr(p, '\n'), p += p != NULL) {
		const char *v = p + n, *end = p + strcspn(p, "\n");

		if (strncmp(p, key, n) != 0)
			continue;
		for (v += strspn(v, "\"' "); v < end; v += strspn(v, "\"' ")) {
			const size_t some = strcspn(v, "\"' \n");

			if (some == len && strncmp(v, word, len) == 0)
				return true;
			v += some;
		}
	}
	return false;
}

static const char *of_distribution(const char *text)
{
	static const struct {
		const char *id, *url;
	} servers[] = { { "ubuntu", "https://debuginfod.ubuntu.com" },
		{ "debian", "https://debuginfod.debian.net" },
		{ "fedora", "https://debuginfod.fedoraproject.org" },
		{ "arch", "https://debuginfod.archlinux.org" },
		{ "opensuse", "https://debuginfod.opensuse.org" } };

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < ARRAY_LEN(servers); i++)
			if (is_of(text, k ? "ID_LIKE=" : "ID=", servers[i].id))
				return servers[i].url;
	return "https://debuginfod.elfutils.org";
}

bool debugserver_advise(const char *root, char *buf, size_t cap)
{
	_cleanup_free_ char *text = NULL;
	struct root r;

	buf[0] = '\0';
	if (root_open(root, &r, NULL) != 0)
		return false;
	configured(&r, buf, cap);
	if (!*buf && root_read(&r, "etc/os-release", 65536, &text, NULL, NULL) == 0)
		snprintf(buf, cap, "%s", of_distribution(text));
	root_close(&r);
	return *buf;
}

/* Errors after which the next file is not requested, because it would only wait as long. */
static bool is_lasting(int code)
{
	return code == -ELIBACC || code == -ETIMEDOUT || code == -ECANCELED || code == -ECONNREFUSED ||
	       code == -EHOSTUNREACH || code == -ENETUNREACH;
}

int debugserver_find(const struct debugserver_opts *o, const struct cap_build_id *id, int *fd, struct err *e)
{
	unsigned int seconds = seconds_of(o);
	int rc;

	if (!debugserver_wanted() || !id->len)
		return err_set(e, -ENOENT, "no server is queried");
	if (o->server && o->server->silent) {
		rc = explain(o->server->silent, seconds, e);
		return err_prefix(e, "not queried again"), rc;
	}
	rc = debugserver_possible() ? fetch(o, seconds, id, fd) : -ELIBACC;
	if (rc == 0)
		return 0;
	rc = explain(rc, seconds, e);
	if (o->server && is_lasting(rc))
		o->server->silent = rc;
	return rc;
}
