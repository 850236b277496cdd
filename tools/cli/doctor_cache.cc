// The cache directory: which and why, whose, on what file system, what is in it, and whether
// entries can be stored and locked there: tried, not guessed from modes.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "cache/atomic_file.h"
#include "cache/cache_directory.h"
#include "cache/file_system.h"
#include "cache/process_lock.h"
#include "runtime/jit/environment.h"
#include "tools/cli/doctor_checks.h"
#include "tools/cli/text_table.h"

namespace pagejit::cli {
namespace {

constexpr const char* kAnotherFolder =
    "set PAGEJIT_CACHE_DIR (or --cache-dir) to a local folder of your own";
// A model's kernels take a few MiB; below this something else will soon fail too.
constexpr uint64_t kLittleSpace = uint64_t{64} << 20;

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// f_type of statfs(2), from linux/magic.h and the file systems' own sources.
struct FileSystemKind {
  unsigned long magic;
  const char* name;
  const char* advice;  // null: nothing against it
};
constexpr const char* kShared =
    "other machines' entries may be seen late and locks may be missing; nothing breaks, but keep "
    "the directory local and share kernels by read-only directories or bundles";
constexpr const char* kLayered = "it goes with the container: mount a volume to keep kernels";
constexpr const char* kInMemory = "its entries take memory and are gone after a restart";
constexpr FileSystemKind kKinds[] = {
    {0x6969, "NFS", kShared},         {0xFF534D42, "CIFS", kShared},
    {0xFE534D42, "SMB2", kShared},    {0x517B, "SMB", kShared},
    {0x65735546, "FUSE", kShared},    {0x01021997, "9p", kShared},
    {0x0BD00BD0, "Lustre", kShared},  {0x00C36400, "Ceph", kShared},
    {0x47504653, "GPFS", kShared},    {0x794C7630, "overlay", kLayered},
    {0x01021994, "tmpfs", kInMemory}, {0x858458F6, "ramfs", kInMemory},
    {0xEF53, "ext", nullptr},         {0x58465342, "XFS", nullptr},
    {0x9123683E, "Btrfs", nullptr},   {0x2FC12FC1, "ZFS", nullptr},
    {0xF2F52010, "F2FS", nullptr}};

void examine_file_system(const std::string& path, DoctorReport& report) {
  struct statfs info;
  if (statfs(path.c_str(), &info) != 0) {
    report.warning("cache file system", std::string("not known: ") + std::strerror(errno),
                   kAnotherFolder);
    return;
  }
  const auto type = static_cast<unsigned long>(info.f_type) & 0xFFFFFFFFul;  // 32 bits are used
  char number[16];
  std::snprintf(number, sizeof number, "%#lx", type);
  std::string name = std::string("type ") + number;
  const char* advice = nullptr;
  for (const FileSystemKind& kind : kKinds) {
    if (kind.magic != type) continue;
    name = kind.name;
    advice = kind.advice;
  }
  const uint64_t free = static_cast<uint64_t>(info.f_bavail) * static_cast<uint64_t>(info.f_bsize);
  const nlohmann::json values = {{"type", name}, {"free_bytes", free}};
  const std::string text = name + ", " + mebibytes(free) + " free";
  const bool is_full = free < kLittleSpace || (info.f_files > 0 && info.f_ffree == 0);
  if (is_full) {
    report.warning("cache file system", text + (info.f_ffree == 0 ? ", no inode free" : ""),
                   "make room: kernels that cannot be stored are compiled again by every process",
                   values);
  } else if (advice != nullptr) {
    report.warning("cache file system", text, advice, values);
  } else {
    report.ok("cache file system", text, values);
  }
}

void examine_entries(const std::string& path, const EngineOptions& options, DoctorReport& report) {
  namespace fs = std::filesystem;
  uint64_t entries = 0, bytes = 0, bad = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path + "/v1/objects", error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() != ".pjk") continue;
    std::error_code gone;  // removed meanwhile
    const uint64_t size = entry->file_size(gone);
    if (gone) continue;
    ++entries;
    bytes += size;
  }
  for (fs::directory_iterator entry(path + "/v1/bad", error), end; !error && entry != end;
       entry.increment(error)) {
    ++bad;
  }
  const nlohmann::json values = {
      {"entries", entries}, {"bytes", bytes}, {"bad", bad}, {"max_bytes", options.cache_max_bytes}};
  const std::string text = format_kernels(entries) + ", " + std::to_string(bytes) +
                           " bytes of at most " +
                           (options.cache_max_bytes == 0 ? std::string("any number")
                                                         : mebibytes(options.cache_max_bytes));
  if (bad > 0) {
    report.warning(
        "cache entries", text + "; " + std::to_string(bad) + " set aside as damaged",
        "look for their cause (a failing disk, a foreign program) and remove " + path + "/v1/bad",
        values);
  } else {
    report.ok("cache entries", text, values);
  }
}

// Writes a file the way entries are written, reads it back and removes it. "" or what failed.
std::string try_writing(cache::FileSystem* files, int tmp_fd) {
  const std::string name = "doctor-" + std::to_string(getpid());
  const std::string text(4096, 'x');  // a page, so that something must be written
  cache::AtomicFile file(files, tmp_fd);
  cache::IoStatus status = file.create();
  if (status.is_ok()) status = file.write(text);
  if (status.is_ok()) status = file.commit(tmp_fd, name);
  if (!status.is_ok()) return status.message();
  cache::FileDescriptor reader;
  std::string read;
  int error = cache::open_file(files, tmp_fd, name, O_RDONLY, 0, &reader);
  if (error == 0) error = cache::read_all(files, reader.get(), text.size(), text.size(), &read);
  files->unlink_at(tmp_fd, name.c_str(), 0);
  if (error != 0) return std::string("what was written cannot be read: ") + std::strerror(error);
  return read == text ? "" : "what was written is read differently";
}

