#include "cache/remote_store.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <numeric>
#include <set>
#include <utility>

#include "cache/upload_queue.h"

namespace pagejit::cache {
namespace {

// Numbers of HTTP statuses: RFC 9110, section 15.
constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kRequestTimeout = 408;
constexpr int kGone = 410;
constexpr int kPreconditionFailed = 412;
constexpr int kTooManyRequests = 429;
constexpr int kFirstServerError = 500;

// Keys whose damaged entries are to be replaced; as many as a queue of uploads has.
constexpr size_t kMaxDamaged = 64;

bool is_absent(int status) { return status == kNotFound || status == kGone; }
bool is_success(int status) { return status >= kOk && status < kOk + 100; }  // 2xx

// The server itself is in trouble, not just this request.
bool is_trouble(int status) {
  return status == kRequestTimeout || status == kTooManyRequests || status >= kFirstServerError;
}

LookupResult miss(Status status) {
  LookupResult result;
  result.status = std::move(status);
  return result;
}

LookupResult corrupt(Corruption corruption, Status status) {
  LookupResult result;
  result.outcome = LookupOutcome::kCorrupt;
  result.corruption = corruption;
  result.status = std::move(status);
  return result;
}

}  // namespace

std::string_view http_failure_name(HttpFailure failure) {
  switch (failure) {
    case HttpFailure::kNone:
      return "none";
    case HttpFailure::kUnavailable:
      return "unavailable";
    case HttpFailure::kConnect:
      return "no connection";
    case HttpFailure::kTimeout:
      return "timeout";
    case HttpFailure::kIncomplete:
      return "incomplete answer";
    case HttpFailure::kTooLarge:
      return "answer too large";
    case HttpFailure::kRedirect:
      return "redirect";
    case HttpFailure::kCancelled:
      return "cancelled";
    case HttpFailure::kProtocol:
      return "protocol";
  }
  return "unknown failure";
}

uint64_t RemoteStoreStats::corrupt_total() const {
  return std::accumulate(corrupt.begin(), corrupt.end(), uint64_t{0});
}

uint64_t RemoteStoreStats::failures_total() const {
  return std::accumulate(failures.begin(), failures.end(), uint64_t{0});
}

// The server as one process sees it: requests, their breakers and their counts.
class RemoteStore::Server {
 public:
  explicit Server(std::shared_ptr<const RemoteStoreOptions> options)
      : options_(std::move(options)),
        lookup_breaker_(options_->breaker),
        upload_breaker_(options_->breaker) {}

  LookupResult lookup(const Key& key) {
    LookupResult result;
    try {
      result = look_up(key);
    } catch (const std::exception& e) {  // std::bad_alloc
      result.status = Status(StatusCode::kCacheError, e.what());
    }
    const std::lock_guard lock(mutex_);
    switch (result.outcome) {
      case LookupOutcome::kHit:
        ++stats_.hits;
        damaged_.erase(key);
        break;
      case LookupOutcome::kMiss:
        ++stats_.misses;
        break;
      case LookupOutcome::kCorrupt:
        ++stats_.corrupt[static_cast<size_t>(result.corruption)];
        if (damaged_.size() < kMaxDamaged) damaged_.insert(key);
        break;
    }
    return result;
  }

  void upload(const Upload& upload, const std::atomic<bool>& cancelled) {
    uint64_t RemoteStoreStats::*const count = try_upload(upload, cancelled);
    const std::lock_guard lock(mutex_);
    ++(stats_.*count);
  }

  RemoteStoreStats stats() const {
    std::unique_lock lock(mutex_);
    RemoteStoreStats stats = stats_;
    lock.unlock();
    stats.lookup_breaker = lookup_breaker_.stats();
    stats.upload_breaker = upload_breaker_.stats();
    return stats;
  }

  // Nobody is warned any more when it returns.
  void end() {
    const std::lock_guard lock(telling_);
    has_ended_ = true;
  }

 private:
  LookupResult look_up(const Key& key) {
    if (is_unavailable()) return left_alone("it cannot be asked on this machine");
    if (!lookup_breaker_.allow()) return left_alone("it is left alone after failures");
    HttpAnswer answer = send({.method = HttpMethod::kGet,
                              .url = options_->url.of_entry(key, options_->layout),
                              .max_body_bytes = options_->max_answer_bytes});
    report(answer, &lookup_breaker_);
    if (answer.failure == HttpFailure::kTooLarge) {
      return corrupt(Corruption::kLength,
                     error(StatusCode::kDataCorrupt,
                           "answers with more than the limit of " +
                               std::to_string(options_->max_answer_bytes) + " bytes"));
    }
    if (answer.failure != HttpFailure::kNone) return miss(failure_of(answer));
    if (is_absent(answer.status)) return miss({});
    if (answer.status != kOk) {
      count_status(answer.status);
      return miss(
          error(StatusCode::kCacheError, "answers with status " + std::to_string(answer.status)));
    }
    return decode(answer.body, key);
  }

