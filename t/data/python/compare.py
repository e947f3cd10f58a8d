# SPDX-License-Identifier: GPL-2.0-or-later
"""compare.py ORACLE JSON WHEN: compare what ways.py said with the script frames of symbolize's output.
WHEN is "before" (waits that began before the recording) or "during". Prints a line for each thread."""
import json, sys

waits = {}
for line in open(sys.argv[2], encoding="utf-8"):
    w = json.loads(line)
    if w["type"] == "wait" and (sys.argv[3] == "before") == w["initial"]:
        waits.setdefault(w["tid"], []).append(w)


def said(f):
    return (f["function"], f["file"], f["line"])


def function(f):
    """Where the function of a native frame without a name begins."""
    return f["module"], int(f["module_address"] or "0", 16) - (f["offset"] or 0)


# in stripped files the part of the evaluation function that the compiler moved elsewhere has no name, but it is one
parts = {
    function(a)
    for each in waits.values()
    for w in each
    for a, b in zip(w["user_stack"], w["user_stack"][1:])
    if "runtime" not in a and a["symbol"] is None and "runtime" in b
}


def is_evaluation(f):
    return (f["symbol"] or "").startswith("_PyEval_EvalFrameDefault") or (
        len(parts) == 1 and "runtime" not in f and f["symbol"] is None and function(f) in parts
    )


def position(stack):
    """The number of native evaluation frames, each of which script frames must follow."""
    bad = 0
    for a, b in zip(stack, stack[1:] + [None]):
        native = is_evaluation(a)
        script = b is not None and "runtime" in b
        if "runtime" not in a and native != script:
            bad += 1
    return bad


for text in open(sys.argv[1], encoding="utf-8").read().split("\n\n"):
    if not text.strip():
        continue
    tid, name, *frames = text.strip("\n").split("\n")
    want = [(f, p, int(n)) for f, p, n in (x.split("\t") for x in frames)]
    got = waits.get(int(tid), [])
    best = "no wait"
    for w in got:
        have = [said(f) for f in w["user_stack"] if "runtime" in f]
        cut = w["user_stack_verdict"] == "truncated"
        unknown = [i for i, f in enumerate(have) if f[2] is None and i < len(want)]
        if unknown and have != want:
            for i in unknown:
                have[i] = want[i]
            if have == want:
                best = "same but for %d lines" % len(unknown)
                continue
        if have == want or (cut and len(have) > 100 and have == want[: len(have)]):
            best = "misplaced" if position(w["user_stack"]) and not cut else "same"
        else:
            if best == "no wait":
                best = "different"
            if best != "same" and len(sys.argv) > 4:
                print(w["user_stack_verdict"], len(have), len(want), file=sys.stderr)
                for a, b in zip(have + [None] * 9, want):
                    print("  ", a, b, file=sys.stderr)
                    if a != b:
                        break
        if best == "same":
            break
    print(name, best)
