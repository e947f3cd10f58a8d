/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cli.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

const char cli_version_string[] = "0.1.0";

/* Format one line, "name: KIND TEXT", into BUF. Returns its length. */
static size_t put_line(char *buf, size_t cap, const char *name, const char *kind, const char *text)
{
	size_t len = (size_t)snprintf(buf, cap, "%s: %s", name, kind);

	len += text_escape(buf + len, cap - len - 1, text, strlen(text), TEXT_LINE);
	buf[len++] = '\n';
	return len;
}

static void write_stderr(const char *buf, size_t len)
{
	/* if stderr itself fails, there is nothing left to do */
	ssize_t ignored = write(STDERR_FILENO, buf, len);

	(void)ignored;
}

int cli_usage(const struct cli *c, const char *fmt, ...)
{
	char msg[1024], line[TEXT_ESCAPED_MAX(sizeof(msg)) + 128];
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	buf_put(&b, line, put_line(line, sizeof(line), c->name, "", msg));
	buftext_printf(&b, "usage: %s ", c->name);
	cli_synopsis(c, &b);
	buftext_printf(&b, " (see %s --help)\n", c->name);
	write_stderr((const char *)b.p, b.len);
	buf_free(&b);
	return CLI_USAGE;
}

void cli_error(const struct cli *c, const struct err *e)
{
	char buf[TEXT_ESCAPED_MAX(sizeof(e->msg)) + TEXT_ESCAPED_MAX(sizeof(e->hint)) + 256];
	size_t len = put_line(buf, sizeof(buf) / 2, c->name, "", e->msg);

	if (e->hint[0])
		len += put_line(buf + len, sizeof(buf) - len, c->name, "hint: ", e->hint);
	write_stderr(buf, len);
}

void cli_warn(const struct cli *c, const char *fmt, ...)
{
	char msg[1024], line[TEXT_ESCAPED_MAX(sizeof(msg)) + 128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	write_stderr(line, put_line(line, sizeof(line), c->name, "", msg));
}

/* CODE: what an earlier write failed with, 0 = not known. */
static int finish(const struct cli *c, int status, int code)
{
	bool failed = ferror(stdout) != 0;

	errno = 0;
	if (fflush(stdout) != 0)
		failed = true, code = code ? code : errno;
	/*
	 * EBADF is a failure even if nothing was written: the user closed
	 * stdout and would take silence for an empty result.
	 */
	if (fclose(stdout) != 0)
		failed = true, code = code ? code : errno;
	if (!failed)
		return status;
	cli_warn(c, "cannot write the result to standard output: %s", strerror(code ? code : EIO));
	return CLI_FAILED;
}

int cli_finish(const struct cli *c, int status)
{
	return finish(c, status, 0);
}

int cli_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)s[0]))
		return err_set(e, -EINVAL, "'%s' is not a whole number", s);
	errno = 0;
	v = strtoull(s, &end, 10);
	if (*end)
		return err_set(e, -EINVAL, "'%s' is not a whole number", s);
	if (errno || v < min || v > max)
		return err_set(e, -ERANGE, "'%s' is out of range: %llu to %llu", s, (unsigned long long)min,
			(unsigned long long)max);
	*ret = v;
	return 0;
}

int cli_size(const char *s, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	static const char units[] = "KMG";
	unsigned long long v;
	unsigned int shift = 0;
	const char *unit;
	char *end;

	errno = 0;
	v = isdigit((unsigned char)s[0]) ? strtoull(s, &end, 10) : 0;
	if (!isdigit((unsigned char)s[0]))
		return err_set(e, -EINVAL, "'%s' is not a size such as 512K, 16M or 1G", s);
	unit = *end ? strchr(units, *end) : NULL;
	if (*end && (!unit || end[1]))
		return err_set(e, -EINVAL, "'%s' is not a size such as 512K, 16M or 1G", s);
	if (unit)
		shift = 10 * (unsigned int)(unit - units + 1);
	if (errno || v > UINT64_MAX >> shift || v << shift < min || v << shift > max)
		return err_set(e, -ERANGE, "'%s' is out of range: %llu to %llu bytes", s,
			(unsigned long long)min, (unsigned long long)max);
	*ret = v << shift;
	return 0;
}

