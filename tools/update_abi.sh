#!/usr/bin/env bash
# Writes tests/c_api/abi/libpagejit.abi anew from build/release, and prints what changed. A released function, field or
# number stays as it is: only additions are to be kept.
#
#   tools/update_abi.sh
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) fail "unknown argument $1 (known: --help)" ;;
esac
build release --target pagejit
folder=$root/tests/c_api/abi
"$folder/describe_abi.sh" "$root" "$root/build/release/lib/libpagejit.so" "$folder/new.abi"
if [ -e "$folder/libpagejit.abi" ]; then abidiff --harmless "$folder/libpagejit.abi" "$folder/new.abi" || true; fi
mv "$folder/new.abi" "$folder/libpagejit.abi"
say "written: tests/c_api/abi/libpagejit.abi"
