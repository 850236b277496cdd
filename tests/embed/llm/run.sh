#!/usr/bin/env bash
# Generates text with a model that setup.sh has fetched, and compares every logit with NumPy's.
#
#   tests/embed/llm/run.sh MODEL [--generator FILE] [--expect-broken] [OPTION...]
#
# MODEL is smollm2 or gemma3. OPTIONs go to the generator: --tokens N, --chunk N, --threads N, --cascade, --break block-table.
# FILE is a built generator; without one it is built in build/llm against build/release, which is installed there.
# --expect-broken: the comparison must fail (exit 0 if it does). On a machine without a GPU set PAGEJIT_DRIVER=emulator.
# Exit 77: the model has not been fetched (1 instead with PAGEJIT_TEST_REQUIRE_COMPILERS=1).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/common.sh
. "$here/../../../tools/common.sh"

case "${1:-}" in
  smollm2 | gemma3) ;;
  -h | --help | "") sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
  *) fail "unknown model $1 (known: smollm2, gemma3)" ;;
esac
folder=$deps/llm/$1
shift
generator=
expected=0
options=()
while [ $# -gt 0 ]; do
  case "$1" in
    --generator) generator=$2; shift ;;
    --expect-broken) expected=1 ;;
    *) options+=("$1") ;;
  esac
  shift
done

if [ ! -e "$folder/stamp" ]; then
  echo "$folder is missing: tests/embed/llm/setup.sh fetches it (it needs network)"
  [ "${PAGEJIT_TEST_REQUIRE_COMPILERS:-}" = 1 ] && exit 1
  exit 77
fi
if [ -z "$generator" ]; then
  build=$root/build/llm
  cmake --install "$root/build/release" --prefix "$build/installed" >/dev/null
  cmake -G Ninja -S "$here/generator" -B "$build" -DCMAKE_PREFIX_PATH="$build/installed" >/dev/null
  cmake --build "$build" >/dev/null
  generator=$build/llm_generator
fi

work=$(mktemp -d -t pagejit-llm.XXXXXX)
trap 'rm -rf "$work"' EXIT
"$generator" "$folder" "$work" ${options[@]+"${options[@]}"}
# One thread: the matrices are small, and threads that wait for each other are slow beside other work.
status=0
OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1} PYTHONPATH=$deps/llm/python PYTHONDONTWRITEBYTECODE=1 \
  python3 "$here/python/reference.py" "$folder" "$work" || status=$?
[ "$expected" = 0 ] || say "the comparison was to fail: $([ "$status" = 1 ] && echo it did || echo it did not)"
[ "$status" -eq "$expected" ]