int cli_address(const char *s, uint64_t *ret, struct err *e)
{
	const char *digits = s[0] == '0' && (s[1] == 'x' || s[1] == 'X') ? s + 2 : s;
	size_t n = strlen(digits);

	if (!n || n > 16 || strspn(digits, "0123456789abcdefABCDEF") != n)
		return err_set(e, -EINVAL, "'%s' is not an address: hex digits, 16 at most", s);
	*ret = strtoull(digits, NULL, 16);
	return 0;
}

/* Read the digits at *S, which it moves past them; false if the value does not fit. */
static bool take_digits(const char **s, uint64_t *ret)
{
	uint64_t v = 0;
	bool fits = true;

	for (; isdigit((unsigned char)**s); (*s)++)
		fits = fits && !__builtin_mul_overflow(v, 10, &v) &&
		       !__builtin_add_overflow(v, (uint64_t)(**s - '0'), &v);
	*ret = v;
	return fits;
}

/* The part of UNIT_NS that DIGITS, those after the point, are. Digits from the 19th on make no difference. */
static uint64_t fraction_ns(const char *digits, size_t n, uint64_t unit_ns)
{
	long double sum = 0, place = (long double)unit_ns;

	for (size_t i = 0; i < n; i++)
		sum += (place /= 10) * (digits[i] - '0');
	return (uint64_t)(sum + 0.5L);
}

/* The unit that S names, all of it; *DEFAULT_NS if S is empty; 0 if it is not one. */
static uint64_t unit_of(const char *s, uint64_t default_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
		{ "m", UINT64_C(60000000000) }, { "h", UINT64_C(3600000000000) } };

	for (size_t i = 0; *s && i < ARRAY_LEN(units); i++)
		if (strcmp(s, units[i].name) == 0)
			return units[i].ns;
	return *s ? 0 : default_ns;
}

int cli_duration(const char *s, uint64_t default_unit_ns, uint64_t *ret_ns, struct err *e)
{
	const char *p = s, *after;
	uint64_t whole, unit, v;
	bool fits = take_digits(&p, &whole);
	size_t n_whole = (size_t)(p - s), n_fraction;

	after = p + (*p == '.');
	n_fraction = *p == '.' ? strspn(after, "0123456789") : 0;
	unit = unit_of(after + n_fraction, default_unit_ns);
	/* a point has a digit after it */
	if (!unit || !(n_whole + n_fraction) || (after != p && !n_fraction))
		return err_set(e, -EINVAL, "'%s' is not a time such as 10us, 500ms, 1.5s, 90m or 1h", s);
	fits = fits && !__builtin_mul_overflow(whole, unit, &v) &&
	       !__builtin_add_overflow(v, fraction_ns(after, n_fraction, unit), &v);
	if (!fits || v > INT64_MAX)
		return err_set(e, -ERANGE, "'%s' is out of range: at most 292 years", s);
	*ret_ns = v;
	return 0;
}

/* --- the table --- */

static const struct cli_option in_each_tool[] = {
	{ 'h', "help", NULL, "print this text", .kind = CLI_KIND_HELP },
	{ 'V', "version", NULL, "print the version", .kind = CLI_KIND_VERSION },
};

const struct cli_option *cli_next(const struct cli *c, size_t *i)
{
	size_t at = (*i)++;

	if (at < c->n_options)
		return &c->options[at];
	return at - c->n_options < ARRAY_LEN(in_each_tool) ? &in_each_tool[at - c->n_options] : NULL;
}

const struct cli_option *cli_next_shown(const struct cli *c, size_t *i)
{
	const struct cli_option *o;

	do
		o = cli_next(c, i);
	while (o && o->hidden);
	return o;
}

