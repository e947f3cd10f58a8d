/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of sym_store in symbols/cache.h: which answers are kept, and for which requests. */
#include "base/tap.h"
#include "symbols/cache.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/unit-sym_store.XXXXXX";

/* A file with only the properties that sym_store reads: identity, build ID, size of debug information. */
struct made {
	struct elffile f;
	struct elffile_section debug;
	char path[64];
};

static void make_file(struct made *m, const char *name, uint64_t debug_bytes)
{
	*m = (struct made){ .debug = { .type = SHT_PROGBITS, .size = debug_bytes } };
	snprintf(m->path, sizeof(m->path), "%s/%s", dir, name);
	m->f.fd = open(m->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	m->f.size = UINT64_C(1) << 30;
	m->f.sections = &m->debug;
	m->f.n_sections = 1;
	m->f.build_id = (struct cap_build_id){ 4, { 1, 2, 3, 4 } };
}

static void drop_file(struct made *m)
{
	if (m->f.fd >= 0)
		close(m->f.fd);
	unlink(m->path);
}

static const uint64_t vaddrs[] = { 0x1000, 0x2000 };

static struct sym_lookup_input ask(const struct elffile *f)
{
	return (struct sym_lookup_input){
		.elf = f, .vaddrs = vaddrs, .n_vaddrs = ARRAY_LEN(vaddrs), .inlines = true
	};
}

/* Does K have an answer to IN? */
static bool has(struct sym_store *k, const struct sym_lookup_input *in)
{
	struct sym_answer view;
	uint8_t *bytes = NULL;
	bool got = sym_store_get(k, in, &bytes, &view) && view.head->n_addrs == ARRAY_LEN(vaddrs);

	free(bytes);
	return got;
}

/* Put an answer to IN. Is it kept? */
static bool keeps(struct sym_store *k, const struct sym_lookup_input *in)
{
	struct sym_answer_build b;
	uint8_t *bytes = NULL;
	size_t len = 0;

	sym_answer_begin(&b);
	for (size_t i = 0; i < ARRAY_LEN(vaddrs); i++) {
		const struct sym_answer_frame frame = { .name = sym_answer_string(&b, "function") };

		sym_answer_put(&b,
			&(struct sym_answer_addr){
				.vaddr = vaddrs[i], .start = vaddrs[i], .source = SYM_SYMTAB },
			&frame, 1);
	}
	if (sym_answer_finish(&b, &bytes, &len) == 0)
		sym_store_put(k, in, bytes, len);
	sym_answer_end(&b);
	free(bytes);
	return has(k, in);
}

static void test_questions(struct tap *t, struct sym_store *k, struct made *m, struct made *other)
{
	struct sym_lookup_input in = ask(&m->f);
	struct sym_store_stats s;

	tap_ok(t, !has(k, &in), "an empty store has no answer");
	tap_ok(t, keeps(k, &in), "an answer from much debug information is kept");
	in.lines = true;
	tap_ok(t, !has(k, &in), "a request with lines has no answer from one without");
	in = ask(&m->f);
	in.demangle = true;
	tap_ok(t, !has(k, &in), "a request with demangled names has no answer from one without");
	in = ask(&m->f);
	in.debug = &other->f;
	tap_ok(t, !has(k, &in), "a request with a debug file has no answer from one without");
	in.debug = NULL;
	in.alt = &other->f;
	tap_ok(t, !has(k, &in), "a request with an alternate debug file has no answer from one without");
	sym_store_stats(k, &s);
	tap_ok(t, s.kept == 1 && s.hits == 1 && s.misses == 5 && !s.bad,
		"answers kept, hits and misses are counted");
	in = ask(&m->f);
	in.n_vaddrs = 1;
	in.vaddrs = vaddrs + 1;
	tap_ok(t, has(k, &in), "a request for fewer addresses has an answer");
	in.vaddrs = (const uint64_t[]){ 0x1001 };
	tap_ok(t, !has(k, &in), "a request for other addresses has no answer");
}

static void test_worth(struct tap *t, struct sym_store *k, struct made *m, struct made *little)
{
	struct sym_lookup_input in = ask(&little->f);

	tap_ok(t, !keeps(k, &in), "an answer from little debug information is not kept");
	in = ask(&m->f);
	in.inlines = false;
	tap_ok(t, !keeps(k, &in), "an answer from symbol tables alone is not kept");
	in = ask(&m->f);
	m->f.build_id.len = 0;
	tap_ok(t, !keeps(k, &in), "an answer for a file without a build ID is not kept");
	m->f.build_id.len = 4;
	close(m->f.fd);
	m->f.fd = -1;
	tap_ok(t, !keeps(k, &in), "an answer for bytes in memory is not kept");
}

static void test_changes(struct tap *t, struct sym_store *k)
{
	struct sym_lookup_input in;
	struct made fresh;

	make_file(&fresh, "fresh", SYM_STORE_BYTES_MIN);
	in = ask(&fresh.f);
	tap_ok(t, !keeps(k, &in), "an answer for a file that changed since the store was opened is not kept");
	drop_file(&fresh);
}

int main(void)
{
	struct made much, little, other;
	struct sym_store *k = NULL;
	struct tap t = { 0 };
	char place[64], command[96];

	if (!mkdtemp(dir))
		return 2;
	snprintf(place, sizeof(place), "%s/cache", dir);
	setenv("STACKTOOLS_CACHE", place, 1);
	make_file(&much, "much", SYM_STORE_BYTES_MIN);
	make_file(&little, "little", SYM_STORE_BYTES_MIN - 1);
	make_file(&other, "other", SYM_STORE_BYTES_MIN);
	usleep(50000); /* past the next tick of the clock that sets file times */
	if (tap_ok(&t, sym_store_open(&k, NULL) == 0, "the store is opened")) {
		test_questions(&t, k, &much, &other);
		test_worth(&t, k, &much, &little);
		usleep(50000);
		test_changes(&t, k);
	}
	sym_store_close(k);
	drop_file(&much);
	drop_file(&little);
	drop_file(&other);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) == 0 ? tap_done(&t) : 2;
}
