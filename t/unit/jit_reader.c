/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "symbols/jit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static int file_of(const void *bytes, size_t len)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		exit(1);
	return fd;
}

static int ask(const char *text, size_t len, uint8_t kind, const uint64_t *addrs, size_t n,
	struct jit_reader_answer *a, struct err *e)
{
	int fd = file_of(text, len);
	int rc = jit_reader_ask(
		&(struct jit_reader_question){ .fd = fd, .kind = kind, .addrs = addrs, .n = n }, a, e);

	close(fd);
	return rc;
}

static void maps(struct tap *t)
{
	static const char text[] = "1000 100 outer\n1040 10 inner\nnonsense\n3000 10 elsewhere\n";
	static const uint64_t addrs[] = { 0x1004, 0x1008, 0x1048, 0x1090, 0x2000 };
	struct jit_reader_answer a;
	struct err e = { 0 };
	int rc = ask(text, sizeof(text) - 1, CAPTURE_JIT_PERFMAP, addrs, ARRAY_LEN(addrs), &a, &e);

	tap_ok(t, rc == 0 && a.n == 3, "each piece of a map that covers an address is reported once: %s",
		e.msg);
	if (rc || a.n != 3)
		return;
	tap_ok(t, a.jits[0].start == 0x1000 && a.jits[0].end == 0x1040 && a.jits[0].offset == 0,
		"the piece before a newer entry has its range");
	tap_eq_str(t, a.jits[0].name, "outer", "the piece before a newer entry has its name");
	tap_eq_str(t, a.jits[1].name, "inner", "the newer entry has its name");
	tap_ok(t,
		a.jits[2].start == 0x1050 && a.jits[2].offset == 0x50 && strcmp(a.jits[2].name, "outer") == 0,
		"the piece after a newer entry has its offset in the function");
	tap_ok(t,
		a.jits[0].kind == CAPTURE_JIT_PERFMAP && a.jits[0].from_ns == 0 &&
			a.jits[0].to_ns == UINT64_MAX,
		"pieces of a perf map have no times");
	tap_ok(t, a.bad == 1 && a.cut == 0, "malformed lines are counted");
	jit_reader_free(&a);
	rc = ask("", 0, CAPTURE_JIT_PERFMAP, addrs, ARRAY_LEN(addrs), &a, &e);
	tap_ok(t, rc == 0 && a.n == 0, "an empty map gives no names");
	jit_reader_free(&a);
	rc = ask(text, sizeof(text) - 1, CAPTURE_JIT_PERFMAP, addrs, 0, &a, &e);
	tap_ok(t, rc == 0 && a.n == 0, "a request without addresses gives no names");
	jit_reader_free(&a);
}

/* A dump of N loads of 256 bytes at 0x1000, at times 1, 2, 3 ...: its length. */
static size_t make_dump(char *to, uint32_t n)
{
	const uint32_t head[10] = { 0x4A695444, 1, 40 };
	size_t len = sizeof(head);

	memcpy(to, head, sizeof(head));
	for (uint32_t i = 0; i < n; i++) {
		const struct {
			uint32_t id, size;
			uint64_t time;
			uint32_t pid, tid;
			uint64_t vma, addr, len, index;
			char name[8];
		} r = { 0, 64, i + 1, 1, 1, 0x1000, 0x1000, 0x100, i, { 'f', (char)('0' + i % 10) } };

		memcpy(to + len, &r, sizeof(r));
		len += sizeof(r);
	}
	return len;
}

static void dumps(struct tap *t)
{
	static const uint64_t addrs[] = { 0x1004, 0x10ff, 0x1100 };
	static char bytes[40 + 100 * 64];
	struct jit_reader_answer a;
	struct err e = { 0 };
	int rc = ask(bytes, make_dump(bytes, 3), CAPTURE_JIT_JITDUMP, addrs, ARRAY_LEN(addrs), &a, &e);

	tap_ok(t, rc == 0 && a.n == 3, "all code that was at an address is reported: %s", e.msg);
	if (rc || a.n != 3)
		return;
	tap_ok(t,
		a.jits[0].from_ns == 1 && a.jits[0].to_ns == 2 && a.jits[2].from_ns == 3 &&
			a.jits[2].to_ns == UINT64_MAX,
		"the code of a jitdump has its times");
	tap_eq_str(t, a.jits[1].name, "f1", "the code of a jitdump has its names");
	jit_reader_free(&a);
	rc = ask(bytes, make_dump(bytes, 100), CAPTURE_JIT_JITDUMP, addrs, 1, &a, &e);
	tap_ok(t, rc == 0 && a.n == JIT_READER_VERSIONS_MAX && a.cut == 100 - JIT_READER_VERSIONS_MAX,
		"too many versions at one address are dropped and counted");
	tap_ok(t, rc == 0 && a.jits[a.n - 1].from_ns == 100, "the newest versions are kept");
	jit_reader_free(&a);
	rc = ask("not a dump at all, and longer than a header of one", 50, CAPTURE_JIT_JITDUMP, addrs, 1, &a,
		&e);
	tap_ok(t, rc == -EINVAL && strstr(e.msg, "jitdump") && !a.jits,
		"a file that is not a jitdump is -EINVAL, with a message");
}

