/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of symbols/print.h. With an option it writes a capture of chosen waits instead, for other tests:
 *
 *   print --make CAPTURE [cut] <WAITS
 *
 * Each line of WAITS is a wait, or a sample of a thread that ran, of seven fields with tabs between them:
 *
 *   PID TID COMM FLAGS NANOSECONDS KERNEL USER
 *
 * FLAGS are letters: "c" a sample of a thread that ran, "k" a kernel thread, "x" a new image of the process,
 * "-" nothing. KERNEL and USER are stacks, innermost frame first, with ";" between frames; "-" was not to be
 * recorded, "!" could not be taken. A frame is MODULE|NAME, with more names after "|" if calls are inlined,
 * innermost first; a module without a name is code without one, and the kernel itself has no module; its
 * "schedule" is of the scheduler. "~RUNTIME|FUNCTION|FILE" is a function of a program that the frame before
 * executes. \xNN in any name is that byte. With "cut" the capture has no end.
 */
#include "base/bytes.h"
#include "base/tap.h"
#include "base/text.h"
#include "capture/writer.h"
#include "symbols/answer.h"
#include "symbols/print.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define T0 UINT64_C(1000000000)
#define K UINT64_C(0xffffffff81000000)
#define USER UINT64_C(0x7f0000000000)
#define MANY 512 /* of anything that a capture here has */
#define FUNCTION_BYTES 0x100
#define SCHEDULER 0x800000 /* from K */

struct maker {
	struct cap_writer *w;
	struct {
		uint32_t tgid;
	} procs[MANY];
	char *modules[MANY];
	char *names[MANY]; /* a function's whole text, "MODULE|NAME..." */
	bool mapped[MANY][MANY]; /* process, module */
	uint32_t n_procs, n_modules, n_names, n_stacks, n_scripts;
	uint64_t n_waits;
};

/* Decodes \xNN in place. */
static char *decoded(char *text)
{
	char *to = text;

	for (const char *p = text; *p; to++) {
		unsigned int byte;

		if (sscanf(p, "\\x%2x", &byte) == 1) {
			*to = (char)byte;
			p += 4;
		} else {
			*to = *p++;
		}
	}
	*to = '\0';
	return text;
}

/* The number of TEXT in LIST, which it becomes part of; *IS_NEW says whether it was not. */
static uint32_t number_of(char **list, uint32_t *n, const char *text, bool *is_new)
{
	uint32_t i = 0;

	while (i < *n && strcmp(list[i], text) != 0)
		i++;
	*is_new = i == *n && i < MANY;
	if (*is_new)
		list[(*n)++] = strdup(text);
	return MIN(i, MANY - 1U);
}

static void put_name(struct maker *m, uint32_t file, uint64_t offset, char *names)
{
	struct cap_name_frame frames[8] = { 0 };
	struct cap_name name = { .file = file,
		.offset = offset,
		.vaddr = offset,
		.symbol_offset = 0x10,
		.source = SYM_SYMTAB,
		.frames = frames };

	for (char *one; (one = strsep(&names, "|")) && name.n < ARRAY_LEN(frames); name.n++)
		frames[name.n] = (struct cap_name_frame){ .name = decoded(one), .linkage = "", .file = "" };
	cap_writer_name(m->w, &name);
}

static uint32_t module_of(struct maker *m, uint32_t proc, const char *path)
{
	bool is_new;
	uint32_t id = number_of(m->modules, &m->n_modules, path, &is_new);

	if (is_new)
		cap_writer_file(m->w,
			&(struct cap_file){
				.id = id, .flags = CAPTURE_FILE_DELETED, .inode = id + 1, .path = path });
	if (!m->mapped[proc][id])
		cap_writer_map(m->w, &(struct cap_map){ .proc = proc,
					     .file = id,
					     .prot = PROT_READ | PROT_EXEC,
					     .flags = MAP_PRIVATE,
					     .start = USER + ((uint64_t)id << 32),
					     .end = USER + ((uint64_t)id << 32) + (1 << 20) });
	m->mapped[proc][id] = true;
	return id;
}

/* The address of a call in the function FRAME. */
static uint64_t call_in(struct maker *m, uint32_t proc, char *frame, bool kernel)
{
	bool is_new, scheduler = kernel && strcmp(frame, "|schedule") == 0;
	uint32_t id = number_of(m->names, &m->n_names, frame, &is_new);
	uint64_t offset = (scheduler ? SCHEDULER : 0x1000 + (uint64_t)id * FUNCTION_BYTES) + 0x10;
	char *names = frame, *module = decoded(strsep(&names, "|"));
	uint32_t file;

	if (kernel && is_new && names && *names)
		cap_writer_ksym(m->w, &(struct cap_ksym){ K + offset - 0x10,
					      K + offset - 0x10 + FUNCTION_BYTES, decoded(names), module });
	if (kernel)
		return K + offset;
	file = module_of(m, proc, module);
	if (is_new && names)
		put_name(m, file, offset, names);
	return USER + ((uint64_t)file << 32) + offset;
}

