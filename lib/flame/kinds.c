/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flame/kinds.h"

#include <string.h>

enum { NO_KIND, LOCKS, CONDITIONS, DISK, MEMORY, NETWORK, EVENTS, SLEEP, CHILDREN, CPU, IDLE, OTHER };

const struct kind_family kind_families[KIND_FAMILIES] = {
	[NO_KIND] = { "no kind", 40, 8 },
	[LOCKS] = { "locks", 2, 78 },
	[CONDITIONS] = { "conditions", 28, 78 },
	[DISK] = { "disk", 212, 75 },
	[MEMORY] = { "memory", 325, 65 },
	[NETWORK] = { "network", 140, 52 },
	[EVENTS] = { "events", 180, 50 },
	[SLEEP] = { "sleep", 258, 55 },
	[CHILDREN] = { "child processes", 295, 35 },
	[CPU] = { "the CPU", 52, 90 },
	[IDLE] = { "idle", 220, 12 },
	[OTHER] = { "other kinds", 85, 35 },
};

/* Those of lib/symbols/kinds.table, and the time on a run queue. */
static const struct {
	const char *name;
	uint8_t family;
} kinds[] = { { "[lock]", LOCKS }, { "[futex]", LOCKS }, { "[condition]", CONDITIONS },
	{ "[disk-read]", DISK }, { "[disk-write]", DISK }, { "[fsync]", DISK }, { "[swap]", MEMORY },
	{ "[page-fault]", MEMORY }, { "[net-receive]", NETWORK }, { "[net-send]", NETWORK },
	{ "[accept]", NETWORK }, { "[poll]", EVENTS }, { "[event]", EVENTS }, { "[pipe]", EVENTS },
	{ "[signal]", EVENTS }, { "[terminal]", EVENTS }, { "[sleep]", SLEEP }, { "[child]", CHILDREN },
	{ "[scheduler]", CPU }, { "[throttled]", CPU }, { "[stopped]", CPU }, { "[runnable]", CPU },
	{ "[preempted]", CPU }, { "[idle]", IDLE } };

/* Kinds of a user's rules are words, too: small letters, digits and '-'. */
static uint8_t family_of(const char *name, size_t len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (len == strlen(kinds[i].name) && memcmp(name, kinds[i].name, len) == 0)
			return kinds[i].family;
	if (len < 3 || name[0] != '[' || name[len - 1] != ']')
		return NO_KIND;
	for (size_t i = 1; i < len - 1; i++)
		if (!name[i] || !strchr(letters, name[i]))
			return NO_KIND;
	return OTHER;
}

uint8_t *kind_families_of(const struct flametree *t)
{
	_cleanup_free_ uint8_t *of_name = calloc(t->names.n + 1, sizeof(*of_name));
	_cleanup_free_ uint8_t *ret = calloc((size_t)t->n + 1, sizeof(*ret));
	_cleanup_free_ uint64_t *sums = calloc((size_t)t->n + 1, sizeof(*sums));
	_cleanup_free_ uint64_t *most = calloc((size_t)t->n + 1, sizeof(*most));

	if (!of_name || !ret || !sums || !most)
		return NULL;
	for (size_t i = 0; i < t->names.n; i++)
		of_name[i] = family_of(t->names.entries[i].text, t->names.entries[i].len);
	for (uint8_t f = 0; f < KIND_FAMILIES; f++) {
		for (uint32_t i = 0; i < t->n; i++)
			sums[i] = i && of_name[t->nodes[i].name] == f ? t->nodes[i].self : 0;
		for (uint32_t i = t->n; i-- > 1;)
			sums[t->nodes[i].parent] += sums[i];
		for (uint32_t i = 0; i < t->n; i++) {
			if (sums[i] <= most[i])
				continue;
			most[i] = sums[i];
			ret[i] = f;
		}
	}
	return TAKE_PTR(ret);
}
