/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fold/inliner.h"
#include "base/intern.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

struct inliner {
	bool context;
	struct intern requested; /* requested frames; id = index into chains */
	struct buf *chains; /* the answers, empty = unknown */
	size_t max_chains;
	struct intern dsos; /* id = index into nm */
	struct buf *nm; /* output of nm for each */
	size_t cap;
};

int inliner_new(bool context, struct inliner **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e, "inline frames");
	(*ret)->context = context;
	return 0;
}

void inliner_free(struct inliner *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->dsos.n && i < in->cap; i++)
		buf_free(&in->nm[i]);
	for (size_t i = 0; i < in->requested.n && i < in->max_chains; i++)
		buf_free(&in->chains[i]);
	free(in->chains);
	intern_free(&in->requested);
	free(in->nm);
	intern_free(&in->dsos);
	free(in);
}

static int read_all(int fd, struct buf *out)
{
	char chunk[8192];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf_put(out, chunk, (size_t)n);
	}
	return out->failed ? -ENOMEM : 0;
}

static int start(const char *const argv[], int out_fd, pid_t *pid)
{
	posix_spawn_file_actions_t fa;
	char *args[16];
	size_t n = 0;
	int code;

	for (; argv[n] && n + 1 < ARRAY_LEN(args); n++)
		memcpy(&args[n], &argv[n],
			sizeof(args[n])); /* execve(2) wants them writable, but does not change them */
	args[n] = NULL;
	code = posix_spawn_file_actions_init(&fa);
	if (code)
		return -code;
	code = posix_spawn_file_actions_adddup2(&fa, out_fd, STDOUT_FILENO);
	if (!code)
		code = posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!code)
		code = posix_spawnp(pid, args[0], &fa, NULL, args, environ);
	posix_spawn_file_actions_destroy(&fa);
	return -code;
}

/* Read all output of ARGV[0]. Its exit status is ignored: no output means no answer. */
static int run(const char *const argv[], struct buf *out, struct err *e)
{
	_cleanup_close_ int rd = -1;
	int fds[2], code, status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0) {
		code = -errno;
		return err_sys(e, code, "cannot make a pipe to '%s'", argv[0]);
	}
	rd = fds[0];
	code = start(argv, fds[1], &pid);
	close(fds[1]);
	if (code) {
		err_sys(e, code, "cannot run '%s'", argv[0]);
		err_hint(e, "it is part of binutils, and --inline needs it");
		return code;
	}
	code = read_all(rd, out);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return code ? err_sys(e, code, "cannot read what '%s' says", argv[0]) : 0;
}

/* Remove " (discriminator N)" from a line. */
static size_t cut_discriminator(char *line, size_t len)
{
	static const char word[] = " (discriminator ";
	const size_t n = sizeof(word) - 1;
	char *at = memmem(line, len, word, n), *end = line + len, *p, *close = NULL;

	if (!at)
		return len;
	for (p = at + n; p < end && *p != ' ' && (*p < '\t' || *p > '\r'); p++) {
		if (*p == ')' && p > at + n)
			close = p;
	}
	if (!close)
		return len;
	memmove(at, close + 1, (size_t)(end - close - 1));
	return len - (size_t)(close + 1 - at);
}

static void put_item(struct buf *out, const char *func, size_t func_len, const char *where, size_t where_len)
{
	buf_put(out, func, func_len);
	if (where) {
		buf_put(out, ":", 1);
		buf_put(out, where, where_len);
	}
}

/* OUT = ITEM;OUT, because addr2line prints the innermost function first. */
static void put_before(struct buf *out, size_t at, const struct buf *item)
{
	struct buf old = { 0 };

	if (out->len > at) {
		buf_put(&old, ";", 1);
		buf_put(&old, out->p + at, out->len - at);
	}
	out->len = at;
	buf_put(out, item->p, item->len);
	buf_put(out, old.p, old.len);
	out->failed |= old.failed || item->failed;
	buf_free(&old);
}

/* Parse pairs of lines, a function and its place, after the line that repeats the address. */
static void put_chain(const struct inliner *in, const struct buf *said, struct buf *out)
{
	char *p = (char *)said->p, *end = p + said->len, *func = NULL;
	struct buf item = { 0 };
	size_t at = out->len, func_len = 0;

	p = said->len ? memchr(p, '\n', said->len) : NULL;
	for (p = p ? p + 1 : end; p < end;) {
		char *nl = memchr(p, '\n', (size_t)(end - p)), *line = p;
		size_t len = cut_discriminator(line, (size_t)((nl ? nl : end) - line));

		p = nl ? nl + 1 : end;
		if (!func_len) {
			func = line;
			func_len = len;
			continue;
		}
		buf_reset(&item);
		put_item(&item, func, func_len, in->context ? line : NULL, len);
		put_before(out, at, &item);
		func_len = 0;
	}
	buf_free(&item);
}

