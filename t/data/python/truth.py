# SPDX-License-Identifier: GPL-2.0-or-later
"""truth.py JSON: of the script frames that churn.py's functions have in symbolize's output, print how
many are right, wrong and unnamed, and how many distinct functions were seen."""
import json, re, sys

right = wrong = unnamed = 0
seen = set()
same = set()
for line in open(sys.argv[1], encoding="utf-8"):
    w = json.loads(line)
    for f in w.get("user_stack", []):
        if "runtime" not in f:
            continue
        if f["function"] is None:
            unnamed += w["count"]
            continue
        g = re.fullmatch(r"g_(\d+)", f["function"])
        if g:
            right += f["file"] == "<%s>" % g.group(1)
            wrong += f["file"] != "<%s>" % g.group(1)
            same.add(g.group(1))
            continue
        m = re.fullmatch(r"f_(\d+)", f["function"])
        if m or f["file"].startswith("<0") or f["file"].startswith("<1"):
            n = int(m.group(1)) if m else -1
            good = m and f["file"] == "<%s>" % m.group(1) and f["line"] == 2 + n % 61
            if f["function"] == "<module>":
                continue
            right += bool(good)
            wrong += not good
            if not good:
                print(f["function"], f["file"], f["line"], file=sys.stderr)
            seen.add(n)
print("right", right, "wrong", wrong, "unnamed", unnamed, "names", len(same), "functions", len(seen))
