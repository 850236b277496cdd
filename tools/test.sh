#!/usr/bin/env bash
# Set-up, build, and all tests: first the release build, then the host code under AddressSanitizer and
# UndefinedBehaviorSanitizer, then what has threads under ThreadSanitizer, then the fuzzers for some seconds each, and last
# cross-built for aarch64 under qemu-user. Needs no GPU; where there is one, the release tests that run on it run too. Fails if
# anything failed; the other parts run all the same.
#
#   tools/test.sh [--all] [--no-sanitizers] [--no-cross]
#
# --all also runs the long sweeps (label "long"), and clang-tidy over every source (tools/lint.sh --tidy).
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Set-up has provided them: a test that does not find them fails instead of skipping.
export PAGEJIT_TEST_REQUIRE_COMPILERS=1

all=no
sanitizers=yes
cross=yes
for argument in "$@"; do
  case "$argument" in
    --all) all=yes ;;
    --no-sanitizers) sanitizers=no ;;
    --no-cross) cross=no ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) fail "unknown argument $argument (known: --all, --no-sanitizers, --no-cross)" ;;
  esac
done

# What failed in any part, said again at the very end, where whoever sees only the end of a long log finds it.
failures=$(mktemp)
trap 'rm -f "$failures"' EXIT

# run_tests PRESET CTEST_ARGUMENT...: ctest prints its closing lines last. What failed, with the first lines it printed, is
# kept in $failures; $result is ctest's exit status, $status that of the last run that failed. Succeeds.
status=0
run_tests() {
  local preset=$1 log
  shift
  result=0
  log="$root/build/$preset/Testing/output.log"
  mkdir -p "${log%/*}"
  ctest --test-dir "$root/build/$preset" --output-on-failure --no-tests=error -j "$(jobs)" "$@" 2>&1 | tee "$log" || result=$?
  [ "$result" -ne 0 ] || return 0
  status=$result
  awk -v preset="$preset" -v most=60 '
    function told(  i) {
      if (failed == "") return
      print "-- " preset ": " failed
      for (i = 0; i < count && i < most; ++i) print "   " lines[i]
      failed = ""
    }
    /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / { told(); count = 0; if ($0 ~ /\*\*\*/) failed = $0; next }
    /^ +Start +[0-9]+: / { next }
    /^[0-9]+% tests passed/ { told(); next }
    failed != "" { lines[count++] = $0 }
    /No tests were found/ { print "-- " preset ": " $0 }
    END { told() }' "$log" >>"$failures"
}

# sum_up PRESET: the cases of all programs, and the worst comparison of a sweep (tests/sweep/error_summary.h).
sum_up() {
  awk '
    /^\[==========\] [0-9]+ tests? from .* ran\./ { cases += $2 }
    /^compared [0-9]+ launches/ { launches += $2; if ($5 > worst) { worst = $5; line = $0 } }
    END {
      sub(/^compared [0-9]+ launches, /, "", line)
      printf "%d test cases; %d launches compared, the %s\n", cases, launches, line
    }' "$root/build/$1/Testing/Temporary/LastTest.log"
}

begin=$(now)
setup_options=(--tests)
[ "$cross" = no ] || setup_options+=(--cross)
[ "$all" = no ] || setup_options+=(--tidy)
"$root/tools/setup.sh" "${setup_options[@]}"
"$root/tests/embed/llm/setup.sh" || say "the models of tests/embed/llm were not fetched: their tests will fail"
say "set-up: $(seconds_since "$begin") s"
choose_nvrtc

begin=$(now)
build release
say "release build: $(seconds_since "$begin") s"

excluded=()
[ "$all" = yes ] || excluded+=(long)
[ -e /dev/nvidiactl ] || excluded+=(gpu)  # NVIDIA's driver is loaded
begin=$(now)
run_tests release -LE "^($(IFS='|'; echo "${excluded[*]:-none}"))\$"
say "release tests: $(seconds_since "$begin") s, exit status $result"
say "$(sum_up release)"

if [ "$all" = yes ]; then
  begin=$(now)
  result=0
  tidy_log="$root/build/tidy.log"
  "$root/tools/lint.sh" --tidy 2>&1 | tee "$tidy_log" || result=$?
  if [ "$result" -ne 0 ]; then
    status=$result
    { echo "-- tools/lint.sh --tidy"; grep -E '(error|warning):' "$tidy_log" | head -n 60 | sed 's/^/   /'; } >>"$failures" || true
  fi
  say "clang-tidy: $(seconds_since "$begin") s, exit status $result"