  LookupResult decode(std::string_view bytes, const Key& key) {
    if (options_->check_signature) {
      const Result<std::string_view> trusted = options_->check_signature(bytes);
      if (!trusted) {
        const std::lock_guard lock(mutex_);
        ++stats_.distrusted;
        return miss(trusted.status().with_context(name()));
      }
      bytes = *trusted;
    }
    Corruption corruption = Corruption::kTruncated;
    Result<Entry> entry = decode_entry(bytes, key, &corruption);
    if (!entry) return corrupt(corruption, entry.status().with_context(name()));
    LookupResult result;
    result.outcome = LookupOutcome::kHit;
    result.entry = std::make_shared<const Entry>(std::move(entry).value());
    return result;
  }

  // The count that this upload belongs to.
  uint64_t RemoteStoreStats::*try_upload(const Upload& upload, const std::atomic<bool>& cancelled) {
    if (is_unavailable() || !upload_breaker_.allow()) return &RemoteStoreStats::upload_skips;
    const std::string url = options_->url.of_entry(upload.key, options_->layout);
    const bool replaces = options_->replace || is_damaged(upload.key);
    // Servers that know no conditions would write it again, so that readers meet it half done.
    if (!replaces) {
      const HttpAnswer answer =
          send({.method = HttpMethod::kHead, .url = url, .cancelled = &cancelled});
      // That a server knows of nothing does not mean that it can store something.
      if (answer.failure != HttpFailure::kNone || !is_absent(answer.status)) {
        report(answer, &upload_breaker_);
      }
      if (answer.failure != HttpFailure::kNone) return &RemoteStoreStats::upload_failures;
      if (answer.status == kOk) return &RemoteStoreStats::uploads_present;
      if (!is_absent(answer.status)) {
        count_status(answer.status);
        return &RemoteStoreStats::upload_failures;
      }
    }
    const HttpAnswer answer = send({.method = HttpMethod::kPut,
                                    .url = url,
                                    .body = upload.bytes,
                                    .if_none_match = !replaces,
                                    .cancelled = &cancelled});
    report(answer, &upload_breaker_);
    if (answer.failure != HttpFailure::kNone) return &RemoteStoreStats::upload_failures;
    if (answer.status == kPreconditionFailed) return &RemoteStoreStats::uploads_present;
    if (!is_success(answer.status)) {
      count_status(answer.status);
      return &RemoteStoreStats::upload_failures;
    }
    if (replaces) {
      const std::lock_guard lock(mutex_);
      damaged_.erase(upload.key);
    }
    return &RemoteStoreStats::uploads;
  }

  HttpAnswer send(HttpRequest request) {
    request.connect_timeout = options_->connect_timeout;
    request.total_timeout = options_->total_timeout;
    HttpAnswer answer = options_->transport->send(request);
    // Whatever ended it: who cancels is not told anything any more.
    const bool is_cancelled = request.cancelled != nullptr && request.cancelled->load();
    if (answer.failure != HttpFailure::kNone && is_cancelled) {
      answer.failure = HttpFailure::kCancelled;
    }
    if (answer.failure != HttpFailure::kNone) {
      const std::lock_guard lock(mutex_);
      ++stats_.failures[static_cast<size_t>(answer.failure)];
    }
    return answer;
  }

  // What the answer says of the server.
  void report(const HttpAnswer& answer, CircuitBreaker* breaker) {
    if (answer.failure == HttpFailure::kUnavailable) {
      become_unavailable(answer);
    } else if (answer.failure == HttpFailure::kCancelled) {
      // Nothing.
    } else if (answer.failure == HttpFailure::kNone ? !is_trouble(answer.status)
                                                    : answer.failure == HttpFailure::kTooLarge) {
      breaker->succeeded();
    } else if (breaker->failed()) {
      warn_once(&left_alone_told_, answer);
    }
  }

  void become_unavailable(const HttpAnswer& answer) {
    {
      const std::lock_guard lock(mutex_);
      unavailable_ = true;
    }
    warn_once(&unavailable_told_, answer);
  }

