/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/live.h"
#include "base/clock.h"
#include "report/format.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>

#define LAST_SECOND_NS UINT64_C(1000000000)
#define ROWS 24 /* of a terminal that does not say how many it has */

struct live {
	const struct waits *w;
	const struct report_print *p;
	struct out out;
	bool screen; /* a terminal, whose tables replace one another */
	bool shown; /* one was printed */
	int signals; /* signalfd of Ctrl-C and of a terminal that changes its size */
	uint64_t end_ns; /* Ctrl-C: read no longer than until then; 0: it did not come */
};

static size_t screen_rows(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row ? size.ws_row : ROWS;
}

/* Of a table that is as wide as was requested, or as 40 columns at least. */
static size_t screen_columns(size_t width)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : width;
}

static size_t count_lines(const struct buf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->p[i] == '\n';
	return n;
}

/* The length of the part of a line that fits, one column a character. */
static size_t cut_line(const uint8_t *p, size_t len, size_t width)
{
	size_t n = 0, i;

	for (i = 0; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80 && ++n > width)
			break;
	}
	return i;
}

/*
 * The table over the one before, line by line, so that nothing flickers. Characters that take two columns are
 * cut by the terminal, which does not wrap lines meanwhile.
 */
static void put_screen(struct live *l, const struct buf *b, size_t rows, size_t width)
{
	struct out *o = &l->out;

	out_str(o, l->shown ? "\033[?7l\033[H" : "\033[?7l\033[H\033[2J");
	for (size_t at = 0; at < b->len && rows > 1; rows--) {
		const uint8_t *nl = memchr(b->p + at, '\n', b->len - at);
		const size_t len = nl ? (size_t)(nl - b->p) - at : b->len - at;

		out_put(o, b->p + at, cut_line(b->p + at, len, width));
		out_str(o, "\033[K\n");
		at += len + 1;
	}
	out_str(o, "\033[J\033[?7h");
}

/* As many rows of the table as the terminal has room for. */
static int show_screen(struct live *l, const struct ranking *r, struct err *e)
{
	const size_t rows = screen_rows(), row_lines = l->p->opts->by == RANKING_STACK ? 2 : 1;
	struct report_print p = *l->p;
	struct buf b = { 0 };
	size_t lines;

	p.width = format_width(p.width);
	p.top = MIN(p.top ? p.top : SIZE_MAX, rows);
	report_table(&b, &p, r);
	lines = count_lines(&b);
	if (lines >= rows) {
		const size_t over = (lines + 1 - rows + row_lines - 1) / row_lines,
			     n = MIN(p.top, r->groups.n);

		p.top = n > over ? n - over : 1;
		buf_reset(&b);
		report_table(&b, &p, r);
	}
	if (!b.failed)
		put_screen(l, &b, rows, screen_columns(p.width));
	buf_free(&b);
	return b.failed ? err_nomem(e, "the report") : 0;
}

static int show_next(struct live *l, const struct ranking *r, struct err *e)
{
	struct report_print p = *l->p;

	p.width = format_width(p.width);
	p.one_line = true;
	if (l->shown && p.format != REPORT_JSON)
		out_char(&l->out, '\n');
	return report_ranking(&l->out, &p, r, e);
}

/* Rank what came until now. Of waits of a kind that is requested there may be none yet. */
static int show(struct live *l, struct err *e)
{
	struct ranking ranking = { 0 };
	int code = ranking_make(&ranking, l->w, l->p->opts, e);

	if (!code || code == -ENOENT)
		code = l->screen ? show_screen(l, &ranking, e) : show_next(l, &ranking, e);
	if (!code)
		code = out_flush(&l->out, e);
	l->shown = true;
	ranking_free(&ranking);
	return code;
}

/* Act on signals. -EINTR after the second Ctrl-C. */
static int take_signals(struct live *l, struct err *e)
{
	struct signalfd_siginfo si;
	int code = 0;

	while (!code && read(l->signals, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		if (si.ssi_signo == SIGWINCH)
			code = l->shown && l->screen ? show(l, e) : 0;
		else if (l->end_ns)
			code = -EINTR;
		else
			l->end_ns = now_ns() + LAST_SECOND_NS;
	}
	return code;
}

/* Until FD can be read. -EINTR if that is not to be awaited. */
static int await_input(void *ctx, int fd, struct err *e)
{
	struct live *l = ctx;

	for (;;) {
		struct pollfd p[] = { { .fd = fd, .events = POLLIN },
			{ .fd = l->signals, .events = POLLIN } };
		const uint64_t now = l->end_ns ? now_ns() : 0;
		int n, code;

		if (l->end_ns && now >= l->end_ns)
			return -EINTR;
		n = poll(p, 2, l->end_ns ? (int)((l->end_ns - now) / 1000000) + 1 : -1);
		if (n < 0 && errno != EINTR) {
			code = -errno;
			return err_sys(e, code, "cannot wait for input");
		}
		code = n > 0 && p[1].revents ? take_signals(l, e) : 0;
		if (code)
			return code;
		if (n > 0 && p[0].revents)
			return 0;
	}
}

static bool is_screen(const struct report_print *p)
{
	const char *term = getenv("TERM");

	return p->format == REPORT_TABLE && term && strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO);
}

static int read_all(struct live *l, struct waits_reader *reader, struct err *e)
{
	int code;

	while ((code = waits_next(reader, e)) > 0) {
		code = show(l, e);
		if (code)
			return code;
	}
	if (code != -EINTR)
		return code;
	/* ended by Ctrl-C: what was complete counts */
	code = waits_sum_up(reader, e);
	return code ? code : 1;
}

int live_run(struct waits *w, struct paragraphs *in, const struct waits_opts *opts,
	const struct report_print *p, struct err *e)
{
	struct live l = { .w = w, .p = p, .screen = is_screen(p), .signals = -1 };
	struct waits_reader *reader = NULL;
	sigset_t set, old;
	int code, ended;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_BLOCK, &set, &old);
	l.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	code = l.signals < 0 ? -errno : 0;
	if (code)
		err_sys(e, code, "cannot wait for signals");
	if (!code)
		code = out_init(&l.out, STDOUT_FILENO, e);
	if (!code)
		code = waits_open(w, in, opts, &reader, e);
	if (!code) {
		paragraphs_wait_with(in, await_input, &l);
		code = read_all(&l, reader, e);
		paragraphs_wait_with(in, NULL, NULL);
	}
	ended = code;
	code = MIN(code, 0);
	/* the last table takes the place of the one before, and stays */
	if (!code && l.shown)
		out_str(&l.out, l.screen ? "\033[H\033[J" : p->format == REPORT_JSON ? "" : "\n");
	if (!code)
		code = out_flush(&l.out, e);
	waits_close(reader);
	out_free(&l.out);
	if (l.signals >= 0)
		close(l.signals);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return code ? code : ended;
}
