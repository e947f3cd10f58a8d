/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes that end where an unmapped page begins: who reads behind them crashes. */
#ifndef STACKTOOLS_T_EDGE_H
#define STACKTOOLS_T_EDGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Those that HEX has, "-" = none; at most 1 MiB. Valid until the next call. */
static inline uint8_t *at_edge(const char *hex, size_t *n)
{
	static uint8_t *pages;
	const size_t room = 1 << 20;

	if (!pages) {
		pages = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mprotect(pages + room, 4096, PROT_NONE);
	}
	*n = hex[0] == '-' ? 0 : strlen(hex) / 2;
	for (size_t i = 0; i < *n; i++) {
		char digits[3] = { hex[2 * i], hex[2 * i + 1], 0 };

		pages[room - *n + i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return pages + room - *n;
}

#endif
