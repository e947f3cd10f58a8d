/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cli.h"
#include "base/tap.h"
#include "base/text.h"

#include <errno.h>
#include <string.h>

static void size_is(struct tap *t, const char *s, uint64_t want)
{
	uint64_t v = 0;
	struct err e = { 0 };
	int rc = cli_size(s, 1, UINT64_MAX, &v, &e);

	if (!tap_ok(t, rc == 0 && v == want, "'%s' is %llu bytes", s, (unsigned long long)want))
		tap_diag("%d %s", rc, e.msg);
}

static void refused(struct tap *t, const char *s, uint64_t min, uint64_t max, int code, const char *message)
{
	uint64_t v = 7;
	struct err e = { 0 };
	int rc = cli_size(s, min, max, &v, &e);

	if (!tap_ok(t, rc == code && v == 7 && strstr(e.msg, message),
		    "'%s' is refused in the range %llu to %llu: %s", s, (unsigned long long)min,
		    (unsigned long long)max, message))
		tap_diag("%d %s", rc, e.msg);
}

static void time_is(struct tap *t, const char *s, uint64_t want_ns)
{
	uint64_t v = 0;
	struct err e = { 0 };
	int rc = cli_duration(s, 1000000000, &v, &e);

	if (!tap_ok(t, rc == 0 && v == want_ns, "'%s' is %llu ns", s, (unsigned long long)want_ns))
		tap_diag("%d %s: %llu", rc, e.msg, (unsigned long long)v);
}

static void no_time(struct tap *t, const char *s, int code, const char *message)
{
	uint64_t v = 7;
	struct err e = { 0 };
	int rc = cli_duration(s, 1000000000, &v, &e);

	if (!tap_ok(t, rc == code && v == 7 && strstr(e.msg, message), "'%s' is refused: %s", s, message))
		tap_diag("%d %s", rc, e.msg);
}

static void durations(struct tap *t)
{
	static const char *const no[] = { "", ".", "1.", ".s", "1.s", "s", "h", "-1", "+1", " 1", "1 s",
		"1s ", "1,5", "1e3", "0x10", "0x1p3", "inf", "nan", "1S", "1min", "1d", "1y", "1hs", "1h30m",
		"1.5.2", "1..5", "ms5" };

	time_is(t, "5", 5000000000);
	time_is(t, "0", 0);
	time_is(t, "0.0s", 0);
	time_is(t, "1h", 3600000000000);
	time_is(t, "90m", 5400000000000);
	time_is(t, "1.5h", 5400000000000);
	time_is(t, "1.5s", 1500000000);
	time_is(t, ".2", 200000000);
	time_is(t, ".5m", 30000000000);
	time_is(t, "007", 7000000000);
	time_is(t, "500ms", 500000000);
	time_is(t, "10us", 10000);
	time_is(t, "12ns", 12);
	time_is(t, "0.1", 100000000);
	time_is(t, "1.0000000004", 1000000000);
	time_is(t, "1.0000000006", 1000000001);
	time_is(t, ".333333333333333333333333333333333333h", 1200000000000);
	time_is(t, "9223372036854775807ns", INT64_MAX);
	time_is(t, "2562047h", UINT64_C(2562047) * 3600000000000);
	for (size_t i = 0; i < ARRAY_LEN(no); i++)
		no_time(t, no[i], -EINVAL, "is not a time such as");
	no_time(t, "9223372036854775808ns", -ERANGE, "out of range: at most 292 years");
	no_time(t, "9223372036854775807.5ns", -ERANGE, "out of range");
	no_time(t, "2562048h", -ERANGE, "out of range");
	/* 2^64 ns and 1 s more, in units that would wrap to a small number; and beyond 64 bits */
	no_time(t, "18446744074.709551616", -ERANGE, "out of range");
	no_time(t, "5124096h", -ERANGE, "out of range");
	no_time(t, "18446744073709551616ns", -ERANGE, "out of range");
	no_time(t, "99999999999999999999999999", -ERANGE, "out of range");
}

/* --- a table with a row of each kind --- */

