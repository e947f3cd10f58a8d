# SPDX-License-Identifier: GPL-2.0-or-later
"""compare.py DIR JSON [v]: compare what threads of ways.js said of their stacks (DIR/NAME) with the waits of
symbolize's output, from the function that waits on: functions, files and lines. Each wait must be complete.
What the functions that wait call themselves (node:fs and such) is above these. Functions of V8 without a name
and code without a file are not compared. Prints a line for each NAME:
same, different, incomplete, or no wait."""
import json, os, sys

waits = {}
for line in open(sys.argv[2], encoding="utf-8", errors="surrogateescape"):
    w = json.loads(line)
    if w["type"] == "wait" and w["user_stack"]:
        waits.setdefault(w["tid"], []).append(w)

def matches(have, want):
    """Builtins, which have no file, may be missing: optimised code has them inside."""
    left = list(have)
    for frame in want:
        if left and left[0] == frame:
            left.pop(0)
        elif frame[1]:
            return False
    return not left


for name in sorted(os.listdir(sys.argv[1])):
    tid, *frames = open(os.path.join(sys.argv[1], name), encoding="utf-8").read().splitlines()
    want = [(f or "(anonymous)", p or None, int(n) if n and p else None) for f, p, n in (x.split("\t") for x in frames)]
    # a name that is computed when the function is made stands in the object alone
    want = [("(anonymous)" if f[0] == "[" else f, p, n) for f, p, n in want if f != "(anonymous)" or p]
    # what says it
    while want and not want[0][0].startswith("pause"):
        want.pop(0)
    result, seen = "no wait", 0
    for w in waits.get(int(tid), []):
        have = [(f["function"], f["file"], f["line"]) for f in w["user_stack"] if "runtime" in f]
        # lines of code without a file, as of eval(), are V8's own affair
        have = [(f, p or None, n if p else None) for f, p, n in have if f != "(anonymous)" or p]
        while have and not (have[0][0] or "").startswith("pause"):
            have.pop(0)
        # it may have waited elsewhere: for a lock, or for what it writes
        if not have:
            continue
        inner = next(f for f in w["user_stack"] if "runtime" in f)
        seen += 1
        if not matches(have, want):
            # a wait inside of say()
            if any(f["function"] == "say" for f in w["user_stack"] if "runtime" in f):
                continue
            result = "different"
        elif w["user_stack_verdict"] != "complete":
            result = "incomplete"
        elif result == "no wait":
            result = "same"
        if result not in ("same", "no wait") and len(sys.argv) > 3:
            print(name, w["user_stack_verdict"], *have, "-- wanted", *want, sep="\n  ", file=sys.stderr)
            break
    print(name, result)
