/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): a table of kernel symbols, and the bytes
 * after its first "---\n" as a stream to symbolize with it.
 */
#include "base/out.h"
#include "symbols/filter.h"
#include "symbols/kallsyms.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int memory_file(const void *p, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, p, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	return fd;
}

static void filter(struct kallsyms *ks, const uint8_t *stream, size_t len)
{
	_cleanup_close_ int in = memory_file(stream, len), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct kallsyms_filter f = { .ks = ks, .file = "fuzz", .relocate = true, .placed = true };
	struct out o;

	if (out_init(&o, null, NULL) == 0)
		kallsyms_filter_run(&f, in, &o, NULL);
	out_free(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *cut = memmem(data, len, "---\n", 4);
	size_t table_len = cut ? (size_t)(cut - data) : len;
	_cleanup_close_ int fd = memory_file(data, table_len);
	struct kallsyms *ks;

	if (kallsyms_load_fd(fd, "fuzz", &ks, NULL) < 0)
		return 0;
	for (size_t i = 0; i + 8 <= len; i++) {
		struct kallsyms_sym s;
		uint64_t addr;

		memcpy(&addr, data + i, sizeof(addr));
		if (kallsyms_find(ks, addr, &s) && (addr < s.start || addr >= s.end || !*s.name))
			abort();
	}
	if (cut)
		filter(ks, cut + 4, len - table_len - 4);
	kallsyms_free(ks);
	return 0;
}