enum colour { RED, GREEN, BLUE };
static const char *const colours[] = { "red", "green", "blue", NULL };

struct opts {
	bool flag, other;
	enum colour colour;
	int mode;
	uint32_t small;
	uint64_t large, size, ns, address;
	const char *text, *file, *dir, *operand;
	struct cli_list pids, tids, texts, addresses;
	uint64_t long_ns;
	char *const *command;
	char called[16];
};

static int call(const char *arg, void *opts, struct err *e)
{
	struct opts *o = opts;

	if (strlen(arg) >= sizeof(o->called))
		return err_set(e, -EINVAL, "'%s' is too long", arg);
	strcpy(o->called, arg);
	return 0;
}

static int check(const struct cli *c, void *opts)
{
	struct opts *o = opts;

	return o->flag && o->other ? cli_usage(c, "-f is not for --other") : CLI_OK;
}

static const struct cli_option rows[] = {
	{ CLI_HEADING("Some") },
	{ 'f', "flag", NULL, "a flag", CLI_FLAG(struct opts, flag) },
	{ 'g', "other", NULL, "another one", CLI_FLAG(struct opts, other) },
	{ 0, "colour", "COLOUR", "it's [red]: green or blue", CLI_WORD(struct opts, colour, colours) },
	{ 'a', "one", NULL, "the first mode", CLI_VALUE(struct opts, mode, 1), .group = 1 },
	{ 'b', "two", NULL, "the second mode", CLI_VALUE(struct opts, mode, 2), .group = 1 },
	{ 0, "three", "FILE", "the third mode", CLI_FILE(struct opts, file), .group = 1 },
	{ 'n', "small", "N", "four bytes", CLI_NUMBER(struct opts, small) },
	{ 0, "large", "N", "eight bytes, in a range", CLI_NUMBER(struct opts, large), .min = 2, .max = 9 },
	{ CLI_HEADING("Others") },
	{ 's', "size", "SIZE", "bytes", CLI_SIZE(struct opts, size), .min = 1024, .max = 1 << 20 },
	{ 'd', "duration", "TIME", "a time", CLI_DURATION(struct opts, ns, 1000000000) },
	{ 0, "address", "ADDR", "an address", CLI_ADDRESS(struct opts, address), .min = 1 },
	{ 0, "text", "TEXT", "a text", CLI_TEXT(struct opts, text) },
	{ 0, "dir", "DIR", "a folder", CLI_DIR(struct opts, dir) },
	{ 'p', "pid", "PID", "a process", CLI_PIDS(struct opts, pids) },
	{ 0, "tid", "TID", "at most three", CLI_TIDS(struct opts, tids), .times = 3 },
	{ 0, "long", "TIME", "not 0", CLI_DURATION(struct opts, long_ns, 1), .min = 2 },
	{ 't', "texts", "TEXT", "no more than two of these", CLI_TEXTS(struct opts, texts), .times = 2 },
	{ 0, "call", "WORD", "a function of its own", CLI_CALL(call) },
	{ .arg = "FILE", CLI_FILE(struct opts, operand), .required = true },
	{ .arg = "ADDR", .help = "the last operand", CLI_ADDRESSES(struct opts, addresses) },
};
static const struct cli table = {
	.name = "tool", .about = "About it.", .status = "Status: 0.", CLI_OPTIONS(rows), .check = check
};

static const struct cli_option command_rows[] = {
	{ 'f', "flag", NULL, "a flag", CLI_FLAG(struct opts, flag) },
	{ .arg = "COMMAND", .help = "what is run", CLI_COMMAND(struct opts, command) },
};
static const struct cli command_table = { .name = "runner", .about = "About it.", CLI_OPTIONS(command_rows) };

