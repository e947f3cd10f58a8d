/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../lib/self.h"
#include "base/tap.h"
#include "symbols/pool.h"
#include "system/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define JOBS 64

/* _exit(2), but without a sanitizer's leak check, whose system calls are not allowed. */
static void leave(int code)
{
	syscall(SYS_exit_group, code);
}

/* --- a substitute for sym_lookup(): max_bytes is a letter that says what to do --- */

/* Answer each address plus ADD with the name TEXT. */
static int answer(
	const struct sym_lookup_input *in, const char *text, uint64_t add, uint8_t **ret, size_t *len)
{
	struct sym_answer_build b;
	int rc;

	sym_answer_begin(&b);
	for (size_t i = 0; i < in->n_vaddrs; i++) {
		const struct sym_answer_addr a = {
			.vaddr = in->vaddrs[i] + add, .start = 1, .source = SYM_SYMTAB
		};
		const struct sym_answer_frame f = { .name = sym_answer_string(&b, text) };

		sym_answer_put(&b, &a, &f, 1);
	}
	rc = sym_answer_finish(&b, ret, len);
	sym_answer_end(&b);
	return rc;
}

static int first_words(const struct elffile *f, char *to, size_t cap)
{
	ssize_t n = f ? pread(f->fd, to, cap - 1, 0) : 0;

	to[n < 0 ? 0 : n] = 0;
	return 0;
}

/* The names are the first bytes of each file of the job, each followed by a slash. */
static int read_files(const struct sym_lookup_input *in, uint8_t **ret, size_t *len)
{
	char text[256] = "", one[32];

	for (int i = 0; i < 5; i++) {
		const struct elffile *const all[] = { in->elf, in->debug, in->alt, in->dwp,
			in->n_dwos ? in->dwos[0].file : NULL };

		first_words(all[i], one, sizeof(one));
		strcat(strcat(text, one), "/");
	}
	return answer(in, text, 0, ret, len);
}

static int eat_memory(struct err *e)
{
	for (uint64_t n = 0; n < UINT64_C(64) << 30; n += 1 << 20) {
		char *p = malloc(1 << 20);

		if (!p)
			return err_nomem(e, "a test");
		memset(p, 1, 1 << 20);
	}
	return err_set(e, -EINVAL, "memory has no end");
}

static int forge(const struct sym_lookup_input *in, uint64_t len, const char *why)
{
	struct sym_worker_record r = { .magic = SYM_WORKER_MAGIC, .len = len };

	(void)in;
	memset(r.why, why ? 0 : 'x', sizeof(r.why));
	if (pwrite(SYM_WORKER_OUT, &r, sizeof(r), 0) != sizeof(r))
		leave(7);
	leave(0);
	return 0;
}

static int nonsense(uint8_t **ret, size_t *len)
{
	*len = 200;
	*ret = calloc(1, *len);
	return *ret ? 0 : -ENOMEM;
}

static unsigned int served; /* jobs done by this process */

static int substitute(const struct sym_lookup_input *in, uint8_t **ret, size_t *len, struct err *e)
{
	volatile int one = 1;

	switch (in->max_bytes) {
	case 's':
		raise(SIGSEGV); /* not permitted either */
		break;
	case '0':
		/* cppcheck-suppress nullPointer */
		*(volatile char *)NULL = 1;
		break;
	case 'x':
		leave(3);
		break;
	case 'o':
		leave(open("/etc/passwd", O_RDONLY));
		break;
	case 'h':
		while (one)
			;
		break;
	case 'm':
		return eat_memory(e);
	case 'e':
		return err_set(e, -EBADMSG, "it is not such a file");
	case 'l':
		return answer(in, "lie", 1, ret, len);
	case 'n':
		return nonsense(ret, len);
	case 'b':
		return forge(in, UINT64_MAX, "");
	case 'B':
		return forge(in, 0, NULL);
	case 'f':
		return read_files(in, ret, len);
	case 'p':
		return answer(in, served++ ? "later" : "first", 0, ret, len);
	}
	return answer(in, "good", 0, ret, len);
}

/* --- */

static const uint64_t some[] = { 10, 20, 30 };

static struct sym_reader_job job(char what)
{
	return (struct sym_reader_job){
		.in = { .vaddrs = some, .n_vaddrs = ARRAY_LEN(some), .max_bytes = (unsigned char)what }
	};
}

/* The file of a small job, which only root can have written: such jobs share a process. */
static struct elffile *roots;

static struct sym_reader_job small_job(char what)
{
	struct sym_reader_job j = job(what);

	j.in.elf = roots;
	return j;
}