  void warn_once(std::atomic_flag* told, const HttpAnswer& answer) {
    if (told->test_and_set() || !options_->on_warning) return;
    const std::lock_guard lock(telling_);
    if (has_ended_) return;
    options_->on_warning(
        answer.failure == HttpFailure::kNone
            ? error(StatusCode::kCacheError, "answers with status " + std::to_string(answer.status))
            : failure_of(answer));
  }

  std::string name() const { return "remote " + options_->url.visible; }
  Status error(StatusCode code, const std::string& what) const {
    return {code, name() + " " + what};
  }
  Status failure_of(const HttpAnswer& answer) const {
    return {StatusCode::kCacheError, name() + ": " +
                                         std::string(http_failure_name(answer.failure)) + " (" +
                                         answer.reason + ")"};
  }
  LookupResult left_alone(std::string_view why) const {
    return miss(Status(StatusCode::kCacheError, name() + ": " + std::string(why)));
  }
  bool is_unavailable() const {
    const std::lock_guard lock(mutex_);
    return unavailable_;
  }
  bool is_damaged(const Key& key) const {
    const std::lock_guard lock(mutex_);
    return damaged_.contains(key);
  }
  void count_status(int status) {
    const std::lock_guard lock(mutex_);
    ++stats_.statuses[status];
  }

  const std::shared_ptr<const RemoteStoreOptions> options_;
  CircuitBreaker lookup_breaker_;
  CircuitBreaker upload_breaker_;
  std::atomic_flag unavailable_told_;
  std::atomic_flag left_alone_told_;
  std::mutex telling_;  // held during on_warning; guards:
  bool has_ended_ = false;

  mutable std::mutex mutex_;  // guards what follows; never held during a request
  RemoteStoreStats stats_;    // but for what the breakers and the queue count
  bool unavailable_ = false;
  std::set<Key> damaged_;
};

struct RemoteStore::Services {
  explicit Services(const std::shared_ptr<const RemoteStoreOptions>& options)
      : server(std::make_shared<Server>(options)) {
    queue.emplace(options->max_waiting_uploads,
                  [server = server](const Upload& upload, const std::atomic<bool>& cancelled) {
                    server->upload(upload, cancelled);
                  });
  }
  ~Services() {
    queue.reset();
    server->end();  // a transfer may still be under way
  }
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  const std::shared_ptr<Server> server;
  std::optional<UploadQueue> queue;
};

RemoteStore::RemoteStore(RemoteStoreOptions options)
    : options_(std::make_shared<const RemoteStoreOptions>(std::move(options))),
      services_([kept = options_] { return std::make_unique<Services>(kept); }) {}

RemoteStore::~RemoteStore() = default;

std::string RemoteStore::description() const { return "remote " + options_->url.visible; }

LookupResult RemoteStore::lookup(const Key& key) { return services_.get().server->lookup(key); }

LookupResult RemoteStore::lookup_any_compiler(const Digest& source, const IsBetter& is_better) {
  LookupResult best;
  for (const Digest& compiler : options_->compilers) {
    LookupResult found = lookup({source, compiler});
    const bool better = found.outcome == LookupOutcome::kHit
                            ? best.entry == nullptr ||
                                  (is_better != nullptr && is_better(*found.entry, *best.entry))
                            : best.entry == nullptr && best.status.is_ok();
    if (better) best = std::move(found);
  }
  return best;
}

void RemoteStore::upload(const Entry& entry) {
  if (!options_->write) return;
  try {
    Result<std::string> bytes = encode_entry(entry);
    if (bytes) upload(entry.key, std::move(bytes).value());
  } catch (const std::exception&) {  // std::bad_alloc: it is not uploaded
  }
}

void RemoteStore::upload(const Key& key, std::string bytes) {
  if (!options_->write) return;
  try {
    services_.get().queue->push({key, std::move(bytes)});
  } catch (const std::exception&) {  // std::bad_alloc: it is not uploaded
  }
}

bool RemoteStore::flush(std::chrono::milliseconds timeout) {
  return services_.get().queue->flush(timeout);
}

RemoteStoreStats RemoteStore::stats() const {
  Services& services = services_.get();
  RemoteStoreStats stats = services.server->stats();
  const UploadQueueStats queue = services.queue->stats();
  stats.upload_drops = queue.dropped;
  stats.uploads_waiting = queue.waiting;
  return stats;
}

}  // namespace pagejit::cache
