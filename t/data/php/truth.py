# SPDX-License-Identifier: GPL-2.0-or-later
"""truth.py JSON: of the script frames that churn.php's functions have in symbolize's output, print how many
are right, wrong and unnamed, and how many distinct functions were seen."""
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
        elif f["function"] == "{closure}":
            m = re.search(r"/(\d+)\.php$", f["file"])
            good = m and f["line"] == 3 + int(m.group(1)) % 61
            right += bool(good)
            wrong += not good
            seen.add(f["file"])
            if not good:
                print(f["function"], f["file"], f["line"], file=sys.stderr)
print("right", right, "wrong", wrong, "unnamed", unnamed, "functions", len(seen))
