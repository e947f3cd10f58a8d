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


def position(stack):
    """The number of native evaluation frames, each of which script frames must follow."""
    bad = 0
    for a, b in zip(stack, stack[1:] + [None]):
        native = (a["symbol"] or "").startswith("_PyEval_EvalFrameDefault")
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
