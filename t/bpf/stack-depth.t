#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The kernel's stack is enough for the BPF programs on Linux 6.1 as well, where each function takes more of it than on
# later kernels. Without that, --wakers and --on-cpu have no functions of interpreters' programs there.
# shellcheck disable=SC2154 # $rc of tap.sh
. "$(dirname "$0")/../lib/tap.sh"
. "$(dirname "$0")/../lib/record.sh"
need_bpf
MAX_BPF_STACK=512 # linux/filter.h

# depths LIMIT OBJECT...: the programs beyond it, and the most
depths() {
	perl "$(dirname "$0")/../lib/bpf-stack.pl" "$@"
}

most=$(depths $MAX_BPF_STACK "$OBJ"/bpf/*.bpf.o)
like "$most" '^[0-9]+$' "no program takes more than $MAX_BPF_STACK bytes with what it calls, nor are these more than eight functions deep"
echo "the most: $most" | diag
like "$(depths 100 "$OBJ/bpf/offcpu-raw.bpf.o")" 'record_switch \([0-9]+\), own_some' "what a program calls is counted"

# a program that calls N functions, one from the other
deep() {
	perl -e 'my $n = shift; print "__attribute__((noinline)) int f0(int *x) { return *x; }\n";
		print "__attribute__((noinline)) int f$_(int *x) { return f", $_ - 1, "(x) + *x; }\n" for 1 .. $n - 1;
		print "__attribute__((section(\"xdp\"))) int program(int *x) { return f", $n - 1, "(x); }\n"' "$1" >"$TMP/deep.c"
	"${CLANG:-clang}" -target bpf -O1 -c -o "$TMP/deep.o" "$TMP/deep.c" && depths $MAX_BPF_STACK "$TMP/deep.o"
}
is "$(deep 7)" 256 "eight functions may call each other, of 32 bytes at least"
like "$(deep 8)" ': 9 functions: program f7 .* f0' "a ninth one is found"

# The kernel says what it counts for programs that call nothing, in multiples of 8
cat >"$TMP/kernel.sh" <<'EOF'
mount -t bpf none /sys/fs/bpf || exit 1
for object; do
	bpftool -d prog loadall "$object" /sys/fs/bpf/x 2>&1
	rm -rf /sys/fs/bpf/x
done
EOF
unshare -m sh "$TMP/kernel.sh" "$OBJ/bpf/peek.bpf.o" "$OBJ/bpf/stackmap.bpf.o" "$OBJ/bpf/probe.bpf.o" |
	perl -ne '$name = $1 if /^libbpf: prog \x27(\w+)\x27: -- BEGIN/; print "$name $1\n" if /^stack depth (\d+)$/' | sort >"$TMP/kernel"
depths 0 "$OBJ/bpf/peek.bpf.o" "$OBJ/bpf/stackmap.bpf.o" "$OBJ/bpf/probe.bpf.o" |
	perl -ne 'print "$1 ", int(($2 + 7) / 8) * 8, "\n" if /: (\w+) \((\d+)\)$/' | sort >"$TMP/ours"
ok "the kernel has loaded some" test "$(wc -l <"$TMP/kernel")" -ge 4
is "$(join "$TMP/kernel" "$TMP/ours" | awk '$2 != $3')" "" "it counts the same for each"
diag <"$TMP/kernel"
tap_done
