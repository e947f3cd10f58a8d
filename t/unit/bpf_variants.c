/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recorder's programs with some runtimes: the same but for their code, and no more of it than is needed.
 */
#include "base/tap.h"
#include "record/bpf_variants.h"
#include "runtime_abi.h"

#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>

/* Names of programs with their sections, and of maps with their types and sizes, one per line. The compiler
 * may put tables of its own behind the constants. */
static void list(struct bpf_object *obj, char *to, size_t size)
{
	struct bpf_program *prog;
	struct bpf_map *map;
	size_t at = 0;

	to[0] = '\0';
	bpf_object__for_each_program(prog, obj) at += (size_t)snprintf(
		to + at, size - at, "%s %s\n", bpf_program__name(prog), bpf_program__section_name(prog));
	bpf_object__for_each_map(map, obj) at +=
		(size_t)snprintf(to + at, size - at, "%s %u %u %u\n", bpf_map__name(map), bpf_map__type(map),
			bpf_map__key_size(map), bpf_map__is_internal(map) ? 0 : bpf_map__value_size(map));
}

/* What the object for SCRIPTS has, in TO. Returns its size. */
static size_t variant(uint32_t scripts, char *to, size_t size)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "offcpu");
	struct bpf_object *obj;
	size_t bytes = 0;
	void *elf = NULL;

	to[0] = '\0';
	if (bpf_variant(scripts, &elf, &bytes) != 0 || !elf)
		return 0;
	obj = bpf_object__open_mem(elf, bytes, &opts);
	/* libbpf keeps nothing of the file */
	memset(elf, 0, bytes);
	free(elf);
	if (!obj)
		return 0;
	list(obj, to, size);
	bpf_object__close(obj);
	return bytes;
}

int main(void)
{
	static char all[16384], some[16384];
	const struct {
		const char *name;
		uint32_t scripts;
	} what[] = {
		{ "HotSpot", 1U << RUNTIME_JAVA },
		{ "V8", 1U << RUNTIME_V8 },
		{ "Python", 1U << RUNTIME_PYTHON },
		{ "Perl and Ruby", 1U << RUNTIME_PERL | 1U << RUNTIME_RUBY },
	};
	const uint32_t every = (1U << RUNTIME_KINDS) - 2;
	size_t bytes, most = variant(every, all, sizeof(all));
	struct tap t = { 0 };
	void *elf = &t;

	tap_ok(&t, strstr(all, "record_switch ") && strstr(all, "waiting ") && strstr(all, "scratches "),
		"all runtimes: the object has the programs and maps");
	for (size_t i = 0; i < ARRAY_LEN(what); i++) {
		bytes = variant(what[i].scripts, some, sizeof(some));
		tap_eq_str(&t, some, all, what[i].name);
		tap_ok(&t, bytes && bytes < most, "%s: less than all runtimes take (%zu of %zu bytes)",
			what[i].name, bytes, most);
	}
	tap_eq_u64(&t, variant(1U << RUNTIME_V8 | 1U << RUNTIME_PYTHON, some, sizeof(some)), most,
		"V8 and Python: that of all runtimes");
	tap_ok(&t, bpf_variant(0, &elf, &bytes) == 0 && !elf, "no runtime: that of the skeleton");
	return tap_done(&t);
}
