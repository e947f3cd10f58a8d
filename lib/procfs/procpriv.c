/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/procpriv.h"
#include "base/text.h"
#include "procfs/lookchild.h"
#include "system/broker.h"
#include "system/sandbox.h"

#include <errno.h>
#include <sys/capability.h>

int procpriv_renounce(struct err *e)
{
	cap_t none = cap_init();
	int rc = none && cap_set_proc(none) == 0 ? 0 : -errno;

	if (none)
		cap_free(none);
	return rc ? err_sys(e, rc, "cannot give up the capabilities of this program") : 0;
}

static void start(struct procpriv *p, bool memory, struct err *why)
{
	const struct lookchild_opts look = { .memory = memory };
	const struct openchild_opts open = { .no_bpf = true };
	int rc;

	p->looker_caps = lookchild_caps();
	p->opener_caps = openchild_caps(&open);
	rc = lookchild_start(&look, &p->looker, why);
	rc = rc ? rc : openchild_start(&open, &p->opener, why);
	rc = rc ? rc : looker_ready(p->looker, why);
	if (!rc)
		opener_ready(p->opener, why);
}

int procpriv_drop(struct procpriv *p, bool memory, struct err *why, struct err *e)
{
	*p = (struct procpriv){ 0 };
	*why = (struct err){ 0 };
	start(p, memory, why);
	/* whoever has to look himself must not be under Landlock: no other process would be shown */
	return looker_pid(p->looker) ? privdrop_recorder(0, &p->dropped, e)
				     : privdrop_now(&(struct privdrop_opts){ .paths = true }, &p->dropped, e);
}

void procpriv_close(struct procpriv *p)
{
	looker_free(p->looker);
	opener_free(p->opener);
	p->looker = NULL;
	p->opener = NULL;
}

void procpriv_put(const struct procpriv *p, struct buf *b)
{
	privdrop_put(&p->dropped, b);
	if (looker_pid(p->looker))
		privdrop_put_child("the process that looks at threads", p->looker_caps, b);
	if (opener_pid(p->opener))
		privdrop_put_child("the process that opens files", p->opener_caps, b);
	buftext_str(b, "; ");
	sandbox_put(b);
}

bool procpriv_missed(struct procpriv *p, struct err *why)
{
	struct asker_stats looker, opener;

	looker_stats(p->looker, &looker);
	opener_stats(p->opener, &opener);
	if (p->told || (!looker.why[0] && !opener.why[0]))
		return false;
	p->told = true;
	err_set(why, -ENOTCONN, "the process that %s is gone: %s",
		looker.why[0] ? "looks at threads" : "opens files", looker.why[0] ? looker.why : opener.why);
	return true;
}
