// EngineOptions: everything that an engine can be told when it is created. Thread-safety: plain
// values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pagejit/export.h"
#include "pagejit/jit.h"
#include "pagejit/status.h"

namespace pagejit {

enum class LogLevel : uint8_t { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3, kOff = 4 };

// How kernels for the target "host" are compiled: plain; with pagejit's race, initialisation and
// bounds checker; or with AddressSanitizer (which needs a program that is itself built with it).
enum class HostBuild : uint8_t { kPlain = 0, kChecked = 1, kAddressSanitizer = 2 };

// How a remote names the entry <S>.<C8>: under the URL itself; in a folder of S's first two digits;
// or as Bazel's remote caches do it, "ac/<SHA-256 of that name>".
enum class RemoteLayout : uint8_t { kFlat = 0, kSubdirectories = 1, kBazel = 2 };

// Every field's default is what from_environment() yields in an empty environment.
struct PAGEJIT_EXPORT EngineOptions {
  // "" = the CUDA driver; "emulator" = the CPU emulator; else the path of a driver library.
  // PAGEJIT_DRIVER
  std::string driver;
  // Use the emulator where no CUDA driver is found; it is said on one warning line.
  // PAGEJIT_ALLOW_EMULATOR=1
  bool allow_emulator = false;
  // The emulator's library. "" = libpagejit-emulator.so beside this library. PAGEJIT_EMULATOR
  std::string emulator_path;
  // A libnvrtc file or a folder that holds one. "" = searched (see README). PAGEJIT_NVRTC
  std::string nvrtc_path;
  // The C++ compiler for the target "host". "" = c++, then g++, then clang++ on the PATH.
  // PAGEJIT_HOST_CXX
  std::string host_compiler;
  HostBuild host_build = HostBuild::kPlain;  // plain, checked, asan. PAGEJIT_HOST_BUILD
  // The cache directory. "" = $XDG_CACHE_HOME/pagejit, else $HOME/.cache/pagejit, else memory only.
  // PAGEJIT_CACHE_DIR
  std::string cache_dir;
  bool disk_cache = true;  // false: memory only. PAGEJIT_CACHE=on|off
  // The directory's entries are kept below this size, the least recently used going first; 0 = no
  // limit. PAGEJIT_CACHE_MAX_MIB (in MiB)
  uint64_t cache_max_bytes = uint64_t{512} << 20;
  // Where kernels are looked for before the cache directory, in this order; nothing is ever written
  // there. One that cannot be used is left out, with one warning.
  //
  // Bundles (what `pagejit bundle create` writes) in memory, e.g. linked into the program; their
  // bytes must outlive the engine.
  std::vector<std::string_view> memory_bundles;
  std::vector<std::string> bundles;         // bundle files. PAGEJIT_BUNDLES, separated by ':'
  std::vector<std::string> read_only_dirs;  // cache directories. PAGEJIT_READ_ONLY_DIRS, by ':'
  // Where kernels are looked for after the cache directory: a plain HTTP server, "http://host/path"
  // or https. Needs libcurl, opened when it is first asked. HTTP cannot list, so it serves only
  // where a compiler is found; and kernels for the target "host" only signed. "" = none.
  // PAGEJIT_REMOTE
  std::string remote;
  // How entries are named there: flat, subdirs, bazel. PAGEJIT_REMOTE_LAYOUT
  RemoteLayout remote_layout = RemoteLayout::kSubdirectories;
  bool remote_write =
      false;  // uploads what was compiled, in the background. PAGEJIT_REMOTE_WRITE=1
  // Ed25519 public keys as 64 hexadecimal digits. A bundle or an answer of the remote that is
  // signed by one of them is trusted whoever owns the file. Needs libsodium, opened when a
  // signature is first met. PAGEJIT_TRUSTED_KEYS, separated by ':'
  std::vector<std::string> trusted_keys;
  bool require_signed =
      false;  // takes no other bundles and remote entries. PAGEJIT_REQUIRE_SIGNED=1
  // Compiling threads. 0 = the number of processors, at most 16. PAGEJIT_COMPILE_THREADS
  int compile_threads = 0;
  // Whether prepare() may compile; precompile() always may. on, warn, error, off. PAGEJIT_JIT
  JitPolicy jit = JitPolicy::kOn;
  // A file that one line is appended to for each kernel that is asked for the first time, for
  // `pagejit precompile --trace`; "%p" in it becomes the process's id. "" = none. PAGEJIT_RECORD
  std::string record_path;
  // A folder that gets source, options, log, PTX, cubin and a script to repeat the compile for each
  // kernel that is compiled. "" = none. PAGEJIT_DUMP
  std::string dump_dir;
  // A file that gets the engine's counts as JSON when the engine is destroyed. "" = none.
  // PAGEJIT_STATS
  std::string stats_path;
  LogLevel log_level = LogLevel::kWarning;  // debug, info, warning, error, off. PAGEJIT_LOG
  // Receives every log line at or above log_level; empty = standard error. Called from any thread,
  // must not throw and must not use the engine, whose locks may be held.
  std::function<void(LogLevel, std::string_view)> log_callback;
  // Receives what each prepare() and precompile() did, in order, on the thread that called it and
  // before it returns; of prepare_async() on a thread of the engine, before there is a result. No
  // lock is held, so it may use the engine; threads may be in it at once.
  // Must not throw: an exception is dropped, and that event with it. A launch makes no event.
  std::function<void(const JitEvent&)> on_event;
  // Takes the tile configurations that `pagejit tune` has found faster than the planner's on GPUs
  // of this name: a record in a bundle, a read-only directory or the cache directory is followed
  // where its kernel is stored too, and never compiled for. For specs that are batch_invariant the
  // planner's always serve, so that all machines give the same bits. on, off. PAGEJIT_TUNED
  bool tuned = false;

  // Reads the PAGEJIT_* variables named above, once; a malformed value is kInvalidArgument that
  // names it.
  static Result<EngineOptions> from_environment();
};

}  // namespace pagejit
