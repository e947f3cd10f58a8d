/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes an archive and reads it with tar(1). */
#include "base/tap.h"
#include "check/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define LONG                                                                                                 \
	"a23456789/a23456789/a23456789/a23456789/a23456789/a23456789/a23456789/a23456789/a23456789/"         \
	"a23456789/a23456789"

/* The output of tar with the arguments WORDS and the archive FD, in BUF. False if tar fails. */
static bool tar_says(int fd, const char *words, char *buf, size_t cap)
{
	_cleanup_free_ char *command = NULL;
	FILE *p;
	size_t n;

	if (asprintf(&command, "TZ=UTC tar %s -f /proc/%d/fd/%d 2>&1", words, (int)getpid(), fd) < 0)
		return false;
	p = popen(command, "re");
	if (!p)
		return false;
	n = fread(buf, 1, cap - 1, p);
	buf[n] = '\0';
	return pclose(p) == 0;
}

int main(void)
{
	int fd = memfd_create("tar", 0);
	struct tap t = { 0 };
	struct out o = { 0 };
	struct tarfile tar = { .o = &o, .time = 86400 };
	char got[4096], block[512];
	char bad[400];
	struct err e;

	if (fd < 0 || out_init(&o, fd, NULL) != 0)
		return 1;
	memset(block, 'x', sizeof(block));
	memset(bad, 'n', sizeof(bad) - 1);
	bad[sizeof(bad) - 1] = '\0';
	tap_eq_u64(&t, (uint64_t)tarfile_put(&tar, "top/empty", "", 0, &e), 0, "an empty file is added");
	tap_eq_u64(&t, (uint64_t)tarfile_put(&tar, "top/block", block, sizeof(block), &e), 0,
		"a file of one block is added");
	tap_eq_u64(&t, (uint64_t)tarfile_put(&tar, "top/text", "hello\n", 6, &e), 0, "a short file is added");
	tap_eq_u64(&t, (uint64_t)tarfile_put(&tar, LONG "/file", "deep\n", 5, &e), 0,
		"a file with a long name is added");
	tap_eq_u64(&t, (uint64_t)tarfile_link(&tar, "top/ns", "user:[4026531837]", &e), 0, "a link is added");
	tap_ok(&t, tarfile_put(&tar, bad, "", 0, &e) == -ENAMETOOLONG,
		"a name that cannot be split is refused");
	tarfile_end(&tar);
	tap_eq_u64(&t, (uint64_t)out_flush(&o, &e), 0, "the archive is written");
	tap_ok(&t, tar_says(fd, "--numeric-owner -tv", got, sizeof(got)), "tar lists the archive");
	tap_eq_str(&t, got,
		"-rw-r--r-- 0/0               0 1970-01-02 00:00 top/empty\n"
		"-rw-r--r-- 0/0             512 1970-01-02 00:00 top/block\n"
		"-rw-r--r-- 0/0               6 1970-01-02 00:00 top/text\n"
		"-rw-r--r-- 0/0               5 1970-01-02 00:00 " LONG "/file\n"
		"lrw-r--r-- 0/0               0 1970-01-02 00:00 top/ns -> user:[4026531837]\n",
		"tar lists sizes, times and names");
	tap_ok(&t, tar_says(fd, "-xO top/text", got, sizeof(got)), "tar unpacks a file");
	tap_eq_str(&t, got, "hello\n", "the unpacked file has its contents");
	out_free(&o);
	return tap_done(&t);
}
