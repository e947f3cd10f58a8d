/* SPDX-License-Identifier: GPL-2.0-or-later */
/* buildid - libFuzzer target (`make fuzz`): hostile ELF files and notes. */
#include "elf/file.h"
#include "record/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cap_build_id id = { 0 };

	buildid_in_image(data, size, &id);
	if (id.len > CAPTURE_BUILD_ID_MAX)
		__builtin_trap();
	id.len = 0;
	if (elfnote_build_id(data, size, size & 1 ? 4 : 8, &id) != (id.len != 0))
		__builtin_trap();
	return 0;
}
