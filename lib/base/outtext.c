/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/outtext.h"

#include <string.h>

void outtext_put(struct out *o, const char *s, enum text_style style)
{
	char buf[TEXT_ESCAPED_MAX(256)];
	size_t len = strlen(s);

	while (len) {
		size_t n = MIN(len, (size_t)256);

		/* pieces end between characters */
		while (n < len && n > 252 && ((unsigned char)s[n] & 0xc0) == 0x80)
			n--;
		out_put(o, buf, text_escape(buf, sizeof(buf), s, n, style));
		s += n;
		len -= n;
	}
}
