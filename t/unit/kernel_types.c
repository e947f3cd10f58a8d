/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of kernel_types_read() and bpf_hooks with libbpf as the reference: it makes the BTF and reads the
 * result. */
#include "base/tap.h"
#include "offcpu_abi.h"
#include "system/kernel_btf.h"

#include "offcpu.skel.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

struct file {
	int fd;
	char path[32];
};

static struct file new_file(const void *bytes, size_t n)
{
	struct file f = { .fd = memfd_create("btf", MFD_CLOEXEC) };

	snprintf(f.path, sizeof(f.path), "/proc/self/fd/%d", f.fd);
	if (n && write(f.fd, bytes, n) != (ssize_t)n)
		abort();
	return f;
}

/* Reduce FILE with kernel_types_read() and parse the result with libbpf; NULL with *RC if it fails. */
static struct btf *read_names(const char *file, struct kernel_types_name *names, size_t n, int *rc)
{
	struct file out = new_file("", 0);
	struct btf *btf = NULL;
	struct err e;

	*rc = kernel_types_read(file, names, n, out.fd, &e);
	if (!*rc)
		btf = btf__parse(out.path, NULL);
	else if (!e.msg[0])
		abort();
	close(out.fd);
	return btf;
}

/* The bit offset of member NAME in struct ID, also inside members without a name; -1 = none. */
static long offset_of(const struct btf *btf, uint32_t id, const char *name)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = btf_members(t) + i;
		const char *its = btf__name_by_offset(btf, m->name_off);
		long bits = (long)btf_member_bit_offset(t, i), inner;

		if (strcmp(its, name) == 0)
			return bits;
		if (*its || !btf_is_composite(btf__type_by_id(btf, m->type)))
			continue;
		inner = offset_of(btf, m->type, name);
		if (inner >= 0)
			return bits + inner;
	}
	return -1;
}

static int struct_id(const struct btf *btf, const char *name)
{
	return btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
}

/* struct wanted { const number a; struct { number b[3]; }; struct other *c; struct other d; number e:3 } */
static struct btf *make(void)
{
	struct btf *b = btf__new_empty();
	int u32 = btf__add_int(b, "unsigned int", 4, 0), number = btf__add_typedef(b, "number", u32);
	int fixed = btf__add_const(b, number), array = btf__add_array(b, u32, number, 3);
	int inner, other, ptr, hook;

	inner = btf__add_struct(b, "", 12);
	btf__add_field(b, "b", array, 0, 0);
	other = btf__add_struct(b, "other", 8);
	btf__add_field(b, "x", u32, 32, 0);
	ptr = btf__add_ptr(b, other);
	btf__add_struct(b, "wanted", 40);
	btf__add_field(b, "a", fixed, 0, 0);
	btf__add_field(b, "", inner, 64, 0);
	btf__add_field(b, "c", ptr, 192, 0);
	btf__add_field(b, "d", other, 256, 0);
	btf__add_field(b, "e", number, 3 + 288, 3);
	hook = btf__add_func_proto(b, 0);
	btf__add_func_param(b, "data", ptr);
	btf__add_func_param(b, "first", u32);
	btf__add_func_param(b, "second", u32);
	btf__add_typedef(b, "btf_trace_here", btf__add_ptr(b, hook));
	btf__add_typedef(b, "btf_trace_odd", ptr);
	return b;
}

