/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/perl.h"
#include "base/hash.h"

#include <string.h>

/*
 * Offsets in bytes on x86-64. Each column was printed by a program that was
 * compiled with the headers of the version's package in Debian or Ubuntu
 * (offsetof). Headers, in CORE/: intrpvar.h (of the interpreter), cop.h
 * (stack_*, context_*, statement_*), cv.h (cv_*), gv.h and sv.h (glob_*), hv.h
 * (package_*, name_*). They are part of the interface for extensions, which does
 * not change between the patch levels of a version and the same options.
 */
#define SHARED                                                                                               \
	.stack_contexts = 8, /* si_cxstack */                                                                \
		.stack_top = 32, /* si_cxix */                                                               \
		.stack_type = 44, .stack_back = 16, /* si_prev */                                            \
		.context_bytes = 104, .context_statement = 16, /* blk_oldcop */                              \
		.context_return = 48, /* retop of subroutines and evals */                                   \
		.context_sub = 72, /* blk_sub.cv, blk_format.cv */                                           \
		.context_eval = 88, /* blk_eval.cv */                                                        \
		.statement_line = 36, /* cop_line */                                                         \
		.statement_file = 48, /* cop_file */                                                         \
		.statement_number = 60, /* cop_seq */                                                        \
		.cv_flags = 92, /* xcv_flags */                                                              \
		.cv_package = 32, /* xcv_stash */                                                            \
		.cv_glob = 56, /* xcv_gv_u */                                                                \
		.glob_name = 32, /* xivu_namehek, and xgv_stash at 40 */                                     \
		.name_text = 8 /* hek_key */

/* Where a hash has its struct xpvhv_aux, with xhv_name_u and xhv_name_count: before 5.36, behind its array.
 */
#define BEHIND .package_name = 0, .package_names = 28, .package_max = 24 /* xhv_max */
#define INSIDE .package_name = 32, .package_names = 60

#define OPTIONS(of_534, of_538)                                                                              \
	" HAS_TIMES MULTIPLICITY PERLIO_LAYERS" of_534 of_538                                                \
	" USE_64_BIT_ALL USE_64_BIT_INT USE_ITHREADS USE_LARGE_FILES USE_LOCALE_COLLATE USE_LOCALE_NUMERIC " \
	"USE_LOCALE_TIME USE_PERLIO USE_REENTRANT_API"
#define OPTIONS_534 OPTIONS(" PERL_IMPLICIT_CONTEXT", "")
#define OPTIONS_536 OPTIONS("", "")
#define OPTIONS_538 OPTIONS("", " PERL_HASH_FUNC_SIPHASH13 PERL_HASH_USE_SBOX32")

static const struct perl_version {
	uint32_t version; /* 5.36 = 0x524 */
	const char *options; /* PL_bincompat_options */
	struct perl_layout at;
} versions[] = {
	{ 0x520, OPTIONS_534,
		{ SHARED, BEHIND, .statement = 224, /* Icurcop */
			.stack = 240, /* Icurstackinfo */
			.main = 1816, /* Imain_cv */
			.phase = 2532 } }, /* Iphase */
	{ 0x522, OPTIONS_534,
		{ SHARED, BEHIND, .statement = 208, .stack = 224, .main = 1800, .phase = 2512 } },
	{ 0x524, OPTIONS_536,
		{ SHARED, INSIDE, .statement = 208, .stack = 224, .main = 1800, .phase = 2512 } },
	{ 0x526, OPTIONS_538,
		{ SHARED, INSIDE, .statement = 208, .stack = 224, .main = 1584, .phase = 2336 } },
	{ 0x528, OPTIONS_538,
		{ SHARED, INSIDE, .statement = 208, .stack = 224, .main = 1584, .phase = 2216 } },
};

bool perl_layout(struct runtime_file *ret, uint64_t state_bytes)
{
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		const char *o = versions[i].options;

		if (ret->version >> 16 != versions[i].version ||
			crc32c(0, o, strlen(o)) != (uint32_t)state_bytes)
			continue;
		ret->perl = versions[i].at;
		ret->perl.first = (int32_t)(state_bytes >> 32);
		return true;
	}
	return false;
}
