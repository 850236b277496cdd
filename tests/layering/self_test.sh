#!/bin/sh
# Plants one violation of each rule in a small tree; check_layering.sh must find exactly the planted line.
# Usage: self_test.sh FOLDER_OF_check_layering.sh
set -eu
here=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
passed=0

clean_tree() {
  rm -rf "$work/tree"
  for folder in generator cache runtime/include/pagejit runtime/jit runtime/emulator templates/shared templates/attention tools/cli tests/cache; do
    mkdir -p "$work/tree/$folder"
  done
  cd "$work/tree"
  printf '%s\n' '#include <string>' '#include "pagejit/status.h"' > runtime/include/pagejit/spec.h
  printf '%s\n' '#include <vector>' '#include "generator/config.h"' '#include "pagejit/spec.h"' \
    '#include "templates/shared/attention_params.h"' > generator/planner.cc
  printf '%s\n' '#include <fcntl.h>' '#include <openssl/sha.h>' '#include "cache/entry.h"' '#include "pagejit/status.h"' \
    '// A comment may say abort() and printf("x").' 'auto text = "exit(1) // std::cout";' \
    'std::snprintf(buffer, size, "%d", x); fiber.exit(); /* abort() */' > cache/disk.cc
  printf '%s\n' '#include <cuda.h>' '#include "cache/disk.h"' '#include "generator/renderer.h"' > runtime/jit/engine.cc
  printf '%s\n' '#include "shared/attention_params.h"' '#include "work.cuh"' > templates/attention/kernel.cuh
  printf '%s\n' '#include <dlfcn.h>' '#include "templates/device/host/emulator_abi.cuh"' > runtime/emulator/image.cc
  printf '%s\n' '#pragma once' > templates/shared/attention_params.h
  printf '%s\n' '#include <cstdio>' '#include "pagejit/engine.h"' 'std::printf("hello");' > tools/cli/main.cc
  printf '%s\n' '#include <cuda.h>' '#include "cache/disk.h"' > tests/cache/disk_test.cc
}

# planted FILE TEXT EXPECTED: appended to FILE, TEXT is reported with EXPECTED, and nothing else is.
planted() {
  clean_tree
  printf '%s\n' "$2" >> "$1"
  line=$(wc -l < "$1")
  if out=$(sh "$here/check_layering.sh" "$work/tree"); then status=0; else status=$?; fi
  case "$status:$out" in
    "1:$1:$line: "*"$3"*) [ "$(printf '%s\n' "$out" | wc -l)" -eq 1 ] && passed=$((passed + 1)) && return ;;
  esac
  echo "NOT FOUND as wanted: $1: $2"
  echo "  exit $status: $out"
  failed=$((failed + 1))
}

clean_tree
if ! sh "$here/check_layering.sh" "$work/tree"; then
  echo "a clean tree is reported"
  failed=$((failed + 1))
fi
planted runtime/include/pagejit/spec.h '#include "generator/config.h"' 'public may not include "generator/config.h"'
planted runtime/include/pagejit/spec.h '#include <spdlog/spdlog.h>' 'public may not include <spdlog/spdlog.h>'
planted generator/planner.cc '#include "cache/disk.h"' 'generator may not include "cache/disk.h"'
planted generator/planner.cc '#include "runtime/jit/compiler.h"' 'generator may not include'
planted generator/planner.cc '#include "templates/attention/kernel.cuh"' 'generator may not include'
planted generator/planner.cc '#include "config.h"' 'generator may not include "config.h"'
planted generator/planner.cc '# include <cuda.h>' 'generator may not include <cuda.h>'
planted generator/planner.cc '#include <fstream>' 'generator may not include <fstream>'
planted generator/planner.cc 'const char* home = std::getenv("HOME");' 'may not read the environment'
planted cache/disk.cc '#include "generator/config.h"' 'cache may not include "generator/config.h"'
planted cache/disk.cc '#include "pagejit/spec.h"' 'cache may not include "pagejit/spec.h"'
planted cache/disk.cc '#include <cuda.h>' 'cache may not include <cuda.h>'
planted cache/disk.cc 'std::abort();' 'library code may not call abort'
planted cache/disk.cc 'if (bad) exit(1);  // give up' 'library code may not call exit'
planted runtime/jit/engine.cc 'printf("x");' 'library code may not call printf'
planted runtime/jit/engine.cc 'std::cout << 1;' 'may not print to a stream'
planted runtime/jit/engine.cc '#include "tools/cli/args.h"' 'runtime may not include "tools/cli/args.h"'
planted runtime/jit/engine.cc '#include "tests/reference/decode.h"' 'runtime may not include'
planted runtime/jit/engine.cc '#include "templates/attention/kernel.cuh"' 'runtime may not include'
planted runtime/emulator/image.cc '#include "generator/config.h"' 'emulator may not include "generator/config.h"'
planted runtime/emulator/image.cc '#include "templates/device/ptx/sync.cuh"' 'emulator may not include'
planted runtime/emulator/image.cc 'abort();' 'library code may not call abort'
planted templates/attention/kernel.cuh '#include <cuda_fp16.h>' 'templates may not include <cuda_fp16.h>'
planted templates/attention/kernel.cuh '#include "generator/config.h"' 'templates may not include "generator/config.h"'
planted templates/shared/attention_params.h '#include <cstdint>' 'shared may not include <cstdint>'
planted tools/cli/main.cc '#include <cuda.h>' 'tools may not include <cuda.h>'
planted tools/cli/main.cc '#include "tests/reference/decode.h"' 'tools may not include'

clean_tree
echo '#include <cuda.h>  // layering: a reason' >> tools/cli/main.cc
if ! sh "$here/check_layering.sh" "$work/tree"; then
  echo "a line with a reason is reported"
  failed=$((failed + 1))
fi

echo "$passed planted violations found, $failed failures"
[ "$failed" -eq 0 ]
