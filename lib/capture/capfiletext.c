/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capfiletext.h"
#include "base/out.h"

void capfiletext_put(struct out *o, const struct capread *c, const struct capfiles *files)
{
	char digits[2 * CAP_BUILD_ID_MAX + 1];

	for (size_t i = 0; i < files->n; i++) {
		const struct cap_file *f = &c->files[files->files[i]];

		out_str(o, f->build_id.len ? text_hex(digits, f->build_id.bytes, f->build_id.len) : "-");
		out_char(o, ' ');
		outtext_put(o, f->path, TEXT_LINE);
		out_char(o, '\n');
	}
}
