/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text - unwind rules in readable form, after readelf -wF. On arm64 the columns
 * are CFA, x29 and ra.
 *
 *	CFA	rsp+16		a register and an offset
 *		*(rbp-8)	the word there
 *		*(rsp+40)+8	the word there, plus 8
 *		plt(11)		rsp+8, plus 8 from byte 11 of a PLT entry on
 *		none, unsupported
 *	rbp	u		unchanged
 *		c-16		saved at CFA-16
 *		*(rsp+120)	saved there
 *		rax		in that register
 *		?		not known
 *	ra	c-8, *(rsp+168), rdi as above; x30: not saved yet
 *		end		there is none: the outermost frame
 *	rbx	c-24		saved at CFA-24
 *		?		not known
 *		empty		unchanged, or the row has no room for it
 */
#ifndef STACKTOOLS_UNWIND_TEXT_H
#define STACKTOOLS_UNWIND_TEXT_H

#include "base/base.h"
#include "unwind_abi.h"

#define UNWINDTEXT_MAX 48 /* room for one column */

struct unwindtext {
	char cfa[UNWINDTEXT_MAX], fp[UNWINDTEXT_MAX], ra[UNWINDTEXT_MAX], bx[UNWINDTEXT_MAX];
};

/* The columns of RULE of a table for MACHINE (EM_*); empty if there is no row. */
void unwindtext(const struct unwind_rule *rule, uint32_t machine, struct unwindtext *ret);

#endif