/* Parse LINE, split at blanks, with stderr in SAID. O points into WORDS, which the next call overwrites. */
static bool parse(const struct cli *c, const char *line, struct opts *o, int *status, char said[4096])
{
	static char words[512];
	static char *argv[64];
	char name[] = "/tmp/unit-cli.XXXXXX", *save;
	int fd = mkstemp(name), saved = dup(STDERR_FILENO), argc = 1;
	bool go_on;
	ssize_t len;

	snprintf(words, sizeof(words), "%s", line);
	argv[0] = name;
	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(w, "''") == 0 ? w + 2 : w;
	argv[argc] = NULL;
	unlink(name);
	*o = (struct opts){ 0 };
	dup2(fd, STDERR_FILENO);
	go_on = cli_parse(c, argc, argv, o, status);
	dup2(saved, STDERR_FILENO);
	len = pread(fd, said, 4095, 0);
	said[MAX(len, 0)] = '\0';
	close(fd);
	close(saved);
	return go_on;
}

/* LINE is refused with status 64 and two lines, the first one with MESSAGE; no list is left allocated. */
static void wrong(struct tap *t, const struct cli *c, const char *line, const char *message)
{
	char said[4096], want[1024];
	struct opts o;
	int status = -1;
	bool go_on = parse(c, line, &o, &status, said);
	const char *end = strchr(said, '\n');

	snprintf(want, sizeof(want), "%s: %s\nusage: %s ", c->name, message, c->name);
	if (!tap_ok(t,
		    !go_on && status == CLI_USAGE && strncmp(said, want, strlen(want)) == 0 && end &&
			    strchr(end + 1, '\n') == said + strlen(said) - 1 && !o.pids.p && !o.texts.p,
		    "'%s' is refused: %s", line, message))
		tap_diag("%d %s", status, said);
}

/* LINE is accepted. *O has its values. Release the lists with cli_free(). */
static void right(struct tap *t, const struct cli *c, const char *line, struct opts *o)
{
	char said[4096];
	int status = -1;

	if (!tap_ok(t, parse(c, line, o, &status, said) && status == CLI_OK && !*said, "'%s' is accepted",
		    line))
		tap_diag("%d %s", status, said);
}

static void values(struct tap *t)
{
	struct opts o;

	right(t, &table, "FILE", &o);
	tap_ok(t,
		strcmp(o.operand, "FILE") == 0 && !o.flag && !o.mode && !o.file && !o.pids.n &&
			!o.addresses.n,
		"an option that is not given does not change its member");
	right(t, &table, "-f --colour blue -b -n 4294967295 --large=9 -s 2K -d 1.5 --address 0xFf FILE", &o);
	tap_ok(t, o.flag && !o.other, "a flag sets its own member");
	tap_ok(t, o.colour == BLUE, "a word sets its index in the list");
	tap_ok(t, o.mode == 2, "an option with a fixed value sets it");
	tap_ok(t, o.small == UINT32_MAX && o.large == 9, "numbers of four and of eight bytes are set");
	tap_ok(t, o.size == 2048 && o.ns == 1500000000 && o.address == 255,
		"a size, a time and an address are set");
	right(t, &table, "FILE --text '' --dir /x --call abc -p 1 --pid=4194304 -t x -t y 10 fF", &o);
	tap_ok(t, strcmp(o.text, "") == 0 && strcmp(o.dir, "/x") == 0 && strcmp(o.called, "abc") == 0,
		"texts are set, a callback is called, and options may follow an operand");
	tap_ok(t, o.pids.n == 2 && ((uint32_t *)o.pids.p)[0] == 1 && ((uint32_t *)o.pids.p)[1] == 4194304,
		"a list has all its numbers, in order");
	tap_ok(t, o.texts.n == 2 && strcmp(((const char **)o.texts.p)[1], "y") == 0,
		"a list has all its texts");
	tap_ok(t,
		o.addresses.n == 2 && ((uint64_t *)o.addresses.p)[0] == 16 &&
			((uint64_t *)o.addresses.p)[1] == 255,
		"the second operand takes all arguments after the first");
	cli_free(&table, &o);
	tap_ok(t, !o.pids.p && !o.pids.n && !o.addresses.p, "cli_free() releases the lists");
	right(t, &table, "-p 1,22,333 -p 4 --pid=5,6 --tid 7,8,9 FILE", &o);
	tap_ok(t,
		o.pids.n == 6 && ((uint32_t *)o.pids.p)[0] == 1 && ((uint32_t *)o.pids.p)[2] == 333 &&
			((uint32_t *)o.pids.p)[3] == 4 && ((uint32_t *)o.pids.p)[5] == 6,
		"IDs may have commas between them, in an option that is given several times");
	tap_ok(t, o.tids.n == 3 && ((uint32_t *)o.tids.p)[2] == 9, "as many of them as the table allows");
	cli_free(&table, &o);
	right(t, &table, "-t 1,2 FILE", &o);
	tap_ok(t, o.texts.n == 1 && strcmp(*(const char **)o.texts.p, "1,2") == 0,
		"a comma does not separate texts");
	cli_free(&table, &o);
	right(t, &table, "-aa --one --fl -- -f", &o);
	tap_ok(t, o.mode == 1 && o.flag && strcmp(o.operand, "-f") == 0,
		"an option may be repeated and abbreviated; after -- there are none");
	right(t, &table, "-n1 -n 2 FILE", &o);
	tap_ok(t, o.small == 2, "the last of repeated options applies");
	right(t, &table, "--three x FILE", &o);
	tap_ok(t, strcmp(o.file, "x") == 0, "an option with an argument may belong to a group");
}

