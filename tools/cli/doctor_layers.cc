// The places beside the cache directory that kernels are looked for in, as far as they can be told
// without asking them.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/cli/doctor_checks.h"

namespace pagejit::cli {
namespace {

// Whether others than its owner and root can change what lies there.
bool others_can_write(const struct stat& info) {
  return (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
         (info.st_uid != 0 && info.st_uid != geteuid());
}

void examine_path(const std::string& topic, const std::string& path, bool wants_folder,
                  DoctorReport& report) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    report.warning(topic, path + ": " + std::strerror(errno),
                   "it is left out: correct the path, or remove it");
    return;
  }
  const bool is_kind = wants_folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode);
  if (!is_kind || access(path.c_str(), wants_folder ? R_OK | X_OK : R_OK) != 0) {
    report.warning(topic,
                   path + ": " +
                       (is_kind        ? std::strerror(errno)
                        : wants_folder ? "no folder"
                                       : "no file"),
                   "it is left out: correct the path, or remove it");
  } else if (others_can_write(info)) {
    report.warning(topic, path + ": others than you can change it",
                   "kernels are code: let only root or you own and write it");
  } else {
    report.ok(topic, path, {{"path", path}});
  }
}

}  // namespace

void examine_bundles(const EngineOptions& options, const std::vector<int>&, DoctorReport& report) {
  for (const std::string& bundle : options.bundles) {
    examine_path("bundle", bundle, /*wants_folder=*/false, report);
  }
}

void examine_read_only_dirs(const EngineOptions& options, DoctorReport& report) {
  for (const std::string& directory : options.read_only_dirs) {
    examine_path("read-only directory", directory, /*wants_folder=*/true, report);
  }
}

void examine_remote(const EngineOptions& options, DoctorReport& report) {
  if (options.remote.empty()) return;
  const bool is_secure = options.remote.starts_with("https://");
  if (!is_secure && !options.remote.starts_with("http://")) {
    report.problem("remote", options.remote + ": no URL that is served",
                   "it must begin with http:// or https://");
  } else if (!is_secure && options.trusted_keys.empty()) {
    report.warning("remote", options.remote + ": neither encrypted nor signed",
                   "who sits between can put in code: use https, or PAGEJIT_TRUSTED_KEYS with "
                   "PAGEJIT_REQUIRE_SIGNED=1");
  } else {
    report.ok("remote", options.remote, {{"url", options.remote}});
  }
}

}  // namespace pagejit::cli
