// An engine's counts.
#include "pagejit/stats.h"

#include <array>
#include <iterator>
#include <utility>

#include "runtime/c_api/family.h"
#include "runtime/format.h"

namespace pagejit::c_api {
namespace {

template <class Function>
pagejit_status with_stats(const pagejit_stats* stats, pagejit_error* error,
                          Function&& function) noexcept {
  return call(error, [&] {
    return with<const EngineStats>(Kind::kStats, stats, std::forward<Function>(function));
  });
}

Status check_index(size_t index, size_t count) {
  if (index < count) return {};
  return Status(StatusCode::kInvalidArgument,
                format("index {}: must be less than {}", index, count));
}

pagejit_stats_counts counts_of(const EngineStats& from) {
  return {.struct_size = sizeof(pagejit_stats_counts),
          .memory_hits = from.memory_hits,
          .bundle_hits = from.bundle_hits,
          .read_only_hits = from.read_only_hits,
          .disk_hits = from.disk_hits,
          .remote_hits = from.remote_hits,
          .compiles = from.compiles,
          .compile_failures = from.compile_failures,
          .compiles_cancelled = from.compiles_cancelled,
          .waits = from.waits,
          .process_waits = from.process_waits,
          .process_wait_hits = from.process_wait_hits,
          .process_wait_timeouts = from.process_wait_timeouts,
          .corrupt_entries = from.corrupt_entries,
          .publish_failures = from.publish_failures,
          .evictions = from.evictions,
          .evicted_bytes = from.evicted_bytes,
          .driver_rejects = from.driver_rejects,
          .modules_loaded = from.modules_loaded,
          .misses_denied_by_policy = from.misses_denied_by_policy,
          .misses_denied_in_capture = from.misses_denied_in_capture,
          .remote_failures = from.remote_failures,
          .remote_uploads = from.remote_uploads,
          .remote_upload_failures = from.remote_upload_failures,
          .remote_breaker_opens = from.remote_breaker_opens,
          .num_corrupt_kinds = from.corrupt_by_kind.size(),
          .num_publish_errnos = from.publish_failures_by_errno.size()};
}

}  // namespace
}  // namespace pagejit::c_api

using pagejit::EngineStats;
using pagejit::Status;
using pagejit::c_api::check_index;
using pagejit::c_api::check_output;
using pagejit::c_api::fill;
using pagejit::c_api::init_struct;
using pagejit::c_api::Kind;
using pagejit::c_api::need;
using pagejit::c_api::with_stats;
using pagejit::c_api::write_text;

pagejit_status pagejit_stats_counts_init(pagejit_stats_counts* counts, size_t struct_size) {
  const pagejit_stats_counts defaults = {};
  return init_struct(counts, struct_size, defaults);
}

pagejit_status pagejit_histogram_init(pagejit_histogram* histogram, size_t struct_size) {
  const pagejit_histogram defaults = {};
  return init_struct(histogram, struct_size, defaults);
}

pagejit_status pagejit_engine_stats(const pagejit_engine* engine, pagejit_stats** stats,
                                    pagejit_error* error) {
  return pagejit::c_api::call(error, [&] {
    return pagejit::c_api::with_engine(engine, [&](const pagejit::Engine& cpp_engine) -> Status {
      if (Status s = need(stats, "stats"); !s) return s;
      return pagejit::c_api::hand_out(Kind::kStats, cpp_engine.stats(), stats);
    });
  });
}

pagejit_status pagejit_stats_destroy(pagejit_stats* stats, pagejit_error* error) {
  return pagejit::c_api::destroy(Kind::kStats, stats, error);
}

pagejit_status pagejit_stats_get_counts(const pagejit_stats* stats, pagejit_stats_counts* counts,
                                        pagejit_error* error) {
  return with_stats(stats, error, [&](const EngineStats& known) -> Status {
    if (Status s = check_output("pagejit_stats_counts", counts); !s) return s;
    fill(counts, pagejit::c_api::counts_of(known));
    return {};
  });
}

pagejit_status pagejit_stats_get_histogram(const pagejit_stats* stats, int32_t kind,
                                           pagejit_histogram* histogram, pagejit_error* error) {
  return with_stats(stats, error, [&](const EngineStats& known) -> Status {
    const std::array all = {&known.compile_ms, &known.load_ms, &known.lookup_us,
                            &known.process_wait_ms};
    if (Status s = check_output("pagejit_histogram", histogram); !s) return s;
    if (kind < 0 || static_cast<size_t>(kind) >= all.size()) {
      return Status(pagejit::StatusCode::kInvalidArgument,
                    pagejit::format("kind {}: must be in [0, {}]", kind, all.size() - 1));
    }
    const pagejit::Histogram& found = *all[static_cast<size_t>(kind)];
    const pagejit_histogram filled = {.struct_size = sizeof filled,
                                      .bounds = found.bounds.data(),
                                      .counts = found.counts.data(),
                                      .num_bounds = found.bounds.size(),
                                      .sum = found.sum,
                                      .count = found.count};
    fill(histogram, filled);
    return {};
  });
}

pagejit_status pagejit_stats_corrupt_kind(const pagejit_stats* stats, size_t index,
                                          const char** name, uint64_t* count,
                                          pagejit_error* error) {
  return with_stats(stats, error, [&](const EngineStats& known) -> Status {
    if (Status s = need(name, "name"); !s) return s;
    if (Status s = need(count, "count"); !s) return s;
    if (Status s = check_index(index, known.corrupt_by_kind.size()); !s) return s;
    *name = known.corrupt_by_kind[index].name.c_str();
    *count = known.corrupt_by_kind[index].count;
    return {};
  });
}

pagejit_status pagejit_stats_publish_errno(const pagejit_stats* stats, size_t index,
                                           int32_t* number, uint64_t* count, pagejit_error* error) {
  return with_stats(stats, error, [&](const EngineStats& known) -> Status {
    if (Status s = need(number, "number"); !s) return s;
    if (Status s = need(count, "count"); !s) return s;
    if (Status s = check_index(index, known.publish_failures_by_errno.size()); !s) return s;
    const auto found =
        std::next(known.publish_failures_by_errno.begin(), static_cast<std::ptrdiff_t>(index));
    *number = found->first;
    *count = found->second;
    return {};
  });
}

pagejit_status pagejit_stats_to_prometheus(const pagejit_stats* stats, char* buffer,
                                           size_t buffer_size, size_t* length,
                                           pagejit_error* error) {
  return with_stats(stats, error, [&](const EngineStats& known) {
    return write_text(pagejit::to_prometheus(known), buffer, buffer_size, length);
  });
}

pagejit_status pagejit_stats_to_json(const pagejit_stats* stats, char* buffer, size_t buffer_size,
                                     size_t* length, pagejit_error* error) {
  return with_stats(stats, error, [&](const EngineStats& known) {
    return write_text(pagejit::to_json(known), buffer, buffer_size, length);
  });
}
