/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/bpf_variants.h"
#include "base/base.h"
#include "record/bpf.h"
#include "runtime_abi.h"

/* these use what bpf.h has */
#include "offcpu-interpreted.skel.h"
#include "offcpu-java.skel.h"
#include "offcpu-scripts.skel.h"
#include "offcpu-v8.skel.h"
#include "offcpu.skel.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>

/* In gzip's format: as they are, the recorder would be half as large again. */
static const unsigned char java[] = ""
#include <offcpu-java.gz.h>
	;
static const unsigned char v8[] = ""
#include <offcpu-v8.gz.h>
	;
static const unsigned char interpreted[] = ""
#include <offcpu-interpreted.gz.h>
	;
static const unsigned char all[] = ""
#include <offcpu-scripts.gz.h>
	;

/* The smallest first. */
static const struct variant {
	uint32_t scripts; /* bit N: enum runtime_kind N can be found */
	const unsigned char *gz;
	size_t bytes;
} variants[] = {
	{ 1U << RUNTIME_JAVA, java, sizeof(java) - 1 },
	{ 1U << RUNTIME_V8, v8, sizeof(v8) - 1 },
	{ 1U << RUNTIME_PYTHON | 1U << RUNTIME_PHP | 1U << RUNTIME_PERL | 1U << RUNTIME_RUBY, interpreted,
		sizeof(interpreted) - 1 },
	{ UINT32_MAX, all, sizeof(all) - 1 },
};

#define SAME_MEMBER(variant, member)                                                                         \
	_Static_assert(offsetof(struct offcpu_bpf__rodata, member) ==                                        \
			       offsetof(struct offcpu_##variant##_bpf__rodata, member),                      \
		#member)
#define SAME(variant)                                                                                        \
	SAME_MEMBER(variant, all_tasks);                                                                     \
	SAME_MEMBER(variant, depth);                                                                         \
	SAME_MEMBER(variant, state_mask);                                                                    \
	SAME_MEMBER(variant, min_ns);                                                                        \
	SAME_MEMBER(variant, cgroup_id);                                                                     \
	SAME_MEMBER(variant, scripts);                                                                       \
	SAME_MEMBER(variant, report_forks);                                                                  \
	SAME_MEMBER(variant, hash_key);                                                                      \
	_Static_assert(sizeof(struct offcpu_bpf__rodata) == sizeof(struct offcpu_##variant##_bpf__rodata),   \
		"rodata");                                                                                   \
	_Static_assert(sizeof(struct offcpu_bpf__bss) == sizeof(struct offcpu_##variant##_bpf__bss), "bss")
SAME(java);
SAME(v8);
SAME(interpreted);
SAME(scripts);

/* The size of what was compressed is at the end: RFC 1952, ISIZE. */
static size_t size_of(const struct variant *v)
{
	const unsigned char *last = v->gz + v->bytes - 4;

	return last[0] | (size_t)last[1] << 8 | (size_t)last[2] << 16 | (size_t)last[3] << 24;
}

int bpf_variant(uint32_t scripts, void **elf, size_t *size)
{
	struct libdeflate_decompressor *d;
	const struct variant *v = variants;
	enum libdeflate_result done;

	*elf = NULL;
	*size = 0;
	if (!scripts)
		return 0;
	while (scripts & ~v->scripts)
		v++;
	*size = size_of(v);
	*elf = malloc(*size);
	d = libdeflate_alloc_decompressor();
	done = *elf && d ? libdeflate_gzip_decompress(d, v->gz, v->bytes, *elf, *size, NULL)
			 : LIBDEFLATE_INSUFFICIENT_SPACE;
	libdeflate_free_decompressor(d);
	if (done == LIBDEFLATE_SUCCESS)
		return 0;
	free(*elf);
	*elf = NULL;
	return -ENOMEM;
}
