/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/shapetypes.h"
#include "record/kerntypes.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#define STRUCT_BYTES 16384 /* of what is written, and at most of what is read */
#define UPID_BYTES 16u /* int nr; struct pid_namespace *ns */
#define MEMBERS_MAX 4096

enum { TASK, ENTITY, MM, PID, UPID, NS, NS_COMMON, STRUCTS };

static const char *const structs[STRUCTS] = { "task_struct", "sched_entity", "mm_struct", "pid", "upid",
	"pid_namespace", "ns_common" };

enum type { T_U32, T_U64, T_POINTER, T_COMM, T_UPIDS };

static const struct {
	int of;
	const char *name;
	enum type type;
} members[KERNSHAPE_MEMBERS] = { [KERNSHAPE_PID] = { TASK, "pid", T_U32 },
	[KERNSHAPE_TGID] = { TASK, "tgid", T_U32 },
	[KERNSHAPE_COMM] = { TASK, "comm", T_COMM },
	[KERNSHAPE_FLAGS] = { TASK, "flags", T_U32 },
	[KERNSHAPE_START] = { TASK, "start_boottime", T_U64 },
	[KERNSHAPE_LEADER] = { TASK, "group_leader", T_POINTER },
	[KERNSHAPE_MM] = { TASK, "mm", T_POINTER },
	[KERNSHAPE_STACK] = { TASK, "stack", T_POINTER },
	[KERNSHAPE_THREAD_PID] = { TASK, "thread_pid", T_POINTER },
	[KERNSHAPE_RAN] = { ENTITY, "sum_exec_runtime", T_U64 },
	[KERNSHAPE_RAN_BEFORE] = { ENTITY, "prev_sum_exec_runtime", T_U64 },
	[KERNSHAPE_START_CODE] = { MM, "start_code", T_U64 },
	[KERNSHAPE_START_STACK] = { MM, "start_stack", T_U64 },
	[KERNSHAPE_LEVEL] = { PID, "level", T_U32 },
	[KERNSHAPE_NUMBERS] = { PID, "numbers", T_UPIDS },
	[KERNSHAPE_INUM] = { NS_COMMON, "inum", T_U32 } };

/* A struct may have one or another of these types; ids by enum type. */
struct types {
	int id[T_UPIDS + 1], of[STRUCTS], u8, u32;
};

static void add_types(struct btf *btf, struct types *t)
{
	t->u8 = btf__add_int(btf, "char", 1, BTF_INT_CHAR);
	t->u32 = t->id[T_U32] = btf__add_int(btf, "unsigned int", 4, 0);
	t->id[T_U64] = btf__add_int(btf, "unsigned long", 8, 0);
	t->id[T_POINTER] = btf__add_ptr(btf, 0);
	t->id[T_COMM] = btf__add_array(btf, t->u32, t->u8, 16);
	t->of[UPID] = btf__add_struct(btf, structs[UPID], UPID_BYTES);
	btf__add_field(btf, "nr", t->u32, 0, 0);
	btf__add_field(btf, "ns", t->id[T_POINTER], 64, 0);
	t->id[T_UPIDS] = btf__add_array(btf, t->u32, t->of[UPID], 1);
}

static bool is_of(enum kernshape_member m, int of)
{
	return members[m].of == of;
}

static int write_struct(struct btf *btf, struct types *t, const struct kernshape *shape, int of)
{
	int rc = t->of[of] = btf__add_struct(btf, structs[of], STRUCT_BYTES);

	for (enum kernshape_member m = 0; m < KERNSHAPE_MEMBERS && rc > 0; m++)
		if (is_of(m, of) && shape->at[m] >= 0)
			rc = btf__add_field(btf, members[m].name, t->id[members[m].type],
				     (uint32_t)shape->at[m] * 8, 0)
				     ? -ENOMEM
				     : 1;
	/* structs inside structs are put at their first byte: what is in them counts from the outer one */
	if (rc > 0 && of == NS)
		rc = btf__add_field(btf, "ns", t->of[NS_COMMON], 0, 0) ? -ENOMEM : 1;
	if (rc > 0 && of == TASK)
		rc = btf__add_field(btf, "se", t->of[ENTITY], 0, 0) ? -ENOMEM : 1;
	return rc > 0 ? 0 : rc;
}