/* Writes the stack TEXT and returns its id. */
static uint32_t put_stack(struct maker *m, uint32_t proc, char *text, bool kernel)
{
	uint64_t frames[64];
	struct cap_script_at scripts[64];
	struct cap_stack s = { .id = m->n_stacks++,
		.kind = kernel ? CAPTURE_STACK_KERNEL : CAPTURE_STACK_USER,
		.verdict =
			strcmp(text, "-") == 0 || strcmp(text, "!") == 0 ? VERDICT_FAILED : VERDICT_COMPLETE,
		.reason = text[0] == '-'   ? REASON_NOT_RECORDED
			  : text[0] == '!' ? REASON_EXITING
					   : REASON_NONE,
		.frames = frames,
		.scripts = scripts };
	char *frame;

	while (s.verdict == VERDICT_COMPLETE && (frame = strsep(&text, ";")) && s.len < 64 &&
		s.n_scripts < 64) {
		if (frame[0] == '~') {
			struct cap_script c = { .id = m->n_scripts++, .first_line = 1, .line = 2 };

			frame++;
			c.runtime = decoded(strsep(&frame, "|"));
			c.function = decoded(strsep(&frame, "|"));
			c.file = decoded(frame);
			cap_writer_script(m->w, &c);
			scripts[s.n_scripts++] = (struct cap_script_at){ .at = s.len - 1, .frame = c.id };
			continue;
		}
		/* of a caller it is the return address */
		frames[s.len] = call_in(m, proc, frame, kernel) + (kernel || s.len);
		s.len++;
	}
	cap_writer_stack(m->w, &s);
	return s.id;
}

static uint32_t proc_of(struct maker *m, uint32_t tgid, const char *comm, const char *flags)
{
	const uint32_t id = m->n_procs;

	for (uint32_t i = id; i-- > 0 && !strchr(flags, 'x');)
		if (m->procs[i].tgid == tgid)
			return i;
	m->procs[m->n_procs++].tgid = tgid;
	cap_writer_proc(m->w, &(struct cap_proc){ .id = id,
				      .tgid = tgid,
				      .ns_tgid = tgid,
				      .flags = strchr(flags, 'k') ? CAPTURE_PROC_KTHREAD : 0,
				      .comm = comm,
				      .exe = "" });
	return id;
}

/* False if LINE is not a wait. */
static bool put_wait(struct maker *m, char *line)
{
	char *field[7];
	struct cap_sample s = {
		.state = 1, .count = 1, .first_ns = T0 + m->n_waits, .last_ns = T0 + m->n_waits
	};

	for (size_t i = 0; i < ARRAY_LEN(field); i++)
		field[i] = strsep(&line, "\t");
	if (!field[6] || line || m->n_procs == MANY)
		return false;
	decoded(field[2]);
	s.tid = (uint32_t)strtoul(field[1], NULL, 10);
	s.total_ns = s.max_ns = strtoull(field[4], NULL, 10);
	s.flags = strchr(field[3], 'c') ? CAPTURE_SAMPLE_ON_CPU : 0;
	s.proc = proc_of(m, (uint32_t)strtoul(field[0], NULL, 10), field[2], field[3]);
	cap_writer_thread(m->w, &(struct cap_thread){ s.proc, s.tid, s.tid, field[2], 0 });
	s.kstack = put_stack(m, s.proc, field[5], true);
	s.ustack = put_stack(m, s.proc, field[6], false);
	cap_writer_sample(m->w, &s);
	m->n_waits++;
	return true;
}

static int make(const char *path, FILE *waits, bool cut)
{
	const struct cap_host h = { .sysname = "Linux",
		.release = "6.18.0",
		.version = "#1",
		.machine = "x86_64",
		.hostname = "there",
		.boot_id = "another",
		.recorder = "print",
		.start_mono_ns = T0 + 123456789 };
	struct maker *m = calloc(1, sizeof(*m));
	struct err e = { 0 };
	char *line = NULL, text[64];
	size_t room = 0;
	int rc = m ? cap_writer_open(path, true, &m->w, &e) : -ENOMEM;

	if (rc == 0) {
		cap_writer_host(m->w, &h);
		snprintf(text, sizeof(text), "%" PRIx64 "-%" PRIx64, K + SCHEDULER,
			K + SCHEDULER + FUNCTION_BYTES);
		cap_writer_option(m->w, &(struct cap_option){ CAPTURE_OPTION_SCHEDULER, text });
	}
	for (ssize_t n; rc == 0 && (n = getline(&line, &room, waits)) > 0;) {
		line[n - (line[n - 1] == '\n')] = '\0';
		if (!put_wait(m, line))
			rc = err_set(&e, -EINVAL, "this is not a wait: '%s'", line);
	}
	if (rc == 0 && cut)
		rc = cap_writer_flush(m->w, 2 * T0, &e);
	else if (rc == 0)
		rc = cap_writer_finish(m->w, &(struct cap_trailer){ .stop_ns = 3 * T0, .why = "made" }, &e);
	if (rc)
		fprintf(stderr, "print: %s\n", e.msg);
	for (uint32_t i = 0; m && i < MANY; i++) {
		free(m->modules[i]);
		free(m->names[i]);
	}
	if (m)
		cap_writer_close(m->w);
	free(m);
	free(line);
	return rc ? 2 : 0;
}

