/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "symbols/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static char place[96];
static struct sym_cache_file files[2] = { { 1, 2, 3, 4, 5 }, { 6, 7, 8, 9, 10 } };
static const uint64_t requested[] = { 0x1000, 0x1010, 0x2000 };

static struct sym_cache_key key_of(uint8_t id)
{
	struct sym_cache_key k = { .files = files, .n_files = 2, .options = 3 };

	k.id.len = 20;
	memset(k.id.bytes, id, 20);
	return k;
}

/* An answer about ADDRS: "fN" in "a.c", line N. */
static uint8_t *make_answer(
	const uint64_t *addrs, size_t n, enum sym_answer_reason reason, const char *want, size_t *len)
{
	struct sym_answer_build b;
	uint8_t *ret = NULL;

	sym_answer_begin(&b);
	for (size_t i = 0; i < n; i++) {
		char name[32];
		struct sym_answer_addr a = {
			.vaddr = addrs[i], .start = addrs[i], .source = SYM_SYMTAB, .reason = (uint8_t)reason
		};
		struct sym_answer_frame f = { .line = (uint32_t)i };

		snprintf(name, sizeof(name), "f%zu", i);
		f.name = sym_answer_string(&b, name);
		f.file = sym_answer_string(&b, "a.c");
		sym_answer_put(&b, &a, &f, 1);
	}
	if (want)
		sym_answer_want(&b, want);
	if (sym_answer_finish(&b, &ret, len) != 0)
		abort();
	sym_answer_end(&b);
	return ret;
}

static struct sym_cache *open_or_die(uint64_t limit)
{
	struct sym_cache *c = NULL;
	struct err e = { 0 };

	if (sym_cache_open(limit, &c, &e) != 0) {
		printf("Bail out! %s\n", e.msg);
		exit(1);
	}
	return c;
}

static int put(struct sym_cache *c, const struct sym_cache_key *k, size_t n, enum sym_answer_reason reason,
	const char *want)
{
	size_t len;
	uint8_t *bytes = make_answer(requested, n, reason, want, &len);
	int rc = sym_cache_put(c, k, bytes, len, NULL);

	free(bytes);
	return rc;
}

/* The result of sym_cache_get(); 1 if the last of N addresses does not have the name WANT. */
static int get(struct sym_cache *c, const struct sym_cache_key *k, const uint64_t *vaddrs, size_t n,
	const char *want)
{
	struct sym_answer view;
	uint8_t *bytes = NULL;
	int rc = sym_cache_get(c, k, vaddrs, n, &bytes, &view, NULL);

	if (rc == 0) {
		const struct sym_answer_addr *a = sym_answer_find(&view, vaddrs[n - 1]);

		rc = a && strcmp(sym_answer_text(&view, view.frames[a->first].name), want) == 0 ? 0 : 1;
	}
	free(bytes);
	return rc;
}

static void test_keeps(struct tap *t)
{
	struct sym_cache *c = open_or_die(SYM_CACHE_BYTES_DEFAULT);
	struct sym_cache_key k = key_of(1), other = key_of(1), nameless = key_of(1);
	static const uint64_t more[] = { 0x1000, 0x1010, 0x1018, 0x2000 };
	struct sym_cache_file changed[2];
	struct diskcache_stats s;
	unsigned int strangers = 0;

	tap_ok(t, get(c, &k, requested, 3, "f2") == -ENOENT, "an empty cache has no answer");
	tap_ok(t, put(c, &k, 3, SYM_OK, NULL) == 1 && get(c, &k, requested, 3, "f2") == 0,
		"an answer is kept and found");
	tap_ok(t, get(c, &k, requested + 1, 1, "f1") == 0,
		"an answer is found for a request of some of its addresses");
	tap_ok(t, get(c, &k, more, 4, "f2") == -ENOENT,
		"a request with an address that is not cached has no answer");
	for (size_t i = 0; i < sizeof(files) / 8; i++) {
		memcpy(changed, files, sizeof(files));
		((uint64_t *)changed)[i] ^= 1;
		other.files = changed;
		strangers += get(c, &other, requested, 1, "f0") == -ENOENT;
	}
	tap_eq_u64(t, strangers, 10, "files that differ in any single number have no answer");
	other = key_of(1);
	other.options = 2;
	tap_ok(t, get(c, &other, requested, 1, "f0") == -ENOENT,
		"a request with other options has no answer");
	other = key_of(1);
	other.n_files = 1;
	tap_ok(t, get(c, &other, requested, 1, "f0") == -ENOENT, "a request with fewer files has no answer");
	other = key_of(2);
	tap_ok(t, get(c, &other, requested, 1, "f0") == -ENOENT,
		"a request for another build ID has no answer");
	nameless.id.len = 0;
	tap_ok(t, put(c, &nameless, 3, SYM_OK, NULL) == 0 && get(c, &nameless, requested, 1, "f0") == -ENOENT,
		"an answer for a file without a build ID is not kept");
	sym_cache_stats(c, &s);
	tap_ok(t, s.hits == 2 && s.misses == 16 && s.puts == 1 && !s.bad, "hits and misses are counted");
	sym_cache_close(c);
}

