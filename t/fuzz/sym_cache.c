/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as an entry of the cache of
 * answers. No random entry has the right checksum, so this target sets it. The
 * first byte chooses: the whole entry, or the part after the key of a requested
 * entry.
 */
#include "base/hash.h"
#include "symbols/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define KEY_BYTES 8 /* magic and checksum; the checksum covers the bytes after them */

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char dir[] = "/tmp/stacktools-fuzz.XXXXXX", path[512];
static struct sym_cache *cache;
static struct sym_cache_file file = { 1, 2, 3, 4, 5 };
static uint8_t head[512]; /* of a valid entry */
static size_t head_len;

static const struct sym_cache_key *key(void)
{
	static struct sym_cache_key k = { .files = &file, .n_files = 1, .id.len = 20 };

	return &k;
}

static void clean_up(void)
{
	sym_cache_close(cache);
	unlink(path);
	rmdir(dir);
}

/* The only entry. */
static void find_entry(void)
{
	DIR *d = opendir(dir);
	const struct dirent *f;

	while (d && (f = readdir(d)))
		if (f->d_name[0] != '.')
			snprintf(path, sizeof(path), "%s/%s", dir, f->d_name);
	closedir(d);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct sym_answer_build b;
	uint8_t *bytes = NULL;
	size_t len = 0;
	FILE *f;

	(void)argc, (void)argv;
	if (!mkdtemp(dir) || setenv("STACKTOOLS_CACHE", dir, 1) != 0)
		abort();
	sym_answer_begin(&b);
	if (sym_cache_open(SYM_CACHE_BYTES_DEFAULT, &cache, NULL) != 0 ||
		sym_answer_finish(&b, &bytes, &len) != 0 ||
		sym_cache_put(cache, key(), bytes, len, NULL) != 1)
		abort();
	find_entry();
	f = fopen(path, "re");
	head_len = f ? fread(head, 1, sizeof(head), f) - len : 0;
	if (!f || head_len < KEY_BYTES || head_len + len > sizeof(head))
		abort();
	fclose(f);
	sym_answer_end(&b);
	free(bytes);
	atexit(clean_up);
	return 0;
}

static void write_entry(uint8_t *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	uint32_t crc;

	if (len > KEY_BYTES) {
		memcpy(bytes, head, 4); /* the magic */
		crc = crc32c(0, bytes + KEY_BYTES, len - KEY_BYTES);
		memcpy(bytes + 4, &crc, sizeof(crc));
	}
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
}

static void look(void)
{
	static const uint64_t requested[] = { 0x1000 };
	struct sym_answer a;
	uint8_t *bytes = NULL;

	for (size_t n = 0; n < 2; n++) {
		if (sym_cache_get(cache, key(), requested, n, &bytes, &a, NULL) != 0)
			continue;
		for (uint32_t i = 0; i < a.head->n_addrs; i++)
			if (a.addrs[i].first + (uint64_t)a.addrs[i].n_frames > a.head->n_frames)
				abort();
		if (n && !sym_answer_find(&a, requested[0]))
			abort();
		free(bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t before;
	uint8_t *bytes;

	if (!len)
		return 0;
	before = data[0] & 1 ? head_len : 0;
	bytes = malloc(before + len);
	if (!bytes)
		return 0;
	memcpy(bytes, head, before);
	memcpy(bytes + before, data + 1, len - 1);
	write_entry(bytes, before + len - 1);
	look();
	free(bytes);
	return 0;
}