static void errors(struct tap *t)
{
	wrong(t, &table, "", "no FILE given");
	wrong(t, &table, "--nope FILE", "unknown option '--nope'");
	wrong(t, &table, "--nope=1 FILE", "unknown option '--nope'");
	wrong(t, &table, "-fz FILE", "unknown option '-z'");
	wrong(t, &table, "--t FILE", "ambiguous option '--t': --two, --three, --text, --tid, --texts");
	wrong(t, &table, "--flag=1 FILE", "option '--flag' takes no argument");
	wrong(t, &table, "--fl=1 FILE", "option '--flag' takes no argument");
	wrong(t, &table, "FILE -n", "option '-n' needs an argument");
	wrong(t, &table, "FILE -fn", "option '-n' needs an argument");
	wrong(t, &table, "FILE --colo", "option '--colour' needs an argument");
	wrong(t, &table, "--colour pink FILE", "option '--colour': 'pink' is not one of red, green, blue");
	wrong(t, &table, "--colour re FILE", "option '--colour': 're' is not one of red, green, blue");
	wrong(t, &table, "--colour '' FILE", "option '--colour': '' is not one of red, green, blue");
	wrong(t, &table, "-a -b FILE", "--one and --two exclude one another");
	wrong(t, &table, "--three x --one FILE", "--three and --one exclude one another");
	wrong(t, &table, "-n x FILE", "option '-n': 'x' is not a whole number");
	wrong(t, &table, "-n -1 FILE", "option '-n': '-1' is not a whole number");
	wrong(t, &table, "--small 4294967296 FILE",
		"option '--small': '4294967296' is out of range: 0 to 4294967295");
	wrong(t, &table, "--large 1 FILE", "option '--large': '1' is out of range: 2 to 9");
	wrong(t, &table, "--large 10 FILE", "option '--large': '10' is out of range: 2 to 9");
	wrong(t, &table, "-s 1023 FILE", "option '-s': '1023' is out of range: 1024 to 1048576 bytes");
	wrong(t, &table, "-d soon FILE",
		"option '-d': 'soon' is not a time such as 10us, 500ms, 1.5s, 90m or 1h");
	wrong(t, &table, "-d '' FILE", "option '-d': '' is not a time such as 10us, 500ms, 1.5s, 90m or 1h");
	wrong(t, &table, "-d 300000000h FILE",
		"option '-d': '300000000h' is out of range: at most 292 years");
	wrong(t, &table, "--long 1 FILE", "option '--long': '1' is out of range: 2 ns at least");
	wrong(t, &table, "-p '' FILE", "option '-p': it is empty");
	wrong(t, &table, "-p , FILE", "option '-p': ',' has an empty element");
	wrong(t, &table, "-p 1, FILE", "option '-p': '1,' has an empty element");
	wrong(t, &table, "-p ,1 FILE", "option '-p': ',1' has an empty element");
	wrong(t, &table, "-p 1,,2 FILE", "option '-p': '1,,2' has an empty element");
	wrong(t, &table, "-p 1,x,2 FILE", "option '-p': 'x' is not a whole number");
	wrong(t, &table, "-p 1,0 FILE", "option '-p': '0' is out of range: 1 to 4194304");
	wrong(t, &table, "--tid 1,2,3,4 FILE", "option '--tid': more than 3 given");
	wrong(t, &table, "--tid 1,2 --tid 3,4 FILE", "option '--tid': more than 3 given");
	wrong(t, &table, "--address 0x FILE",
		"option '--address': '0x' is not an address: hex digits, 16 at most");
	wrong(t, &table, "--address 12345678123456781 FILE",
		"option '--address': '12345678123456781' is not an address: hex digits, 16 at most");
	wrong(t, &table, "--address 0 FILE", "option '--address': '0' is out of range: 0x1 at least");
	wrong(t, &table, "-p 1 -p 0 FILE", "option '-p': '0' is out of range: 1 to 4194304");
	wrong(t, &table, "-p 4194305 FILE", "option '-p': '4194305' is out of range: 1 to 4194304");
	wrong(t, &table, "-t 1 -t 2 --texts 3 FILE", "option '--texts': given more than 2 times");
	wrong(t, &table, "--call aaaaaaaaaaaaaaaa FILE", "option '--call': 'aaaaaaaaaaaaaaaa' is too long");
	wrong(t, &table, "-p 1 FILE 12 g", "ADDR: 'g' is not an address: hex digits, 16 at most");
	wrong(t, &table, "-fg -p 1 FILE", "-f is not for --other");
	wrong(t, &table, "--text \033 --nope\033 FILE", "unknown option '--nope\\x1b'");
	wrong(t, &table, "--completion=csh", "option '--completion': 'csh' is not one of bash, zsh, fish");
	wrong(t, &table, "--completion=bash FILE", "unknown option '--completion'");
}

