/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/tabserve.h"
#include "unwind/tabwire.h"

#include <errno.h>
#include <string.h>

static int store(int fd, const uint8_t *bytes, size_t len, struct err *e)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pwrite(fd, bytes + done, len - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_sys(
				e, n < 0 ? -errno : -EIO, "cannot hand over a table of %zu bytes", len);
		done += (size_t)n;
	}
	return 0;
}

static void serve_one(int sock, const struct tabwire_request *r, tabserve_compile *compile)
{
	struct tabwire_answer a = { .number = r->number };
	_cleanup_free_ uint8_t *bytes = NULL;
	struct err e = { 0 };
	size_t len = 0;

	a.error = compile(r->file, &bytes, &len, &e);
	if (!a.error)
		a.error = store(r->table, bytes, len, &e);
	if (!a.error)
		a.len = len;
	else
		snprintf(a.why, sizeof(a.why), "%.*s", (int)sizeof(a.why) - 1, e.msg);
	close(r->table);
	tabwire_answer(sock, &a);
}

void tabserve(int sock, tabserve_compile *compile)
{
	const struct tabwire_answer ready = { .number = 0 };
	struct tabwire_request r;

	if (tabwire_answer(sock, &ready) != 0)
		return;
	while (tabwire_next(sock, &r) > 0)
		serve_one(sock, &r, compile);
}