static int ask(
	struct inliner *in, const char *pc, const char *dso, struct buf *out, bool *unknown, struct err *e)
{
	const char *const argv[] = { "addr2line", "-a", pc, "-e", dso, "-i", "-f", "-s", "-C", NULL };
	static const char nothing[] = "?\?\n?\?:0";
	struct buf said = { 0 };
	int code = run(argv, &said, e);

	if (!code) {
		*unknown = said.len && memmem(said.p, said.len, nothing, sizeof(nothing) - 1);
		put_chain(in, &said, out);
	}
	buf_free(&said);
	return code;
}

static int load_nm(struct inliner *in, const char *dso, const struct buf **ret, struct err *e)
{
	const char *const argv[] = { "nm", "--", dso, NULL };
	size_t known = in->dsos.n;
	uint32_t id = intern_put(&in->dsos, dso, strlen(dso));

	if (id == INTERN_NONE || base_grow(&in->nm, &in->cap, in->dsos.n, sizeof(*in->nm)) != 0)
		return err_nomem(e, "the symbols of a file");
	*ret = &in->nm[id];
	return id < known ? 0 : run(argv, &in->nm[id], e);
}

/* Find the address of the first symbol FUNC ("hex type name" a line). */
static bool find_symbol(const struct buf *nm, const char *func, size_t len, uint64_t *addr)
{
	const char *p = (const char *)nm->p, *end = p + nm->len;

	while (nm->len && p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;
		size_t hex = strspn(p, "0123456789abcdef"); /* ends at the newline at the latest */

		if (hex && hex <= 16 && (size_t)(stop - p) == hex + 3 + len && p[hex] == ' ' &&
			p[hex + 2] == ' ' && memcmp(p + hex + 3, func, len) == 0) {
			*addr = strtoull(p, NULL, 16);
			return true;
		}
		p = stop + 1;
	}
	return false;
}

/* Repeat the request with the file's own address of the function, plus the offset. */
static int ask_by_symbol(struct inliner *in, const struct inliner_query *q, const char *dso, struct buf *out,
	bool *unknown, struct err *e)
{
	size_t at = out->len, offset_len = q->sym_len - q->func_len;
	const struct buf *nm = NULL;
	uint64_t addr;
	char pc[32];
	int code;

	if (!q->func_len || !offset_len || offset_len > 3 + 16)
		return 0;
	code = load_nm(in, dso, &nm, e);
	if (code || !find_symbol(nm, q->sym, q->func_len, &addr))
		return code;
	snprintf(pc, sizeof(pc), "%.*s", (int)(offset_len - 3), q->sym + q->func_len + 3);
	snprintf(pc, sizeof(pc), "0x%llx", (unsigned long long)(addr + strtoull(pc, NULL, 16)));
	out->len = at;
	return ask(in, pc, dso, out, unknown, e);
}

static bool says_nothing(const char *p, size_t len)
{
	return !len || (len == 2 && memcmp(p, "??", 2) == 0) || (len == 7 && memcmp(p, "?\?:?\?:0", 7) == 0);
}

/* Look up Q: its chain goes to OUT, which is empty and stays so if nothing is known. */
static int resolve(struct inliner *in, const struct inliner_query *q, struct buf *out, struct err *e)
{
	_cleanup_free_ char *pc = strndup(q->pc, q->pc_len), *dso = strndup(q->dso, q->dso_len);
	struct buf other = { 0 };
	bool unknown = false;
	int code;

	if (!pc || !dso)
		return err_nomem(e, "an inline frame");
	if (!dso[0])
		return 0;
	code = ask(in, pc, dso, out, &unknown, e);
	if (!code && unknown)
		code = ask_by_symbol(in, q, dso, &other, &unknown, e);
	if (other.len) {
		buf_free(out);
		*out = other;
	} else {
		buf_free(&other);
	}
	if (says_nothing((const char *)out->p, out->len))
		buf_reset(out);
	return code ? code : out->failed ? err_nomem(e, "an inline frame") : 0;
}

static uint32_t key_of(struct inliner *in, const struct inliner_query *q)
{
	uint32_t id = INTERN_NONE;
	struct buf key = { 0 };

	buf_uleb(&key, q->pc_len);
	buf_put(&key, q->pc, q->pc_len);
	buf_uleb(&key, q->dso_len);
	buf_put(&key, q->dso, q->dso_len);
	buf_put(&key, q->sym, q->sym_len);
	if (!key.failed)
		id = intern_put(&in->requested, key.p, key.len);
	buf_free(&key);
	return id;
}

int inliner_put(struct inliner *in, const struct inliner_query *q, struct buf *out, struct err *e)
{
	size_t known = in->requested.n;
	uint32_t id = key_of(in, q);
	struct buf *chain;
	int code = 0;

	if (id == INTERN_NONE ||
		base_grow(&in->chains, &in->max_chains, in->requested.n, sizeof(*in->chains)) != 0)
		return err_nomem(e, "an inline frame");
	chain = &in->chains[id];
	if (id == known)
		code = resolve(in, q, chain, e);
	if (code)
		return code;
	buf_put(out, chain->p, chain->len);
	return chain->len > 0;
}
