/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cap_reader - libFuzzer target (`make fuzz`): hostile captures.
 *
 * Random bytes never have the right checksum. So this target cuts the input
 * into blocks and adds correct headers, numbers and checksums: one byte of
 * type, two of length, the payload. An input that begins with the magic is used
 * unchanged. The target also runs the code that uses a capture directly after
 * its reader, and reads the capture flush by flush, as `symbolize --live` does:
 * what is in it must be the same.
 */
#include "capture/format.h"
#include "capture/reader.h"
#include "capture/stats.h"
#include "symbols/answer.h"
#include "symbols/resolve.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_blocks(struct buf *b, const uint8_t *data, size_t size)
{
	struct rd r = rd_init(data, size);

	cap_block_put_header(b);
	for (uint32_t seq = 0; rd_left(&r) >= 3; seq++) {
		uint8_t header[CAPTURE_BLOCK_HEAD_LEN];
		unsigned int type = rd_u8(&r) % (CAPTURE_RECORD_TYPES + 1);
		size_t len = rd_u16(&r);
		const uint8_t *payload;

		len = MIN(len, rd_left(&r));
		payload = rd_bytes(&r, len);
		cap_block_put(header, type, seq, payload, len);
		buf_put(b, header, sizeof(header));
		buf_put(b, payload, len);
	}
}

/* Follow every reference, as users of the reader do without checks. */
static uint64_t use(const struct cap_reader *c)
{
	uint64_t sum = strlen(c->damage) + strlen(c->host.hostname) + strlen(c->trailer.why);

	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_sample *s = &c->samples[i];
		const struct cap_stack *k = &c->stacks[s->kstack], *u = &c->stacks[s->ustack];

		sum += strlen(c->procs[s->proc].comm) +
		       (cap_reader_thread(c, s->proc, s->tid, s->first_ns) != NULL);
		for (uint32_t f = 0; f < k->len; f++)
			sum += cap_reader_ksym(c, k->frames[f]) != NULL;
		for (uint32_t f = 0; f < u->len; f++) {
			bool unsure;
			const struct cap_map *m =
				cap_reader_map(c, s->proc, u->frames[f], s->first_ns, s->last_ns, &unsure);

			sum += m && m->file != CAPTURE_NONE ? strlen(c->files[m->file].path) : unsure;
		}
	}
	for (uint64_t i = 0; c->waits && i < c->n_waits; i++)
		sum += c->samples[c->waits[i].key].proc + c->waits[i].total_ns;
	for (size_t i = 0; i < c->n_images; i++)
		for (size_t k = 0; k < c->images[i].len; k++)
			sum += c->images[i].bytes[k];
	for (size_t i = 0; i < c->n_jits; i++)
		sum += strlen(c->procs[c->jits[i].proc].comm) + strlen(c->jits[i].name) +
		       strlen(c->jits[i].file);
	for (size_t i = 0; i < c->n_names; i++) {
		const struct cap_name *n = cap_reader_name(c, c->names[i].file, c->names[i].offset);

		sum += n == &c->names[i] ? strlen(c->files[n->file].path) : (abort(), 0);
		for (uint32_t f = 0; f < n->n; f++)
			sum += strlen(n->frames[f].name) + strlen(n->frames[f].linkage) +
			       strlen(n->frames[f].file);
	}
	for (size_t i = 0; i < c->n_maps; i++)
		sum += cap_reader_map(c, c->maps[i].proc, c->maps[i].start, 0, UINT64_MAX, NULL)->start;
	return sum;
}

/* An answer made from stored names must be valid. */
static void use_names(const struct cap_reader *c)
{
	for (uint32_t file = 0; file < c->n_files; file++) {
		const struct storednames_opts o = {
			.demangle = file & 4, .inlines = file & 2, .lines = file & 1
		};
		struct sym_answer a;
		uint8_t *bytes;
		size_t len;

		if (storednames_answer(c, file, &o, &bytes, &len, NULL) != 0)
			continue;
		if (sym_answer_view(bytes, len, &a, NULL) != 0 ||
			(a.head->n_addrs && !storednames_any(c, file)))
			abort();
		for (uint32_t i = 0; i < a.head->n_addrs; i++)
			if (!cap_reader_name(c, file, a.addrs[i].vaddr))
				abort();
		free(bytes);
	}
}

static void use_jits(const struct cap_reader *c)
{
	struct jitnames *names;

	if (jitnames_new(c, &names, NULL) != 0)
		return;
	for (size_t i = 0; i < c->n_jits; i++) {
		const struct cap_jit *j = &c->jits[i], *hit;
		uint64_t addr = j->start + (j->end - j->start) / 2;
		bool unsure;

		hit = jitnames_find(names, j->proc, addr, j->from_ns, j->from_ns, &unsure);
		if (hit && (hit->proc != j->proc || addr < hit->start || addr >= hit->end))
			abort();
	}
	jitnames_free(names);
}

static void use_files(const struct cap_reader *c)
{
	struct cap_stack_files f;

	if (cap_stack_files_make(c, &f) != 0)
		return;
	for (size_t i = 0; i < f.n; i++)
		if (f.files[i] >= c->n_files || f.procs[i] >= c->n_procs)
			abort();
	cap_stack_files_free(&f);
}

/* B as a file that grows; WHOLE is what cap_reader_parse() had in it. */
static void use_flushes(const struct buf *b, const struct cap_reader *whole)
{
	static int file = -1;
	const bool waits = b->len & 1;
	uint64_t *counts = calloc(whole->n_samples + 1, sizeof(*counts));
	volatile uint64_t sink;
	struct cap_reader *c;
	char path[32];
	int more;

	if (file < 0)
		file = memfd_create("capture", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	if (!counts || ftruncate(file, 0) != 0 || pwrite(file, b->p, b->len, 0) != (ssize_t)b->len ||
		cap_reader_follow(path, waits, &c, NULL) != 0)
		abort();
	do {
		more = cap_reader_next(c, NULL);
		sink = use(c);
		(void)sink;
		for (size_t i = 0; i < c->n_samples && i < whole->n_samples; i++)
			counts[i] = add_saturating(counts[i], c->samples[i].count);
	} while (more > 0);
	if (more < 0 || c->n_samples != whole->n_samples || c->n_stacks != whole->n_stacks ||
		c->n_maps != whole->n_maps || c->n_counters != whole->n_counters ||
		c->complete != whole->complete || !*c->damage != !*whole->damage ||
		c->good_bytes != whole->good_bytes)
		abort();
	for (size_t i = 0; i < whole->n_samples && !waits; i++)
		if (counts[i] != whole->samples[i].count)
			abort();
	cap_reader_free(c);
	free(counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b = { 0 };
	struct cap_reader *c;
	volatile uint64_t sink;

	if (size >= CAPTURE_BLOCK_MAGIC_LEN &&
		memcmp(data, CAPTURE_BLOCK_MAGIC, CAPTURE_BLOCK_MAGIC_LEN) == 0)
		buf_put(&b, data, size);
	else
		put_blocks(&b, data, size);
	if (!b.failed && cap_reader_parse(b.p, b.len, &c, NULL) == 0) {
		sink = use(c);
		(void)sink;
		use_names(c);
		use_jits(c);
		use_files(c);
		use_flushes(&b, c);
		cap_reader_free(c);
	}
	buf_free(&b);
	return 0;
}
