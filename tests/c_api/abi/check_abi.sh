#!/bin/sh
# Compares the C API of a library with the kept description, libpagejit.abi. Any difference fails: one that is meant is
# kept by tools/update_abi.sh, and must be an addition.
# Usage: check_abi.sh REPOSITORY LIBPAGEJIT
set -eu
command -v abidiff >/dev/null || { echo "abidiff is missing: tools/setup.sh installs it"; exit 1; }
now=$(mktemp)
trap 'rm -f "$now"' EXIT
"$1/tests/c_api/abi/describe_abi.sh" "$1" "$2" "$now"
# A description of nothing would differ from nothing.
functions=$(grep -c "<function-decl name='pagejit_" "$now")
[ "$functions" -ge 280 ] || { echo "only $functions functions in the description of $2"; exit 1; }
# The same on every processor.
abidiff --harmless --no-architecture "$1/tests/c_api/abi/libpagejit.abi" "$now" || {
  echo "the C API differs from tests/c_api/abi/libpagejit.abi; if it only grew: tools/update_abi.sh"
  exit 1
}