/* --- tests */

/* Writes the waits TEXT as text for viewers to FD. */
static int print_for_viewers(const char *text, int fd)
{
	char path[] = "/tmp/unit-print.XXXXXX";
	int made = mkstemp(path);
	_cleanup_fclose_ FILE *waits = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	const struct resolve_opts o = { .files = { .no_cache = true } };
	struct wait_printer_record records[8] = { 0 };
	struct wait_printer w = { .records = records, .format = WAIT_PERF };
	struct cap_reader *c = NULL;
	struct out out = { 0 };
	int rc = made < 0 || !waits ? -EIO : make(path, waits, false);

	rc = rc ? rc : cap_reader_load(path, &c, NULL);
	rc = rc ? rc : resolve_open(c, &o, &w.r, NULL);
	rc = rc ? rc : stackids_new(c, w.r, &w.stacks);
	for (size_t i = 0; rc == 0 && i < MIN(c->n_samples, ARRAY_LEN(records)); i++) {
		struct wait_printer_record *r = &records[w.n_records++];

		r->sample = &c->samples[i];
		rc = stackids_kernel(w.stacks, r->sample, &r->kernel);
		rc = rc ? rc : stackids_user(w.stacks, r->sample, &r->user);
	}
	w.c = c;
	rc = rc ? rc : resolve_run(w.r, NULL);
	rc = rc ? rc : out_init(&out, fd, NULL);
	rc = rc ? rc : wait_printer_print(&w, &out, NULL);
	rc = rc ? rc : out_flush(&out, NULL);
	out_free(&out);
	stackids_free(w.stacks);
	resolve_close(w.r);
	cap_reader_free(c);
	unlink(path);
	close(made);
	return rc;
}

static void test_hostile_sums(struct tap *t)
{
	char waits[512], line[256];
	uint64_t last = 0, time, seconds, periods = 0, period;
	unsigned int micro, n = 0, descending = 0;
	_cleanup_fclose_ FILE *text = tmpfile();

	snprintf(waits, sizeof(waits),
		"1\t1\ta\t-\t%" PRIu64 "\t|f\t-\n1\t1\ta\t-\t%" PRIu64 "\t|g\t-\n1\t1\ta\t-\t%" PRIu64
		"\t|h\t-\n1\t1\tb\tx\t1\t|h\t-\n2\t2\tc\t-\t0\t|f\t-\n",
		UINT64_MAX, UINT64_MAX, UINT64_MAX / 2);
	if (!tap_ok(t, text && print_for_viewers(waits, fileno(text)) == 0,
		    "waits whose sum is too great for 64 bits are printed"))
		return;
	rewind(text);
	while (fgets(line, sizeof(line), text)) {
		if (sscanf(line, "%*s 1/1 [000] %" SCNu64 ".%6u: %" SCNu64, &seconds, &micro, &period) != 3)
			continue;
		time = seconds * 1000000 + micro;
		descending += time < last;
		last = time;
		n++;
		if (line[0] == 'a')
			periods += period / 1000000;
	}
	tap_ok(t, n > 9990 && n < 10010, "they have ten thousand samples in all: %u", n);
	tap_eq_u64(t, descending, 0, "times never descend");
	tap_eq_u64(t, last / 1000000, UINT64_MAX / 1000000000, "they end where numbers do");
	tap_ok(t, periods >= UINT64_MAX / 1000000 * 5 / 2 - n && periods <= UINT64_MAX / 1000000 * 5 / 2,
		"periods add up to the sum");
}

static void test_words(struct tap *t)
{
	static const char *const spaces[] = { "\xc2\xa0", "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x8a",
		"\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf", " " };
	static const char *const others[] = { "\xc3\xa9", "\xe2\x80\x8b", "\xe2\x82\xac", "\xf0\x9f\x90\xa7",
		"\xc2\xa1" };
	char got[64], want[64];

	for (size_t i = 0; i < ARRAY_LEN(spaces); i++) {
		size_t len = strlen(spaces[i]);

		for (size_t k = 0; k < len; k++)
			snprintf(want + 4 * k, 5, "\\x%02x", (unsigned char)spaces[i][k]);
		text_escape(got, sizeof(got), spaces[i], len, TEXT_WORD);
		tap_eq_str(t, got, want, "a word has no white space, of whatever kind");
		text_escape(got, sizeof(got), spaces[i], len, TEXT_LINE);
		tap_eq_str(t, got, spaces[i], "a line has it");
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		text_escape(got, sizeof(got), others[i], strlen(others[i]), TEXT_WORD);
		tap_eq_str(t, got, others[i], "a word has other characters");
	}
}

int main(int argc, char *argv[])
{
	struct tap t = { 0 };

	if ((argc == 3 || (argc == 4 && strcmp(argv[3], "cut") == 0)) && strcmp(argv[1], "--make") == 0)
		return make(argv[2], stdin, argc == 4);
	test_words(&t);
	test_hostile_sums(&t);
	return tap_done(&t);
}
