// EngineStats as text: Prometheus' exposition format and JSON.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string_view>
#include <utility>

#include "pagejit/stats.h"
#include "runtime/format.h"

namespace pagejit {
namespace {

// Raised where a member of the JSON changes its meaning.
constexpr int kJsonFormat = 1;

// The shortest text that reads back as the same number.
std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return format("{}", value);
}

// The errno values that a file system yields; others by their number.
std::string errno_name(int error) {
  static constexpr std::pair<int, std::string_view> kNames[] = {
      {EPERM, "EPERM"},   {ENOENT, "ENOENT"}, {EINTR, "EINTR"},    {EIO, "EIO"},
      {EBADF, "EBADF"},   {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"},  {EACCES, "EACCES"},
      {EBUSY, "EBUSY"},   {EEXIST, "EEXIST"}, {EXDEV, "EXDEV"},    {ENOTDIR, "ENOTDIR"},
      {EISDIR, "EISDIR"}, {EINVAL, "EINVAL"}, {ENFILE, "ENFILE"},  {EMFILE, "EMFILE"},
      {EFBIG, "EFBIG"},   {ENOSPC, "ENOSPC"}, {EROFS, "EROFS"},    {EMLINK, "EMLINK"},
      {ELOOP, "ELOOP"},   {EDQUOT, "EDQUOT"}, {ESTALE, "ESTALE"},  {ETIMEDOUT, "ETIMEDOUT"},
      {ENOLCK, "ENOLCK"}, {ENOSYS, "ENOSYS"}, {ENOTSUP, "ENOTSUP"}};
  for (const auto& [value, name] : kNames) {
    if (value == error) return std::string(name);
  }
  return format("{}", error);
}

// ---- Prometheus ----

// Of a label's value: backslash, quote and line feed are written \\, \" and \n.
std::string escaped_label(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
    } else {
      if (c == '\\' || c == '"') text += '\\';
      text += c;
    }
  }
  return text;
}

class PrometheusText {
 public:
  // The samples of a family follow its head.
  void counter(std::string_view name, std::string_view help) { head(name, help, "counter"); }
  void sample(std::string_view name, uint64_t value) { text_ += format("{} {}\n", name, value); }
  void sample(std::string_view name, std::string_view label, std::string_view label_value,
              uint64_t value) {
    text_ += format("{}{{{}=\"{}\"}} {}\n", name, label, escaped_label(label_value), value);
  }
  void single(std::string_view name, std::string_view help, uint64_t value) {
    counter(name, help);
    sample(name, value);
  }
  // per_second: how many of the histogram's unit make a second.
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram,
                 double per_second) {
    head(name, help, "histogram");
    uint64_t below = 0;  // buckets are cumulative
    for (size_t i = 0; i < std::min(histogram.bounds.size(), histogram.counts.size()); ++i) {
      below += histogram.counts[i];
      text_ += format("{}_bucket{{le=\"{}\"}} {}\n", name, number(histogram.bounds[i] / per_second),
                      below);
    }
    text_ += format("{}_bucket{{le=\"+Inf\"}} {}\n", name, histogram.count);
    text_ += format("{}_sum {}\n", name, number(histogram.sum / per_second));
    text_ += format("{}_count {}\n", name, histogram.count);
  }
  std::string take() { return std::move(text_); }

 private:
  void head(std::string_view name, std::string_view help, std::string_view type) {
    text_ += format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  std::string text_;
};

// ---- JSON ----

std::string json_string(std::string_view value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {  // control characters
      text += format("\\u{:04x}", byte);
    } else {
      if (c == '\\' || c == '"') text += '\\';
      text += c;
    }
  }
  return text + "\"";
}

class JsonText {
 public:
  void member(std::string_view name, std::string_view value) {
    text_ += format("{}\n  {}: {}", text_.empty() ? "{" : ",", json_string(name), value);
  }
  void member(std::string_view name, uint64_t value) { member(name, format("{}", value)); }
  void member(std::string_view name, const Histogram& histogram) {
    std::string bounds, counts;
    for (const double bound : histogram.bounds) {
      bounds += (bounds.empty() ? "" : ", ") + number(bound);
    }
    for (const uint64_t count : histogram.counts) {
      counts += format("{}{}", counts.empty() ? "" : ", ", count);
    }
    member(name, format("{{\"bounds\": [{}], \"counts\": [{}], \"sum\": {}, \"count\": {}}}",
                        bounds, counts, number(histogram.sum), histogram.count));
  }
  std::string take() { return std::move(text_) + "\n}\n"; }

 private:
  std::string text_;
};

}  // namespace

