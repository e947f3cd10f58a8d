/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/text.h"
#include "unwind/machine.h"

#include <inttypes.h>

/* A rule, and the machine that its registers are those of. */
struct printed {
	const struct unwind_rule *rule;
	const struct unwindmachine *machine;
};

static const char *name(const struct printed *p, unsigned int reg)
{
	const char *n = unwindmachine_register(p->machine, reg);

	return n ? n : "?";
}

static const char *sp_name(const struct printed *p)
{
	return name(p, p->machine->number[p->machine->sp]);
}

static const char *fp_name(const struct printed *p)
{
	return name(p, p->machine->number[p->machine->fp]);
}

static void put_sum(char *buf, const char *before, const char *base, int32_t off, const char *after)
{
	snprintf(buf, UNWINDTEXT_MAX, "%s%s%+" PRId32 "%s", before, base, off, after);
}

static void put_cfa(const struct printed *p, char *buf)
{
	const struct unwind_rule *r = p->rule;
	size_t n;

	switch (r->cfa) {
	case UNWIND_CFA_NONE:
		snprintf(buf, UNWINDTEXT_MAX, "none");
		break;
	case UNWIND_CFA_REG:
		put_sum(buf, "", name(p, r->reg), r->cfa_off, "");
		break;
	case UNWIND_CFA_PLT:
		snprintf(buf, UNWINDTEXT_MAX, "plt(%" PRId32 ")", r->ra_off);
		break;
	case UNWIND_CFA_DEREF:
	case UNWIND_CFA_DEREF_PLUS:
		put_sum(buf, "*(", name(p, r->reg), r->cfa_off, ")");
		n = strlen(buf);
		if (r->cfa == UNWIND_CFA_DEREF_PLUS)
			snprintf(buf + n, UNWINDTEXT_MAX - n, "%+" PRId32, r->ra_off);
		break;
	case UNWIND_CFA_GO_SAVED:
		snprintf(buf, UNWINDTEXT_MAX, "goroutine(*(%s%+" PRId32 "))", sp_name(p), r->cfa_off);
		break;
	case UNWIND_CFA_GO_TLS:
		snprintf(buf, UNWINDTEXT_MAX, "%s(%%fs:%" PRId32 ")",
			r->reg == UNWIND_GO_GOROUTINE  ? "goroutine"
			: r->reg == UNWIND_GO_CALLBACK ? "thread"
						       : "more-stack",
			r->cfa_off);
		break;
	default:
		snprintf(buf, UNWINDTEXT_MAX, "unsupported");
		break;
	}
}

static bool is_go(const struct unwind_rule *r)
{
	return r->cfa == UNWIND_CFA_GO_SAVED || r->cfa == UNWIND_CFA_GO_TLS;
}

static void put_fp(const struct printed *p, char *buf)
{
	const struct unwind_rule *r = p->rule;

	switch (r->fp) {
	case UNWIND_FP_SAME:
		snprintf(buf, UNWINDTEXT_MAX, "u");
		break;
	case UNWIND_FP_CFA:
		put_sum(buf, "", "c", is_go(r) ? -16 : r->fp_off, "");
		break;
	case UNWIND_FP_AT_SP:
		put_sum(buf, "*(", sp_name(p), r->fp_off, ")");
		break;
	case UNWIND_FP_AT_FP:
		put_sum(buf, "*(", fp_name(p), r->fp_off, ")");
		break;
	case UNWIND_FP_REG:
		snprintf(buf, UNWINDTEXT_MAX, "%s", name(p, (unsigned int)r->fp_off));
		break;
	default:
		snprintf(buf, UNWINDTEXT_MAX, "?");
		break;
	}
}

static void put_ra(const struct printed *p, char *buf)
{
	const struct unwind_rule *r = p->rule;
	bool implied = r->cfa == UNWIND_CFA_PLT || r->cfa == UNWIND_CFA_DEREF_PLUS || is_go(r);

	if (r->cfa == UNWIND_CFA_GO_TLS && r->reg == UNWIND_GO_MORE) {
		snprintf(buf, UNWINDTEXT_MAX, "saved");
		return;
	}
	switch (r->ra) {
	case UNWIND_RA_CALL:
		put_sum(buf, "", "c", -p->machine->word, "");
		break;
	case UNWIND_RA_CFA:
		put_sum(buf, "", "c", implied ? -p->machine->word : r->ra_off, "");
		break;
	case UNWIND_RA_AT_SP:
		put_sum(buf, "*(", sp_name(p), r->ra_off, ")");
		break;
	case UNWIND_RA_REG:
		snprintf(buf, UNWINDTEXT_MAX, "%s", name(p, (unsigned int)r->ra_off));
		break;
	case UNWIND_RA_END:
		snprintf(buf, UNWINDTEXT_MAX, "end");
		break;
	default:
		snprintf(buf, UNWINDTEXT_MAX, "?");
		break;
	}
}

/* Empty if the register is unchanged. */
static void put_bx(const struct unwind_rule *r, char *buf)
{
	if (r->ra != UNWIND_RA_CALL || r->ra_off == UNWIND_BX_SAME)
		return;
	if (r->ra_off == UNWIND_BX_UNKNOWN)
		snprintf(buf, UNWINDTEXT_MAX, "?");
	else
		put_sum(buf, "", "c", r->ra_off, "");
}

void unwindtext(const struct unwind_rule *rule, uint32_t machine, struct unwindtext *ret)
{
	const struct printed p = { rule, unwindmachine_of(machine) };

	*ret = (struct unwindtext){ .fp = "", .ra = "", .bx = "" };
	put_cfa(&p, ret->cfa);
	if (rule->cfa == UNWIND_CFA_NONE || rule->cfa == UNWIND_CFA_UNSUPPORTED)
		return;
	put_fp(&p, ret->fp);
	put_ra(&p, ret->ra);
	put_bx(rule, ret->bx);
}
