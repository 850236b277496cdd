#!/usr/bin/env bash
# Builds the `gpu` preset and leaves in build/gpu/carry what a machine with a GPU needs to run tools/gpu_check.sh: the
# programs and libraries in the places where they were built, the embedding programs of tests/embed (C++, C, Rust, Python),
# the list of GPU tests, and the script. Fails if the tree is larger than 64 MB, or needs a library that such a machine may not
# have.
#
#   tools/pack_gpu_tree.sh [--no-build]
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

case "${1:-}" in
  "") "$root/tools/setup.sh" && build gpu ;;
  --no-build) ;;
  *) fail "unknown argument $1 (known: --no-build)" ;;
esac
tree=$root/build/gpu
carry=$tree/carry
max_bytes=64000000
[ -d "$tree" ] || fail "$tree does not exist; run without --no-build"
rm -rf "$carry"
mkdir -p "$carry"

cd "$tree"
# Tests with the label gpu, as "program<TAB>filter<TAB>arguments".
ctest --show-only=json-v1 -L '^gpu$' | python3 -c '
import json, os, sys
programs = {}
for test in json.load(sys.stdin)["tests"]:
    command = test.get("command", [])
    if not command:
        sys.exit("a test has no command: " + test["name"])
    filters, arguments = programs.setdefault(os.path.relpath(command[0]), ([], []))
    for argument in command[1:]:
        if argument.startswith("--gtest_filter="):
            filters.append(argument.split("=", 1)[1])
        elif argument not in arguments:
            arguments.append(argument)
for program, (filters, arguments) in programs.items():
    print(program + "\t" + (":".join(filters) or "*") + "\t" + " ".join(arguments))
' > "$carry/gpu_tests.txt"

# What runs there: these tests, the command, its benchmark of the host; and shared libraries, told by their first bytes.
is_elf() { [ "$(head -c 4 "$1" | od -An -tx1 | tr -d ' ')" = 7f454c46 ]; }
carry_file() {
  mkdir -p "$carry/$(dirname "$1")"
  cp -P "$1" "$carry/$1"
}
cut -f1 "$carry/gpu_tests.txt" | while IFS= read -r program; do carry_file "$program"; done
for program in tools/pagejit tools/pagejit-bench-host; do carry_file "$program"; done
find . -path ./carry -prune -o -path '*/CMakeFiles/*' -prune -o -name '*.so*' -print | sed 's|^\./||' | while IFS= read -r file; do
  if [ -L "$file" ] || is_elf "$file"; then carry_file "$file"; fi
done

# The programs that embed pagejit, against the library that was carried; Python's needs numpy there. Not the text generator:
# of its two models, 263 and 527 MB, each alone is larger than the tree may be.
embed=$root/tests/embed
mkdir -p "$carry/embed"
carried=("-I$root/runtime/include" "-L$carry/lib" -lpagejit -ldl -s -Wl,-rpath,"\$ORIGIN/../lib")
c++ -std=c++20 -O2 -o "$carry/embed/paged_decoder_cpp" "$embed"/cpp/*.cc "${carried[@]}"
cc -std=c11 -O2 -o "$carry/embed/paged_decoder_c" "$embed"/c/*.c "${carried[@]}" -lm
command -v cargo >/dev/null || fail "there is no cargo on the PATH; tools/setup.sh --tests installs Debian's"
scratch=$(mktemp -d -t pagejit-pack.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
RUSTFLAGS="-L native=$carry/lib -C link-arg=-Wl,-rpath,\$ORIGIN/../lib -C strip=symbols" \
  cargo build --quiet --release --offline --manifest-path "$embed/rust/Cargo.toml" --target-dir "$scratch"
cp "$scratch/release/paged_decoder" "$carry/embed/paged_decoder_rust"
cp -r "$embed/python" "$carry/embed/"
rm -rf "$carry/embed/python/__pycache__"

# What the loader must find there: glibc, libstdc++ and libgcc of a newer distribution, and our own libraries.
# Anything else is carried.
mkdir -p "$carry/lib"
find "$carry" -type f -not -name '*.txt' -not -name '*.py' -print0 | while IFS= read -r -d '' file; do
  ldd "$file" | awk -v file="$file" '
    $1 ~ /^(linux-vdso|ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libgcc_s\.|libstdc\+\+\.)/ || $1 ~ /ld-linux/ { next }
    $1 ~ /^libpagejit/ { if ($3 !~ /\/carry\//) print "not relocatable: " $0 > "/dev/stderr"; next }
    /statically linked/ { next }
    /not found/ { print file ": " $0 > "/dev/stderr"; next }
    { print $3 }'
done | sort -u | while IFS= read -r library; do
  say "carrying $(basename "$library")"
  cp -L "$library" "$carry/lib/"
done
rmdir "$carry/lib" 2>/dev/null || true

cp "$root/tools/gpu_check.sh" "$carry/"
bytes=$(du -sb "$carry" | cut -f1)
[ "$bytes" -le $max_bytes ] || fail "$carry has $bytes bytes; at most $max_bytes can be carried"
say "$carry: $bytes bytes, $(wc -l < "$carry/gpu_tests.txt") test programs"
