// CacheDirectory: which directory the cache uses, and its folders opened one by one without
// following a symbolic link, each checked to be ours. It knows the layout's folders, not what lies
// in them. Thread-safety: immutable after construction; all functions may be called from several
// threads at once.
//
// Every use opens the folders anew: the directory may be removed or replaced at any time, and what
// is checked is exactly what is then read. It costs a few microseconds beside a read of a file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cache/file_io.h"

namespace pagejit::cache {

// The value of an environment variable; nullopt where it is not set.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;

struct DirectoryChoice {
  std::string path;  // "" = memory only
  std::string
      required_parent;  // a directory that must exist already and is not made: $HOME; "" = none
  std::string reason;   // where path comes from; or, where it is "", why there is none
};

// The explicit choice (an option or PAGEJIT_CACHE_DIR, which the caller has read), else
// $XDG_CACHE_HOME/pagejit, else $HOME/.cache/pagejit, else none. An explicit choice that cannot be
// one never leads to another place: it means none. $XDG_CACHE_HOME and $HOME must be absolute, or
// they count as not set. There is no fallback to /tmp: another user could have made the directory
// there. Looks at no file.
DirectoryChoice resolve_cache_directory(const std::string& explicit_path,
                                        const EnvironmentLookup& environment);

// Opens `name` in dir_fd: a directory, not a symbolic link, owned by the effective user, not
// writable by group or others. create: makes it, mode 0700, where it does not exist. `path` is its
// name in messages. ENOENT where it does not exist; EPERM where it is refused.
IoStatus open_private_directory(FileSystem* file_system, int dir_fd, const std::string& name,
                                const std::string& path, bool create, FileDescriptor* out);

// The same for a directory that is only read: it may belong to root too, and is never made.
IoStatus open_readable_directory(FileSystem* file_system, int dir_fd, const std::string& name,
                                 const std::string& path, FileDescriptor* out);

// Whether this errno says that the directory itself is of no use, and will not be unless somebody
// changes it. ENOENT counts: it is what making a directory yields where none can be made.
bool is_unusable_directory(int error);

class CacheDirectory {
 public:
  // choice.path is not empty. A relative path is taken from the current directory now, once.
  // read_only: the folders may belong to root too; none is ever made, whatever `create` says.
  CacheDirectory(FileSystem* file_system, const DirectoryChoice& choice, bool read_only = false);

  const std::string& path() const { return path_; }

  // Whether the directory may be made: ok, or why not. Root makes nothing in another user's home:
  // that user would then find a directory that it cannot use.
  IoStatus check_required_parent() const;

  // create: makes what does not exist, parents of the path included (but not required_parent).
  IoStatus open_root(bool create, FileDescriptor* out) const;
  IoStatus open_version(bool create, FileDescriptor* out) const;  // v1
  // A folder below v1, e.g. "tmp", or of one of those, e.g. "objects" and then "ab".
  IoStatus open_folder(const FileDescriptor& parent, const std::string& name, bool create,
                       FileDescriptor* out) const;

 private:
  IoStatus make_parents() const;
  IoStatus open_one(int dir_fd, const std::string& name, const std::string& path, bool create,
                    FileDescriptor* out) const;

  FileSystem* file_system_;
  std::string path_;
  std::string required_parent_;
  bool read_only_;
};

}  // namespace pagejit::cache
