/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "check/bundle.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A copy of TEXT that ends right before an unmapped page. */
static char *at_the_edge(const char *text)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = strlen(text);
	char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE) != 0)
		exit(1);
	return memcpy(p + page - len, text, len);
}

static void filters(struct tap *t, const char *path, const char *text, const char *want, const char *name)
{
	struct buf b = { 0 };
	char note[128];
	bool known = secrets_filter(path, at_the_edge(text), strlen(text), &b, note, sizeof(note));

	buf_put(&b, "", 1);
	if (!want)
		tap_ok(t, !known && b.len == 1, "%s", name);
	else
		tap_eq_str(t, known ? (const char *)b.p : "(no rule)", want, name);
	buf_free(&b);
}

static void test_filters(struct tap *t)
{
	filters(t, "proc/sys/kernel/kptr_restrict", "1\n", "1\n", "a kernel setting is included unchanged");
	filters(t, "home/me/.ssh/id", "key", NULL, "a file without a rule is not included");
	filters(t, "proc/self/environ", "PASSWORD=x", NULL, "the environment is not included");
	filters(t, "proc/sys/kernel/random/boot_id/../../../../../etc/shadow", "x", "x",
		"a rule matches the path as it was requested");
	filters(t, "proc/self/status",
		"Name:\tcustomer-x\nPid:\t7\nUid:\t0\t0\t0\t0\nCapEff:\t00ff\nSeccomp:\t2",
		"Uid:\t0\t0\t0\t0\nCapEff:\t00ff\nSeccomp:\t2\n",
		"of the status only lines about privileges are included");
	filters(t, "proc/self/mounts",
		"proc /proc proc rw,hidepid=2 0 0\n//files/secret /home/me cifs username=me 0 0\n/dev/sda1 / "
		"ext4 rw 0 0\n",
		"proc /proc proc rw,hidepid=2 0 0\n",
		"of the mounts only the kernel's own file systems are included");
	filters(t, "proc/mounts", "garbage\n\n  \nx y", "", "malformed mounts are not included");
	filters(t, "proc/cmdline", "root=UUID=77 lockdown=integrity rd.luks.key=abc nokaslr\n",
		"lockdown=integrity nokaslr\n", "of the command line only words about tracing are included");
	filters(t, "proc/cmdline", "lockdownx=1", "\n",
		"a word that only begins like a known one is not included");
	filters(t, "proc/cmdline", "", "\n", "an empty command line gives an empty line");
	filters(t, "proc/kallsyms", "ffffffffa3200000 T _stext\nffffffffa3200010 t x\n",
		"ffffffff81000000 T _stext\n", "a kernel address is replaced by a fixed one");
	filters(t, "proc/kallsyms", "0000000000000000 T _stext\n", "0000000000000000 T _stext\n",
		"hidden kernel addresses are included as zeroes");
	filters(t, "proc/kallsyms", "", "0000000000000000 T _stext\n",
		"an empty kallsyms gives a hidden address");
	filters(t, "proc/self/cgroup",
		"0::/system.slice/"
		"docker-3f4e9a7b8c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f.scope\n",
		"0::/system.slice/"
		"docker-0000000000000000000000000000000000000000000000000000000000000000.scope\n",
		"the ID of a container is zeroed, and its runtime is included");
	filters(t, "proc/self/cgroup", "0::/user.slice/abc", "0::/user.slice/abc",
		"short words are not taken for IDs");
}

static void scrubs(struct tap *t, const char *text, const char *want, const char *name)
{
	const struct secrets_names names = { .host = "db-7", .user = "alice", .home = "/home/alice" };
	struct buf b = { 0 };

	secrets_scrub(&names, at_the_edge(text), strlen(text), &b);
	buf_put(&b, "", 1);
	tap_eq_str(t, (const char *)b.p, want, name);
	buf_free(&b);
}

int main(void)
{
	struct tap t = { 0 };

	test_filters(&t);
	scrubs(&t, "setcap '/home/alice/bin/x' on db-7", "setcap 'HOME/bin/x' on HOST",
		"the names of home directory and host are replaced");
	scrubs(&t, "alice malice alices", "USER malice alices", "names are replaced only as whole words");
	scrubs(&t, "https://bob:pw@symbols.example/x", "https://LOGIN@symbols.example/x",
		"the login in a URL is replaced");
	scrubs(&t, "https://symbols.example/a@b", "https://symbols.example/a@b",
		"a URL without a login is unchanged");
	scrubs(&t, "://", "://", "a text that ends in the middle of a URL is unchanged");
	scrubs(&t, "", "", "an empty text stays empty");
	scrubs(&t, "/sys/fs/cgroup/jobs/0123456789abcdef/memory.max",
		"/sys/fs/cgroup/jobs/0000000000000000/memory.max",
		"the ID of a container in a path is zeroed");
	scrubs(&t, "build ID 0123456789abcdef, /usr/lib/debug/.build-id/01/23456789abcdef.debug",
		"build ID 0123456789abcdef, /usr/lib/debug/.build-id/01/23456789abcdef.debug",
		"build IDs are unchanged");
	return tap_done(&t);
}
