#include "runtime/engine/repro_script.h"

#include <string_view>
#include <utility>

namespace pagejit {
namespace {

// Between the quotes of sh.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

constexpr std::string_view kGpuHead = R"sh(#!/bin/sh
# Compiles source.cu again with the options of options.txt and compares the result, repro.cubin,
# with kernel.cubin.
#
#   repro.sh [nvrtc | nvcc]
#
# NVRTC is called through python3, with exactly the options of the first compile: the same NVRTC
# makes the same bytes. NVRTC=FILE names another libnvrtc. nvcc is taken where NVRTC or python3 is
# missing, or where it is asked for; it leaves out the options that only NVRTC knows, and its bytes
# differ: it shows that the source compiles.
# Exit code: 0 the same bytes, 1 other bytes (or nothing to compare with), 2 the compile failed,
# 3 no compiler.
set -u
umask 077
cd "$(dirname "$0")" || exit 3
with=${1:-any}
case "$with" in
  any | nvrtc | nvcc) ;;
  *) echo "unknown argument $with (known: nvrtc, nvcc)" >&2; exit 3 ;;
esac
)sh";

constexpr std::string_view kGpuBody = R"sh(
rm -f repro.cubin repro.cu
result=3
if [ "$with" != nvcc ] && command -v python3 >/dev/null; then
  python3 - "$program_name" "${NVRTC:-}" "$library" "$builtins" <<'PYTHON'
import ctypes, glob, os, sys

name, wanted, library, builtins = sys.argv[1:]


def open_nvrtc():
    candidates = [(library, builtins), ("libnvrtc.so.13", ""), ("libnvrtc.so.12", "")]
    if wanted:
        # NVRTC looks for its builtins only where the loader does, unless they are open already.
        beside = sorted(glob.glob(os.path.join(os.path.dirname(wanted), "libnvrtc-builtins.so*")))
        candidates = [(wanted, beside[-1] if beside else "")]
    for path, other in candidates:
        try:
            if path:
                if other:
                    ctypes.CDLL(other)
                return ctypes.CDLL(path), path
        except OSError as error:
            print(error, file=sys.stderr)
    sys.exit(3)


nvrtc, path = open_nvrtc()
major, minor = ctypes.c_int(), ctypes.c_int()
nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
print(f"NVRTC {major.value}.{minor.value}, {path}")
nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
with open("source.cu", "rb") as file:
    source = file.read()
with open("options.txt", "rb") as file:
    options = file.read().split(b"\n")[:-1]
program = ctypes.c_void_p()
result = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None)
if result == 0:
    words = (ctypes.c_char_p * len(options))(*options)
    result = nvrtc.nvrtcCompileProgram(program, len(options), words)
size = ctypes.c_size_t()
if nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)) == 0:
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    sys.stderr.write(log.value.decode(errors="replace"))
if result == 0:
    result = nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
if result == 0:
    cubin = ctypes.create_string_buffer(size.value)
    result = nvrtc.nvrtcGetCUBIN(program, cubin)
if result != 0:
    print(nvrtc.nvrtcGetErrorString(result).decode(), file=sys.stderr)
    sys.exit(2)
with open("repro.cubin", "wb") as file:
    file.write(cubin.raw)
PYTHON
  result=$?
fi
if [ "$result" = 3 ] && [ "$with" != nvrtc ] && command -v nvcc >/dev/null; then
  nvcc --version | tail -n 2 | head -n 1
  set --
  while IFS= read -r option; do
    case "$option" in --minimal | --no-cache) ;; *) set -- "$@" "$option" ;; esac
  done <options.txt
  # nvcc includes headers of its own, which define these types as others than the source does.
  sed -E 's/(^|[^A-Za-z0-9_])(u?int(8|16|32|64)_t)/\1pagejit_\2/g' source.cu >repro.cu
  if nvcc -cubin -o repro.cubin "$@" repro.cu; then result=0; else result=2; fi
fi
[ "$result" != 3 ] ||
  echo "no compiler: neither libnvrtc with python3 (NVRTC=FILE names one) nor nvcc" >&2
[ "$result" = 0 ] || exit "$result"
)sh";

constexpr std::string_view kHostHead = R"sh(#!/bin/sh
# Compiles source.cu again, as C++ for the CPU emulator, with the options of options.txt and
# compares the result, repro.so, with kernel.so. CXX=FILE names another compiler.
# Exit code: 0 the same bytes, 1 other bytes (or nothing to compare with), 2 the compile failed,
# 3 no compiler.
set -u
umask 077
cd "$(dirname "$0")" || exit 3
)sh";

constexpr std::string_view kHostBody = R"sh(
rm -f repro.so
compiler=${CXX:-$compiler}
command -v "$compiler" >/dev/null ||
  { echo "no compiler $compiler: CXX=FILE names another" >&2; exit 3; }
# The names of the file and of its folder are part of the debug information; the folder is mapped
# away.
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
work=$(cd "$work" && pwd -P)
cp source.cu "$work/$program_name" || exit 3
set --
while IFS= read -r option; do set -- "$@" "$option"; done <options.txt
(cd "$work" && LC_ALL=C TMPDIR="$work" "$compiler" "$@" "-ffile-prefix-map=$work=." \
  -o image.so "$program_name") || exit 2
cp "$work/image.so" repro.so || exit 2
)sh";

constexpr std::string_view kCompare = R"sh(
[ -f "$image" ] ||
  { echo "compiled; nothing to compare with: the first compile had failed"; exit 1; }
if cmp -s "$image" "$repro"; then
  echo "equal: $repro has the bytes of $image"
else
  echo "different: $repro is not $image, byte for byte"
  exit 1
fi
)sh";

// What is another word where the image is PTX.
constexpr std::pair<std::string_view, std::string_view> kPtxWords[] = {
    {"repro.cubin", "repro.ptx"},
    {"kernel.cubin", "kernel.ptx"},
    {"nvrtcGetCUBIN", "nvrtcGetPTX"},
    {"nvcc -cubin", "nvcc -ptx"}};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string repro_script(const KernelSource& source, const CompileRecipe& recipe) {
  std::string text;
  const auto set = [&](std::string_view name, std::string_view value) {
    text += std::string(name) + "=" + quoted(value) + "\n";
  };
  const bool is_host = source.target.is_host();
  text += is_host ? kHostHead : kGpuHead;
  set("program_name", source.kernel_name + (is_host ? ".cc" : ".cu"));
  set("image", is_host ? "kernel.so" : "kernel.cubin");
  set("repro", is_host ? "repro.so" : "repro.cubin");
  if (is_host) {
    set("compiler", recipe.program.empty() ? "c++" : recipe.program);
  } else {
    set("library", recipe.program);
    set("builtins", recipe.builtins);
  }
  text += is_host ? kHostBody : kGpuBody;
  text += kCompare;
  if (source.target.variant == TargetVariant::kPtx) {
    for (const auto& [cubin, ptx] : kPtxWords) replace_all(text, cubin, ptx);
  }
  return text;
}

}  // namespace pagejit
