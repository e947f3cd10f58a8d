/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as what a file says about its debug
 * file, and as a file that contains one. The first byte chooses.
 */
#include "../lib/elf-sections.h"
#include "elf/debuginfo.h"
#include "elf/minidebug.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void as_file(const uint8_t *data, size_t len)
{
	struct debuglink l;
	struct minidebug m = { 0 };
	struct elffile *f = NULL;
	uint32_t crc;

	if (elffile_image(data, len, &f, NULL) != 0)
		return;
	debuglink_read(f, &l, NULL);
	debuglink_alt(f, &l, NULL);
	debuglink_crc(f, NULL, NULL, &crc, NULL);
	minidebug_open(f, 1 << 20, &m, NULL);
	minidebug_close(&m);
	elffile_close(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct debuglink l;
	struct buf b = { 0 };

	if (!len)
		return 0;
	switch (*data++) {
	case 0:
		if (debuglink_parse(data, len - 1, &l, NULL) == 0 && (l.name[0] == '/' || !l.name[0]))
			abort();
		break;
	case 1:
		if (debuglink_parse_alt(data, len - 1, &l, NULL) == 0 &&
			l.build_id.len > CAPTURE_BUILD_ID_MAX)
			abort();
		break;
	case 2: /* any bytes as an xz stream */
		elf_section(&b, ".gnu_debugdata", data, len - 1, NULL, 0);
		as_file(b.p, b.len);
		break;
	default:
		as_file(data, len - 1);
	}
	buf_free(&b);
	return 0;
}
