/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/kconfig.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

/* Real ones are 100 to 300 KB; the limits stop a file that is made to fill memory. */
#define PACKED_MAX (4U << 20)
#define TEXT_MAX (16U << 20)

struct kconfig {
	char path[512];
	char complaint[1024];
	char *text; /* begins with a newline, so that every line does */
};

void kconfig_free(struct kconfig *kc)
{
	if (!kc)
		return;
	free(kc->text);
	free(kc);
}

/* Inflate from Z into *OUT, which is grown up to TEXT_MAX. 0 at the end of the stream. */
static int inflate_all(z_stream *z, char **out, size_t *len)
{
	size_t cap = 0, used = 0;

	for (;;) {
		int rc;

		if (base_grow(out, &cap, used + 65536, 1) != 0)
			return -ENOMEM;
		z->next_out = (Bytef *)*out + used;
		z->avail_out = (uInt)(cap - used);
		rc = inflate(z, Z_NO_FLUSH);
		used = cap - z->avail_out;
		*len = used;
		if (used > TEXT_MAX)
			return -EFBIG;
		if (rc == Z_STREAM_END)
			return 0;
		if (rc != Z_OK)
			return rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
}

static int gunzip(const void *data, size_t size, char **out, size_t *len)
{
	z_stream z = { .avail_in = (uInt)size };
	int rc;

	/* zlib's pointer to what it only reads has no const unless asked for */
	memcpy(&z.next_in, &data, sizeof(data));
	if (inflateInit2(&z, 15 + 16) != Z_OK) /* 16: gzip's header and checksum */
		return -ENOMEM;
	rc = inflate_all(&z, out, len);
	inflateEnd(&z);
	return rc;
}

static bool looks_like_config(const char *text, size_t len)
{
	if (memchr(text, '\0', len))
		return false;
	return strstr(text, "\nCONFIG_") || strstr(text, "\n# CONFIG_");
}

/* The file as text in *OUT, with a newline before it and a NUL after it. */
static int unpack(const char *path, const void *data, size_t size, char **out, size_t *len, struct err *e)
{
	_cleanup_free_ char *plain = NULL;
	int rc = 0;

	*len = size;
	if (size >= 2 && memcmp(data, "\x1f\x8b", 2) == 0) {
		rc = gunzip(data, size, &plain, len);
		data = plain;
	}
	if (rc == -EFBIG)
		return err_set(e, rc, "'%s' is larger than a kernel configuration can be", path);
	if (rc && rc != -ENOMEM)
		return err_set(e, rc, "'%s' is damaged or cut: it cannot be decompressed", path);
	*out = rc ? NULL : malloc(*len + 2);
	if (!*out)
		return err_nomem(e, "a kernel configuration");
	(*out)[0] = '\n';
	memcpy(*out + 1, data, *len);
	(*out)[++*len] = '\0';
	return 0;
}

int kconfig_parse(const char *path, const void *data, size_t size, struct kconfig **ret, struct err *e)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int rc = unpack(path, data, size, &text, &len, e);

	if (rc)
		return rc;
	if (!looks_like_config(text, len))
		return err_set(e, -EINVAL, "'%s' is no kernel configuration", path);
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_nomem(e, "a kernel configuration");
	snprintf((*ret)->path, sizeof((*ret)->path), "%s", path);
	(*ret)->text = TAKE_PTR(text);
	return 0;
}

static int load_one(const struct root *r, const char *path, struct kconfig **ret, struct err *e)
{
	_cleanup_free_ char *data = NULL;
	char shown[512];
	size_t len;
	int rc = root_read(r, path, PACKED_MAX, &data, &len, e);

	if (rc)
		return rc;
	snprintf(shown, sizeof(shown), "/%s", path);
	return kconfig_parse(shown, data, len, ret, e);
}

int kconfig_load(const struct root *r, const char *release, struct kconfig **ret, struct err *e)
{
	const struct {
		const char *before, *after;
	} places[] = { { "proc/config.gz", NULL }, { "boot/config-", "" }, { "lib/modules/", "/config" },
		{ "lib/modules/", "/build/.config" } };
	struct err first = { 0 }, one;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		bool named = places[i].after != NULL;
		char path[384];
		int rc;

		snprintf(path, sizeof(path), "%s%s%s", places[i].before, named ? release : "",
			named ? places[i].after : "");
		rc = load_one(r, path, ret, &one);
		if (!rc) {
			snprintf((*ret)->complaint, sizeof((*ret)->complaint), "%s", first.msg);
			return 0;
		}
		if (rc != -ENOENT && rc != -ENOTDIR && !first.code)
			first = one;
	}
	if (first.code) {
		if (e)
			*e = first;
		return first.code;
	}
	return err_set(e, -ENOENT,
		"no /proc/config.gz, /boot/config-%s or /lib/modules/%s/{config,build/.config}", release,
		release);
}

const char *kconfig_path(const struct kconfig *kc)
{
	return kc->path;
}

const char *kconfig_complaint(const struct kconfig *kc)
{
	return kc->complaint;
}

bool kconfig_find(const struct kconfig *kc, const char *option, char *buf, size_t cap)
{
	char key[128];
	const char *at;

	snprintf(key, sizeof(key), "\n%s=", option);
	at = strstr(kc->text, key);
	if (!at) {
		buf[0] = '\0';
		return false;
	}
	at += strlen(key);
	snprintf(buf, cap, "%.*s", (int)MIN(strcspn(at, "\r\n"), 512), at);
	return true;
}
