# SPDX-License-Identifier: GPL-2.0-or-later
"""compare-scripts.py DIR JSON NATIVE WHEN [v]: compare what programs said about their frames (DIR/NAME: a
PID, then "FUNCTION<tab>FILE<tab>LINE" for each frame, innermost first) with the script frames of symbolize's
output. WHEN is "before" (waits that began before the recording) or "during". NATIVE is the function in C
that executes script code: each must be followed by a script frame with a file; "<NATIVE" is the one that
calls that function: such a frame must be before it. Prints a line for each NAME: same, different,
misplaced, or no wait."""
import json, os, re, sys

waits = {}
for line in open(sys.argv[2], encoding="utf-8", errors="surrogateescape"):
    w = json.loads(line)
    if w["type"] == "wait" and (sys.argv[4] == "before") == w["initial"]:
        waits.setdefault(w["tid"], []).append(w)


def misplaced(stack):
    if sys.argv[3].startswith("<"):
        stack = stack[::-1]
    for a, b in zip(stack, stack[1:] + [{}]):
        native = "runtime" not in a and a["symbol"] == sys.argv[3].lstrip("<") and not a["reason"]
        if native and ("runtime" not in b or not b["file"]):
            return True
    return False


def same_number(path):
    """Perl counts its evals: the next one is another file."""
    return path and re.sub(r"^\(eval \d+\)$", "(eval)", path)


for name in sorted(os.listdir(sys.argv[1])):
    pid, *frames = open(os.path.join(sys.argv[1], name), encoding="utf-8").read().splitlines()
    want = [(f, same_number(p) or None, int(n) if n else None) for f, p, n in (x.split("\t") for x in frames)]
    best = "no wait"
    for w in waits.get(int(pid), []):
        stack = w["user_stack"]
        have = [(f["function"], same_number(f["file"]), f["line"]) for f in stack if "runtime" in f]
        best = "different" if have != want else "misplaced" if misplaced(stack) else "same"
        if best == "same":
            break
        if len(sys.argv) > 5:
            print(name, w["user_stack_verdict"], *have, "-- wanted", *want, sep="\n  ", file=sys.stderr)
    print(name, best)
