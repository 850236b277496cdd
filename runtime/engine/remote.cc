#include "runtime/engine/remote.h"

#include <utility>

#include "runtime/optional/curl_transport.h"

namespace pagejit {
namespace {

cache::RemoteLayout layout_of(RemoteLayout layout) {
  switch (layout) {
    case RemoteLayout::kFlat:
      return cache::RemoteLayout::kFlat;
    case RemoteLayout::kSubdirectories:
      return cache::RemoteLayout::kSubdirectories;
    case RemoteLayout::kBazel:
      break;
  }
  return cache::RemoteLayout::kBazel;
}

}  // namespace

Result<std::unique_ptr<cache::RemoteStore>> make_remote(const EngineOptions& options,
                                                        RemoteDependencies dependencies) {
  if (options.remote.empty()) return std::unique_ptr<cache::RemoteStore>();
  if (options.remote_write && options.require_signed) {
    return Status(
        StatusCode::kInvalidArgument,
        "remote_write (PAGEJIT_REMOTE_WRITE) with require_signed: engines sign nothing, so "
        "that no reader would take what they upload; sign with `pagejit bundle push "
        "--key-file`");
  }
  Result<cache::RemoteUrl> url = cache::parse_remote_url(options.remote);
  if (!url) return url.status();
  cache::RemoteStoreOptions store;
  store.url = std::move(url).value();
  store.layout = layout_of(options.remote_layout);
  store.write = options.remote_write;
  store.transport = std::move(dependencies.transport);
  if (store.transport == nullptr) store.transport = std::make_shared<CurlTransport>();
  store.check_signature = std::move(dependencies.check_signature);
  store.compilers = std::move(dependencies.compilers);
  // Weak: an upload that is under way may keep this for longer than the engine lives.
  store.on_warning = [weak = std::weak_ptr(dependencies.logger)](const Status& status) {
    const std::shared_ptr<const Logger> logger = weak.lock();
    if (logger == nullptr) return;
    logger->warning("kernels are compiled instead of fetched: " + status.message());
  };
  return std::make_unique<cache::RemoteStore>(std::move(store));
}

}  // namespace pagejit
