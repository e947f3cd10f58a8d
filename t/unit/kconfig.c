/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "check/machine.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

static const char text[] =
	"# Kernel Configuration\nCONFIG_BPF_SYSCALL=y\nCONFIG_KPROBES=m\n# CONFIG_BPF is not set\n"
	"CONFIG_LSM=\"yama,bpf\"\nCONFIG_HZ=250";

/* LEN bytes that end at an unmapped page, so that an over-read faults. */
static void *at_the_edge(const void *data, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (len + page) / page * page;
	char *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	munmap(p + room, page);
	return memcpy(p + room - len, data, len);
}

static int parse(const void *data, size_t len, struct kconfig **ret, struct err *e)
{
	return kconfig_parse("/proc/config.gz", at_the_edge(data, len), len, ret, e);
}

static void test_values(struct tap *t)
{
	struct kconfig *kc = NULL;
	char v[64], tiny[3];

	tap_ok(t, parse(text, sizeof(text) - 1, &kc, NULL) == 0, "plain text is a configuration");
	tap_ok(t, kconfig_find(kc, "CONFIG_BPF_SYSCALL", v, sizeof(v)) && strcmp(v, "y") == 0, "y is found");
	tap_ok(t, kconfig_find(kc, "CONFIG_KPROBES", v, sizeof(v)) && strcmp(v, "m") == 0, "m is found");
	tap_ok(t, !kconfig_find(kc, "CONFIG_BPF", v, sizeof(v)) && !v[0],
		"what is not set is absent, though another name begins so");
	tap_ok(t, !kconfig_find(kc, "CONFIG_BPF_SYS", v, sizeof(v)),
		"the beginning of a name is not the name");
	kconfig_find(kc, "CONFIG_LSM", v, sizeof(v));
	tap_eq_str(t, v, "\"yama,bpf\"", "a string keeps its quotes");
	kconfig_find(kc, "CONFIG_HZ", v, sizeof(v));
	tap_eq_str(t, v, "250", "a last line without newline counts");
	kconfig_find(kc, "CONFIG_HZ", tiny, sizeof(tiny));
	tap_eq_str(t, tiny, "25", "a value is cut to its buffer");
	tap_eq_str(t, kconfig_path(kc), "/proc/config.gz", "the path is kept");
	kconfig_free(kc);
	kconfig_free(NULL);
}

static size_t gzip(const void *data, size_t len, unsigned char *out, size_t cap)
{
	z_stream z = { .avail_in = (uInt)len, .next_out = out, .avail_out = (uInt)cap };

	memcpy(&z.next_in, &data, sizeof(data));
	if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	deflateEnd(&z);
	return cap - z.avail_out;
}

static void test_gzip(struct tap *t)
{
	unsigned char gz[1024];
	size_t len = gzip(text, sizeof(text) - 1, gz, sizeof(gz));
	struct kconfig *kc = NULL;
	bool refused = true;
	char v[8];

	tap_ok(t, parse(gz, len, &kc, NULL) == 0 && kconfig_find(kc, "CONFIG_HZ", v, sizeof(v)),
		"gzip is decompressed");
	kconfig_free(kc);
	for (size_t cut = 0; cut < len; cut++)
		refused &= parse(gz, cut, &kc, NULL) != 0;
	tap_ok(t, refused, "cut at any byte it is refused");
	refused = true;
	for (size_t at = 10; at < len; at++) {
		gz[at] ^= 0x55;
		refused &= parse(gz, len, &kc, NULL) != 0;
		gz[at] ^= 0x55;
	}
	tap_ok(t, refused, "with any byte of the stream changed it is refused");
}

static void test_bomb(struct tap *t)
{
	enum { BIG = 64 << 20 };
	char *zeros = calloc(1, BIG);
	unsigned char *gz = malloc(1 << 20);
	struct kconfig *kc = NULL;
	struct err e = { 0 };
	size_t len;

	memcpy(zeros, text, sizeof(text) - 1);
	memset(zeros + sizeof(text), '\n', BIG - sizeof(text));
	len = gzip(zeros, BIG, gz, 1 << 20);
	tap_ok(t,
		kconfig_parse("/proc/config.gz", gz, len, &kc, &e) == -EFBIG && strstr(e.msg, "larger than"),
		"64 MiB in %zu KiB of gzip are refused", len >> 10);
	free(zeros);
	free(gz);
}

static void test_garbage(struct tap *t)
{
	struct kconfig *kc = NULL;
	struct err e = { 0 };

	tap_ok(t, parse("", 0, &kc, &e) == -EINVAL, "an empty file is no configuration");
	tap_ok(t, parse("\x1f\x8b", 2, &kc, &e) == -EBADMSG, "gzip's magic alone is damaged");
	tap_ok(t,
		parse("hello\nworld\n", 12, &kc, &e) == -EINVAL &&
			strstr(e.msg, "is not a kernel configuration"),
		"other text is no configuration");
	tap_ok(t, parse("CONFIG_A=y\n\0CONFIG_B=y\n", 23, &kc, &e) == -EINVAL,
		"a NUL byte is no configuration");
}

int main(void)
{
	struct tap t = { 0 };

	test_values(&t);
	test_gzip(&t);
	test_bomb(&t);
	test_garbage(&t);
	return tap_done(&t);
}