static void test_made(struct tap *t, const char *path, const struct btf *from)
{
	struct kernel_types_name names[] = { { "wanted", BTF_KIND_STRUCT, 0, 0 },
		{ "btf_trace_here", BTF_KIND_TYPEDEF, 0, 0 }, { "here", BTF_KIND_TYPEDEF, 7, 0 },
		{ "wanted", BTF_KIND_TYPEDEF, 7, 0 }, { "btf_trace_odd", BTF_KIND_TYPEDEF, 0, 0 } };
	int rc, id;
	struct btf *to = read_names(path, names, ARRAY_LEN(names), &rc);
	const struct btf_type *type;

	if (!tap_ok(t, rc == 0 && to, "a BTF of libbpf is reduced, and libbpf reads the result"))
		return;
	tap_eq_u64(
		t, names[0].id, (uint64_t)struct_id(from, "wanted"), "a struct has its id in the whole BTF");
	tap_eq_u64(t, names[1].id, (uint64_t)btf__find_by_name_kind(from, "btf_trace_here", BTF_KIND_TYPEDEF),
		"a hook has its id in the whole BTF");
	tap_eq_u64(t, names[1].args, 3, "the arguments of a hook are counted");
	tap_ok(t, names[4].id && !names[4].args, "a typedef of another type has an id and no arguments");
	tap_ok(t, !names[2].id && !names[3].id, "a missing name, or one of another kind, has no id");
	id = struct_id(to, "wanted");
	type = btf__type_by_id(to, (uint32_t)id);
	tap_ok(t, type && type->size == 40 && btf_vlen(type) == 5,
		"the reduced struct has its size and members");
	tap_ok(t, offset_of(to, (uint32_t)id, "b") == 64, "the members of a struct without a name are kept");
	tap_ok(t, offset_of(to, (uint32_t)id, "e") == 291 && btf_member_bitfield_size(type, 4) == 3,
		"bit fields are kept");
	tap_eq_u64(t, (uint64_t)btf__resolve_size(to, btf_members(type)[3].type), 8,
		"a struct that was not requested keeps its size");
	id = struct_id(to, "other");
	tap_ok(t, id > 0 && !btf_vlen(btf__type_by_id(to, (uint32_t)id)),
		"a struct that was not requested has no members");
	btf__free(to);
}

static void test_damaged(struct tap *t, const uint8_t *bytes, size_t len)
{
	struct kernel_types_name name = { "wanted", BTF_KIND_STRUCT, 0, 0 };
	size_t refused = 0;
	int rc;

	for (size_t n = 0; n < len; n++) {
		struct file f = new_file(bytes, n);

		btf__free(read_names(f.path, &name, 1, &rc));
		refused += rc == -EINVAL;
		close(f.fd);
	}
	tap_eq_u64(t, refused, len, "a file cut anywhere is -EINVAL, with a message");
	refused = 0;
	for (size_t i = 0; i < len * 8; i++) {
		_cleanup_free_ uint8_t *copy = malloc(len);
		struct file f;

		memcpy(copy, bytes, len);
		copy[i / 8] ^= (uint8_t)(1u << i % 8);
		f = new_file(copy, len);
		btf__free(read_names(f.path, &name, 1, &rc));
		refused += rc != 0 && rc != -EINVAL;
		close(f.fd);
	}
	tap_eq_u64(t, refused, 0, "a file with any bit changed is accepted or -EINVAL");
}

/* The number of arguments of the tracepoint whose typedef is ID. */
static uint64_t count_args(const struct btf *btf, uint32_t id)
{
	const struct btf_type *ptr = btf__type_by_id(btf, btf__type_by_id(btf, id)->type);

	return btf_vlen(btf__type_by_id(btf, ptr->type));
}

