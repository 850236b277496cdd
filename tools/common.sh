# Shared by the scripts beside it; sourced, not run. Sets `root`, and functions to time steps and to build.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/.deps

say() { printf '== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# now: milliseconds since the epoch. seconds_since MS: elapsed seconds with one decimal.
now() { date +%s%3N; }
seconds_since() { local ms=$(($(now) - $1)); printf '%d.%d' $((ms / 1000)) $((ms % 1000 / 100)); }

jobs() { nproc 2>/dev/null || echo 2; }

# With PAGEJIT_CUDA_WHEEL the programs that are run use that wheel's NVRTC, else they search.
choose_nvrtc() {
  if [ -n "${PAGEJIT_CUDA_WHEEL:-}" ]; then
    PAGEJIT_NVRTC=${PAGEJIT_NVRTC:-$(wheel_lib "$PAGEJIT_CUDA_WHEEL")}
    export PAGEJIT_NVRTC
  fi
}

# build PRESET [BUILD_ARGUMENT...]: configures and builds build/PRESET, with ccache where it is installed; without the tests where
# with_tests is OFF. With PAGEJIT_CUDA_WHEEL the
# headers are those of that wheel, else CMake searches.
build() {
  local preset=$1 options=("-DPAGEJIT_BUILD_TESTS=${with_tests:-ON}")
  shift
  if command -v ccache >/dev/null; then options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  if [ -n "${PAGEJIT_CUDA_WHEEL:-}" ]; then
    options+=("-DPAGEJIT_CUDA_INCLUDE_DIR=$(wheel_include "$PAGEJIT_CUDA_WHEEL")")
  fi
  (cd "$root" && cmake --preset "$preset" "${options[@]}" && cmake --build --preset "$preset" -j "$(jobs)" "$@")
}

# Where the wheels of one CUDA major version lie once unpacked.
wheel_include() { if [ "$1" = 12 ]; then echo "$deps/python/nvidia/cuda_runtime/include"; else echo "$deps/python/nvidia/cu13/include"; fi; }
wheel_lib() { if [ "$1" = 12 ]; then echo "$deps/python/nvidia/cuda_nvrtc/lib"; else echo "$deps/python/nvidia/cu13/lib"; fi; }

# Prints CUDA_VERSION (e.g. 13000) of the cuda.h in folder $1; 0 where there is none.
cuda_header_version() {
  local version=
  if [ -r "$1/cuda.h" ]; then version=$(awk '$1 == "#define" && $2 == "CUDA_VERSION" { print $3; exit }' "$1/cuda.h"); fi
  echo "${version:-0}"
}

# Prints "INCLUDE LIB" of a toolkit with cuda.h and libnvrtc of 12.4 or later; fails where there is none.
find_toolkit() {
  local toolkit lib
  for toolkit in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda $(printf '%s\n' /usr/local/cuda-* | sort -rV); do
    if [ -z "$toolkit" ] || [ "$(cuda_header_version "$toolkit/include")" -lt 12040 ]; then continue; fi
    for lib in "$toolkit/lib64" "$toolkit/lib" "$toolkit/targets/x86_64-linux/lib"; do
      if compgen -G "$lib/libnvrtc.so.1[23]*" >/dev/null; then
        echo "$toolkit/include $lib"
        return 0
      fi
    done
  done
  return 1
}

# find_nvdisasm: prints its path; fails where there is none.
find_nvdisasm() {
  local candidate
  for candidate in "$(command -v nvdisasm || true)" "${CUDA_HOME:-}/bin/nvdisasm" /usr/local/cuda*/bin/nvdisasm \
    "$deps"/python/nvidia/cu13/bin/nvdisasm; do
    if [ -x "$candidate" ]; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

# fetch_nvdisasm: NVIDIA's wheel, 4 MB, into .deps/python. It reads the cubins of older compilers too.
fetch_nvdisasm() {
  local wheels
  mkdir -p "$deps/python"
  wheels=$(mktemp -d "$deps/wheels.XXXXXX")
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$wheels" 'nvidia-cuda-nvdisasm==13.2.*'
  python3 -m zipfile -e "$wheels"/nvidia_cuda_nvdisasm*.whl "$deps/python"
  rm -rf "$wheels"
  chmod +x "$deps/python/nvidia/cu13/bin/nvdisasm"
}