// A forked child that takes the key's lock and waits to be killed. Returns its id once it holds the
// lock; 0 where it could not take it.
pid_t start_holder(cache::FileSystem* files, int version_fd, const cache::Key& key) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);  // should this process die first
    cache::ProcessLock lock;
    const bool taken = lock.open(files, version_fd).is_ok() && lock.try_take(key) == 0;
    const char answer = taken ? 1 : 0;
    if (write(ready[1], &answer, 1) != 1 || !taken) _exit(1);
    while (true) pause();
  }
  close(ready[1]);
  char answer = 0;
  pollfd waiting{.fd = ready[0], .events = POLLIN, .revents = 0};
  constexpr int kPatienceMs = 10'000;  // for a lock that is taken in microseconds
  if (child < 0 || poll(&waiting, 1, kPatienceMs) != 1 || read(ready[0], &answer, 1) != 1) {
    answer = 0;
  }
  close(ready[0]);
  if (answer == 1) return child;
  if (child > 0) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return 0;
}

// Two locks of one key exclude each other, in one process and among two, and a killed holder's is
// free. "" or what does not hold.
std::string try_locking(cache::FileSystem* files, int version_fd) {
  cache::Key key;  // of no kernel: nobody waits for it
  if (const int result = files->random(key.source.data(), key.source.size()); result < 0) {
    return "no random bytes";
  }
  cache::ProcessLock first, second;
  for (cache::ProcessLock* lock : {&first, &second}) {
    if (const cache::IoStatus status = lock->open(files, version_fd); !status.is_ok()) {
      return status.message();
    }
  }
  if (const int error = first.try_take(key); error != 0) {
    return std::string("a free lock cannot be taken: ") + std::strerror(error);
  }
  if (second.try_take(key) != EAGAIN) return "a lock that is held can be taken again";
  first.release();
  second.release();
  const pid_t holder = start_holder(files, version_fd, key);
  if (holder == 0) return "another process cannot take a free lock";
  std::string failure;
  if (const cache::IoStatus status = first.open(files, version_fd); !status.is_ok()) {
    failure = status.message();
  } else if (first.try_take(key) != EAGAIN) {
    failure = "a lock that another process holds can be taken";
  }
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  if (failure.empty() && first.try_take(key) != 0) {
    failure = "the lock of a process that was killed stays taken";
  }
  return failure;
}

void try_out(const cache::CacheDirectory& directory, cache::FileSystem* files,
             DoctorReport& report) {
  cache::FileDescriptor version, tmp;
  cache::IoStatus status = directory.open_version(/*create=*/true, &version);
  if (status.is_ok()) status = directory.open_folder(version, "tmp", /*create=*/true, &tmp);
  if (!status.is_ok()) {
    report.problem("cache writes", status.message(), kAnotherFolder);
    return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const std::string written = try_writing(files, tmp.get());
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (written.empty()) {
    char text[64];
    std::snprintf(text, sizeof text, "written, synced, renamed and read back in %.1f ms", ms);
    report.ok("cache writes", text, {{"ms", ms}});
  } else {
    report.problem("cache writes", written, kAnotherFolder);
  }
  const std::string locked = try_locking(files, version.get());
  if (locked.empty()) {
    report.ok("cache locks", "processes exclude each other; a killed one's lock is free");
  } else {
    report.warning(
        "cache locks", locked,
        std::string("processes may compile the same kernel at the same time; ") + kAnotherFolder);
  }
}

}  // namespace

void examine_cache(const EngineOptions& options, DoctorReport& report, cache::FileSystem* files) {
  if (!options.disk_cache) {
    report.warning("cache directory", "none: the disk cache is switched off",
                   "every process compiles all of its kernels; remove PAGEJIT_CACHE=off");
    return;
  }
  const cache::DirectoryChoice choice =
      cache::resolve_cache_directory(options.cache_dir, process_environment());
  if (choice.path.empty()) {
    report.warning("cache directory", "none: " + choice.reason,
                   std::string("kernels are kept in memory only, and compiled by every process; ") +
                       kAnotherFolder);
    return;
  }
  cache::PosixFileSystem real_files;
  if (files == nullptr) files = &real_files;
  const cache::CacheDirectory directory(files, choice);
  cache::FileDescriptor root;
  cache::IoStatus status = directory.open_root(/*create=*/false, &root);
  if (status.error() == ENOENT) {
    status = directory.check_required_parent();
    if (status.is_ok()) status = directory.open_root(/*create=*/true, &root);
  }
  nlohmann::json values = {{"path", directory.path()}, {"reason", choice.reason}};
  struct stat info;
  if (!status.is_ok() || fstat(root.get(), &info) != 0) {
    report.problem("cache directory", status.message() + " (" + choice.reason + ")", kAnotherFolder,
                   values);
    return;
  }
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777u);
  values["owner"] = info.st_uid;
  values["mode"] = mode;
  report.ok("cache directory",
            directory.path() + " (" + choice.reason + "), owner " + std::to_string(info.st_uid) +
                ", mode " + mode,
            values);
  examine_file_system(directory.path(), report);
  try_out(directory, files, report);
  examine_entries(directory.path(), options, report);
}

}  // namespace pagejit::cli