static bool is_operand(const struct cli_option *o)
{
	return !o->name && o->kind != CLI_KIND_HEADING;
}

/* --- parsing --- */

#define GROUPS_MAX 8
#define LONG 256 /* getopt_long() returns this plus the row number for a long option */

/* The row of OPT, as returned by getopt_long(); NULL = none. */
static const struct cli_option *row_of(const struct cli *c, int opt)
{
	const struct cli_option *o;

	for (size_t i = 0; (o = cli_next(c, &i)) != NULL;)
		if (opt >= LONG ? i - 1 == (size_t)opt - LONG : o->letter && o->letter == opt)
			return o;
	return NULL;
}

/* "-p" or "--pid", as the user wrote it. */
static const char *name_of(const struct cli_option *o, int opt, char name[64])
{
	if (opt < LONG)
		snprintf(name, 64, "-%c", opt);
	else
		snprintf(name, 64, "--%s", o->name);
	return name;
}

/* Report the option that getopt_long() rejected with '?' or ':', and why. */
static int bad_option(const struct cli *c, int opt, const char *arg)
{
	const struct cli_option *o = row_of(c, optopt);
	size_t len = strcspn(arg, "="), n = 0;
	char name[64], found[512] = "";

	if (o && (opt == ':' || optopt >= LONG))
		return cli_usage(c, "option '%s' %s", name_of(o, optopt, name),
			opt == ':' ? "needs an argument" : "takes no argument");
	if (optopt)
		return cli_usage(c, "unknown option '-%c'", optopt);
	for (size_t i = 0; len > 2 && (o = cli_next(c, &i)) != NULL;) {
		size_t at = strlen(found);

		if (o->name && strncmp(o->name, arg + 2, len - 2) == 0)
			snprintf(found + at, sizeof(found) - at, "%s--%s", n++ ? ", " : "", o->name);
	}
	if (n > 1)
		return cli_usage(c, "ambiguous option '%.*s': %s", (int)len, arg, found);
	return cli_usage(c, "unknown option '%.*s'", (int)len, arg);
}

static int take_word(const struct cli_option *o, const char *arg, int *ret, struct err *e)
{
	char all[512] = "";

	for (int i = 0; o->words[i]; i++) {
		size_t at = strlen(all);

		if (strcmp(arg, o->words[i]) == 0) {
			*ret = i;
			return 0;
		}
		snprintf(all + at, sizeof(all) - at, "%s%s", i ? ", " : "", o->words[i]);
	}
	return err_set(e, -EINVAL, "'%s' is not one of %s", arg, all);
}

static void store(const struct cli_option *o, uint64_t v, void *member)
{
	uint32_t narrow = (uint32_t)v;

	memcpy(member, o->size == sizeof(narrow) ? (void *)&narrow : (void *)&v, o->size);
}

/* Parse ARG (NULL = none) into MEMBER, or into OPTS with the row's own function. */
static int take_value(const struct cli_option *o, const char *arg, void *opts, void *member, struct err *e)
{
	uint64_t max = o->max ? o->max : o->size == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX, v = 0;
	int rc = 0;

	switch (o->kind) {
	case CLI_KIND_FLAG:
		*(bool *)member = true;
		return 0;
	case CLI_KIND_VALUE:
		*(int *)member = o->value;
		return 0;
	case CLI_KIND_WORD:
		rc = take_word(o, arg, member, e);
		return rc && o->call && strchr(".0123456789", arg[0]) ? o->call(arg, opts, e) : rc;
	case CLI_KIND_CALL:
		return o->call(arg, opts, e);
	case CLI_KIND_NUMBER:
	case CLI_KIND_PID:
	case CLI_KIND_TID:
		rc = cli_u64(arg, o->min, max, &v, e);
		break;
	case CLI_KIND_SIZE:
		rc = cli_size(arg, o->min, max, &v, e);
		break;
	case CLI_KIND_DURATION:
		rc = cli_duration(arg, o->unit_ns, &v, e);
		if (!rc && v < o->min)
			rc = err_set(
				e, -ERANGE, "'%s' is out of range: %" PRIu64 " ns at least", arg, o->min);
		break;
	case CLI_KIND_ADDRESS:
		rc = cli_address(arg, &v, e);
		if (!rc && v < o->min)
			rc = err_set(e, -ERANGE, "'%s' is out of range: 0x%" PRIx64 " at least", arg, o->min);
		break;
	default:
		memcpy(member, &arg, sizeof(arg));
		return 0;
	}
	if (!rc)
		store(o, v, member);
	return rc;
}

