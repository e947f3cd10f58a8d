/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwform.h"

#include <dwarf.h>

static enum dwskip fixed(uint32_t n, uint32_t *size)
{
	*size = n;
	return DWSKIP_FIXED;
}

enum dwskip dwform_skip_of(uint16_t form, const struct dwshape *shape, uint32_t *size)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return fixed(0, size);
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return fixed(1, size);
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return fixed(2, size);
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return fixed(3, size);
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return fixed(4, size);
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return fixed(8, size);
	case DW_FORM_data16:
		return fixed(16, size);
	case DW_FORM_addr:
		return fixed(shape->addr_size, size);
	case DW_FORM_ref_addr: /* as wide as an address in DWARF 2 alone */
		return fixed(shape->version == 2 ? shape->addr_size : shape->offset_size, size);
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return fixed(shape->offset_size, size);
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return DWSKIP_LEB;
	case DW_FORM_string:
		return DWSKIP_STRING;
	case DW_FORM_block1:
		return DWSKIP_BLOCK1;
	case DW_FORM_block2:
		return DWSKIP_BLOCK2;
	case DW_FORM_block4:
		return DWSKIP_BLOCK4;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return DWSKIP_BLOCK;
	case DW_FORM_indirect:
		return DWSKIP_INDIRECT;
	default:
		return DWSKIP_UNKNOWN;
	}
}

static enum dwvalue_kind kind_of(uint16_t form)
{
	switch (form) {
	case DW_FORM_addr:
		return DWV_ADDR;
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
		return DWV_ADDRX;
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_flag:
	case DW_FORM_flag_present:
		return DWV_CONST;
	case DW_FORM_sec_offset:
		return DWV_OFFSET;
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
		return DWV_LISTX;
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return DWV_REF;
	case DW_FORM_ref_addr:
		return DWV_REF_INFO;
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
		return DWV_REF_ALT;
	case DW_FORM_strp:
		return DWV_STRP;
	case DW_FORM_line_strp:
		return DWV_LINE_STRP;
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		return DWV_STRP_ALT;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return DWV_STRX;
	default:
		return DWV_NONE;
	}
}

static struct dwvalue text_at(struct rd *r)
{
	const uint8_t *from = r->p, *nul = r->bad ? NULL : memchr(from, 0, rd_left(r));

	if (!nul) {
		r->bad = true;
		return (struct dwvalue){ 0 };
	}
	r->p = nul + 1;
	return (struct dwvalue){ .kind = DWV_TEXT, .text = (const char *)from };
}

static struct dwvalue block_of(struct rd *r, uint64_t len)
{
	rd_bytes(r, len);
	return (struct dwvalue){ .kind = DWV_NONE };
}

struct dwvalue dwform_read(struct rd *r, uint16_t form, int64_t implicit, const struct dwshape *shape)
{
	struct dwvalue v = { .kind = kind_of(form) };
	uint32_t size = 0;
	uint64_t inner;

	switch (dwform_skip_of(form, shape, &size)) {
	case DWSKIP_FIXED:
		if (size > 8) {
			rd_bytes(r, size);
			return v;
		}
		v.u = form == DW_FORM_implicit_const ? (uint64_t)implicit
		      : form == DW_FORM_flag_present ? 1
						     : rd_fixed(r, size);
		return v;
	case DWSKIP_LEB:
		v.u = form == DW_FORM_sdata ? (uint64_t)rd_sleb(r) : rd_uleb(r);
		return v;
	case DWSKIP_STRING:
		return text_at(r);
	case DWSKIP_BLOCK1:
		return block_of(r, rd_u8(r));
	case DWSKIP_BLOCK2:
		return block_of(r, rd_u16(r));
	case DWSKIP_BLOCK4:
		return block_of(r, rd_u32(r));
	case DWSKIP_BLOCK:
		return block_of(r, rd_uleb(r));
	case DWSKIP_INDIRECT:
		inner = rd_uleb(r);
		/* one level: a chain of them would have no end, and an implicit one no value */
		if (inner <= UINT16_MAX && inner != DW_FORM_indirect && inner != DW_FORM_implicit_const)
			return dwform_read(r, (uint16_t)inner, 0, shape);
		break;
	case DWSKIP_UNKNOWN:
		break;
	}
	r->bad = true;
	return (struct dwvalue){ 0 };
}
