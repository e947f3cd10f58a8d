/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/vdso.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define IMAGE_MAX (64u << 10)
#define RANGES_MAX 8

/* arch/x86/include/uapi/asm/prctl.h; they need CONFIG_CHECKPOINT_RESTORE */
enum { MAP_VDSO_X32 = 0x2001, MAP_VDSO_I386 = 0x2002 };

enum vdso_kind vdso_kind(const struct procmap *m)
{
	if (strcmp(m->path, "[vdso]") != 0)
		return VDSO_NONE;
	return m->end > UINT32_MAX ? VDSO_WIDE : VDSO_I386;
}

static uint8_t *copy(const void *bytes, size_t len)
{
	uint8_t *ret = malloc(len);

	return ret ? memcpy(ret, bytes, len) : NULL;
}

#ifdef SYS_arch_prctl
/* What the child found; shared with it. */
struct found {
	size_t len;
	uint8_t bytes[IMAGE_MAX];
};

struct ranges {
	struct {
		uint64_t start, end;
	} of[RANGES_MAX];
	size_t n;
};

/* Collect the vdso and its data, [vvar...]. */
static int add_range(void *ctx, const struct procmap *m)
{
	struct ranges *r = ctx;

	if ((strcmp(m->path, "[vdso]") == 0 || strncmp(m->path, "[vvar", 5) == 0) && r->n < RANGES_MAX) {
		r->of[r->n].start = m->start;
		r->of[r->n++].end = m->end;
	}
	return 0;
}

static int take_image(void *ctx, const struct procmap *m)
{
	struct found *f = ctx;

	if (strcmp(m->path, "[vdso]") == 0 && m->end - m->start <= IMAGE_MAX) {
		f->len = m->end - m->start;
		memcpy(f->bytes, (const void *)(uintptr_t)m->start, f->len);
	}
	return 0;
}

static void each_own(int (*fn)(void *ctx, const struct procmap *m), void *ctx)
{
	_cleanup_close_ int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		procmaps_each_of(fd, (uint32_t)getpid(), fn, ctx, NULL);
}

/*
 * The child. The kernel maps one vdso into a process, so that of its own kind goes.
 * Where there are x32 programs too, a vdso below 4 GiB may be theirs: no image.
 */
static void map_i386(struct found *f)
{
	struct ranges own = { 0 };

	each_own(add_range, &own);
	for (size_t i = 0; i < own.n; i++)
		munmap((void *)(uintptr_t)own.of[i].start, own.of[i].end - own.of[i].start);
	if (syscall(SYS_arch_prctl, MAP_VDSO_X32, 0UL) < 0 && syscall(SYS_arch_prctl, MAP_VDSO_I386, 0UL) > 0)
		each_own(take_image, f);
}

static uint8_t *image_i386(size_t *len)
{
	struct found *f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *ret = NULL;
	pid_t pid;

	if (f == MAP_FAILED)
		return NULL;
	pid = fork();
	if (pid == 0) {
		map_i386(f);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && f->len && f->len <= IMAGE_MAX) {
		*len = f->len;
		ret = copy(f->bytes, f->len);
	}
	munmap(f, sizeof(*f));
	return ret;
}
#else
static uint8_t *image_i386(size_t *len)
{
	(void)len;
	return NULL;
}
#endif

uint8_t *vdso_image(enum vdso_kind kind, size_t *len)
{
	const void *own = (const void *)getauxval(AT_SYSINFO_EHDR);

	*len = 0;
	if (kind == VDSO_I386)
		return image_i386(len);
	if (kind != VDSO_WIDE || !own)
		return NULL;
	*len = 2 * (size_t)sysconf(_SC_PAGESIZE);
	return copy(own, *len);
}