static const char *name_of(const struct sym_reader_job *j)
{
	const struct sym_answer_addr *a = j->bytes ? sym_answer_find(&j->answer, 20) : NULL;

	return a && a->n_frames ? sym_answer_text(&j->answer, j->answer.frames[a->first].name) : NULL;
}

static bool is_good(const struct sym_reader_job *j)
{
	const char *name = name_of(j);

	return name && !j->error && strcmp(name, "good") == 0;
}

static void release(struct sym_reader_job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(jobs[i].bytes);
}

/* The job BAD among good ones fails with CODE and WHY, and the good ones succeed. */
static void meets(struct tap *t, struct sym_reader_job bad, int code, const char *why, const char *name)
{
	/* a short limit if the job does not end; else a long one, because the machine may be busy */
	const struct sym_reader_opts o = {
		.jobs = 2, .seconds = code == -ETIMEDOUT ? 3 : 60, .memory_bytes = UINT64_C(256) << 20
	};
	struct sym_reader_job jobs[9];
	size_t good = 0;
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		jobs[i] = i == 4 ? bad : small_job('g');
	tap_ok(t,
		sym_reader_run_with(&o, substitute, jobs, ARRAY_LEN(jobs), NULL, NULL, &e) == 0 &&
			jobs[4].error == code && strstr(jobs[4].why, why) && !jobs[4].bytes,
		"%s", name);
	if (jobs[4].error != code || !strstr(jobs[4].why, why))
		tap_diag("%d '%s' %s", jobs[4].error, jobs[4].why, e.msg);
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		good += is_good(&jobs[i]);
	tap_eq_u64(t, good, 8, "a bad job does not affect the other jobs");
	release(jobs, ARRAY_LEN(jobs));
}

static void survives(struct tap *t, char what, int code, const char *why, const char *name)
{
	meets(t, job(what), code, why, name);
}

#ifdef __SANITIZE_ADDRESS__ /* the sanitizer's signal handler calls write(2) */
#define CRASH "system call"
#else
#define CRASH "killed by SIGSEGV"
#endif

static void is_attacked(struct tap *t)
{
	meets(t, small_job('0'), -EIO, CRASH, "a crash of a process with further jobs is reported");
	meets(t, small_job('h'), -ETIMEDOUT, "longer than 3 s",
		"an endless job in a process with further jobs ends after the time limit");
	survives(t, '0', -EIO, CRASH, "a crash is reported");
	survives(t, 's', -EIO, "system call", "a system call that is not permitted is reported");
	survives(t, 'o', -EIO, "system call", "opening a file is not permitted");
	survives(t, 'x', -EIO, "ended with status 3", "an exit without an answer is reported");
	survives(t, 'h', -ETIMEDOUT, "longer than 3 s", "an endless job ends after the time limit");
	survives(t, 'e', -EBADMSG, "it is not such a file", "an error comes with its message");
	survives(t, 'l', -EIO, "malformed", "an answer for other addresses is rejected");
	survives(t, 'n', -EIO, "malformed", "a malformed answer is rejected");
	survives(t, 'b', -EIO, "ended with status 0", "a record with a length beyond its data is rejected");
	survives(t, 'B', -EIO, "ended with status 0", "a record whose message is not terminated is rejected");
#ifndef __SANITIZE_ADDRESS__ /* under a sanitizer a failing malloc(3) ends the process */
	survives(t, 'm', -ENOMEM, "out of memory", "running out of memory is an error");
#endif
}

static size_t calls;

static void count_done(void *ctx, struct sym_reader_job *j)
{
	calls++;
	*(uint64_t *)ctx += j->bytes ? 1 : 0;
}

static void runs_many(struct tap *t)
{
	const unsigned int side_by_side[] = { 0, 1, 2, 8, 100 };

	for (size_t k = 0; k < ARRAY_LEN(side_by_side); k++) {
		const struct sym_reader_opts o = { .jobs = side_by_side[k] };
		struct sym_reader_job jobs[JOBS];
		uint64_t good = 0;

		for (size_t i = 0; i < JOBS; i++)
			jobs[i] = i % 3 ? small_job('g') : job('g');
		calls = 0;
		tap_ok(t,
			sym_reader_run_with(&o, substitute, jobs, JOBS, count_done, &good, NULL) == 0 &&
				good == JOBS && calls == JOBS,
			"of %d jobs, %u at a time, each is answered and reported once", JOBS,
			side_by_side[k]);
		release(jobs, JOBS);
	}
	tap_ok(t, sym_reader_run_with(NULL, substitute, NULL, 0, NULL, NULL, NULL) == 0,
		"running no jobs succeeds");
}