int shapetypes_write(const struct kernshape *shape, int fd, struct err *e)
{
	static const int order[] = { ENTITY, TASK, MM, PID, NS_COMMON, NS };
	struct btf *btf = btf__new_empty();
	struct types t = { 0 };
	const void *bytes = NULL;
	uint32_t size = 0;
	int rc = btf ? 0 : -ENOMEM;

	if (!rc)
		add_types(btf, &t);
	for (size_t i = 0; i < ARRAY_LEN(order) && !rc; i++)
		rc = write_struct(btf, &t, shape, order[i]);
	if (!rc)
		bytes = btf__raw_data(btf, &size);
	if (!rc && (!bytes || write(fd, bytes, size) != (ssize_t)size))
		rc = -ENOMEM;
	btf__free(btf);
	return rc ? err_sys(e, rc, "cannot write down where the kernel keeps what") : 0;
}

/*
 * Bytes to member NAME of the struct ID, in whatever unnamed part of it; -1 =
 * it has none. *LEFT bounds the members looked at: a file may nest them without
 * end.
 */
static int find_member(const struct btf *btf, uint32_t id, const char *name, int *left)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	int at;

	if (!t || !btf_is_composite(t))
		return -1;
	for (uint16_t i = 0; i < btf_vlen(t) && (*left)-- > 0; i++) {
		const struct btf_member *m = btf_members(t) + i;
		const char *its = btf__name_by_offset(btf, m->name_off);
		uint32_t off = btf_member_bit_offset(t, i) / 8;

		if (off >= STRUCT_BYTES)
			continue;
		if (its && strcmp(its, name) == 0)
			return (int)off;
		at = its && *its ? -1 : find_member(btf, m->type, name, left);
		if (at >= 0)
			return (int)off + at;
	}
	return -1;
}

static int told_of(const struct btf *btf, int of, const char *name)
{
	int id = btf__find_by_name_kind(btf, structs[of], BTF_KIND_STRUCT), left = MEMBERS_MAX;

	return id > 0 ? find_member(btf, (uint32_t)id, name, &left) : -1;
}

/* What BTF says of M; a struct inside a struct adds its own place. */
static int told(const struct btf *btf, enum kernshape_member m)
{
	int at = told_of(btf, members[m].of, members[m].name), outer = 0;

	if (members[m].of == NS_COMMON)
		outer = told_of(btf, NS, "ns");
	if (members[m].of == ENTITY)
		outer = told_of(btf, TASK, "se");
	return at < 0 || outer < 0 ? -1 : at + outer;
}

static int compare(const struct kernshape *shape, const struct btf *btf, const char *file, struct err *e)
{
	if (shape->at[KERNSHAPE_PID] < 0 || shape->at[KERNSHAPE_TGID] < 0 || shape->at[KERNSHAPE_COMM] < 0)
		return err_set(e, -EINVAL, "cannot tell whether '%s' is of the running kernel", file);
	for (enum kernshape_member m = 0; m < KERNSHAPE_MEMBERS; m++) {
		int at = told(btf, m);

		if (shape->at[m] < 0 || at == shape->at[m])
			continue;
		err_set(e, -EINVAL, "'%s' is of another kernel: this one has %s at byte %d", file,
			kernshape_name(m), shape->at[m]);
		return err_hint(
			e, "give the BTF of the kernel that runs, 'uname -r' names it, or leave --btf out");
	}
	return 0;
}

int shapetypes_read(const struct kernshape *shape, const char *file, int fd, struct err *e)
{
	struct kerntypes_name names[STRUCTS];
	char path[32];
	struct btf *btf;
	int rc;

	for (int i = 0; i < STRUCTS; i++)
		names[i] = (struct kerntypes_name){ .name = structs[i], .kind = BTF_KIND_STRUCT };
	rc = kerntypes_read(file, names, ARRAY_LEN(names), fd, e);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	btf = btf__parse(path, NULL);
	if (!btf)
		return err_sys(e, -errno, "'%s' is not understood", file);
	rc = compare(shape, btf, file, e);
	btf__free(btf);
	return rc;
}
