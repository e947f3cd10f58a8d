/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hand-made unwind tables, and a row-by-row comparison with their copies in the
 * kernel, which are read back as BPF sees them.
 */
#ifndef STACKTOOLS_T_UNWIND_MADE_H
#define STACKTOOLS_T_UNWIND_MADE_H

#include "record/unwind_memory.h"

#include <bpf/bpf.h>
#include <string.h>

#define FIRST_BYTES ((UNWIND_SEG_PAGES + 1) * 2)

/* A table in memory, and its rules. */
struct made {
	struct unwindtab_head head;
	struct unwindtab_seg *segs;
	struct unwind_rule *rules;
	uint8_t *bytes;
	uint32_t number, seg; /* in the space */
};

static inline uint32_t pick(uint32_t n)
{
	static uint64_t state = 3;

	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

static inline void fill_seg(uint8_t *p, uint32_t rows, uint32_t n_rules)
{
	uint16_t *first = (uint16_t *)(void *)p, *rule = first + UNWIND_SEG_PAGES + 1;

	for (uint32_t i = 0; i <= UNWIND_SEG_PAGES; i++)
		first[i] = (uint16_t)((uint64_t)rows * i / UNWIND_SEG_PAGES);
	for (uint32_t i = 0; i < rows; i++) {
		rule[i] = (uint16_t)pick(n_rules);
		p[FIRST_BYTES + rows * 2 + i] = (uint8_t)pick(256);
	}
}

/* N_SEGS segments of ROWS rows each (if SPARSE, every seventh is empty), and N_RULES rules from FROM on. */
static inline struct made *make(uint32_t n_segs, uint32_t rows, bool sparse, uint32_t n_rules, uint32_t from)
{
	struct made *m = calloc(1, sizeof(*m));
	size_t each = (UNWIND_SEG_BYTES(rows) + 7) / 8 * 8;

	m->segs = calloc(n_segs, sizeof(*m->segs));
	m->rules = calloc(n_rules, sizeof(*m->rules));
	m->bytes = calloc(n_segs, each);
	for (uint32_t i = 1; i < n_rules; i++)
		m->rules[i] = (struct unwind_rule){
			.cfa = UNWIND_CFA_REG, .reg = 7, .cfa_off = (int32_t)(from + i)
		};
	for (uint32_t i = 0; i < n_segs; i++) {
		if (sparse && i % 7 == 3)
			continue;
		m->segs[i] = (struct unwindtab_seg){ .at = (uint32_t)(i * each), .rows = rows };
		fill_seg(m->bytes + i * each, rows, n_rules);
		m->head.n_rows += rows;
	}
	m->head.n_segs = n_segs;
	m->head.n_rules = n_rules;
	return m;
}

static inline void unmake(struct made *m)
{
	if (!m)
		return;
	free(m->segs);
	free(m->rules);
	free(m->bytes);
	free(m);
}

DEFINE_CLEANUP(struct made *, unmake);
#define _cleanup_made_ CLEANUP(unmake_p)

static inline int add(struct unwindspace *s, struct made *m, struct err *e)
{
	struct unwindtab tab = { .head = &m->head, .segs = m->segs, .rules = m->rules, .bytes = m->bytes };

	return unwindspace_add(s, &tab, &m->number, &m->seg, e);
}

/* A chunk and the rules, read from the kernel. */
struct sight {
	struct unwindspace_fds fds;
	struct unwind_rule *rules;
	uint32_t chunk; /* number of the last chunk read */
	uint8_t *bytes;
};

static inline void sight_open(struct sight *v, const struct unwindspace *s)
{
	*v = (struct sight){ .rules = calloc(UNWIND_RULES_MAX, sizeof(*v->rules)),
		.bytes = calloc(1, UNWIND_CHUNK_BYTES) };
	unwindspace_fds(s, &v->fds);
	for (uint32_t i = 0; i < UNWIND_RULES_MAX; i++)
		bpf_map_lookup_elem(v->fds.rules, &i, &v->rules[i]);
}

static inline void sight_close(struct sight *v)
{
	free(v->rules);
	free(v->bytes);
}

/* The bytes at a place; NULL if BPF would find no chunk. */
static inline const uint8_t *look(struct sight *v, uint32_t chunk, uint32_t grain)
{
	uint32_t id, zero = 0;

	if (chunk != v->chunk) {
		_cleanup_close_ int fd = -1;

		if (bpf_map_lookup_elem(v->fds.chunks, &chunk, &id) != 0)
			return NULL;
		fd = bpf_map_get_fd_by_id(id);
		if (fd < 0 || bpf_map_lookup_elem(fd, &zero, v->bytes) != 0)
			return NULL;
		v->chunk = chunk;
	}
	return v->bytes + (size_t)grain * UNWIND_GRAIN;
}

static inline bool same_rows(const struct sight *v, const struct made *m, const uint8_t *there, uint32_t i)
{
	const uint8_t *want = m->bytes + m->segs[i].at;
	const uint32_t rows = m->segs[i].rows;
	uint16_t a, b;

	for (uint32_t r = 0; r < rows; r++) {
		memcpy(&a, there + FIRST_BYTES + r * 2, 2);
		memcpy(&b, want + FIRST_BYTES + r * 2, 2);
		if (memcmp(&v->rules[a], &m->rules[b], sizeof(*m->rules)) != 0)
			return false;
	}
	return memcmp(there, want, FIRST_BYTES) == 0 &&
	       memcmp(there + FIRST_BYTES + rows * 2, want + FIRST_BYTES + rows * 2, rows) == 0;
}

/* Does BPF see table M, with the right rule in every row? */
static inline bool seen(struct sight *v, const struct made *m)
{
	for (uint32_t i = 0; i < m->head.n_segs; i++) {
		uint32_t at = m->seg + i;
		struct unwind_seg seg;
		const uint8_t *p;

		if (bpf_map_lookup_elem(v->fds.segs, &at, &seg) != 0 || seg.rows != m->segs[i].rows)
			return false;
		if (seg.rows == 0 && (seg.chunk || seg.grain))
			return false;
		p = seg.rows ? look(v, seg.chunk, seg.grain) : NULL;
		if (seg.rows && (!p || !same_rows(v, m, p, i)))
			return false;
	}
	return true;
}

static inline bool seen_once(const struct unwindspace *s, const struct made *m)
{
	struct sight v;
	bool yes;

	sight_open(&v, s);
	yes = seen(&v, m);
	sight_close(&v);
	return yes;
}

#endif
