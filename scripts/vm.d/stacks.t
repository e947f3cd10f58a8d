#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# In a guest of make vmtest, which has neither a compiler nor gdb: the user
# stacks of blocked programs match eu-stack, frame by frame.
# shellcheck disable=SC2016
# shellcheck source=../../t/lib/tap.sh
. "$(dirname "$0")/../lib/tap.sh"
# shellcheck source=../../t/lib/record.sh
. "$(dirname "$0")/../lib/record.sh"
# shellcheck source=../../t/lib/unwind.sh
. "$(dirname "$0")/../lib/unwind.sh"

start no-fp /st/no-fp 20 65536
start python /usr/bin/python3 "$DATA/unwind/threads.py"
start perl perl -e 'sub r { my $n = shift; return $n ? r($n - 1) + 1 : sleep 1000 } print r(20)'
start bash bash -c 'f() { if [ "$1" -gt 0 ]; then f $(($1 - 1)); else sleep 1000; fi; :; }; f 10; :'
start dash dash -c 'read -r x; echo "$x"'
start cat cat
record_blocked "$TMP/blocked.cap" --depth 512
agrees "a C program without frame pointers" no-fp --oracles eu
agrees "python3 below forty calls" python --oracles eu
agrees "perl below twenty subs" perl --oracles eu
agrees "bash below ten functions" bash --oracles eu
agrees "dash" dash --oracles eu
agrees "cat" cat --oracles eu
agreed
tap_done