static void test_final(struct tap *t)
{
	struct sym_cache *c = open_or_die(SYM_CACHE_BYTES_DEFAULT);
	struct sym_cache_key k = key_of(3);

	tap_ok(t, put(c, &k, 3, SYM_R_LIMIT, NULL) == 0, "an answer that reached a limit is not kept");
	tap_ok(t, put(c, &k, 3, SYM_R_DEBUG_MISSING, NULL) == 0,
		"an answer that lacks debug information is not kept");
	tap_ok(t, put(c, &k, 3, SYM_OK, "1234 a.dwo") == 0, "an answer that needs another file is not kept");
	tap_ok(t, get(c, &k, requested, 1, "f0") == -ENOENT, "answers that are not kept are not found");
	tap_ok(t, put(c, &k, 3, SYM_R_NO_SYMBOL, NULL) == 1, "an answer that there is no symbol is kept");
	tap_ok(t, sym_cache_put(c, &k, (const uint8_t *)"nonsens", 8, NULL) == -EINVAL,
		"bytes that are not an answer are refused");
	sym_cache_close(c);
}

/* The path of the only entry, in PATH. */
static void only_entry(char path[512])
{
	DIR *d = opendir(place);
	const struct dirent *f;

	while (d && (f = readdir(d)))
		if (strstr(f->d_name, ".sym"))
			snprintf(path, 512, "%.95s/%.255s", place, f->d_name);
	closedir(d);
}

static void overwrite(const char *path, const uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
}

static void empty_place(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s' && mkdir -m 700 '%s'", place, place);
	if (system(command) != 0)
		abort();
}

static void test_damaged(struct tap *t)
{
	struct sym_cache_key k = key_of(4), other = key_of(4);
	struct sym_cache *c;
	char path[512] = "", path_of_other[512] = "";
	uint8_t bytes[4096];
	size_t len, wrong = 0;
	int fd;

	other.options = 99;
	empty_place();
	c = open_or_die(SYM_CACHE_BYTES_DEFAULT);
	put(c, &other, 3, SYM_OK, NULL);
	only_entry(path_of_other);
	empty_place();
	sym_cache_close(c);
	c = open_or_die(SYM_CACHE_BYTES_DEFAULT);
	put(c, &k, 3, SYM_OK, NULL);
	only_entry(path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = (size_t)read(fd, bytes, sizeof(bytes));
	close(fd);
	for (size_t cut = 0; cut < len; cut++) {
		overwrite(path, bytes, cut);
		wrong += get(c, &k, requested, 3, "f2") != -EINVAL;
	}
	tap_eq_u64(t, wrong, 0, "an entry cut at any place is not used");
	wrong = 0;
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= 4;
		overwrite(path, bytes, len);
		wrong += get(c, &k, requested, 3, "f2") != -EINVAL;
		bytes[i] ^= 4;
	}
	tap_eq_u64(t, wrong, 0, "an entry with any byte changed is not used");
	tap_ok(t, access(path, F_OK) != 0, "a damaged entry is removed");
	overwrite(path_of_other, bytes, len);
	tap_ok(t, get(c, &other, requested, 3, "f2") == -ENOENT,
		"an entry under the name of another key is not used");
	overwrite(path, bytes, len);
	tap_ok(t, get(c, &k, requested, 3, "f2") == 0, "an undamaged entry is used");
	chmod(path, 0666);
	tap_ok(t, get(c, &k, requested, 3, "f2") == -EINVAL, "an entry that others can write to is not used");
	sym_cache_close(c);
}

static void test_limit(struct tap *t)
{
	struct sym_cache *c;
	struct diskcache_stats s;
	size_t kept = 0;

	empty_place();
	c = open_or_die(4000);
	for (uint8_t i = 1; i < 60; i++) {
		struct sym_cache_key k = key_of(i);

		put(c, &k, 3, SYM_OK, NULL);
	}
	for (uint8_t i = 1; i < 60; i++) {
		struct sym_cache_key k = key_of(i);

		kept += get(c, &k, requested, 1, "f0") == 0;
	}
	sym_cache_stats(c, &s);
	tap_ok(t, kept > 1 && kept < 15 && s.removed == 59 - kept, "answers beyond the limit are removed");
	sym_cache_close(c);
}

int main(void)
{
	struct tap t = { 0 };
	const char *tmp = getenv("TMPDIR");
	char command[128];

	snprintf(place, sizeof(place), "%.60s/stacktools-t.XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(place))
		return 1;
	setenv("STACKTOOLS_CACHE", place, 1);
	test_keeps(&t);
	test_final(&t);
	test_damaged(&t);
	test_limit(&t);
	snprintf(command, sizeof(command), "rm -rf '%s'", place);
	if (system(command) != 0)
		tap_diag("cannot remove %s", place);
	return tap_done(&t);
}
