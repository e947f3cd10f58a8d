/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * finding - what a check of the machine found, the command that fixes it, and
 * which tools it concerns.
 *
 * A check adds one finding. `degrades` and `forbids` are sets of tools (bits
 * 1 << TOOL_x): a tool in `forbids` cannot do its job here, a tool in `degrades`
 * does only part of it. A warning with neither set is for information.
 */
#ifndef STACKTOOLS_CHECK_FINDING_H
#define STACKTOOLS_CHECK_FINDING_H

#include "base/base.h"

enum finding_status {
	FINDING_OK,
	FINDING_WARN,
	FINDING_FAIL,
	FINDING_SKIP, /* not checked; `found` says why */
};

enum finding_group {
	GROUP_KERNEL,
	GROUP_CONFIG,
	GROUP_BTF,
	GROUP_SYSCTL,
	GROUP_CAPS,
	GROUP_SECURITY,
	GROUP_MOUNTS,
	GROUP_MEMORY,
	GROUP_SYMBOLS,
	GROUP_LIVE,
	GROUP_TARGET,
	GROUP_COUNT,
};

enum finding_tool {
	TOOL_OFFCPU_RECORD,
	TOOL_SYMBOLIZE,
	TOOL_FOLD,
	TOOL_KALLSYMS_RESOLVE,
	TOOL_STACKMAP_TEST,
	TOOL_CAPINFO,
	TOOL_COUNT,
};

/* The modes of offcpu-record, in the order in which it tries them. */
enum finding_mode {
	MODE_BTF, /* programs at BTF-typed tracepoints, relocated by the kernel's BTF */
	MODE_RAW, /* programs at raw or classic tracepoints, without BTF */
	MODE_PROCFS, /* no BPF: samples /proc */
	MODE_COUNT, /* none */
};

#define MODE_BIT(mode) (1U << (mode))
#define MODES_BPF (MODE_BIT(MODE_BTF) | MODE_BIT(MODE_RAW))

#define TOOL_BIT(tool) (1U << (tool))
/* The tools that load BPF programs. */
#define TOOLS_LIVE (TOOL_BIT(TOOL_OFFCPU_RECORD) | TOOL_BIT(TOOL_STACKMAP_TEST))

struct finding {
	enum finding_group group;
	enum finding_status status;
	char id[64]; /* "sysctls.kernel.kptr_restrict": stable, for scripts */
	char found[512];
	char remedy[768]; /* a command, or what to do; "" = nothing to fix */
	unsigned int degrades, forbids; /* sets of tools, TOOL_BIT() */
	unsigned int bars; /* modes of offcpu-record that do not work, MODE_BIT() */
};

/* A zeroed struct is an empty list. If memory runs out, `failed` is set and later findings are missing. */
struct findings {
	struct finding *list;
	size_t n, cap;
	bool failed;
	struct finding spare; /* holds a finding for which there is no memory; never read */
};

/* Append a finding. The result belongs to F and is valid until the next call; never NULL. */
struct finding *findings_add(struct findings *f, enum finding_group group, enum finding_status status,
	const char *id, const char *fmt, ...) PRINTF_LIKE(5, 6);
void findings_free(struct findings *f); /* a zeroed one is fine */

void finding_remedy(struct finding *fi, const char *fmt, ...) PRINTF_LIKE(2, 3);

const char *finding_status_name(enum finding_status status); /* "ok", "warn", "fail", "skip" */
const char *finding_group_name(enum finding_group group); /* "kernel", "configuration", ... */
extern const char *const finding_tool_names[]; /* by enum finding_tool, ends in NULL */
const char *finding_tool_name(enum finding_tool tool); /* "offcpu-record", ... */
const char *finding_mode_name(enum finding_mode mode); /* "btf", "raw", "procfs"; "none" for MODE_COUNT */

#endif
