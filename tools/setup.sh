#!/usr/bin/env bash
# Installs what is missing to build and run pagejit on Debian 12 or later; a second run changes nothing.
#
#   tools/setup.sh [--check] [--tests] [--cross] [--tidy]
#
# --check only says what is missing (exit 1 if anything). --tests also provides what tools/test.sh needs: GoogleTest, clang, Rust and
# others. --cross: what a cross-build for aarch64 and its tests need, Debian's compiler, qemu-user, and arm64 libraries in
# .deps/aarch64, about 100 MB. --tidy: what tools/lint.sh --tidy needs. Debian packages are installed with apt-get (through sudo where one is not root). Where no CUDA toolkit of 12.4 or later is found (CUDA_HOME, /usr/local/cuda*), NVRTC and cuda.h come
# from NVIDIA's wheels on PyPI, about 92 MB, unpacked in .deps/python; no driver, no GPU and no nvcc is needed. So does
# nvdisasm (4 MB) where no toolkit has it.
# PAGEJIT_CUDA_WHEEL=13|12 takes the wheels of that version even where a toolkit is installed.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

check_only=no
tests=no
cross=no
tidy=no
for argument in "$@"; do
  case "$argument" in
    --check) check_only=yes ;;
    --tests) tests=yes ;;
    --cross) cross=yes ;;
    --tidy) tidy=yes ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) fail "unknown argument $argument (known: --check, --tests, --cross, --tidy)" ;;
  esac
done
wheel=${PAGEJIT_CUDA_WHEEL:-}
case "$wheel" in "" | 12 | 13) ;; *) fail "PAGEJIT_CUDA_WHEEL=$wheel: must be 12 or 13" ;; esac

started=$(now)
download_ms=0
# downloading COMMAND...: runs it and adds its time to the downloads.
downloading() {
  local begin
  begin=$(now)
  "$@"
  download_ms=$((download_ms + $(now) - begin))
}

