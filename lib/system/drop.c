/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/drop.h"
#include "base/diskcache.h"
#include "base/text.h"
#include "system/privilege_sets.h"
#include "system/privileges.h"
#include "system/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>

#define WAIT_MS 1000 /* for threads that are about to end */

/* Empty the bounding set. Call it first: it needs a capability. */
static bool empty_bounding(void)
{
	unsigned long cap = 0;

	while (prctl(PR_CAPBSET_DROP, cap) == 0)
		cap++;
	return errno == EINVAL; /* past the last capability */
}

/* The permitted capabilities of our thread TID; 0 if it has ended. */
static uint64_t priv_of(const char *tid)
{
	char path[sizeof("/proc/self/task//status") + NAME_MAX], text[8192];
	struct priv_status st;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return priv_status_parse(text, &st) == 0 ? st.permitted : UINT64_MAX;
}

/* The permitted capabilities of all threads together; all capabilities if unknown. */
static uint64_t priv_of_all(void)
{
	DIR *tasks = opendir("/proc/self/task");
	uint64_t set = tasks ? 0 : UINT64_MAX;
	struct dirent *d;

	while (tasks && (d = readdir(tasks)))
		if (d->d_name[0] != '.')
			set |= priv_of(d->d_name);
	if (tasks)
		closedir(tasks);
	return set;
}

int priv_drop_now(const struct priv_drop_opts *o, struct priv_drop *ret, struct err *e)
{
	int rc;

	*ret = (struct priv_drop){ .bounding = empty_bounding() };
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_sys(e, -errno, "cannot give up new privileges");
	if (!o->paths && pathlock_writing(o->writable, o->n_writable))
		ret->landlock = pathlock_version();
	rc = priv_sets_set(o->keep, o->keep);
	if (rc)
		return err_sys(e, rc, "cannot give up capabilities");
	ret->kept = priv_of_all();
	for (int i = 0; (ret->kept & ~o->keep) && i < WAIT_MS; i++) {
		usleep(1000);
		ret->kept = priv_of_all();
	}
	return 0;
}

int priv_drop_recorder(uint64_t keep, struct priv_drop *ret, struct err *e)
{
	char cache[PATH_MAX];
	const char *const writable[] = { "/dev/null",
		diskcache_place("unwind table", cache, NULL) == 0 ? cache : NULL };

	return priv_drop_now(
		&(struct priv_drop_opts){
			.keep = keep, .writable = writable, .n_writable = ARRAY_LEN(writable) },
		ret, e);
}

/* The names of the capabilities in SET: "CAP_BPF, CAP_PERFMON" or "none". */
static void priv_drop_put_caps(uint64_t set, struct buf *b)
{
	const char *comma = "";
	char name[32];

	if (!set)
		buftext_str(b, "none");
	for (int cap = 0; cap < 64; cap++) {
		if (!(set >> cap & 1))
			continue;
		buftext_str(b, comma);
		buftext_str(b, priv_name(cap, name, sizeof(name)));
		comma = ", ";
	}
}

void priv_drop_put_child(const char *who, uint64_t caps, struct buf *b)
{
	buftext_printf(b, "; %s keeps ", who);
	priv_drop_put_caps(caps, b);
}

void priv_drop_put(const struct priv_drop *d, struct buf *b)
{
	if (d->kept) {
		buftext_str(b, "kept: ");
		priv_drop_put_caps(d->kept, b);
	} else {
		buftext_str(b, "no capabilities");
	}
	buftext_str(b, d->bounding ? ", none to be had" : ", no new ones");
	if (d->landlock)
		buftext_printf(b, ", Landlock %d (nothing is written but the cache)", d->landlock);
	else
		buftext_str(b, ", no Landlock (the user's files could be written)");
}
