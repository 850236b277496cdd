#!/bin/sh
# Each public function and method of C++ stands in runtime/c_api/README.md with its counterpart in C: what a header of
# C++ declares for callers is compared with the table's first column, and the functions in its second with those of C.
# Usage: check_coverage.sh REPOSITORY
set -eu
cd "$1"
# Names before "(" in the public parts of the headers, but constructors, operators and what is marked internal.
declared=$(awk '
  FNR == 1 { hidden = 0; class = "" }
  { sub(/\/\/.*/, "") }
  /^(class|struct) .*\{/ { class = $0; sub(/ *(:[^:].*|final.*)?\{.*/, "", class); sub(/.* /, "", class); hidden = 0 }
  /^};/ { hidden = 0; class = "" }
  /^ (private|protected):/ { hidden = 1 }
  hidden || /^ *(return|if|requires|concept)/ { next }
  /^template <>/ { next }
  /^(PAGEJIT_EXPORT|constexpr|inline|Status|  [A-Za-z_:<>&*]|template|std::)/ {
    line = $0
    if (match(line, /(^|[ *&])[a-z][a-z_0-9]*\(/)) {
      name = substr(line, RSTART, RLENGTH - 1); gsub(/[ *&]/, "", name)
      if (name !~ /^(operator|function|requires|explicit|sizeof|concept|bool)$|_$/) print (class == "" ? "" : class "::") name
    }
  }' runtime/include/pagejit/*.h | grep -v '^PAGEJIT' | sort -u)
[ "$(echo "$declared" | wc -l)" -ge 60 ] || { echo "found only: $declared"; exit 1; }
listed=$(sed -n 's/^| `\([^`]*\)`.*/\1/p' runtime/c_api/README.md | sort -u)
status=0
for name in $declared; do
  echo "$listed" | grep -qxF "$name" || { echo "$name: no line in runtime/c_api/README.md"; status=1; }
done
for name in $(sed -n 's/^| `[^`]*` | \(.*\) |$/\1/p' runtime/c_api/README.md | grep -o 'pagejit_[a-z0-9_]*' | sort -u); do
  grep -q "DO($name)" tests/c_api/function_table.h || { echo "$name: in runtime/c_api/README.md, but no function"; status=1; }
done
exit $status
