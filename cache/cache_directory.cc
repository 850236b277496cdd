#include "cache/cache_directory.h"

#include <fcntl.h>
#include <limits.h>

#include <cerrno>

namespace pagejit::cache {
namespace {

// "v1/objects/ab/<64 + 1 + 8 + 4 characters>" and the like still have to fit behind the path.
constexpr size_t kMaxPathBytes = PATH_MAX - 256;

// The part of the reason why `path` cannot be used, "" where it can.
std::string path_problem(std::string_view path) {
  if (path.find('\0') != path.npos) return "contains a NUL byte";
  if (path.size() > kMaxPathBytes) {
    return "has " + std::to_string(path.size()) + " bytes, at most " +
           std::to_string(kMaxPathBytes) + " are possible";
  }
  return "";
}

// A usable base directory from an environment variable; on nullopt, `reasons` says why.
std::optional<std::string> absolute_from(const EnvironmentLookup& environment, const char* name,
                                         std::string* reasons) {
  std::optional<std::string> value = environment(name);
  std::string problem;
  if (!value) {
    problem = "is not set";
  } else if (value->empty()) {
    problem = "is empty";
  } else if (value->front() != '/') {
    problem = "is not an absolute path";
  } else {
    problem = path_problem(*value);
  }
  if (problem.empty()) return value;
  if (!reasons->empty()) *reasons += ", ";
  *reasons += std::string("$") + name + " " + problem;
  return std::nullopt;
}

std::string join(std::string_view directory, std::string_view name) {
  std::string path(directory);
  if (!path.ends_with('/')) path += '/';
  return path.append(name);
}

std::string file_type(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a directory";
}

// The permission bits as chmod(1) takes them, e.g. "0775".
std::string octal(mode_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) {
    text += static_cast<char>('0' + ((mode >> shift) & 7));
  }
  return text;
}

// With a trailing "/" or "/." open(2) would follow a symbolic link in spite of O_NOFOLLOW.
void strip_trailing_slashes(std::string* path) {
  while (path->size() > 1 && (path->ends_with('/') || path->ends_with("/."))) path->pop_back();
}

IoStatus open_directory(FileSystem* file_system, int dir_fd, const std::string& name,
                        const std::string& path, FileDescriptor* out) {
  const int error = open_file(file_system, dir_fd, name, O_RDONLY | O_DIRECTORY, 0, out);
  struct stat info {};
  if (error == ENOTDIR || error == ELOOP) {
    if (file_system->stat_at(dir_fd, name.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
      return IoStatus::refusal(path + " is " + file_type(info.st_mode) +
                               "; it must be a directory");
    }
  }
  return error == 0 ? IoStatus() : IoStatus::failure(error, "open directory " + path);
}

// of_root: root may own it as well as the effective user.
IoStatus check_directory(FileSystem* file_system, const FileDescriptor& directory,
                         const std::string& path, bool of_root) {
  struct stat info {};
  if (const int result = file_system->stat_fd(directory.get(), &info); result < 0) {
    return IoStatus::failure(-result, "stat directory " + path);
  }
  const uid_t user = file_system->effective_user();
  if (info.st_uid != user && !(of_root && info.st_uid == 0)) {
    return IoStatus::refusal(path + " belongs to user " + std::to_string(info.st_uid) +
                             "; it must belong to user " + std::to_string(user) +
                             (of_root ? " or to root" : ""));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return IoStatus::refusal(path + " has mode " + octal(info.st_mode) +
                             "; it must not be writable by group or others (chmod go-w)");
  }
  return IoStatus();
}

}  // namespace

DirectoryChoice resolve_cache_directory(const std::string& explicit_path,
                                        const EnvironmentLookup& environment) {
  if (!explicit_path.empty()) {
    std::string problem = path_problem(explicit_path);
    // A shell expands "~" only where it is not quoted; a directory of that name is never what was
    // meant.
    if (explicit_path.front() == '~') problem = "begins with \"~\", which is not expanded";
    if (problem.empty()) return {explicit_path, "", "chosen explicitly"};
    return {"", "", "the chosen cache directory " + problem};
  }
  std::string reasons;
  if (const auto base = absolute_from(environment, "XDG_CACHE_HOME", &reasons)) {
    return {join(*base, "pagejit"), "", "from $XDG_CACHE_HOME"};
  }
  if (const auto home = absolute_from(environment, "HOME", &reasons)) {
    return {join(*home, ".cache/pagejit"), *home, "from $HOME"};
  }
  return {"", "", "no cache directory: " + reasons};
}

IoStatus open_private_directory(FileSystem* file_system, int dir_fd, const std::string& name,
                                const std::string& path, bool create, FileDescriptor* out) {
  FileDescriptor directory;
  IoStatus status = open_directory(file_system, dir_fd, name, path, &directory);
  if (status.error() == ENOENT && create) {
    const int made = file_system->make_directory_at(dir_fd, name.c_str(), 0700);
    // EEXIST: somebody else was faster; whether it is ours is checked below like anything else.
    if (made < 0 && made != -EEXIST) return IoStatus::failure(-made, "make directory " + path);
    status = open_directory(file_system, dir_fd, name, path, &directory);
  }
  if (status.is_ok()) status = check_directory(file_system, directory, path, /*of_root=*/false);
  if (status.is_ok()) *out = std::move(directory);
  return status;
}

IoStatus open_readable_directory(FileSystem* file_system, int dir_fd, const std::string& name,
                                 const std::string& path, FileDescriptor* out) {
  FileDescriptor directory;
  IoStatus status = open_directory(file_system, dir_fd, name, path, &directory);
  if (status.is_ok()) status = check_directory(file_system, directory, path, /*of_root=*/true);
  if (status.is_ok()) *out = std::move(directory);
  return status;
}

bool is_unusable_directory(int error) {
  return error == EPERM || error == EACCES || error == ENOTDIR || error == ELOOP ||
         error == ENAMETOOLONG || error == ENOENT;
}

CacheDirectory::CacheDirectory(FileSystem* file_system, const DirectoryChoice& choice,
                               bool read_only)
    : file_system_(file_system),
      path_(choice.path),
      required_parent_(choice.required_parent),
      read_only_(read_only) {
  std::string current;
  if (!path_.starts_with('/') && file_system_->current_directory(&current) == 0) {
    path_ = join(current, path_);
  }
  strip_trailing_slashes(&path_);
}

IoStatus CacheDirectory::check_required_parent() const {
  if (required_parent_.empty()) return IoStatus();
  // It may well be reached through a symbolic link, so it is opened with ".", which follows.
  FileDescriptor parent;
  const std::string what = "home directory " + required_parent_;
  const int error = open_file(file_system_, AT_FDCWD, join(required_parent_, "."),
                              O_RDONLY | O_DIRECTORY, 0, &parent);
  if (error != 0) return IoStatus::failure(error, "open " + what);
  struct stat info;
  if (const int result = file_system_->stat_fd(parent.get(), &info); result < 0) {
    return IoStatus::failure(-result, "stat " + what);
  }
  if (file_system_->effective_user() == 0 && info.st_uid != 0) {
    return IoStatus::refusal(what + " belongs to user " + std::to_string(info.st_uid) +
                             "; root makes no cache directory there");
  }
  return IoStatus();
}

IoStatus CacheDirectory::make_parents() const {
  const size_t begin = required_parent_.empty() ? 1 : required_parent_.size() + 1;
  for (size_t slash = path_.find('/', begin); slash != path_.npos;
       slash = path_.find('/', slash + 1)) {
    const std::string parent = path_.substr(0, slash);
    const int made = file_system_->make_directory_at(AT_FDCWD, parent.c_str(), 0700);
    // EROFS and EACCES may be said of a directory that exists; the open that follows decides.
    if (made < 0 && made != -EEXIST && made != -EROFS && made != -EACCES) {
      return IoStatus::failure(-made, "make directory " + parent);
    }
  }
  return IoStatus();
}

IoStatus CacheDirectory::open_root(bool create, FileDescriptor* out) const {
  IoStatus status = open_one(AT_FDCWD, path_, path_, /*create=*/false, out);
  if (!create || read_only_ || status.error() != ENOENT) return status;
  status = check_required_parent();
  if (status.is_ok()) status = make_parents();
  if (!status.is_ok()) return status;
  return open_one(AT_FDCWD, path_, path_, /*create=*/true, out);
}

IoStatus CacheDirectory::open_version(bool create, FileDescriptor* out) const {
  FileDescriptor root;
  if (IoStatus status = open_root(create, &root); !status.is_ok()) return status;
  return open_folder(root, "v1", create, out);
}

IoStatus CacheDirectory::open_folder(const FileDescriptor& parent, const std::string& name,
                                     bool create, FileDescriptor* out) const {
  return open_one(parent.get(), name, "folder \"" + name + "\" of " + path_, create, out);
}

IoStatus CacheDirectory::open_one(int dir_fd, const std::string& name, const std::string& path,
                                  bool create, FileDescriptor* out) const {
  if (read_only_) return open_readable_directory(file_system_, dir_fd, name, path, out);
  return open_private_directory(file_system_, dir_fd, name, path, create, out);
}

}  // namespace pagejit::cache
