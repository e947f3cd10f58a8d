/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capsets.h"

#include <linux/capability.h>
#include <string.h>

#define BIT(cap) (UINT64_C(1) << (cap))
#define BOTH (BIT(CAP_BPF) | BIT(CAP_PERFMON))

static const struct capsets_cap caps[CAPSETS_CAPS] = {
	{ CAP_BPF, 'B' },
	{ CAP_PERFMON, 'P' },
	{ CAP_SYSLOG, 'Y' },
	{ CAP_SYS_PTRACE, 'T' },
	{ CAP_CHECKPOINT_RESTORE, 'K' },
	{ CAP_DAC_READ_SEARCH, 'D' },
	{ CAP_SYS_RESOURCE, 'R' },
	{ CAP_SYS_ADMIN, 'A' },
};

static const int order[CAPSETS_CAPS] = { CAP_SYS_ADMIN, CAP_SYS_RESOURCE, CAP_DAC_READ_SEARCH,
	CAP_CHECKPOINT_RESTORE, CAP_SYS_PTRACE, CAP_SYSLOG, CAP_PERFMON, CAP_BPF };

static const struct capset sets[] = {
	{ 0, "none", "- " },
	{ BIT(CAP_BPF), "CAP_BPF", "B " },
	{ BIT(CAP_PERFMON), "CAP_PERFMON", "P " },
	{ BIT(CAP_SYSLOG), "CAP_SYSLOG", "Y " },
	{ BIT(CAP_SYS_PTRACE), "CAP_SYS_PTRACE", "T " },
	{ BIT(CAP_CHECKPOINT_RESTORE), "CAP_CHECKPOINT_RESTORE", "K " },
	{ BIT(CAP_DAC_READ_SEARCH), "CAP_DAC_READ_SEARCH", "D " },
	{ BIT(CAP_SYS_RESOURCE), "CAP_SYS_RESOURCE", "R " },
	{ BOTH, "both", "BP" },
	{ BOTH | BIT(CAP_SYSLOG), "both and CAP_SYSLOG", "+Y" },
	{ BOTH | BIT(CAP_SYS_PTRACE), "both and CAP_SYS_PTRACE", "+T" },
	{ BOTH | BIT(CAP_CHECKPOINT_RESTORE), "both and CAP_CHECKPOINT_RESTORE", "+K" },
	{ BOTH | BIT(CAP_DAC_READ_SEARCH), "both and CAP_DAC_READ_SEARCH", "+D" },
	{ BOTH | BIT(CAP_SYS_RESOURCE), "both and CAP_SYS_RESOURCE", "+R" },
	{ BIT(CAP_SYS_ADMIN), "CAP_SYS_ADMIN", "A " },
	{ BOTH | BIT(CAP_SYS_ADMIN), "both and CAP_SYS_ADMIN", "+A" },
};

_Static_assert(ARRAY_LEN(sets) < CAPSETS_MAX, "room for all that may be granted");

const struct capsets_cap *capsets_caps(void)
{
	return caps;
}

const int *capsets_order(void)
{
	return order;
}

size_t capsets_list(uint64_t all, struct capset list[CAPSETS_MAX])
{
	memcpy(list, sets, sizeof(sets));
	list[ARRAY_LEN(sets)] = (struct capset){ all, "all", "* " };
	return ARRAY_LEN(sets) + 1;
}

const char *capsets_names(uint64_t set, char *buf, size_t cap)
{
	char name[32];
	size_t len = 0;

	snprintf(buf, cap, "none");
	for (int i = 0; i < 64; i++) {
		if (!(set & BIT(i)) || len >= cap)
			continue;
		snprintf(buf + len, cap - len, "%s%s", len ? ", " : "", caps_name(i, name, sizeof(name)));
		len += strlen(buf + len);
	}
	return buf;
}

const char *capsets_letters(uint64_t set, char *buf, size_t cap)
{
	size_t len = 0;

	for (size_t i = 0; i < CAPSETS_CAPS && len + 2 < cap; i++) {
		if (set & BIT(caps[i].cap))
			buf[len++] = caps[i].letter;
		set &= ~BIT(caps[i].cap);
	}
	if (set)
		buf[len++] = '#';
	if (!len)
		buf[len++] = '-';
	buf[len] = '\0';
	return buf;
}
