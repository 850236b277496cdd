// RemoteStore: entries on a plain HTTP server, as a layer: GET to look up, and, where it is asked
// for, HEAD and PUT to upload. It is a hint like every other layer, and trusted less: an answer is
// checked like a file (decode_entry: lengths, checksum, key), and everything else is a miss with a
// reason. Who may have written the server's entries is not checked here (check_signature).
// Thread-safety: all functions may be called from several threads at once, and in forked children;
// a child begins with fresh counts.
//
//   answer                                    lookup
//   200 with the entry                        hit
//   200 with anything else, or too much       corrupt; the next upload of this key replaces it
//   404, 410                                  miss
//   other statuses, no answer                 miss with a reason, counted
//
// Time: a lookup takes at most total_timeout. After three failures in a row (no answer, or the
// statuses 408, 429 and 5xx) the server is left alone for 5 s, and twice as long each time up to
// 5 min, then asked once (circuit_breaker.h); uploads have a breaker of their own, since a server
// whose disk is full still serves what it has.
//
// HTTP cannot list what a server has. So a machine without a compiler, which takes the entries of
// any, gets only those of RemoteStoreOptions::compilers.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/circuit_breaker.h"
#include "cache/entry.h"
#include "cache/http_transport.h"
#include "cache/key.h"
#include "cache/layer.h"
#include "cache/per_process.h"
#include "cache/remote_url.h"
#include "pagejit/status.h"

namespace pagejit::cache {

struct RemoteStoreOptions {
  RemoteUrl url;  // of parse_remote_url()
  RemoteLayout layout = RemoteLayout::kSubdirectories;
  std::shared_ptr<HttpTransport> transport;  // not null
  bool write = false;                        // whether upload() does anything
  // upload() replaces what is there, and does not ask first. False: it leaves it, whatever it is.
  bool replace = false;
  // The C to ask for in lookup_any_compiler(), each a request; empty: it is a plain miss.
  std::vector<Digest> compilers;
  // Takes a whole answer and yields the entry's bytes in it (a part of the answer), or why they are
  // not to be trusted. Null: the answer is the entry. From any thread.
  std::function<Result<std::string_view>(std::string_view answer)> check_signature;
  // Called when the transport turns out to be unavailable, which nothing mends: nothing is asked
  // any more; and when the server is first left alone. At most once each. From any thread, that of
  // the uploads included, but not once the destructor has returned, which waits for a call. It must
  // not call back.
  std::function<void(const Status&)> on_warning;

  // A server that is worth asking is near: a compile takes about a second.
  std::chrono::milliseconds connect_timeout{250};
  std::chrono::milliseconds total_timeout{2'000};
  // Entries have 20-80 KB, checked host objects a few MB; what is larger is broken off on the way.
  size_t max_answer_bytes = size_t{16} << 20;
  // A cold start compiles a few dozen kernels.
  size_t max_waiting_uploads = 64;
  CircuitBreakerOptions breaker;
};

// Counts of this process since the store was made.
struct RemoteStoreStats {
  uint64_t hits = 0;
  uint64_t misses = 0;  // all lookups that are no hit and not corrupt, for whatever reason
  std::array<uint64_t, kNumCorruptions> corrupt{};    // by Corruption; too large = kLength
  uint64_t distrusted = 0;                            // misses: refused by check_signature
  std::array<uint64_t, kNumHttpFailures> failures{};  // requests without an answer, by HttpFailure
  std::map<int, uint64_t> statuses;                   // requests with another answer than expected
  uint64_t uploads = 0;                               // entries that the server took
  uint64_t uploads_present = 0;                       // that it had already
  uint64_t upload_skips = 0;     // that it was not asked to take, because it is left alone
  uint64_t upload_failures = 0;  // that were sent in vain
  uint64_t upload_drops = 0;     // that were never sent: the queue was full
  size_t uploads_waiting = 0;
  CircuitBreakerStats lookup_breaker;
  CircuitBreakerStats upload_breaker;

  uint64_t corrupt_total() const;
  uint64_t failures_total() const;
};

class RemoteStore : public Layer {
 public:
  explicit RemoteStore(RemoteStoreOptions options);
  // Waits for at most two seconds for uploads, then drops them; a transfer that is under way ends
  // by itself.
  ~RemoteStore() override;
  RemoteStore(const RemoteStore&) = delete;
  RemoteStore& operator=(const RemoteStore&) = delete;

  // "remote https://host/path", without name and password.
  std::string description() const override;
  LookupResult lookup(const Key& key) override;
  // The best entry of those of RemoteStoreOptions::compilers.
  LookupResult lookup_any_compiler(const Digest& source, const IsBetter& is_better) override;

  // Uploads the entry in the background, unless the server has it (but see `replace`). Returns at
  // once; failures are only counted. Nothing happens where uploads are off.
  void upload(const Entry& entry);
  // The same for an entry that is encoded (and perhaps signed) already.
  void upload(const Key& key, std::string bytes);
  // Waits until no upload is waiting; false where that takes longer.
  bool flush(std::chrono::milliseconds timeout);

  RemoteStoreStats stats() const;

 private:
  class Server;     // what the uploading thread shares
  struct Services;  // of one process

  const std::shared_ptr<const RemoteStoreOptions> options_;
  mutable PerProcess<Services> services_;
};

}  // namespace pagejit::cache