fi

if [ "$sanitizers" = yes ]; then
  begin=$(now)
  build asan --target cache_test generator_test jit_test runtime_test async_test observation_test \
    c_api_test models_test manifest_test pagejit_emulator_test attention_sweep_test ragged_test latent_test
  say "sanitizer build: $(seconds_since "$begin") s"
  # The library's host code. What runs device code on the emulator's fibers, compiles many kernels or needs the plain
  # build's timing says so with a label.
  run_tests asan -L '^(cache|generator|jit|remote|runtime|c_api|models|manifest)$' -LE '^(gpu|long|emulated|emulator|nvrtc|plain)$'
  # Kernels on the emulator: what AddressSanitizer finds there, and a sweep of attention.
  run_tests asan -R '^AsanTest\.|_asan\.'

  begin=$(now)
  build tsan --target cache_test jit_test runtime_test async_test observation_test c_api_test
  say "ThreadSanitizer build: $(seconds_since "$begin") s"
  begin=$(now)
  run_tests tsan -L '^(cache|jit|runtime|c_api)$' -LE '^(gpu|long|emulated|emulator|nvrtc|plain)$'
  say "ThreadSanitizer tests: $(seconds_since "$begin") s, exit status $result"

  begin=$(now)
  build fuzz --target fuzzers
  run_tests fuzz -L '^fuzz$'
  say "fuzzers, with their build: $(seconds_since "$begin") s, exit status $result"
fi

if [ "$cross" = yes ]; then
  begin=$(now)
  build aarch64 --target pagejit pagejit_emulator cache_test generator_test jit_test runtime_test observation_test \
    tuned_test allocation_test c_api_test c_api_allocation_test models_test manifest_test plot_test fiber_test \
    cross_consumer cross_decoder c_api_headers
  say "aarch64 build: $(seconds_since "$begin") s"
  begin=$(now)
  # Left out: bounds on times; what needs an NVRTC of that processor; what qemu-user does not do (a child of a process with
  # threads that starts a thread, posix_spawn that tells of a missing program); and searches through all specs or damaged
  # files, which take minutes there. Not built: reference_test, spec_space_test and support_matrix_test, which
  # take minutes too; inspect_test, cli_test and bench_result_test, which would have 50 to 100 more sources compiled;
  # bench_command_test, command_test, every_command_test, cache_command_test and bundle_command_test, which start the command: what a program
  # under qemu-user starts runs only where the kernel knows qemu (binfmt_misc).
  left_out=(
    CompilePoolTest.ForkedChildOfAnIdleParentCompiles
    DiskCacheEvictTimeTest\\.
    ManifestTest.HostileTextsAreAnswered
    ModelConfigTest.FlippedBytesNeverCrash
    NvrtcCompilerTest
    NvrtcFinderTest.RealLibraryIsIdentifiedWithoutLoadingIt
    PlannerTest.DecodeOverF32ServesLargeGroupsOfSmallHeads
    PlannerTest.EveryLegalSpecHasASoundPlanOnEveryTarget
    PlannerTest.RaggedTilesHold16To128RowsAndAsManyAsQueriesNeed
    RemoteStoreUploadTest.AForkedChildHasAThreadAndCountsOfItsOwn
    SpecTest.EveryCombinationOfRaggedFieldsSurvivesItsText
    SubprocessTest.LeaksNoDescriptor
    SubprocessTest.MissingProgramIsAnError
    TraceTest.MoreKernelsThanAListHasAreRefused)
  run_tests aarch64 -L '^(cache|generator|runtime|jit|c_api|models|manifest|plot|cross)$' \
    -LE '^(gpu|long|nvrtc|plain)$' -E "^($(IFS='|'; echo "${left_out[*]}"))"
  say "aarch64 tests under qemu-user: $(seconds_since "$begin") s, exit status $result"
fi
if [ "$status" -ne 0 ]; then
  say "what failed, with the first lines it printed:"
  cat "$failures"
  say "what failed:"
  grep '^-- ' "$failures" || true
  fail "tests failed"
fi
say "every part passed"
