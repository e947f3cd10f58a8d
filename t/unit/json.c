/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of base/json.h: the text that is written, and the values that Perl's JSON::PP reads from it. */
#include "base/json.h"
#include "base/tap.h"

#include <sys/mman.h>
#include <unistd.h>

static struct out out;

static struct json begin(bool spaced)
{
	if (out_init(&out, memfd_create("json", 0), NULL) != 0)
		abort();
	return (struct json){ .o = &out, .spaced = spaced };
}

/* What was written since begin(), up to SIZE - 1 bytes. */
static const char *written(char *buf, size_t size)
{
	ssize_t n = out_flush(&out, NULL) == 0 ? pread(out.fd, buf, size - 1, 0) : 0;

	buf[n > 0 ? n : 0] = '\0';
	close(out.fd);
	out_free(&out);
	return buf;
}

/* The same, read by JSON::PP and written again by it, with sorted keys and in ASCII. */
static const char *reread(char *buf, size_t size)
{
	char cmd[256] = "";
	FILE *f;

	if (out_flush(&out, NULL) == 0)
		snprintf(cmd, sizeof(cmd),
			"perl -MJSON::PP -0777 -ne 'print "
			"JSON::PP->new->canonical->ascii->encode(decode_json($_))' "
			"/proc/%d/fd/%d 2>&1",
			getpid(), out.fd);
	f = popen(cmd, "r");
	buf[f ? fread(buf, 1, size - 1, f) : 0] = '\0';
	if (f)
		pclose(f);
	close(out.fd);
	out_free(&out);
	return buf;
}

static void every_kind(struct json *j)
{
	json_begin(j, NULL, '{');
	json_str(j, "a", "x");
	json_line(j, 2);
	json_u64(j, "b", UINT64_MAX);
	json_begin(j, "c", '[');
	json_end(j, ']');
	json_begin(j, "d", '[');
	json_bool(j, NULL, true);
	json_bool(j, NULL, false);
	json_null(j, NULL);
	json_begin(j, NULL, '{');
	json_end(j, '}');
	json_line(j, 1);
	json_end(j, ']');
	json_str(j, "e", NULL);
	json_hex(j, "f", 0);
	json_hex(j, "g", UINT64_MAX);
	json_bytes(j, "h", (const uint8_t *)"\0\x0a\xff", 3);
	json_bytes(j, "i", NULL, 0);
	json_end(j, '}');
}

static void test_layout(struct tap *t)
{
	struct json j = begin(false);
	char buf[1024];

	every_kind(&j);
	tap_eq_str(t, written(buf, sizeof(buf)),
		"{\"a\":\"x\",\n  \"b\":18446744073709551615,\"c\":[],\"d\":[true,false,null,{}\n "
		"],\"e\":null,"
		"\"f\":\"0\",\"g\":\"ffffffffffffffff\",\"h\":\"000aff\",\"i\":\"\"}",
		"values of every kind are written, with new lines where requested");
	j = begin(true);
	every_kind(&j);
	tap_eq_str(t, written(buf, sizeof(buf)),
		"{\"a\": \"x\",\n  \"b\": 18446744073709551615, \"c\": [], \"d\": [true, false, null, {}\n "
		"], "
		"\"e\": null, \"f\": \"0\", \"g\": \"ffffffffffffffff\", \"h\": \"000aff\", \"i\": \"\"}",
		"with spaces, there is none at the end of a line");
	for (int spaced = 0; spaced <= 1; spaced++) {
		j = begin(spaced);
		every_kind(&j);
		tap_eq_str(t, reread(buf, sizeof(buf)),
			"{\"a\":\"x\",\"b\":18446744073709551615,\"c\":[],\"d\":[true,false,null,{}],\"e\":"
			"null,"
			"\"f\":\"0\",\"g\":\"ffffffffffffffff\",\"h\":\"000aff\",\"i\":\"\"}",
			spaced ? "JSON::PP reads the same values from text with spaces"
			       : "JSON::PP reads the same values");
	}
}

static void test_strings(struct tap *t)
{
	struct json j = begin(false);
	char buf[1024];

	json_begin(&j, NULL, '[');
	json_str(&j, NULL, "\"quoted\" \\ / \t\n\x01\x7f");
	json_str(&j, NULL, "\xc3\xa9 \xf0\x9f\x98\x80");
	json_begin(&j, NULL, '{');
	json_u64(&j, "a \"key\"", 0);
	json_end(&j, '}');
	json_end(&j, ']');
	tap_eq_str(t, reread(buf, sizeof(buf)),
		"[\"\\\"quoted\\\" \\\\ / \\t\\n\\u0001\x7f\",\"\\u00e9 \\ud83d\\ude00\",{\"a "
		"\\\"key\\\"\":0}]",
		"quotes, control characters and UTF-8 are read unchanged, also in keys");
	j = begin(false);
	json_str(&j, NULL, "no \xff\xc3( UTF-8");
	tap_ok(t, reread(buf, sizeof(buf))[0] == '"' && strstr(buf, "UTF-8\""),
		"bytes that are not UTF-8 are written as text that can be read: %s", buf);
}

/* The same bytes are written to an out and to a buf. */
static void test_buf(struct tap *t)
{
	struct json j, into;
	struct buf b = { 0 };
	char buf[1024];

	for (int spaced = 0; spaced <= 1; spaced++) {
		j = begin(spaced);
		into = (struct json){ .b = &b, .spaced = spaced };
		every_kind(&j);
		every_kind(&into);
		buf_put(&b, "", 1);
		tap_eq_str(t, (const char *)b.p, written(buf, sizeof(buf)),
			spaced ? "a buf gets the same text as an out, with spaces"
			       : "a buf gets the same text as an out");
		buf_reset(&b);
	}
	into = (struct json){ .b = &b };
	json_begin(&into, NULL, '{');
	json_address(&into, "a key of more bytes than most of them have", 0);
	json_address(&into, "b\n", UINT64_MAX);
	json_begin(&into, "c", '[');
	buftext_str(&b, "1,2");
	json_end(&into, ']');
	json_str(&into, "\"", "\"\xc3\xa9");
	json_end(&into, '}');
	buf_put(&b, "", 1);
	tap_eq_str(t, (const char *)b.p,
		"{\"a key of more bytes than most of them have\":\"0x0\",\"b\\u000a\":\"0xffffffffffffffff\","
		"\"c\":[1,2],\"\\\"\":\"\\\"\xc3\xa9\"}",
		"addresses, long and escaped keys, and the caller's own text are written");
	buf_free(&b);
}

int main(void)
{
	struct tap t = { 0 };

	test_layout(&t);
	test_buf(&t);
	test_strings(&t);
	return tap_done(&t);
}
