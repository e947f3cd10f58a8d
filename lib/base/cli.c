/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cli.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <string.h>

const char cli_version_string[] = "0.1.0";

/* One line "name: text" into BUF; returns its length. */
static size_t put_line(char *buf, size_t cap, const char *name, const char *kind, const char *text)
{
	size_t len = (size_t)snprintf(buf, cap, "%s: %s", name, kind);

	len += text_escape(buf + len, cap - len - 1, text, strlen(text), TEXT_LINE);
	buf[len++] = '\n';
	return len;
}

static void write_stderr(const char *buf, size_t len)
{
	/* nothing is left to be done when stderr itself fails */
	ssize_t ignored = write(STDERR_FILENO, buf, len);

	(void)ignored;
}

int cli_usage(const struct cli *c, const char *fmt, ...)
{
	char msg[1024], line[TEXT_ESCAPED_MAX(sizeof(msg)) + 1024];
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	len = put_line(line, sizeof(line) - 768, c->name, "", msg);
	len += (size_t)snprintf(line + len, sizeof(line) - len, "usage: %s %s (see %s --help)\n", c->name,
		c->synopsis, c->name);
	write_stderr(line, MIN(len, sizeof(line) - 1));
	return CLI_USAGE;
}

int cli_bad_option(const struct cli *c, int opt, char *const argv[])
{
	const char *arg = optind > 0 && argv[optind - 1] ? argv[optind - 1] : "";

	if (opt == ':' && strncmp(arg, "--", 2) == 0)
		return cli_usage(c, "option '%s' needs an argument", arg);
	if (opt == ':')
		return cli_usage(c, "option '-%c' needs an argument", optopt);
	if (optopt && strncmp(arg, "--", 2) != 0)
		return cli_usage(c, "unknown option '-%c'", optopt);
	if (optopt)
		return cli_usage(c, "option '%s' takes no argument", arg);
	return cli_usage(c, "unknown or ambiguous option '%s'", arg);
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

int cli_help(const struct cli *c)
{
	printf("usage: %s %s\n%s", c->name, c->synopsis, c->help);
	return cli_finish(c, CLI_OK);
}

int cli_version(const struct cli *c)
{
	printf("%s (stacktools) %s\n", c->name, cli_version_string);
	return cli_finish(c, CLI_OK);
}

int cli_finish(const struct cli *c, int status)
{
	bool failed = ferror(stdout) != 0;
	int code = 0;

	errno = 0;
	if (fflush(stdout) != 0)
		failed = true, code = errno;
	/*
	 * EBADF with nothing written is still a failure: the user closed
	 * stdout and would take silence for an empty result.
	 */
	if (fclose(stdout) != 0)
		failed = true, code = code ? code : errno;
	if (!failed)
		return status;
	cli_warn(c, "cannot write the result to standard output: %s", strerror(code ? code : EIO));
	return CLI_FAILED;
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

int cli_duration(const char *s, uint64_t default_unit_ns, uint64_t *ret_ns, struct err *e)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
		{ "m", 60000000000 } };
	uint64_t unit = default_unit_ns;
	long double v;
	char *end;

	/* strtold() would take "inf", "0x1p3" and signs, which no one means here */
	if (!isdigit((unsigned char)s[0]) || (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')))
		return err_set(e, -EINVAL, "'%s' is not a time such as 10us, 5ms or 1.5s", s);
	v = strtold(s, &end);
	if (*end) {
		size_t i;

		for (i = 0; i < ARRAY_LEN(units) && strcmp(end, units[i].name) != 0; i++)
			;
		if (i == ARRAY_LEN(units))
			return err_set(e, -EINVAL, "'%s' is not a time such as 10us, 5ms or 1.5s", s);
		unit = units[i].ns;
	}
	v *= (long double)unit;
	if (v >= 9.2e18L)
		return err_set(e, -ERANGE, "'%s' is out of range: at most 292 years", s);
	*ret_ns = (uint64_t)(v + 0.5L);
	return 0;
}
