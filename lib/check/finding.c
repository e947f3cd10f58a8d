/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/finding.h"

#include <stdarg.h>

struct finding *findings_add(struct findings *f, enum finding_group group, enum finding_status status,
	const char *id, const char *fmt, ...)
{
	struct finding *fi;
	va_list ap;

	if (base_grow(&f->list, &f->cap, f->n + 1, sizeof(*f->list)) != 0) {
		f->failed = true;
		fi = &f->spare;
	} else {
		fi = &f->list[f->n++];
	}
	*fi = (struct finding){ .group = group, .status = status };
	snprintf(fi->id, sizeof(fi->id), "%s", id);
	va_start(ap, fmt);
	vsnprintf(fi->found, sizeof(fi->found), fmt, ap);
	va_end(ap);
	return fi;
}

void findings_free(struct findings *f)
{
	free(f->list);
	*f = (struct findings){ 0 };
}

void finding_remedy(struct finding *fi, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fi->remedy, sizeof(fi->remedy), fmt, ap);
	va_end(ap);
}

const char *finding_status_name(enum finding_status status)
{
	static const char *const names[] = { "ok", "warn", "fail", "skip" };

	return names[status];
}

const char *finding_group_name(enum finding_group group)
{
	static const char *const names[GROUP_COUNT] = { "kernel", "configuration", "BTF", "sysctls",
		"capabilities", "security", "mounts", "memory", "symbols", "live", "target" };

	return names[group];
}

const char *const finding_tool_names[TOOL_COUNT + 1] = { "offcpu-record", "symbolize", "fold",
	"kallsyms-resolve", "stackmap-test", "capinfo" };

const char *finding_tool_name(enum finding_tool tool)
{
	return finding_tool_names[tool];
}

const char *finding_mode_name(enum finding_mode mode)
{
	static const char *const names[MODE_COUNT + 1] = { "btf", "raw", "procfs", "none" };

	return names[mode];
}
