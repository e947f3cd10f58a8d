/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tarfile.h"

#include <errno.h>

#define BLOCK 512

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
	char type;
	char link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static int set_name(struct header *h, const char *name, struct err *e)
{
	size_t len = strlen(name), cut = 0;

	if (len <= sizeof(h->name)) {
		memcpy(h->name, name, len);
		return 0;
	}
	/* the last slash that leaves enough behind it */
	for (size_t i = 0; i < len && i <= sizeof(h->prefix); i++)
		if (name[i] == '/' && len - i - 1 <= sizeof(h->name))
			cut = i;
	if (!cut)
		return err_set(e, -ENAMETOOLONG, "the name '%s' is too long for an archive", name);
	memcpy(h->prefix, name, cut);
	memcpy(h->name, name + cut + 1, len - cut - 1);
	return 0;
}

static void put_octal(char *field, size_t size, uint64_t value)
{
	field[size - 1] = '\0';
	for (size_t i = size - 1; i-- > 0; value >>= 3)
		field[i] = (char)('0' + (value & 7));
}

static int put_header(
	struct tarfile *t, const char *name, char type, const char *target, uint64_t len, struct err *e)
{
	struct header h = {
		.type = type, .magic = "ustar", .version = { '0', '0' }, .uname = "root", .gname = "root"
	};
	const unsigned char *bytes = (const void *)&h;
	unsigned int sum = 0;
	int rc = set_name(&h, name, e);

	if (!rc && strlen(target) > sizeof(h.link))
		rc = err_set(e, -ENAMETOOLONG, "the link '%s' is too long for an archive", name);
	if (rc)
		return rc;
	memcpy(h.link, target, strlen(target));
	put_octal(h.mode, sizeof(h.mode), 0644);
	put_octal(h.uid, sizeof(h.uid), 0);
	put_octal(h.gid, sizeof(h.gid), 0);
	put_octal(h.size, sizeof(h.size), len);
	put_octal(h.mtime, sizeof(h.mtime), t->time);
	/* the sum is that of a header with spaces in its place */
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += bytes[i];
	put_octal(h.sum, sizeof(h.sum) - 1, sum);
	out_put(t->o, &h, sizeof(h));
	return 0;
}

int tarfile_put(struct tarfile *t, const char *name, const void *bytes, size_t len, struct err *e)
{
	static const char zeroes[BLOCK];
	int rc = put_header(t, name, '0', "", len, e);

	if (rc)
		return rc;
	out_put(t->o, bytes, len);
	out_put(t->o, zeroes, (BLOCK - len % BLOCK) % BLOCK);
	return 0;
}

int tarfile_link(struct tarfile *t, const char *name, const char *target, struct err *e)
{
	return put_header(t, name, '2', target, 0, e);
}

void tarfile_end(struct tarfile *t)
{
	static const char zeroes[2 * BLOCK];

	out_put(t->o, zeroes, sizeof(zeroes));
}
