#include "cache/remote_url.h"

#include <algorithm>
#include <charconv>

#include "cache/sha256.h"

namespace pagejit::cache {
namespace {

// The scheme with "://", in lower case as everyone writes it; "" for any other.
std::string_view scheme_of(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (url.starts_with(scheme)) return scheme;
  }
  return {};
}

// Printable ASCII but what a URL may hold only escaped, and what begins a query or a fragment.
bool is_plain(char c) {
  return c > ' ' && c < 0x7f && std::string_view("\"<>\\^`{|}?#").find(c) == std::string_view::npos;
}

bool is_port(std::string_view text) {
  constexpr int kMaxPort = 65535;
  int port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && stop == text.data() + text.size() && port > 0 && port <= kMaxPort;
}

// "host", "host:port", "[address]" or "[address]:port".
bool is_host(std::string_view text) {
  const bool is_address = text.starts_with('[');
  const size_t end = is_address ? text.find(']') : text.find(':');
  if (is_address && end == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, is_address ? end + 1 : end);
  const std::string_view rest = text.substr(host.size());
  if (host.empty()) return false;
  return rest.empty() || (rest.starts_with(':') && is_port(rest.substr(1)));
}

}  // namespace

std::string RemoteUrl::of_entry(const Key& key, RemoteLayout layout) const {
  switch (layout) {
    case RemoteLayout::kFlat:
      return base + "/" + key.file_name();
    case RemoteLayout::kSubdirectories:
      return base + "/" + to_hex(key.source).substr(0, 2) + "/" + key.file_name();
    case RemoteLayout::kBazel:
      break;
  }
  return base + "/ac/" + to_hex(sha256({key.name()}));
}

std::string without_credentials(std::string_view url) {
  const size_t at = url.rfind('@');
  if (at == std::string_view::npos) return std::string(url);
  return std::string(scheme_of(url)) + std::string(url.substr(at + 1));
}

Result<RemoteUrl> parse_remote_url(std::string_view text) {
  std::string visible = without_credentials(text);
  // For messages: a stray byte of the environment shall not reach a terminal.
  std::string shown = visible;
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c >= 0x7f; }, '?');
  const auto refuse = [&](std::string_view why) {
    return Status(StatusCode::kInvalidArgument,
                  "remote \"" + shown + "\": " + std::string(why) +
                      "; must be http://host/path or https://host/path");
  };

  const std::string_view scheme = scheme_of(text);
  if (scheme.empty()) return refuse("does not begin with http:// or https://");
  if (!std::all_of(text.begin(), text.end(), is_plain)) {
    return refuse("has a character that no such URL may hold");
  }
  const std::string_view rest = text.substr(scheme.size());
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const size_t at = rest.rfind('@');
  if (at != std::string_view::npos && at >= authority.size()) {
    return refuse("has an @ in its path, or a / in its password (%40 and %2F)");
  }
  if (!is_host(authority.substr(at == std::string_view::npos ? 0 : at + 1))) {
    return refuse("has no valid host and port");
  }
  RemoteUrl url{std::string(text), std::move(visible)};
  for (std::string* part : {&url.base, &url.visible}) {
    part->erase(part->find_last_not_of('/') + 1);
  }
  return url;
}

}  // namespace pagejit::cache
