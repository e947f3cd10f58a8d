/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of two units, inlined into one another where the optimizer may. */
#ifndef CALLS_H
#define CALLS_H

struct item {
	int weight;
	struct item *next;
};

int weigh(const struct item *list, int most);
int chosen(int kind, int value);

static inline int clamp(int value, int most)
{
	if (value > most)
		return most;
	return value < 0 ? 0 : value;
}

static inline __attribute__((always_inline)) int doubled(int value, int most)
{
	int twice = clamp(value, most) * 2;

	return clamp(twice, most);
}

#endif