static struct elffile file_with(const char *text)
{
	struct elffile f = { .fd = memfd_create("file", MFD_CLOEXEC) };

	if (f.fd < 0 || write(f.fd, text, strlen(text)) < 0)
		abort();
	return f;
}

static void hands_over_files(struct tap *t)
{
	const struct elffile f[] = { file_with("one"), file_with("two"), file_with("three"),
		file_with("four"), file_with("five") };
	const struct sym_lookup_dwo dwo = { 7, &f[4] };
	struct sym_reader_job jobs[3] = { job('f'), job('f'), job('f') };

	jobs[0].in.elf = &f[0];
	jobs[0].in.debug = &f[1];
	jobs[0].in.alt = &f[2];
	jobs[0].in.dwp = &f[3];
	jobs[0].in.dwos = &dwo;
	jobs[0].in.n_dwos = 1;
	jobs[1].in.elf = &f[1];
	jobs[1].in.alt = &f[0];
	jobs[2].in.elf = &f[2];
	sym_reader_run_with(NULL, substitute, jobs, ARRAY_LEN(jobs), NULL, NULL, NULL);
	tap_eq_str(t, name_of(&jobs[0]), "one/two/three/four/five/", "a job receives all of its files");
	tap_eq_str(t, name_of(&jobs[1]), "two//one///", "a file can belong to several jobs");
	tap_eq_str(t, name_of(&jobs[2]), "three/////", "each job receives its own files");
	release(jobs, ARRAY_LEN(jobs));
	for (size_t i = 0; i < ARRAY_LEN(f); i++)
		close(f[i].fd);
}

/* Run three jobs whose debug file has MODE and OWNER. Returns how many ran in the process of another job. */
static size_t sharing(mode_t mode, uid_t owner)
{
	const struct sym_reader_opts o = { .jobs = 1 };
	struct sym_reader_job jobs[3] = { job('p'), job('p'), job('p') };
	const struct elffile f = file_with("written by whoever may");
	size_t later = 0;

	if (fchmod(f.fd, mode) != 0 || fchown(f.fd, owner, (gid_t)-1) != 0)
		abort();
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
		jobs[i].in.elf = roots;
		jobs[i].in.debug = &f;
	}
	sym_reader_run_with(&o, substitute, jobs, ARRAY_LEN(jobs), NULL, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++)
		later += name_of(&jobs[i]) && strcmp(name_of(&jobs[i]), "later") == 0;
	release(jobs, ARRAY_LEN(jobs));
	close(f.fd);
	return later;
}

static void keeps_apart(struct tap *t)
{
	if (geteuid() != 0)
		return;
	tap_eq_u64(t, sharing(0755, 0), 2, "files that only root can have written share a process");
	tap_eq_u64(t, sharing(0775, 0), 0, "files that their group can write to do not share a process");
	tap_eq_u64(t, sharing(0757, 0), 0, "files that everyone can write to do not share a process");
	tap_eq_u64(t, sharing(0755, 65534), 0, "files of another user do not share a process");
}

/* The real sym_lookup() on this program. */
static void reads_symbols(struct tap *t)
{
	struct elffile *f = NULL;
	struct sym_reader_job j = { .in = { .vaddrs = some, .n_vaddrs = ARRAY_LEN(some) } };
	struct err e = { 0 };

	if (elffile_open(AT_FDCWD, "/proc/self/exe", false, &f, &e) != 0)
		abort();
	j.in.elf = f;
	tap_ok(t, sym_reader_run(NULL, &j, 1, NULL, NULL, &e) == 0 && j.bytes && j.answer.head->symbols > 100,
		"the library's reader reads the symbols of an ELF file");
	tap_ok(t, j.bytes && sym_answer_find(&j.answer, 20)->reason == SYM_R_NO_SYMBOL,
		"an address without a symbol has the reason");
	tap_ok(t, j.memory_bytes > 0 && j.ns > 0, "time and memory of a job are reported");
	free(j.bytes);
	elffile_close(f);
}

int main(void)
{
	struct tap t = { 0 };
	size_t before = self_open_files();

	if (elffile_open(AT_FDCWD, "/bin/sh", false, &roots, NULL) != 0)
		abort();
	runs_many(&t);
	hands_over_files(&t);
	keeps_apart(&t);
	reads_symbols(&t);
	is_attacked(&t);
	elffile_close(roots);
	tap_eq_u64(&t, self_open_files(), before, "no descriptor is left open after all jobs");
	tap_ok(&t, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no process is left after all jobs");
	return tap_done(&t);
}