static void failures(struct tap *t)
{
	static const uint64_t addrs[] = { 0x1004 };
	struct jit_reader_answer a;
	struct err e = { 0 };
	int pair[2], big = memfd_create("big", MFD_CLOEXEC), rc;

	if (pipe(pair) != 0 || ftruncate(big, (off_t)1 << 40) != 0)
		return;
	rc = jit_reader_ask(
		&(struct jit_reader_question){
			.fd = pair[0], .kind = CAPTURE_JIT_PERFMAP, .addrs = addrs, .n = 1 },
		&a, &e);
	tap_ok(t, rc == -EMEDIUMTYPE && !a.jits, "a pipe is refused: %s", e.msg);
	rc = jit_reader_ask(
		&(struct jit_reader_question){
			.fd = big, .kind = CAPTURE_JIT_PERFMAP, .addrs = addrs, .n = 1 },
		&a, &e);
	tap_ok(t, rc == -EFBIG, "a file of a terabyte is refused: %s", e.msg);
	tap_ok(t, waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "no process is left behind");
}

/* Nearly as many lines as a map may have. */
static void slow(struct tap *t)
{
	static const uint64_t addrs[] = { 0x1004 };
	struct jit_reader_answer a;
	struct err e = { 0 };
	int fd = memfd_create("slow", MFD_CLOEXEC), rc;
	char *line = malloc(1 << 20);

	for (size_t i = 0; line && i < (1 << 20); i += 8)
		memcpy(line + i, "1 1 abc\n", 8);
	for (int i = 0; line && i < 100; i++)
		if (write(fd, line, 1 << 20) < 0)
			break;
	free(line);
	rc = jit_reader_ask(
		&(struct jit_reader_question){
			.fd = fd, .kind = CAPTURE_JIT_PERFMAP, .addrs = addrs, .n = 1, .seconds = 600 },
		&a, &e);
	tap_ok(t, rc == 0 && a.n == 0, "a map of 13 million lines is read for one address: %s", e.msg);
	jit_reader_free(&a);
	close(fd);
}

/* --- answers of a compromised process --- */

static const uint64_t answered[] = { 0x1004, 0x2004 };
static const struct jit_reader_question question = { -1, CAPTURE_JIT_JITDUMP, answered, 2, 0 };

struct answer {
	struct jit_reader_head head;
	struct jit_reader_piece pieces[2];
	char strings[16];
};

static struct answer good_answer(void)
{
	return (struct answer){ { JIT_READER_MAGIC, 2, 16, 3, 4, 0, 0 },
		{ { 0x1000, 0x1100, 0, 1, 2, 1, 8, 9, 0 },
			{ 0x2000, 0x2100, 0x10, 5, UINT64_MAX, 3, 0, 0, 0 } },
		"\0a\0func\0file.js" };
}

/* As jit_reader_view(), but reads all of *RET: 1 if a piece is not consistent. */
static int view(const void *bytes, size_t len, struct jit_reader_answer *ret)
{
	char *copy = malloc(len ? len : 1); /* so that the sanitizers of SAN=1 see a read past the end */
	int rc;

	memcpy(copy, bytes, len);
	*ret = (struct jit_reader_answer){ 0 };
	rc = jit_reader_view(&question, copy, len, ret, NULL);
	free(copy);
	for (size_t i = 0; rc == 0 && i < ret->n; i++)
		if (!*ret->jits[i].name || strlen(ret->jits[i].file) > 16 ||
			ret->jits[i].start >= ret->jits[i].end)
			return 1;
	return rc;
}

static void lies(struct tap *t)
{
	struct answer good = good_answer(), bad = good;
	struct jit_reader_answer a;
	uint8_t *bytes = (uint8_t *)&bad;
	size_t wrong = 0, refused = 0;
	struct err e = { 0 };
	bool fine = view(&good, sizeof(good), &a) == 0 && a.n == 2 && strcmp(a.jits[0].name, "a") == 0 &&
		    strcmp(a.jits[0].file, "file.js") == 0 && strcmp(a.jits[1].name, "func") == 0;

	tap_ok(t, fine && a.bad == 3 && a.cut == 4, "a valid answer is accepted unchanged");
	jit_reader_free(&a);
	for (size_t len = 0; len < sizeof(good); len++) {
		wrong += view(&good, len, &a) != -EPROTO;
		jit_reader_free(&a);
	}
	tap_eq_u64(t, wrong, 0, "an answer cut anywhere is refused");
	for (size_t bit = 0; bit < 8 * sizeof(good); bit++) {
		int rc;

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		rc = view(&bad, sizeof(bad), &a);
		refused += rc < 0;
		wrong += rc > 0;
		jit_reader_free(&a);
		bad = good;
	}
	tap_ok(t, !wrong && refused > 100, "an answer with any bit changed is refused or consistent");
	bad.head = (struct jit_reader_head){ JIT_READER_MAGIC, 0, sizeof(bad) - sizeof(bad.head), 0, 0, -EIO,
		0 };
	memcpy(bytes + sizeof(bad.head), "a message", sizeof("a message"));
	tap_ok(t,
		jit_reader_view(&question, (char *)bytes, sizeof(bad), &a, &e) == -EIO &&
			strcmp(e.msg, "a message") == 0,
		"an error is returned with its message");
}

int main(void)
{
	struct tap t = { 0 };

	maps(&t);
	dumps(&t);
	failures(&t);
	lies(&t);
	slow(&t);
	return tap_done(&t);
}