static int append(const struct cli_option *o, const char *arg, void *opts, struct err *e)
{
	struct cli_list *list = (struct cli_list *)(void *)((char *)opts + o->at);
	int rc;

	if (o->times && list->n == o->times)
		return err_set(e, -E2BIG,
			o->commas ? "more than %" PRIu32 " given" : "given more than %" PRIu32 " times",
			o->times);
	if (base_grow(&list->p, &list->cap, list->n + 1, o->size) != 0)
		return err_nomem(e, "options");
	rc = take_value(o, arg, opts, (char *)list->p + list->n * o->size, e);
	list->n += rc == 0;
	return rc;
}

/* The next element of *REST, "1,2,3", which is changed; NULL behind the last one. "\," is a comma in it. */
static char *next_element(char **rest)
{
	char *begin = *rest, *to = begin, *p = begin;

	for (; p && *p && *p != ','; *to++ = *p++)
		p += p[0] == '\\' && p[1] == ',';
	if (!begin)
		return NULL;
	*rest = *p ? p + 1 : NULL;
	*to = '\0';
	return begin;
}

/* Append each element of ARG. */
static int append_each(const struct cli_option *o, const char *arg, void *opts, struct err *e)
{
	_cleanup_free_ char *copy = strdup(arg);
	char *rest = copy, *element;
	int rc = copy ? 0 : err_nomem(e, "options");

	while (!rc && (element = next_element(&rest)) != NULL) {
		if (*element)
			rc = append(o, element, opts, e);
		else if (*arg)
			rc = err_set(e, -EINVAL, "'%s' has an empty element", arg);
		else
			rc = err_set(e, -EINVAL, "it is empty");
	}
	if (o->kind == CLI_KIND_TEXT)
		TAKE_PTR(copy); /* the list refers to it, as to arguments, until the process ends */
	return rc;
}

static int take(const struct cli_option *o, const char *arg, void *opts, struct err *e)
{
	if (!o->list)
		return take_value(o, arg, opts, (char *)opts + o->at, e);
	return o->commas ? append_each(o, arg, opts, e) : append(o, arg, opts, e);
}

/* Take one option. GIVEN holds the option given so far in each group. */
static int take_option(const struct cli *c, int opt, const struct cli_option *given[GROUPS_MAX], void *opts)
{
	const struct cli_option *o = row_of(c, opt), **other = &given[o->group % GROUPS_MAX];
	struct err e = { 0 };
	char name[64];

	if (o->group && *other && *other != o)
		return cli_usage(c, "--%s and --%s exclude one another", (*other)->name, o->name);
	*other = o;
	if (take(o, optarg ? optarg : o->otherwise, opts, &e) != 0)
		return cli_usage(c, "option '%s': %s", name_of(o, opt, name), e.msg);
	return CLI_OK;
}

static int take_command(const struct cli *c, int argc, char *argv[], char *const **ret)
{
	if (optind == argc)
		return CLI_OK;
	if (strcmp(argv[optind - 1], "--") != 0)
		return cli_usage(c, "unexpected argument '%s': a command comes after --", argv[optind]);
	*ret = argv + optind;
	optind = argc;
	return CLI_OK;
}