static void commands(struct tap *t)
{
	struct opts o;

	right(t, &command_table, "-f", &o);
	tap_ok(t, o.flag && !o.command, "without -- there is no command");
	right(t, &command_table, "-f --", &o);
	tap_ok(t, !o.command, "with nothing after -- there is no command");
	right(t, &command_table, "-- ls -f -- x", &o);
	tap_ok(t,
		!o.flag && o.command && strcmp(o.command[0], "ls") == 0 && strcmp(o.command[1], "-f") == 0 &&
			strcmp(o.command[2], "--") == 0 && strcmp(o.command[3], "x") == 0 && !o.command[4],
		"a command has all arguments after --, and ends in NULL");
	wrong(t, &command_table, "ls -- x", "unexpected argument 'ls': a command comes after --");
	wrong(t, &command_table, "-f ls", "unexpected argument 'ls': a command comes after --");
}

static void text_is(struct tap *t, struct buf *b, const char *want, const char *name)
{
	buf_put(b, "", 1);
	if (!tap_ok(t, !b->failed && strcmp((const char *)b->p, want) == 0, "%s", name))
		tap_diag("%s", (const char *)b->p);
	buf_free(b);
}

static void texts(struct tap *t)
{
	static const char help[] = "usage: tool [-fg] [-a | -b | --three FILE] [-n N] [-s SIZE] [-d TIME]\n"
				   "            [-p PID]... [-t TEXT]... [OPTION]... FILE [ADDR]...\n"
				   "\n"
				   "About it.\n"
				   "\n"
				   "Some:\n"
				   "  -f, --flag           a flag\n"
				   "  -g, --other          another one\n"
				   "      --colour COLOUR  it's [red]: green or blue\n"
				   "  -a, --one            the first mode\n"
				   "  -b, --two            the second mode\n"
				   "      --three FILE     the third mode\n"
				   "  -n, --small N        four bytes\n"
				   "      --large N        eight bytes, in a range\n"
				   "\n"
				   "Others:\n"
				   "  -s, --size SIZE      bytes\n"
				   "  -d, --duration TIME  a time\n"
				   "      --address ADDR   an address\n"
				   "      --text TEXT      a text\n"
				   "      --dir DIR        a folder\n"
				   "  -p, --pid PID        a process\n"
				   "      --tid TID        at most three\n"
				   "      --long TIME      not 0\n"
				   "  -t, --texts TEXT     no more than two of these\n"
				   "      --call WORD      a function of its own\n"
				   "  ADDR                 the last operand\n"
				   "  -h, --help           print this text\n"
				   "  -V, --version        print the version\n"
				   "\n"
				   "Status: 0.\n";
	static const struct cli_option wide_rows[] = {
		{ 0, "a-name-of-an-option", "ARGUMENT", "a text", CLI_TEXT(struct opts, text) },
		{ 'f', "flag", NULL,
			"sixty-three columns are what is left of this line, and this was\nand a line",
			CLI_FLAG(struct opts, flag) },
		{ 'g', "other", NULL, "sixty-three columns are what is left of this line, and this was!",
			CLI_FLAG(struct opts, other) },
	};
	static const struct cli wide = { .name = "wide", .about = "About it.", CLI_OPTIONS(wide_rows) };
	struct buf b = { 0 };

	cli_help(&table, &b);
	text_is(t, &b, help, "--help has usage, headings, all options in one column, and the status");
	b = (struct buf){ 0 };
	cli_synopsis(&command_table, &b);
	text_is(t, &b, "[-f] [-- COMMAND [ARG]...]", "the synopsis shows the command");
	b = (struct buf){ 0 };
	cli_help(&wide, &b);
	text_is(t, &b,
		"usage: wide [-fg] [--a-name-of-an-option ARGUMENT]\n"
		"\n"
		"About it.\n"
		"\n"
		"      --a-name-of-an-option ARGUMENT\n"
		"                 a text\n"
		"  -f, --flag     sixty-three columns are what is left of this line, and this was\n"
		"                 and a line\n"
		"  -g, --other    sixty-three columns are what is left of this line, and this\n"
		"                 was!\n"
		"  -h, --help     print this text\n"
		"  -V, --version  print the version\n",
		"lines are at most 80 columns long, and a wide option has its own line");
}

