# SPDX-License-Identifier: GPL-2.0-or-later
"""truth.py JSON: of the script frames that churn.pl's subroutines have in symbolize's output, print how many
are right, wrong and unnamed, and how many distinct subroutines were seen."""
import json, re, sys

right = wrong = unnamed = 0
seen = set()
for line in open(sys.argv[1], encoding="utf-8"):
    w = json.loads(line)
    for f in w.get("user_stack", []):
        if "runtime" not in f:
            continue
        if f["function"] is None:
            unnamed += w["count"]
        elif f["function"].startswith("P_"):
            m = re.fullmatch(r"P_(\d+)::f_(\d+)", f["function"])
            n = int(m.group(1)) if m else -1
            good = m and m.group(2) == m.group(1) and f["file"] == "file%d" % n and f["line"] == 2 + n % 61
            right += bool(good)
            wrong += not good
            seen.add(n)
            if not good:
                print(f["function"], f["file"], f["line"], file=sys.stderr)
print("right", right, "wrong", wrong, "unnamed", unnamed, "functions", len(seen))
