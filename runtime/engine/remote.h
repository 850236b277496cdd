// make_remote(): the remote layer of the kernel store that an engine's options ask for. It asks
// nothing yet, and opens no library. Thread-safety: a function without state.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "cache/http_transport.h"
#include "cache/remote_store.h"
#include "cache/sha256.h"
#include "pagejit/options.h"
#include "runtime/logger.h"

namespace pagejit {

struct RemoteDependencies {
  // Gets the store's warnings as long as somebody else keeps it; not null.
  std::shared_ptr<const Logger> logger;
  // As in cache::RemoteStoreOptions.
  std::function<Result<std::string_view>(std::string_view)> check_signature;
  std::vector<cache::Digest> compilers;
  std::shared_ptr<cache::HttpTransport> transport;  // null = libcurl
};

// Null where `options.remote` is empty. kInvalidArgument for a URL that cannot be one, in a message
// without its password, and for uploads where signatures are required.
Result<std::unique_ptr<cache::RemoteStore>> make_remote(const EngineOptions& options,
                                                        RemoteDependencies dependencies);

}  // namespace pagejit
