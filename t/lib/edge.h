/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes next to an inaccessible page: who reads before or behind them crashes. Valid until the next call. */
#ifndef STACKTOOLS_T_EDGE_H
#define STACKTOOLS_T_EDGE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EDGE_ROOM ((size_t)1 << 20) /* bytes; a multiple of the page size */

/* EDGE_ROOM bytes; the pages before and behind them are inaccessible. */
static inline char *edge_room(void)
{
	static char *room;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!room) {
		char *p = mmap(NULL, EDGE_ROOM + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || mprotect(p + page, EDGE_ROOM, PROT_READ | PROT_WRITE) != 0)
			abort();
		room = p + page;
	}
	return room;
}

/* TEXT, without a NUL, where the room begins. */
static inline char *edge_start(const char *text)
{
	return memcpy(edge_room(), text, strlen(text));
}

/* The same where it ends. */
static inline char *edge_end(const char *text)
{
	const size_t len = strlen(text);

	return memcpy(edge_room() + EDGE_ROOM - len, text, len);
}

/* The bytes that HEX has, "-" = none, where the room ends. */
static inline uint8_t *edge_end_hex(const char *hex, size_t *n)
{
	uint8_t *end = (uint8_t *)edge_room() + EDGE_ROOM;

	*n = hex[0] == '-' ? 0 : strlen(hex) / 2;
	for (size_t i = 0; i < *n; i++) {
		char digits[3] = { hex[2 * i], hex[2 * i + 1], 0 };

		*(end - *n + i) = (uint8_t)strtoul(digits, NULL, 16);
	}
	return end - *n;
}

#endif
