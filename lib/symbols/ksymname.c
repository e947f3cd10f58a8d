/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/ksymname.h"

#include <string.h>

struct word {
	const char *s;
	size_t len;
};

#define WORD(s)                                                                                              \
	{                                                                                                    \
		s, sizeof(s) - 1                                                                             \
	}

static bool starts_with(const char *s, size_t len, struct word prefix)
{
	return len >= prefix.len && memcmp(s, prefix.s, prefix.len) == 0;
}

static bool ends_with(const char *s, size_t len, struct word suffix)
{
	return len >= suffix.len && memcmp(s + len - suffix.len, suffix.s, suffix.len) == 0;
}

static bool is_one_of(const char *s, size_t len, const struct word *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].len == len && memcmp(s, list[i].s, len) == 0)
			return true;
	return false;
}

bool ksymname_is_marker(bool code, const char *name, size_t len)
{
	static const struct word code_ends[] = { WORD("_etext"), WORD("_einittext"), WORD("_eextratext") };
	static const struct word places[] = { WORD("_end"), WORD("_edata"), WORD("_sdata"), WORD("_brk_end"),
		WORD("__brk_base"), WORD("__brk_limit"), WORD("__bss_start"), WORD("__bss_stop"),
		WORD("__init_begin"), WORD("__init_end"), WORD("__per_cpu_start"), WORD("__per_cpu_end") };

	if (len < 4 || name[0] != '_')
		return false;
	if (ends_with(name, len, (struct word)WORD("text_end")) && name[1] == '_')
		return true;
	if (ends_with(name, len, (struct word)WORD("text")))
		return is_one_of(name, len, code_ends, ARRAY_LEN(code_ends));
	return !code && (starts_with(name, len, (struct word)WORD("__start_")) ||
				starts_with(name, len, (struct word)WORD("__stop_")) ||
				starts_with(name, len, (struct word)WORD("__end_")) ||
				is_one_of(name, len, places, ARRAY_LEN(places)));
}

/* What follows it without a name of its own is called by it, but any other name is better. */
static bool is_code_start(const char *name, size_t len)
{
	static const struct word places[] = { WORD("_text"), WORD("_stext"), WORD("_sinittext"),
		WORD("_sextratext") };

	return is_one_of(name, len, places, ARRAY_LEN(places)) ||
	       (starts_with(name, len, (struct word)WORD("__")) &&
		       ends_with(name, len, (struct word)WORD("text_start")));
}

unsigned int ksymname_rank(unsigned int flags, const char *name)
{
	size_t len = strlen(name), underscores = MIN(strspn(name, "_"), 7u);
	bool padding = starts_with(name, len, (struct word)WORD("__pfx_")) ||
		       starts_with(name, len, (struct word)WORD("__cfi_"));
	bool ia32 = starts_with(name, len, (struct word)WORD("__ia32_"));

	return (flags & KSYM_MARKER ? 1u << 9 : 0) | (is_code_start(name, len) ? 1u << 8 : 0) |
	       (padding ? 1u << 7 : 0) | (flags & KSYM_CODE ? 0 : 1u << 6) |
	       (flags & KSYM_WEAK ? 1u << 5 : 0) | (flags & KSYM_LOCAL ? 1u << 4 : 0) |
	       (unsigned int)underscores << 1 | (ia32 ? 1u : 0);
}
