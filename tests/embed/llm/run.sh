#!/usr/bin/env bash
# Generates text with a model that setup.sh has fetched, and compares every logit with NumPy's.
#
#   tests/embed/llm/run.sh MODEL [--generator FILE] [--expect-failure TEXT] [--readme] [OPTION...]
#
# MODEL is smollm2 or gemma3. OPTIONs go to the generator: --tokens N, --chunk N, --threads N, --cascade, --break FAULT.
# FILE is a built generator; without one it is built in build/llm against build/release, which is installed there.
# --expect-failure: one check must fail, the one whose sentence has TEXT, and no other (exit 0 if it does).
# --readme: what is generated must be what README.md here and the root's quote.
# On a machine without a GPU set PAGEJIT_DRIVER=emulator.
# Exit 3: a check failed; 77: the model has not been fetched (1 instead with PAGEJIT_TEST_REQUIRE_COMPILERS=1).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/common.sh
. "$here/../../../tools/common.sh"

case "${1:-}" in
  smollm2 | gemma3) ;;
  -h | --help | "") sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
  *) fail "unknown model $1 (known: smollm2, gemma3)" ;;
esac
folder=$deps/llm/$1
shift
generator=
expected=
compares_readme=no
options=()
while [ $# -gt 0 ]; do
  case "$1" in
    --generator) generator=$2; shift ;;
    --expect-failure) expected=$2; shift ;;
    --readme) compares_readme=yes ;;
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
log=$work/log.txt
status=0
"$generator" "$folder" "$work" ${options[@]+"${options[@]}"} | tee "$log" || status=$?
# One thread: the matrices are small, and threads that wait for each other are slow beside other work.
[ "$status" -ne 0 ] || OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1} PYTHONPATH=$deps/llm/python PYTHONDONTWRITEBYTECODE=1 \
  python3 "$here/python/reference.py" "$folder" "$work" | tee -a "$log" || status=$?

# quoted FILE TEXT [GREP_OPTION]
quoted() {
  grep -qF ${3:+"$3"} -e "$2" "$here/$1" && return
  echo "FAILED: $1 does not have: $2" | tee -a "$log"
  status=3
}
if [ "$compares_readme" = yes ] && [ "$status" -eq 0 ]; then
  root_readme=../../../README.md
  mapfile -t texts < <(sed -n 's/^prompt of [0-9]* tokens, generated: *//p' "$log")
  mapfile -t lengths < <(sed -n 's/^prompt of \([0-9]*\) tokens.*/\1/p' "$log")
  reused=$(sed -n 's/^sharing:.* reused \([0-9]*\),.*/\1/p' "$log")
  quoted README.md "(${lengths[0]} and ${lengths[1]} tokens, $reused of them shared)"
  quoted $root_readme "a prompt of ${lengths[0]} tokens"
  # After another choice the text goes on otherwise, which is no fault where NumPy finds both as good.
  if grep -q 'fell the other way: 0$' "$log"; then
    for text in "${texts[@]}"; do quoted README.md "> $text" -x; done
    quoted $root_readme "> ${texts[0]}" -x
  else
    say "the text is not compared with the README's, since a near-tie fell the other way"
  fi
fi

[ -n "$expected" ] || exit "$status"
failures=$(grep '^FAILED:' "$log" || true)
if [ "$status" -eq 3 ] && [[ "$failures" = *"$expected"* && "$failures" != *$'\n'* ]]; then
  say "this check was to fail, and did"
  exit 0
fi
fail "not this check, and this alone, has failed: $expected"
