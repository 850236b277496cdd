#!/bin/sh
# Each enumerator and constant of the C headers, but the version, stands in layout_numbers.inc, and the other way round. The
# numbers are compared when that is compiled.
# Usage: check_numbers.sh REPOSITORY
set -eu
text() { sed 's|//.*||' "$1"/runtime/include/pagejit/c/*.h "$1/runtime/include/pagejit/pagejit.h"; }
in_headers=$({
  text "$1" | tr '\n' ' ' | grep -oE '\bPAGEJIT_[A-Z0-9_]+ *= ' | sed 's/ *= //'  # the value may be on the next line
  text "$1" | sed -n 's/^#define \(PAGEJIT_[A-Z0-9_]*\) *[0-9(].*/\1/p' | grep -v '^PAGEJIT_VERSION'
} | sort)
listed=$(sed -nE 's/^(NUMBER|CONSTANT)\((PAGEJIT_[A-Z0-9_]*),.*/\2/p' "$1/tests/c_api/layout_numbers.inc" | sort)
[ "$(echo "$in_headers" | wc -l)" -ge 90 ] || { echo "too few enumerators in the headers"; exit 1; }
status=0
for name in $in_headers; do
  echo "$listed" | grep -qx "$name" || { echo "$name: in a header, but not in layout_numbers.inc"; status=1; }
done
for name in $listed; do
  echo "$in_headers" | grep -qx "$name" || { echo "$name: in layout_numbers.inc, but in no header"; status=1; }
done
exit $status