/* Take the operands, ARGV from optind on. */
static int take_operands(const struct cli *c, int argc, char *argv[], void *opts)
{
	struct err e = { 0 };

	for (const struct cli_option *o = c->options; o < c->options + c->n_options; o++) {
		int first = optind, status;

		if (!is_operand(o))
			continue;
		if (o->kind == CLI_KIND_COMMAND) {
			status = take_command(c, argc, argv, (char *const **)((char *)opts + o->at));
			if (status != CLI_OK)
				return status;
		}
		for (; optind < argc && (o->list || optind == first); optind++)
			if (take(o, argv[optind], opts, &e) != 0)
				return cli_usage(c, "%s: %s", o->arg, e.msg);
		if (o->required && optind == first)
			return cli_usage(c, "no %s given", o->arg);
	}
	return optind < argc ? cli_usage(c, "unexpected argument '%s'", argv[optind]) : CLI_OK;
}

/* Fill the tables for getopt_long(): SHORTS has 3 bytes plus 2 per row, LONGS 1 element plus 1 per row. */
static void make_tables(const struct cli *c, char *shorts, struct option *longs)
{
	const struct cli_option *o;

	for (size_t i = 0; i < c->n_options; i++)
		if (c->options[i].kind == CLI_KIND_COMMAND)
			*shorts++ = '+';
	*shorts++ = ':';
	for (size_t i = 0; (o = cli_next(c, &i)) != NULL;) {
		if (!o->name)
			continue;
		*longs++ = (struct option){ o->name,
			o->otherwise ? optional_argument
			: o->arg     ? required_argument
				     : no_argument,
			NULL, LONG + (int)(i - 1) };
		if (o->letter)
			*shorts++ = o->letter;
		if (o->letter && o->arg)
			*shorts++ = ':';
	}
	*shorts = '\0';
	*longs = (struct option){ 0 };
}

static int print_stdout(const struct cli *c, struct buf *b)
{
	int code;

	if (b->failed) {
		cli_warn(c, "out of memory");
		buf_free(b);
		return CLI_FAILED;
	}
	code = fwrite(b->p, 1, b->len, stdout) == b->len ? 0 : errno;
	buf_free(b);
	return finish(c, CLI_OK, code);
}

/*
 * Handle --help, --version and --completion=SHELL. The last is not in the table,
 * so that no abbreviation of another option matches it.
 */
static bool take_request(const struct cli *c, int argc, char *argv[], int opt, int *status)
{
	static const char completion[] = "--completion=";
	const struct cli_option *o = opt ? row_of(c, opt) : NULL;
	struct buf b = { 0 };
	struct err e;
	int shell;

	if (!o && argc == 2 && strncmp(argv[1], completion, strlen(completion)) == 0) {
		const struct cli_option row = { .words = cli_shells };

		if (take_word(&row, argv[1] + strlen(completion), &shell, &e) != 0) {
			*status = cli_usage(c, "option '--completion': %s", e.msg);
			return true;
		}
		cli_completion(c, cli_shells[shell], &b);
	} else if (o && o->kind == CLI_KIND_HELP) {
		cli_help(c, &b);
	} else if (o && o->kind == CLI_KIND_VERSION) {
		buftext_printf(&b, "%s (stacktools) %s\n", c->name, cli_version_string);
	} else {
		return false;
	}
	*status = print_stdout(c, &b);
	return true;
}

