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

/* A copy of LEN bytes that ends before an unmapped page, so that a read past its end faults. */
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

	tap_ok(t, parse(text, sizeof(text) - 1, &kc, NULL) == 0, "a plain text configuration is read");
	tap_ok(t, kconfig_find(kc, "CONFIG_BPF_SYSCALL", v, sizeof(v)) && strcmp(v, "y") == 0,
		"a value of y is found");
	tap_ok(t, kconfig_find(kc, "CONFIG_KPROBES", v, sizeof(v)) && strcmp(v, "m") == 0,
		"a value of m is found");
	tap_ok(t, !kconfig_find(kc, "CONFIG_BPF", v, sizeof(v)) && !v[0],
		"an option that is not set is missing, even if it is the start of another name");
	tap_ok(t, !kconfig_find(kc, "CONFIG_BPF_SYS", v, sizeof(v)),
		"the start of a name does not find the name");
	kconfig_find(kc, "CONFIG_LSM", v, sizeof(v));
	tap_eq_str(t, v, "\"yama,bpf\"", "a string keeps its quotes");
	kconfig_find(kc, "CONFIG_HZ", v, sizeof(v));
	tap_eq_str(t, v, "250", "a last line without a newline is read");
	kconfig_find(kc, "CONFIG_HZ", tiny, sizeof(tiny));
	tap_eq_str(t, tiny, "25", "a value is cut to the size of the buffer");
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
		"a gzip file is decompressed");
	kconfig_free(kc);
	for (size_t cut = 0; cut < len; cut++)
		refused &= parse(gz, cut, &kc, NULL) != 0;
	tap_ok(t, refused, "a gzip file cut at any byte is refused");
	refused = true;
	for (size_t at = 10; at < len; at++) {
		gz[at] ^= 0x55;
		refused &= parse(gz, len, &kc, NULL) != 0;
		gz[at] ^= 0x55;
	}
	tap_ok(t, refused, "a gzip file with any byte of the stream changed is refused");
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
		"64 MiB in a gzip file of %zu KiB are refused", len >> 10);
	free(zeros);
	free(gz);
}

static void test_garbage(struct tap *t)
{
	struct kconfig *kc = NULL;
	struct err e = { 0 };

	tap_ok(t, parse("", 0, &kc, &e) == -EINVAL, "an empty file is not a configuration");
	tap_ok(t, parse("\x1f\x8b", 2, &kc, &e) == -EBADMSG,
		"a gzip file that ends after its magic is damaged");
	tap_ok(t,
		parse("hello\nworld\n", 12, &kc, &e) == -EINVAL &&
			strstr(e.msg, "is not a kernel configuration"),
		"another text is not a configuration");
	tap_ok(t, parse("CONFIG_A=y\n\0CONFIG_B=y\n", 23, &kc, &e) == -EINVAL,
		"a text with a NUL byte is not a configuration");
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
