// RemoteUrl: where a remote store lies, and under which address it keeps an entry. Not a general
// URL: http and https with a host, perhaps a port and a path. Thread-safety: plain values and pure
// functions.
//
// Three ways to name the entry "<S>.<C8>" below the URL (no query; every character needs no
// escape):
//
//   flat            <S>.<C8>.pjk
//   subdirectories  <first 2 hex of S>/<S>.<C8>.pjk      as v1/objects of a cache directory
//   bazel           ac/<SHA-256 of the text "<S>.<C8>">  64 hex
//
// Bazel's caches over HTTP (https://bazel.build/remote/caching, "HTTP Caching Protocol") have two
// parts: /cas/, named by the SHA-256 of the content, which servers check; and /ac/, named by the
// hash of an action. A reader knows an entry's key and not its content, so it can only be /ac/.
// What lies there is no ActionResult: a server that checks for these must be told not to
// (bazel-remote:
// --disable_http_ac_validation).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cache/key.h"
#include "pagejit/status.h"

namespace pagejit::cache {

enum class RemoteLayout : uint8_t { kFlat = 0, kSubdirectories = 1, kBazel = 2 };

struct RemoteUrl {
  std::string base;     // as given, without a slash at its end; may hold a name and a password
  std::string visible;  // the same without these: for logs and messages

  // base + "/" + the entry's name in this layout.
  std::string of_entry(const Key& key, RemoteLayout layout) const;
};

// Accepts http://[name:password@]host[:port][/path]. kInvalidArgument for everything else, in a
// message without the name and the password.
Result<RemoteUrl> parse_remote_url(std::string_view text);

// The text without what stands before its last "@", but for the scheme. A URL whose path holds "@"
// loses its host too: better that than a password in a log.
std::string without_credentials(std::string_view url);

}  // namespace pagejit::cache