std::string to_prometheus(const EngineStats& stats) {
  PrometheusText text;
  text.counter("pagejit_hits_total", "Kernels that were found, by the layer that had them.");
  const std::pair<const char*, uint64_t> layers[] = {{"memory", stats.memory_hits},
                                                     {"bundle", stats.bundle_hits},
                                                     {"read_only", stats.read_only_hits},
                                                     {"directory", stats.disk_hits},
                                                     {"remote", stats.remote_hits}};
  for (const auto& [layer, hits] : layers) text.sample("pagejit_hits_total", "layer", layer, hits);
  text.single("pagejit_compiles_total", "Compiles, the failed ones included.", stats.compiles);
  text.single("pagejit_compile_failures_total", "Compiles that failed.", stats.compile_failures);
  text.single("pagejit_compiles_cancelled_total", "Compiles that all who wanted them gave up.",
              stats.compiles_cancelled);
  text.single("pagejit_thread_waits_total",
              "Calls that waited for another thread's compile of the same kernel.", stats.waits);
  text.single("pagejit_process_waits_total",
              "Calls that waited for another process's compile of the same kernel.",
              stats.process_waits);
  text.single("pagejit_process_wait_hits_total",
              "Waits for another process that ended with the kernel it had stored.",
              stats.process_wait_hits);
  text.single("pagejit_process_wait_timeouts_total",
              "Waits for another process that took too long.", stats.process_wait_timeouts);
  text.counter("pagejit_corrupt_entries_total",
               "Stored kernels that were set aside, by what was wrong with them.");
  for (const NamedCount& kind : stats.corrupt_by_kind) {
    text.sample("pagejit_corrupt_entries_total", "kind", kind.name, kind.count);
  }
  text.single("pagejit_publish_failures_total", "Kernels that could not be stored.",
              stats.publish_failures);
  text.counter("pagejit_publish_failures_by_errno_total",
               "Kernels that could not be stored, by the error; only errors that were met.");
  for (const auto& [error, count] : stats.publish_failures_by_errno) {
    text.sample("pagejit_publish_failures_by_errno_total", "errno", errno_name(error), count);
  }
  text.single("pagejit_evictions_total", "Entries removed from the cache directory to make room.",
              stats.evictions);
  text.single("pagejit_evicted_bytes_total", "Size of the entries removed to make room.",
              stats.evicted_bytes);
  text.single("pagejit_driver_rejects_total", "Stored kernels that the driver refused.",
              stats.driver_rejects);
  text.single("pagejit_modules_loaded_total", "Kernels loaded into the driver.",
              stats.modules_loaded);
  text.counter("pagejit_misses_denied_total", "Calls that were refused a compile, by the reason.");
  text.sample("pagejit_misses_denied_total", "reason", "policy", stats.misses_denied_by_policy);
  text.sample("pagejit_misses_denied_total", "reason", "capture", stats.misses_denied_in_capture);
  text.single("pagejit_remote_failures_total", "Questions that the remote did not answer rightly.",
              stats.remote_failures);
  text.single("pagejit_remote_uploads_total", "Kernels that the remote took.",
              stats.remote_uploads);
  text.single("pagejit_remote_upload_failures_total", "Kernels that the remote did not take.",
              stats.remote_upload_failures);
  text.single("pagejit_remote_breaker_opens_total",
              "Times that the remote was left alone for a while.", stats.remote_breaker_opens);
  constexpr double kMilliseconds = 1e3, kMicroseconds = 1e6;  // in a second
  text.histogram("pagejit_compile_seconds", "Time of a compile that succeeded.", stats.compile_ms,
                 kMilliseconds);
  text.histogram("pagejit_load_seconds", "Time to load a kernel into the driver.", stats.load_ms,
                 kMilliseconds);
  text.histogram("pagejit_lookup_seconds", "Time to look a kernel up in all layers.",
                 stats.lookup_us, kMicroseconds);
  text.histogram("pagejit_process_wait_seconds", "Time of a wait for another process.",
                 stats.process_wait_ms, kMilliseconds);
  return text.take();
}

std::string to_json(const EngineStats& stats) {
  JsonText text;
  text.member("format", kJsonFormat);
  text.member("memory_hits", stats.memory_hits);
  text.member("bundle_hits", stats.bundle_hits);
  text.member("read_only_hits", stats.read_only_hits);
  text.member("disk_hits", stats.disk_hits);
  text.member("remote_hits", stats.remote_hits);
  text.member("compiles", stats.compiles);
  text.member("compile_failures", stats.compile_failures);
  text.member("compiles_cancelled", stats.compiles_cancelled);
  text.member("waits", stats.waits);
  text.member("process_waits", stats.process_waits);
  text.member("process_wait_hits", stats.process_wait_hits);
  text.member("process_wait_timeouts", stats.process_wait_timeouts);
  text.member("corrupt_entries", stats.corrupt_entries);
  std::string kinds;
  for (const NamedCount& kind : stats.corrupt_by_kind) {
    kinds += format("{}{}: {}", kinds.empty() ? "" : ", ", json_string(kind.name), kind.count);
  }
  text.member("corrupt_by_kind", "{" + kinds + "}");
  text.member("publish_failures", stats.publish_failures);
  std::string errors;
  for (const auto& [error, count] : stats.publish_failures_by_errno) {
    errors += format("{}{}: {}", errors.empty() ? "" : ", ", json_string(errno_name(error)), count);
  }
  text.member("publish_failures_by_errno", "{" + errors + "}");
  text.member("evictions", stats.evictions);
  text.member("evicted_bytes", stats.evicted_bytes);
  text.member("driver_rejects", stats.driver_rejects);
  text.member("modules_loaded", stats.modules_loaded);
  text.member("misses_denied_by_policy", stats.misses_denied_by_policy);
  text.member("misses_denied_in_capture", stats.misses_denied_in_capture);
  text.member("remote_failures", stats.remote_failures);
  text.member("remote_uploads", stats.remote_uploads);
  text.member("remote_upload_failures", stats.remote_upload_failures);
  text.member("remote_breaker_opens", stats.remote_breaker_opens);
  text.member("compile_ms", stats.compile_ms);
  text.member("load_ms", stats.load_ms);
  text.member("lookup_us", stats.lookup_us);
  text.member("process_wait_ms", stats.process_wait_ms);
  return text.take();
}

}  // namespace pagejit
