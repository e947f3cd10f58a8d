/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/text.h"
#include "unwind/x86.h"

#include <inttypes.h>

static bool is_narrow(const struct unwind_rule *r)
{
	return r->flags & UNWIND_WORD4;
}

static const char *name(const struct unwind_rule *r, unsigned int reg)
{
	const char *n = unwindx86_register(reg, is_narrow(r));

	return n ? n : "?";
}

static void put_sum(char *buf, const char *before, const char *base, int32_t off, const char *after)
{
	snprintf(buf, UNWINDTEXT_MAX, "%s%s%+" PRId32 "%s", before, base, off, after);
}

static void put_cfa(const struct unwind_rule *r, char *buf)
{
	size_t n;

	switch (r->cfa) {
	case UNWIND_CFA_NONE:
		snprintf(buf, UNWINDTEXT_MAX, "none");
		break;
	case UNWIND_CFA_REG:
		put_sum(buf, "", name(r, r->reg), r->cfa_off, "");
		break;
	case UNWIND_CFA_PLT:
		snprintf(buf, UNWINDTEXT_MAX, "plt(%" PRId32 ")", r->ra_off);
		break;
	case UNWIND_CFA_DEREF:
	case UNWIND_CFA_DEREF_PLUS:
		put_sum(buf, "*(", name(r, r->reg), r->cfa_off, ")");
		n = strlen(buf);
		if (r->cfa == UNWIND_CFA_DEREF_PLUS)
			snprintf(buf + n, UNWINDTEXT_MAX - n, "%+" PRId32, r->ra_off);
		break;
	case UNWIND_CFA_GO_SAVED:
		snprintf(buf, UNWINDTEXT_MAX, "goroutine(*(%s%+" PRId32 "))", name(r, UNWINDX86_SP),
			r->cfa_off);
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

static void put_fp(const struct unwind_rule *r, char *buf)
{
	switch (r->fp) {
	case UNWIND_FP_SAME:
		snprintf(buf, UNWINDTEXT_MAX, "u");
		break;
	case UNWIND_FP_CFA:
		put_sum(buf, "", "c", is_go(r) ? -16 : r->fp_off, "");
		break;
	case UNWIND_FP_AT_SP:
		put_sum(buf, "*(", name(r, UNWINDX86_SP), r->fp_off, ")");
		break;
	case UNWIND_FP_AT_FP:
		put_sum(buf, "*(", name(r, UNWINDX86_FP), r->fp_off, ")");
		break;
	case UNWIND_FP_REG:
		snprintf(buf, UNWINDTEXT_MAX, "%s", name(r, (unsigned int)r->fp_off));
		break;
	default:
		snprintf(buf, UNWINDTEXT_MAX, "?");
		break;
	}
}

static void put_ra(const struct unwind_rule *r, char *buf)
{
	bool implied = r->cfa == UNWIND_CFA_PLT || r->cfa == UNWIND_CFA_DEREF_PLUS || is_go(r);

	if (r->cfa == UNWIND_CFA_GO_TLS && r->reg == UNWIND_GO_MORE) {
		snprintf(buf, UNWINDTEXT_MAX, "saved");
		return;
	}
	switch (r->ra) {
	case UNWIND_RA_CALL:
		put_sum(buf, "", "c", is_narrow(r) ? -4 : -8, "");
		break;
	case UNWIND_RA_CFA:
		put_sum(buf, "", "c", implied ? is_narrow(r) ? -4 : -8 : r->ra_off, "");
		break;
	case UNWIND_RA_AT_SP:
		put_sum(buf, "*(", name(r, UNWINDX86_SP), r->ra_off, ")");
		break;
	case UNWIND_RA_REG:
		snprintf(buf, UNWINDTEXT_MAX, "%s", name(r, (unsigned int)r->ra_off));
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

void unwindtext(const struct unwind_rule *rule, struct unwindtext *ret)
{
	*ret = (struct unwindtext){ .fp = "", .ra = "", .bx = "" };
	put_cfa(rule, ret->cfa);
	if (rule->cfa == UNWIND_CFA_NONE || rule->cfa == UNWIND_CFA_UNSUPPORTED)
		return;
	put_fp(rule, ret->fp);
	put_ra(rule, ret->ra);
	put_bx(rule, ret->bx);
}
