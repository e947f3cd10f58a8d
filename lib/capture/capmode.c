/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capmode.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static const char *option(const struct capread *c, const char *name)
{
	for (size_t i = 0; i < c->n_options; i++)
		if (strcmp(c->options[i].name, name) == 0)
			return c->options[i].value;
	return "";
}

void capmode_get(const struct capread *c, struct capmode *ret)
{
	*ret = (struct capmode){ .name = option(c, "mode"), .tried = option(c, "tried") };
	ret->best = !*ret->name || strcmp(ret->name, "btf") == 0;
	ret->sampled = strcmp(ret->name, "procfs") == 0;
	if (!ret->sampled)
		return;
	ret->checked = capread_counter(c, "procfs.threads") > capread_counter(c, "procfs.unchecked");
	ret->hz = strtoull(option(c, "frequency"), NULL, 10);
	ret->looks = capread_counter(c, "procfs.looks");
	ret->late = capread_counter(c, "procfs.looks_late");
	ret->left_out = capread_counter(c, "procfs.looks_left_out");
	ret->estimated_ns = capread_counter(c, "procfs.estimated_ns");
	ret->schedstat_ns = capread_counter(c, "procfs.schedstat_ns");
}

void capmode_put_why(struct buf *b, const struct capmode *m)
{
	if (m->best)
		return;
	buftext_escaped(b, m->name, TEXT_LINE);
	if (!*m->tried) {
		buftext_str(b, ", as was asked for");
		return;
	}
	buftext_str(b, ": ");
	for (const char *line = m->tried; *line;) {
		size_t len = strcspn(line, "\n");
		char text[512];

		snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text) - 1), line);
		buftext_escaped(b, text, TEXT_LINE);
		line += len + (line[len] == '\n');
		if (*line)
			buftext_str(b, "; ");
	}
}

static void put_seconds(struct buf *b, const char *before, uint64_t ns)
{
	uint64_t ms = ns / 1000000;

	buftext_printf(b, "%s%" PRIu64 ".%03u s", before, ms / 1000, (unsigned int)(ms % 1000));
}

void capmode_put(struct buf *b, const struct capmode *m)
{
	if (!m->sampled)
		return;
	buftext_printf(b, "samples, not exact waits: %" PRIu64 " looks at %" PRIu64 " Hz", m->looks, m->hz);
	if (m->late || m->left_out)
		buftext_printf(b, " (%" PRIu64 " late, %" PRIu64 " left out)", m->late, m->left_out);
	if (!m->checked) {
		buftext_str(b, ", not checked: there was no schedstat");
		return;
	}
	put_seconds(b, ", checked against schedstat: off-CPU estimated ", m->estimated_ns);
	put_seconds(b, ", by schedstat ", m->schedstat_ns);
}