static void test_kernel(struct tap *t)
{
	static const char *const members[] = { "flags", "se", "mm", "tgid", "thread_pid", "comm" };
	struct kernel_types_name names[] = { { "task_struct", BTF_KIND_STRUCT, 0, 0 },
		{ "mm_struct", BTF_KIND_STRUCT, 0, 0 }, { "btf_trace_sched_switch", BTF_KIND_TYPEDEF, 0, 0 },
		{ "bpf_iter_task", BTF_KIND_FUNC, 0, 0 } };
	struct btf *all = btf__load_vmlinux_btf(), *few = NULL;
	bool same = true;
	int rc, id;

	if (!all) {
		tap_skip(t, "the running kernel's types", "no BTF: %s", strerror(errno));
		return;
	}
	few = read_names(NULL, names, ARRAY_LEN(names), &rc);
	if (!tap_ok(t, rc == 0 && few, "the running kernel's BTF is read"))
		return;
	tap_eq_u64(t, names[2].id, (uint64_t)libbpf_find_vmlinux_btf_id("sched_switch", BPF_TRACE_RAW_TP),
		"a tracepoint has the id that libbpf finds");
	tap_eq_u64(t, names[2].args, count_args(all, names[2].id),
		"a tracepoint has the number of arguments that libbpf finds");
	tap_eq_u64(t, names[3].id, (uint64_t)libbpf_find_vmlinux_btf_id("task", BPF_TRACE_ITER),
		"an iterator has the id that libbpf finds");
	id = struct_id(few, "task_struct");
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		same = same && offset_of(all, names[0].id, members[i]) >= 0 &&
		       offset_of(few, (uint32_t)id, members[i]) == offset_of(all, names[0].id, members[i]);
	tap_ok(t, same, "the members of task_struct are where libbpf has them");
	tap_ok(t,
		offset_of(few, (uint32_t)struct_id(few, "mm_struct"), "start_stack") ==
			offset_of(all, names[1].id, "start_stack"),
		"a member in a part of mm_struct without a name is where libbpf has it");
	tap_ok(t, btf__type_cnt(few) < btf__type_cnt(all) / 100,
		"fewer than one in a hundred types are kept");
	btf__free(few);
	btf__free(all);
}

/* The ids by which the recorder's programs call a function of the kernel whose BTF is FILE. */
static void find_cast(const char *file, uint64_t *function, uint64_t *type)
{
	struct offcpu_bpf *skel = NULL;
	struct bpf_hooks hooks;
	struct err e;

	*function = *type = UINT64_MAX;
	if (bpf_hooks_open(&hooks, file, &e) != 0)
		return;
	skel = offcpu_bpf__open();
	if (skel && bpf_hooks_read(&hooks, skel->obj, &e) == 0) {
		*function = hooks.cast;
		*type = hooks.cast_type;
	}
	offcpu_bpf__destroy(skel);
	bpf_hooks_close(&hooks);
}

static void test_cast(struct tap *t, const char *without)
{
	struct btf *all = btf__load_vmlinux_btf();
	uint64_t function, type;
	int id;

	find_cast(without, &function, &type);
	tap_ok(t, !function && !type, "a kernel without bpf_rdonly_cast() has nothing to call");
	if (!all) {
		tap_skip(t, "the running kernel's function", "no BTF: %s", strerror(errno));
		return;
	}
	find_cast(NULL, &function, &type);
	id = btf__find_by_name_kind(all, "bpf_rdonly_cast", BTF_KIND_FUNC);
	tap_eq_u64(t, function, id > 0 ? (uint64_t)id : 0, "bpf_rdonly_cast() has the id that libbpf finds");
	id = id > 0 ? btf__find_by_name_kind(all, "pt_regs", BTF_KIND_STRUCT) : 0;
	tap_eq_u64(t, type, (uint64_t)id, "and so has the type that addresses are taken for");
	btf__free(all);
}

int main(void)
{
	struct kernel_types_name name = { "wanted", BTF_KIND_STRUCT, 0, 0 };
	struct btf *made = make();
	struct tap t = { 0 };
	uint32_t len;
	const void *bytes = btf__raw_data(made, &len);
	struct file f = new_file(bytes, len);
	struct err e;

	test_made(&t, f.path, made);
	test_damaged(&t, bytes, len);
	tap_eq_u64(&t, (uint64_t)-kernel_types_read("/nonexistent", &name, 1, f.fd, &e), ENOENT,
		"a missing file is -ENOENT");
	tap_eq_str(&t, e.msg, "cannot read the kernel's BTF, '/nonexistent': No such file or directory",
		"the message names the missing file");
	test_kernel(&t);
	test_cast(&t, f.path);
	close(f.fd);
	btf__free(made);
	return tap_done(&t);
}
