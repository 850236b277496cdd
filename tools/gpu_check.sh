#!/usr/bin/env bash
# Runs on a GPU what only a GPU can show: the tests with the label gpu (device functions and sweeps), `pagejit check`,
# the programs that embed pagejit, the benchmarks and `pagejit tune`. Needs a driver and NVRTC; no compiler, no CMake, no
# Debian package; Python with numpy for one of those programs.
#
#   tools/gpu_check.sh DIR [TREE]
#
# TREE is a tree made by tools/pack_gpu_tree.sh; default: where this script lies if that is one, else build/gpu/carry of
# its repository. DIR receives the logs and results, eight files. A call takes PAGEJIT_GPU_CHECK_SECONDS at most
# (default 570): where time runs out it exits with 75, and a further call with the same DIR goes on with the next step.
# Exit 0: every step is done and passed; 1: a step failed.
# To try the script and the tree without a GPU: PAGEJIT_GPU_CHECK_EMBED_ONLY=emulator runs the embedding programs alone, on
# the CPU emulator, which shows nothing about a GPU.
set -uo pipefail
[ $# -ge 1 ] || { sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1" || exit 2
out=$(cd "$1" && pwd)
tree=${2:-}
if [ -z "$tree" ]; then
  if [ -e "$here/gpu_tests.txt" ]; then tree=$here; else tree=$here/../build/gpu/carry; fi
fi
[ -x "$tree/tools/pagejit" ] || { echo "error: $tree/tools/pagejit is missing; run tools/pack_gpu_tree.sh" >&2; exit 2; }
tree=$(cd "$tree" && pwd)

call_seconds=${PAGEJIT_GPU_CHECK_SECONDS:-570}
# A libpagejit is found by the programs' own paths; lib/ holds what else was carried.
export LD_LIBRARY_PATH=$tree/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# The GPU's driver or nothing: without one the tests would skip, and `check` would run on the emulator.
unset PAGEJIT_ALLOW_EMULATOR PAGEJIT_EMULATOR
export PAGEJIT_DRIVER=libcuda.so.1
embed_only=${PAGEJIT_GPU_CHECK_EMBED_ONLY:-}
case "$embed_only" in
  "") ;;
  emulator) PAGEJIT_DRIVER=emulator ;;
  *) echo "error: PAGEJIT_GPU_CHECK_EMBED_ONLY=$embed_only: must be emulator" >&2; exit 2 ;;
esac
# Compiled kernels are kept between calls, outside DIR.
export PAGEJIT_CACHE_DIR=${PAGEJIT_CACHE_DIR:-${TMPDIR:-/tmp}/pagejit-gpu-check-$(id -u)}
pagejit=$tree/tools/pagejit

log=$out/gpu_check.log        # everything that was printed
state=$out/state.txt          # "NAME STATUS SECONDS" per finished step
tests=$out/tests.jsonl        # one line per test program: GoogleTest's JSON
benches=$out/bench.jsonl      # one line per suite of `pagejit bench`
touch "$state" "$log"

# run_tests PROGRAM FILTER [ARGUMENT...]
run_tests() {
  local result status
  result=$(mktemp)
  "$tree/$1" --gtest_filter="$2" --gtest_brief=1 --gtest_output="json:$result" "${@:3}"
  status=$?
  if [ ! -s "$result" ] || grep -q -m 1 '^  "tests": 0,' "$result"; then
    echo "$1 ran no test"  # which shows nothing
    [ "$status" -ne 0 ] || status=1
  else
    { printf '{"program": "%s", "exit": %d, "result": ' "$1" $status; tr -d '\n' <"$result"; printf '}\n'; } >>"$tests"
  fi
  rm -f "$result"
  return $status
}
# run_bench SUITE
run_bench() {
  local result status
  result=$(mktemp)
  "$pagejit" bench "$1" --json "$result"
  status=$?
  if [ -s "$result" ]; then
    { printf '{"suite": "%s", "exit": %d, "result": ' "$1" $status; tr -d '\n' <"$result"; printf '}\n'; } >>"$benches"
  fi
  rm -f "$result"
  return $status
}
export -f run_tests run_bench
export tree tests benches pagejit

# Steps: "NAME SECONDS COMMAND...". Each has its own limit, which must be below that of a call.
steps=("version 60 '$pagejit' version"
       "doctor 60 '$pagejit' doctor")
if [ -e "$tree/gpu_tests.txt" ]; then
  while IFS=$'\t' read -r program filter arguments; do
    [ -n "$program" ] && steps+=("test:$program 480 run_tests '$program' '$filter' $arguments")
  done <"$tree/gpu_tests.txt"
fi
steps+=("check 480 '$pagejit' check --json '$out/check.json'"
        "check-many 480 '$pagejit' check --queries many --json '$out/check_many.json'"
        "check-shared 480 '$pagejit' check --queries shared")
# Programs of other people's making; each compares each step with dense attention.
embed=()
if [ -d "$tree/embed" ]; then
  python=python3
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import numpy' 2>/dev/null; then python=$candidate; break; fi
  done
  embed=("embed-cpp 120 '$tree/embed/paged_decoder_cpp'"
         "embed-c 120 '$tree/embed/paged_decoder_c'"
         "embed-rust 120 '$tree/embed/paged_decoder_rust'"
         "embed-python 120 PAGEJIT_LIBRARY='$tree/lib/libpagejit.so' $python -B '$tree/embed/python/paged_decoder.py'")
fi
steps+=("${embed[@]}")
for suite in decode v1v2 paging fp8 mla prefill mixed cascade; do
  steps+=("bench-$suite 480 run_bench $suite")
done
[ -e "$tree/tools/pagejit-bench-host" ] && steps+=("bench-host 300 '$pagejit' bench host")
# One spec: that candidates are checked and timed on this GPU, and that what is kept can be read.
tuned=$out/tuned.pjb
steps+=("tune 480 '$pagejit' tune --head-size 128 --group-size 4 --json '$out/tuned.json' --output '$tuned' && '$pagejit' bundle verify '$tuned'")
[ -z "$embed_only" ] || steps=("${embed[@]}")

begin=$SECONDS
{
  printf '==== %s, tree %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$tree"
  command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,compute_cap,clocks.sm,clocks.mem --format=csv
} 2>&1 | tee -a "$log"

started_any=no
for step in "${steps[@]}"; do
  read -r name seconds command <<<"$step"
  grep -q "^$name " "$state" && continue
  if [ $started_any = yes ] && [ $((SECONDS - begin + seconds)) -gt "$call_seconds" ]; then
    echo "==== $name needs up to $seconds s: call again with the same folder" | tee -a "$log"
    exit 75
  fi
  started_any=yes
  limit=$((call_seconds - (SECONDS - begin)))
  [ "$limit" -lt "$seconds" ] && seconds=$limit
  echo "==== $name (at most $seconds s)" | tee -a "$log"
  step_begin=$SECONDS
  timeout --kill-after=10 "$seconds" bash -c "$command" </dev/null 2>&1 | tee -a "$log"
  status=${PIPESTATUS[0]}
  [ "$status" -ne 124 ] || echo "==== $name did not end within $seconds s" | tee -a "$log"
  echo "$name $status $((SECONDS - step_begin))" >>"$state"
  sync "$state" "$log" 2>/dev/null
done

echo "==== step, exit status, seconds" | tee -a "$log"
tee -a "$log" <"$state"
if awk '$2 != 0 { bad = 1 } END { exit !bad }' "$state"; then exit 1; fi
echo "==== all steps passed" | tee -a "$log"
