#!/bin/sh
# A real run of the benchmarks that need no GPU writes what it printed, as JSON that `bench --compare` reads and as a
# picture; and every value is there. Takes some 20 s. What the values are is not judged: other tests may run beside it.
# Usage: check_run.sh PAGEJIT
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
result=0
"$1" bench host --json "$dir/host.json" --svg "$dir/host.svg" >"$dir/printed" || result=$?
[ $result -eq 0 ] || [ $result -eq 5 ] || exit $result  # 5: a goal was missed
/usr/bin/python3 - "$dir" <<'PYTHON'
import json, pathlib, sys
import xml.etree.ElementTree as xml

folder = pathlib.Path(sys.argv[1])
run = json.loads((folder / "host.json").read_text())
assert run["environment"]["gpu"] is None, run["environment"]
printed = (folder / "printed").read_text()
drawn = "".join(xml.fromstring((folder / "host.svg").read_text()).itertext())
results = run["results"]
assert len(results) >= 6, results
for result in results:
    assert result["value"] >= 0, result
    assert result["name"].strip() in printed, result
    if result["goal"] and result["goal"]["at_most"]:  # drawn as a part of it
        assert result["name"].strip() in drawn, result
PYTHON
"$1" bench --compare "$dir/host.json" "$dir/host.json" --threshold 5 >"$dir/compared"
grep -q 'launch beyond the raw driver call' "$dir/compared"
