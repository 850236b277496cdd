#!/bin/sh
# Checks who includes whom, and what library code may not call. Prints "file:line: what" per violation; exit 1 if any.
# Usage: check_layering.sh REPOSITORY
#
# A line whose comment says "layering: REASON" is let through; the reason stands where a reader sees it.
set -eu
cd "$1"

# A cheap guard against a check that looks at nothing.
files=$(find generator cache runtime templates tools tests -type f \
  \( -name '*.h' -o -name '*.cc' -o -name '*.cuh' -o -name '*.tmpl' -o -name '*.hpp' -o -name '*.cpp' \) \
  -not -path '*/CMakeFiles/*' | sort)
[ -n "$files" ] || { echo "no source files below $1"; exit 2; }

# shellcheck disable=SC2086  # paths of this repository hold no blanks
awk '
function report(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; bad = 1 }
function starts(text, prefix) { return substr(text, 1, length(prefix)) == prefix }

# The layer of a file, from its path.
function layer_of(path) {
  if (starts(path, "runtime/include/")) return "public"
  if (starts(path, "templates/shared/")) return "shared"
  if (starts(path, "templates/")) return "templates"
  if (starts(path, "runtime/emulator/")) return "emulator"
  sub(/\/.*/, "", path)
  return path
}

# C++ headers have no dot; of the others each layer gets a list.
function is_std(name) { return name ~ /^[a-z_0-9]+$/ }
function is_c(name) { return name ~ /^(stdint|stddef|stdbool|string|errno|limits)\.h$/ }
function is_posix(name) {
  return is_c(name) || name ~ /^sys\/[a-z]+\.h$/ || name ~ /^linux\/[a-z_]+\.h$/ || \
         name ~ /^(unistd|fcntl|dirent|pthread|sched|signal|spawn|poll|time|pwd|dlfcn|link|elf|ucontext)\.h$/
}
function is_cuda(name) { return name ~ /^(cuda|nvrtc|cudaTypedefs|cuda_[a-z_0-9]+)\.h$/ }
# What makes a pure function depend on the machine (<cstdio> is let in for snprintf; calls are checked below).
function is_impure(name) { return name ~ /^(fstream|filesystem|iostream|ctime|chrono|random|thread|mutex)$/ }

function allowed(layer, name, quoted) {
  if (quoted) {
    if (layer == "public") return starts(name, "pagejit/")
    if (layer == "shared") return starts(name, "templates/shared/")
    # Inlined at render time; paths count from templates/ or from the folder of the file.
    if (layer == "templates") return name ~ /^(((templates\/)?(shared|device|elements|attention|merge_states|cache_write|copy_blocks|gather_cache|convert_float8|indexer)\/)?[a-z_0-9\/]+\.(cuh|h))$/ && \
                                     name !~ /^(generator|cache|runtime|tools|tests|pagejit)\//
    if (layer == "generator")
      return starts(name, "generator/") || starts(name, "templates/shared/") || starts(name, "pagejit/")
    if (layer == "cache") return starts(name, "cache/") || name == "pagejit/status.h"
    if (layer == "runtime")
      return starts(name, "runtime/") || starts(name, "generator/") || starts(name, "cache/") || \
             starts(name, "templates/shared/") || starts(name, "pagejit/")
    # The other side of the host prelude: shares its declarations, and nothing of the inside of the library.
    if (layer == "emulator")
      return starts(name, "runtime/emulator/") || starts(name, "templates/device/host/") || starts(name, "pagejit/")
    if (layer == "tools")
      return starts(name, "tools/") || starts(name, "runtime/") || starts(name, "generator/") || \
             starts(name, "cache/") || starts(name, "templates/shared/") || starts(name, "pagejit/")
    return 1  # tests see everything
  }
  if (layer == "public") return is_std(name) || is_c(name)
  if (layer == "shared" || layer == "templates") return 0
  if (layer == "generator") return is_std(name) && !is_impure(name) || is_c(name)
  if (layer == "cache") return is_std(name) || is_posix(name) || name == "openssl/sha.h"
  if (layer == "tools") return !is_cuda(name)
  return 1
}

FNR == 1 { layer = layer_of(FILENAME); in_comment = 0 }
/\/\/.*layering: *[A-Za-z]/ { next }

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
  name = $0
  sub(/^[^"<]*/, "", name)
  quoted = substr(name, 1, 1) == "\""
  name = substr(name, 2)
  sub(/[">].*/, "", name)
  if (!allowed(layer, name, quoted)) report(layer " may not include " (quoted ? "\"" name "\"" : "<" name ">"))
  next
}

# Calls: only in host library code. Comments and string literals are blanked first.
layer == "public" || layer == "generator" || layer == "cache" || layer == "runtime" || layer == "emulator" {
  line = $0
  gsub(/\\\\|\\"/, "", line)
  gsub(/"[^"]*"/, "\"\"", line)
  if (in_comment) {
    if (line !~ /\*\//) next
    sub(/^.*\*\//, "", line)
    in_comment = 0
  }
  gsub(/\/\*[^*]*\*\//, "", line)
  if (line ~ /\/\*/) { in_comment = 1; sub(/\/\*.*/, "", line) }
  sub(/\/\/.*/, "", line)
  if (match(line, /(^|[^A-Za-z0-9_.>])(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|exit|quick_exit|abort|terminate)[ \t]*\(/)) {
    call = substr(line, RSTART, RLENGTH)
    gsub(/[^a-z_]/, "", call)
    report("library code may not call " call)
  }
  if (line ~ /std::(cout|cerr|clog)([^A-Za-z0-9_]|$)/) report("library code may not print to a stream")
  if ((layer == "generator" || layer == "cache") && line ~ /(^|[^A-Za-z0-9_])(secure_)?getenv[ \t]*\(/)
    report(layer " may not read the environment")
}
END { exit bad }
' $files