# ---- Debian packages -------------------------------------------------------------------------------------------------
have_command() { command -v "$1" >/dev/null 2>&1; }
have_file() { local path; for path in "$@"; do [ -e "$path" ] && return 0; done; return 1; }
have_header() { have_file "/usr/include/$1" "/usr/local/include/$1"; }
have_library() { local name; for name in "$@"; do have_archive "$name" && return 0; done; return 1; }
have_archive() { have_file /usr/lib/*/"$1" "/usr/lib/$1" "/usr/local/lib/$1"; }
have_pip() { python3 -m pip --version >/dev/null 2>&1; }
have_fuzzer() { have_command clang++ && have_file "$(clang++ -print-resource-dir)"/lib/*/libclang_rt.fuzzer*.a; }
# Debian's numpy is for Debian's python3.
have_numpy() { [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import numpy' 2>/dev/null; }
cmake_is_recent() { have_command cmake && [ "$(printf '%s\n' 3.25 "$(cmake --version | sed -n '1s/[^0-9]*//p')" | sort -V | head -n 1)" = 3.25 ]; }

missing=()
needs() { local package=$1; shift; "$@" || [[ " ${missing[*]} " = *" $package "* ]] || missing+=("$package"); }
needs g++ have_command g++
needs cmake cmake_is_recent
needs ninja-build have_command ninja
needs git have_command git
needs ca-certificates have_file /etc/ssl/certs/ca-certificates.crt
needs python3 have_command python3
needs libspdlog-dev have_header spdlog/spdlog.h
needs libfmt-dev have_header fmt/format.h
needs libcli11-dev have_header CLI/CLI.hpp
needs nlohmann-json3-dev have_header nlohmann/json.hpp
needs libssl-dev have_archive libcrypto.a
fetch_nginx=no
if [ "$tests" = yes ]; then
  needs libgtest-dev have_archive libgtest.a
  needs libgmock-dev have_archive libgmock.a
  needs libbenchmark-dev have_header benchmark/benchmark.h
  needs python3-pip have_pip
  # The ABI, and the embedding programs.
  needs abigail-tools have_command abidiff
  needs binutils have_command nm
  needs python3-numpy have_numpy
  needs gcc have_command gcc
  needs rustc have_command rustc
  needs cargo have_command cargo
  # What is installed.
  needs pkg-config have_command pkg-config
  needs dpkg-dev have_command dpkg-shlibdeps
  needs groff-base have_command groff
  needs zsh have_command zsh
  needs fish have_command fish
  # The store, signed and remote.
  needs libsodium23 have_library libsodium.so.23 libsodium.so.26
  needs libcurl4 have_library libcurl.so.4 libcurl-gnutls.so.4
  needs openssl have_command openssl
  # nginx is unpacked in .deps, not installed: its package would start a server on port 80.
  have_file /usr/sbin/nginx /usr/local/sbin/nginx "$deps/nginx/usr/sbin/nginx" || fetch_nginx=yes
  # The fuzzers, and the format.
  needs clang have_command clang++
  needs clang-format have_command clang-format
  needs libclang-rt-dev have_fuzzer
fi
if [ "$tidy" = yes ]; then
  needs clang have_command clang++
  needs clang-tidy have_command clang-tidy
fi
fetch_aarch64=no
if [ "$cross" = yes ]; then
  needs g++-aarch64-linux-gnu have_command aarch64-linux-gnu-g++
  needs qemu-user have_command qemu-aarch64
  "$(dirname "${BASH_SOURCE[0]}")/aarch64_root.sh" --check || fetch_aarch64=yes
fi

# ---- CUDA ------------------------------------------------------------------------------------------------------------
wheels_are_unpacked() {
  [ "$(cuda_header_version "$(wheel_include "$1")")" -ge 12040 ] && compgen -G "$(wheel_lib "$1")/libnvrtc.so.$1" >/dev/null &&
    compgen -G "$(wheel_lib "$1")/libnvrtc-builtins.so.$1.*" >/dev/null
}
cuda=
if [ -z "$wheel" ]; then
  if cuda=$(find_toolkit); then :; else wheel=13; fi
fi
fetch_wheels=no
if [ -n "$wheel" ]; then
  if wheels_are_unpacked "$wheel"; then
    :
  else
    fetch_wheels=yes
  fi
  cuda="$(wheel_include "$wheel") $(wheel_lib "$wheel")"
fi

# nvdisasm, which `pagejit inspect` prints machine code with; toolkits have it, wheels of NVRTC do not.
wants_nvdisasm=no
if ! find_nvdisasm >/dev/null; then
  wants_nvdisasm=yes
  python3 -m pip --version >/dev/null 2>&1 || [[ " ${missing[*]} " = *" python3-pip "* ]] || missing+=(python3-pip)
fi

if [ "$check_only" = yes ]; then
  [ ${#missing[@]} -eq 0 ] || echo "missing Debian packages: ${missing[*]}"
  [ "$fetch_nginx" = no ] || echo "missing: the Debian package nginx, unpacked in .deps"
  [ "$fetch_aarch64" = no ] || echo "missing: arm64 libraries in .deps/aarch64 (tools/aarch64_root.sh)"
  [ "$fetch_wheels" = no ] || echo "missing: NVIDIA's wheels for CUDA $wheel (NVRTC and cuda.h)"
  [ "$wants_nvdisasm" = no ] || echo "missing: NVIDIA's wheel nvidia-cuda-nvdisasm"
  [ ${#missing[@]} -eq 0 ] && [ "$fetch_nginx" = no ] && [ "$fetch_aarch64" = no ] && [ "$fetch_wheels" = no ] && [ "$wants_nvdisasm" = no ]
  exit
fi

if [ ${#missing[@]} -gt 0 ] || [ "$fetch_nginx" = yes ]; then
  wanted=("${missing[@]}")
  [ "$fetch_nginx" = no ] || wanted+=(nginx)
  say "installing ${wanted[*]}"
  have_command apt-get || fail "no apt-get on this machine; install what these Debian packages hold: ${wanted[*]}"
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    have_command sudo || fail "not root, and no sudo; as root run: apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  as_root+=(env DEBIAN_FRONTEND=noninteractive)
  mkdir -p "$deps"
  # logged COMMAND...: its output goes to a file, and is shown only if it fails.
  logged() { "$@" >"$deps/setup.log" 2>&1 </dev/null || { tail -n 40 "$deps/setup.log" >&2; fail "failed: $*"; }; }
  apt=("${as_root[@]}" apt-get -q -y -o Dpkg::Use-Pty=0)
  downloading logged "${apt[@]}" update
  if [ ${#missing[@]} -gt 0 ]; then
    downloading logged "${apt[@]}" install --no-install-recommends --download-only "${missing[@]}"
    logged "${apt[@]}" install --no-install-recommends "${missing[@]}"
  fi
  if [ "$fetch_nginx" = yes ]; then
    packages=$(mktemp -d "$deps/packages.XXXXXX")
    downloading logged env -C "$packages" apt-get -q download nginx
    logged dpkg-deb -x "$packages"/nginx_*.deb "$deps/nginx"
    rm -rf "$packages"
  fi
fi

if [ "$fetch_aarch64" = yes ]; then
  say "fetching arm64 libraries"
  downloading "$(dirname "${BASH_SOURCE[0]}")/aarch64_root.sh"
fi

if [ "$fetch_wheels" = yes ]; then
  # Only the libraries and headers are wanted, so the wheels are unpacked, not installed: no virtual environment, and
  # nothing outside this folder. They need no other package (cuda.h includes only the C library).
  if [ "$wheel" = 12 ]; then
    requirements=('nvidia-cuda-nvrtc-cu12==12.9.*' 'nvidia-cuda-runtime-cu12==12.9.*')
  else
    requirements=('nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*')
  fi
  say "fetching ${requirements[*]}"
  mkdir -p "$deps"
  wheels=$(mktemp -d "$deps/wheels.XXXXXX")
  trap 'rm -rf "$wheels"' EXIT
  downloading python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: -d "$wheels" "${requirements[@]}"
  mkdir -p "$deps/python"
  for file in "$wheels"/*.whl; do python3 -m zipfile -e "$file" "$deps/python"; done
  rm -rf "$wheels"
  wheels_are_unpacked "$wheel" || fail "the wheels hold no cuda.h and libnvrtc where they are looked for ($cuda)"
fi

if [ "$wants_nvdisasm" = yes ]; then
  say "fetching nvidia-cuda-nvdisasm"
  downloading fetch_nvdisasm
fi

# ---- Proof that NVRTC can be loaded, its builtins included -----------------------------------------------------------
nvrtc=$(python3 - "${cuda#* }" <<'PYTHON'
import ctypes, glob, sys
folder = sys.argv[1]
for builtins in sorted(glob.glob(folder + "/libnvrtc-builtins.so.*"), key=len)[:1]:
    ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)
path = sorted(glob.glob(folder + "/libnvrtc.so.1[23]*"), key=len)[0]
major, minor = ctypes.c_int(), ctypes.c_int()
assert ctypes.CDLL(path).nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
if (major.value, minor.value) < (12, 4):
    sys.exit(f"{path} is NVRTC {major.value}.{minor.value}; 12.4 or later is needed")
print(f"NVRTC {major.value}.{minor.value} in {folder}")
PYTHON
)
say "$nvrtc; cuda.h in ${cuda% *}"
total_ms=$(($(now) - started))
say "$(awk -v t=$total_ms -v d=$download_ms 'BEGIN { printf "set-up: %.1f s, of which downloads %.1f s", t / 1000, d / 1000 }')"