int main(void)
{
	static const char *const no_size[] = { "", "M", "x", "-1", "+1", " 1", "1 M", "1.5M", "0x10", "1MM",
		"1MiBs", "1T", "1,000", "99999999999999999999" };
	struct tap t = { 0 };

	size_is(&t, "1", 1);
	size_is(&t, "4096", 4096);
	size_is(&t, "16K", 16384);
	size_is(&t, "16M", UINT64_C(16) << 20);
	size_is(&t, "3G", UINT64_C(3) << 30);
	size_is(&t, "18446744073709551615", UINT64_MAX);
	size_is(&t, "17179869183G", UINT64_C(17179869183) << 30);
	for (size_t i = 0; i < ARRAY_LEN(no_size); i++)
		refused(&t, no_size[i], 1, UINT64_MAX, i + 1 == ARRAY_LEN(no_size) ? -ERANGE : -EINVAL,
			i + 1 == ARRAY_LEN(no_size) ? "out of range" : "is not a size such as");
	refused(&t, "0", 1, 100, -ERANGE, "out of range: 1 to 100 bytes");
	refused(&t, "101", 1, 100, -ERANGE, "out of range");
	refused(&t, "1K", 1, 1023, -ERANGE, "out of range");
	refused(&t, "1023", 1024, 4096, -ERANGE, "out of range");
	/* 2^64 + 1 KiB, and 2^64: a shift that wraps would give small numbers */
	refused(&t, "18014398509481985K", 1, 4096, -ERANGE, "out of range");
	refused(&t, "17179869184G", 1, UINT64_MAX, -ERANGE, "out of range");
	durations(&t);
	values(&t);
	errors(&t);
	commands(&t);
	texts(&t);
	return tap_done(&t);
}