static bool parse(const struct cli *c, int argc, char *argv[], void *opts, int *status)
{
	enum { MAX_ROWS = CLI_OPTIONS_MAX + ARRAY_LEN(in_each_tool) };
	const struct cli_option *given[GROUPS_MAX] = { 0 };
	struct option longs[MAX_ROWS + 1];
	char shorts[3 + 2 * MAX_ROWS];
	int opt;

	make_tables(c, shorts, longs);
	if (take_request(c, argc, argv, 0, status))
		return false;
	opterr = 0;
	optind = 0; /* start over, in case getopt was used before */
	*status = CLI_OK;
	while (*status == CLI_OK && (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (opt == '?' || opt == ':')
			*status = bad_option(c, opt, argv[optind - 1]);
		else if (take_request(c, argc, argv, opt, status))
			return false;
		else
			*status = take_option(c, opt, given, opts);
	}
	if (*status == CLI_OK)
		*status = take_operands(c, argc, argv, opts);
	if (*status == CLI_OK && c->check)
		*status = c->check(c, opts);
	return *status == CLI_OK;
}

bool cli_parse(const struct cli *c, int argc, char *argv[], void *opts, int *status)
{
	bool go_on = parse(c, argc, argv, opts, status);

	if (!go_on)
		cli_free(c, opts);
	return go_on;
}

void cli_free(const struct cli *c, void *opts)
{
	for (const struct cli_option *o = c->options; o < c->options + c->n_options; o++) {
		struct cli_list *list = (struct cli_list *)(void *)((char *)opts + o->at);

		if (!o->list)
			continue;
		free(list->p);
		*list = (struct cli_list){ 0 };
	}
}

/* --- usage and --help --- */

#define WIDTH 80
#define USAGE_MAX 160 /* a longer synopsis has [OPTION]... for the options without a letter */
#define COLUMN_MAX 26 /* the rightmost column where help texts begin */

/* "-p PID", "--pack OUT". */
static void put_option(struct buf *b, const struct cli_option *o)
{
	if (o->letter)
		buftext_printf(b, "-%c", o->letter);
	else
		buftext_printf(b, "--%s", o->name);
	if (o->arg)
		buftext_printf(b, o->otherwise ? "[=%s]" : " %s", o->arg);
}

static void put_group(struct buf *b, const struct cli *c, uint32_t group)
{
	const char *before = " [";

	for (size_t i = 0; i < c->n_options; i++) {
		if (c->options[i].group != group || c->options[i].hidden)
			continue;
		buftext_str(b, before);
		put_option(b, &c->options[i]);
		before = " | ";
	}
	buftext_str(b, "]");
}

/* Put the options outside groups: those with a letter and an argument, or those without a letter. */
static void put_singles(struct buf *b, const struct cli *c, bool letters)
{
	for (const struct cli_option *o = c->options; o < c->options + c->n_options; o++) {
		if (!o->name || o->hidden || o->group || letters != (o->letter != 0) || (letters && !o->arg))
			continue;
		buftext_str(b, " [");
		put_option(b, o);
		buftext_str(b, o->list ? "]..." : "]");
	}
}

static void put_operands(struct buf *b, const struct cli *c)
{
	for (const struct cli_option *o = c->options; o < c->options + c->n_options; o++) {
		if (!is_operand(o))
			continue;
		if (o->kind == CLI_KIND_COMMAND)
			buftext_printf(b, " [-- %s [ARG]...]", o->arg);
		else
			buftext_printf(b, o->required ? " %s%s" : " [%s]%s", o->arg, o->list ? "..." : "");
	}
}

void cli_synopsis(const struct cli *c, struct buf *b)
{
	struct buf all = { 0 };
	uint32_t groups = 0;
	size_t known;

	for (const struct cli_option *o = c->options; o < c->options + c->n_options; o++)
		if (o->letter && !o->arg && !o->group)
			buftext_printf(&all, all.len ? "%c" : " [-%c", o->letter);
	buftext_str(&all, all.len ? "]" : "");
	for (const struct cli_option *o = c->options; o < c->options + c->n_options; o++) {
		if (o->hidden)
			continue;
		if (o->group && !(groups & 1u << o->group))
			put_group(&all, c, o->group);
		groups |= 1u << o->group;
	}
	put_singles(&all, c, true);
	known = all.len;
	put_singles(&all, c, false);
	if (all.len > USAGE_MAX) {
		all.len = known;
		buftext_str(&all, " [OPTION]...");
	}
	put_operands(&all, c);
	if (all.len)
		buf_put(b, all.p + 1, all.len - 1);
	buf_free(&all);
}

/* The length up to a space outside brackets: an option in the usage line is never broken. */
static size_t word_len(const char *text)
{
	size_t len = 0;
	int depth = 0;

	for (; text[len] && text[len] != '\n' && (depth > 0 || text[len] != ' '); len++)
		depth += (text[len] == '[') - (text[len] == ']');
	return len;
}

/* Put TEXT from column COL on, wrapped to WIDTH and indented by INDENT from the second line, and a newline.
 */
static void put_wrapped(struct buf *b, const char *text, size_t col, size_t indent)
{
	size_t start = col;

	while (*text) {
		size_t len = word_len(text);

		if (col > start && col + 1 + len > WIDTH) {
			buftext_printf(b, "\n%*s", (int)indent, "");
			start = col = indent;
		}
		buftext_str(b, col > start ? " " : "");
		buf_put(b, text, len);
		col += len + (col > start);
		text += len;
		if (*text == '\n') {
			buftext_printf(b, "\n%*s", (int)indent, "");
			start = col = indent;
		}
		text += *text != '\0';
	}
	buftext_str(b, "\n");
}

/* The left column of --help: "  -p, --pid PID", "      --caps", "  ADDR". Returns its length. */
static size_t left_of(const struct cli_option *o, char left[128])
{
	int len;

	if (o->kind == CLI_KIND_COMMAND)
		len = snprintf(left, 128, "  -- %s", o->arg);
	else if (!o->name)
		len = snprintf(left, 128, "  %s", o->arg);
	else if (o->letter)
		len = snprintf(left, 128, "  -%c, --%s", o->letter, o->name);
	else
		len = snprintf(left, 128, "      --%s", o->name);
	if (o->name && o->arg)
		len += snprintf(left + len, 128 - (size_t)len, o->otherwise ? "[=%s]" : " %s", o->arg);
	return (size_t)len;
}

static void put_row(struct buf *b, const struct cli_option *o, size_t column)
{
	char left[128];
	size_t len = left_of(o, left);

	buftext_str(b, left);
	if (len + 2 > column)
		buftext_printf(b, "\n%*s", (int)column, "");
	else
		buftext_printf(b, "%*s", (int)(column - len), "");
	put_wrapped(b, o->help, column, column);
}

void cli_help(const struct cli *c, struct buf *b)
{
	const struct cli_option *o;
	struct buf line = { 0 };
	char left[128];
	size_t column = 0;

	cli_synopsis(c, &line);
	buf_put(&line, "", 1);
	buftext_printf(b, "usage: %s ", c->name);
	put_wrapped(b, line.failed ? "" : (const char *)line.p, b->len, b->len);
	buf_free(&line);
	buftext_str(b, "\n");
	put_wrapped(b, c->about, 0, 0);
	for (size_t i = 0; (o = cli_next_shown(c, &i)) != NULL;)
		if (o->kind != CLI_KIND_HEADING && o->help && left_of(o, left) + 2 <= COLUMN_MAX)
			column = MAX(column, left_of(o, left) + 2);
	if (c->n_options && c->options[0].kind != CLI_KIND_HEADING)
		buftext_str(b, "\n");
	for (size_t i = 0; (o = cli_next_shown(c, &i)) != NULL;) {
		if (o->kind == CLI_KIND_HEADING)
			buftext_printf(b, "\n%s:\n", o->help);
		else if (o->help)
			put_row(b, o, column);
	}
	if (!c->status)
		return;
	buftext_str(b, "\n");
	put_wrapped(b, c->status, 0, 0);
}

int cli_main(const struct cli *c, int argc, char *argv[], void *opts, int (*run)(void *opts, struct err *e))
{
	struct err e = { 0 };
	int status;

	if (!cli_parse(c, argc, argv, opts, &status))
		return status;
	status = run(opts, &e);
	cli_free(c, opts);
	if (status == CLI_FAILED && e.code)
		cli_error(c, &e);
	return cli_finish(c, status);
}
