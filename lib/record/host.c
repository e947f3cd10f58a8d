/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/host.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/fs.h"
#include "elf/file.h"
#include "record/stacks.h"

#include <fcntl.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

static void kernel_build_id(const struct root *root, struct cap_build_id *ret)
{
	_cleanup_free_ char *notes = NULL;
	size_t len;

	if (root_read(root, "sys/kernel/notes", 1 << 20, &notes, &len, NULL) == 0)
		elfnote_build_id(notes, len, 4, ret);
}

/* The address of _stext, which is near the top of /proc/kallsyms; 0 if it is hidden. */
static uint64_t stext(int kallsyms)
{
	int fd = kallsyms >= 0 ? fcntl(kallsyms, F_DUPFD_CLOEXEC, 0)
			       : open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	_cleanup_fclose_ FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	unsigned long long addr;
	char name[128];

	if (fd >= 0 && !f)
		close(fd);
	if (f)
		rewind(f);
	for (int i = 0; f && i < 20000; i++) {
		if (fscanf(f, "%llx %*c %127s%*[^\n]", &addr, name) < 2)
			break;
		if (name[0] == '_' && strcmp(name, "_stext") == 0)
			return addr;
	}
	return 0;
}

int cap_host_write(struct cap_writer *w, uint64_t start_ns, int kallsyms, bool mask, struct err *e)
{
	char boot_id[64] = "", max_stack[32] = "0", recorder[64];
	struct cap_host h = { 0 };
	struct utsname un;
	struct root root;
	int rc = root_open(NULL, &root, e);

	if (rc)
		return rc;
	uname(&un);
	root_line(&root, "proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id), NULL);
	root_line(&root, "proc/sys/kernel/perf_event_max_stack", max_stack, sizeof(max_stack), NULL);
	kernel_build_id(&root, &h.kernel_build_id);
	root_close(&root);
	snprintf(recorder, sizeof(recorder), "offcpu-record %s", cli_version_string);

	uint64_t mono = now_ns();

	h.sysname = un.sysname;
	h.release = un.release;
	h.version = un.version;
	h.machine = un.machine;
	h.hostname = un.nodename;
	h.boot_id = boot_id;
	h.recorder = recorder;
	h.stext = stext(kallsyms);
	if (mask && h.stext)
		h.stext = KERNEL_MASK_STEXT;
	h.start_mono_ns = start_ns;
	h.start_boot_ns = start_ns + now_on(CLOCK_BOOTTIME) - mono;
	h.start_real_ns = start_ns + now_on(CLOCK_REALTIME) - mono;
	h.max_stack = (uint32_t)strtoul(max_stack, NULL, 10);
	h.cpus = (uint32_t)get_nprocs();
	h.page_size = (uint32_t)sysconf(_SC_PAGESIZE);
	cap_writer_host(w, &h);
	return 0;
}
