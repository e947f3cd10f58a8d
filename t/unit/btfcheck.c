/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recorded tree's BTF, cut and changed at each byte: the check judges it and never crashes. */
#include "base/tap.h"
#include "check/btf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct tree {
	char dir[64], file[128];
	struct root root;
	struct machine m;
};

static bool tree_make(struct tree *t)
{
	static const char *const below[] = { "sys", "sys/kernel", "sys/kernel/btf" };
	char path[128];

	snprintf(t->dir, sizeof(t->dir), "%s", "/tmp/unit-btfcheck.XXXXXX");
	if (!mkdtemp(t->dir))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(below); i++) {
		snprintf(path, sizeof(path), "%s/%s", t->dir, below[i]);
		if (mkdir(path, 0700) != 0)
			return false;
	}
	snprintf(t->file, sizeof(t->file), "%s/sys/kernel/btf/vmlinux", t->dir);
	if (root_open(t->dir, &t->root, NULL) != 0)
		return false;
	t->m = (struct machine){ .root = &t->root, .version = MACHINE_VERSION(6, 1) };
	return true;
}

static void tree_remove(struct tree *t)
{
	static const char *const below[] = { "/sys/kernel/btf/vmlinux", "/sys/kernel/btf", "/sys/kernel",
		"/sys", "" };
	char path[128];

	for (size_t i = 0; i < ARRAY_LEN(below); i++) {
		snprintf(path, sizeof(path), "%s%s", t->dir, below[i]);
		remove(path);
	}
	root_close(&t->root);
}

/* Returns how many findings are not OK if the BTF is the LEN bytes at DATA; -1 = none at all, or an error. */
static int troubles(struct tree *t, const void *data, size_t len)
{
	int fd = open(t->file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), bad = 0;
	struct findings f = { 0 };

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		return -1;
	close(fd);
	btfcheck_run(&t->m, &f);
	for (size_t i = 0; i < f.n; i++)
		bad += f.list[i].status != FINDING_OK;
	if (!f.n)
		bad = -1;
	findings_free(&f);
	return bad;
}

static void test_changes(struct tap *t, struct tree *tree, char *btf, size_t len)
{
	size_t reported = 0, runs = 0;
	bool all = true;

	tap_ok(t, troubles(tree, btf, len) == 0, "all findings for the whole file are OK");
	for (size_t cut = 0; cut < len; cut++)
		all &= troubles(tree, btf, cut) > 0;
	tap_ok(t, all, "the file cut at any of %zu bytes is refused", len);
	for (size_t at = 0; at < len; at++, runs++) {
		btf[at] ^= 0x41;
		reported += troubles(tree, btf, len) > 0;
		btf[at] ^= 0x41;
	}
	tap_ok(t, reported > runs / 4,
		"a change of each of %zu bytes does no harm, and is reported if it matters (%zu)", runs,
		reported);
}

int main(void)
{
	char btf[8192];
	struct tree tree = { 0 };
	struct tap t = { 0 };
	FILE *f;
	size_t len;

	f = fopen("t/data/bpfcheck/debian-6.1/sys/kernel/btf/vmlinux", "re");
	len = f ? fread(btf, 1, sizeof(btf), f) : 0;
	if (f)
		fclose(f);
	if (!tap_ok(&t, len > 100 && tree_make(&tree), "the recorded BTF can be read"))
		return tap_done(&t);
	test_changes(&t, &tree, btf, len);
	memset(btf, 0xff, sizeof(btf));
	tap_ok(&t, troubles(&tree, btf, sizeof(btf)) > 0, "bytes that are not BTF are refused");
	tree_remove(&tree);
	return tap_done(&t);
}
