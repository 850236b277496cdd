#include "runtime/c_api/options.h"

#include <memory>

#include "runtime/format.h"

namespace pagejit::c_api {
namespace {

void read_text(const char* from, std::string& to) { to = from == nullptr ? "" : from; }

Status read_texts(const char* name, const char* const* from, size_t count,
                  std::vector<std::string>& to) {
  if (from == nullptr && count != 0) {
    return Status(StatusCode::kInvalidArgument,
                  format("pagejit_engine_options.{}: null, but num_{} is {}", name, name, count));
  }
  to.clear();
  for (size_t i = 0; i < count; ++i) {
    if (from[i] == nullptr) {
      return Status(StatusCode::kInvalidArgument,
                    format("pagejit_engine_options.{}[{}]: null", name, i));
    }
    to.emplace_back(from[i]);
  }
  return {};
}

Status read_bundles(const pagejit_engine_options& from, std::vector<std::string_view>& to) {
  to.clear();
  for (size_t i = 0; i < from.num_memory_bundles; ++i) {
    const pagejit_bytes* bytes = from.memory_bundles == nullptr ? nullptr : &from.memory_bundles[i];
    if (bytes == nullptr || bytes->data == nullptr) {
      return Status(StatusCode::kInvalidArgument,
                    format("pagejit_engine_options.memory_bundles[{}]: null", i));
    }
    to.emplace_back(static_cast<const char*>(bytes->data), bytes->size);
  }
  return {};
}

void tell(const JitEvent& from, void (*on_event)(void*, const pagejit_jit_event*), void* user) {
  pagejit_jit_event event = {};
  event.struct_size = sizeof event;
  event.kind = static_cast<int32_t>(from.kind);
  event.spec = from.spec.c_str();
  event.target = to_c(from.target);
  event.key = from.key.c_str();
  event.origin = static_cast<int32_t>(from.origin);
  event.duration_ms = from.duration_ms;
  event.status = static_cast<pagejit_status>(from.status.code());
  event.precompiling = from.precompiling ? 1 : 0;
  event.message = from.status.message().c_str();
  event.detail = from.status.detail().c_str();
  on_event(user, &event);
}

void point_to(const std::vector<std::string>& texts, std::vector<const char*>& pointers) {
  pointers.clear();
  for (const std::string& text : texts) pointers.push_back(text.c_str());
}

// Null where there is none, so that defaults are all null.
const char* pointer_to(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

Status to_cpp(const pagejit_engine_options* from, EngineOptions* to) {
  pagejit_engine_options copy;
  Status refusal;
  const pagejit_engine_options* known =
      open_struct("pagejit_engine_options", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_engine_options");
  read_text(known->driver, to->driver);
  to->allow_emulator = fields.flag("allow_emulator", known->allow_emulator);
  read_text(known->emulator_path, to->emulator_path);
  read_text(known->nvrtc_path, to->nvrtc_path);
  read_text(known->host_compiler, to->host_compiler);
  to->host_build = fields.enumerator("host_build", known->host_build, HostBuild::kAddressSanitizer);
  read_text(known->cache_dir, to->cache_dir);
  to->disk_cache = fields.flag("disk_cache", known->disk_cache);
  to->cache_max_bytes = known->cache_max_bytes;
  if (Status s = read_bundles(*known, to->memory_bundles); !s) return s;
  Status s = read_texts("bundles", known->bundles, known->num_bundles, to->bundles);
  if (s) {
    s = read_texts("read_only_dirs", known->read_only_dirs, known->num_read_only_dirs,
                   to->read_only_dirs);
  }
  if (s) {
    s = read_texts("trusted_keys", known->trusted_keys, known->num_trusted_keys, to->trusted_keys);
  }
  if (!s) return s;
  read_text(known->remote, to->remote);
  to->remote_layout =
      fields.enumerator("remote_layout", known->remote_layout, RemoteLayout::kBazel);
  to->remote_write = fields.flag("remote_write", known->remote_write);
  to->require_signed = fields.flag("require_signed", known->require_signed);
  to->compile_threads = known->compile_threads;
  to->jit = fields.enumerator("jit", known->jit, JitPolicy::kOff);
  read_text(known->record_path, to->record_path);
  read_text(known->dump_dir, to->dump_dir);
  read_text(known->stats_path, to->stats_path);
  to->log_level = fields.enumerator("log_level", known->log_level, LogLevel::kOff);
  fields.reserved(known->reserved | known->reserved1 | known->reserved2 | known->reserved3 |
                  known->reserved4 | known->reserved5);
  to->tuned = fields.flag("tuned", known->tuned);
  if (known->log_callback != nullptr) {
    to->log_callback = [callback = known->log_callback, user = known->log_user](
                           LogLevel level, std::string_view line) {
      callback(user, static_cast<int32_t>(level), std::string(line).c_str());
    };
  }
  if (known->on_event != nullptr) {
    to->on_event = [callback = known->on_event, user = known->event_user](const JitEvent& event) {
      tell(event, callback, user);
    };
  }
  return fields.status();
}

pagejit_engine_options to_c(EnvironmentObject& from) {
  const EngineOptions& options = from.options;
  point_to(options.bundles, from.bundles);
  point_to(options.read_only_dirs, from.read_only_dirs);
  point_to(options.trusted_keys, from.trusted_keys);
  pagejit_engine_options to = {};
  to.struct_size = sizeof to;
  to.driver = pointer_to(options.driver);
  to.allow_emulator = options.allow_emulator ? 1 : 0;
  to.emulator_path = pointer_to(options.emulator_path);
  to.nvrtc_path = pointer_to(options.nvrtc_path);
  to.host_compiler = pointer_to(options.host_compiler);
  to.host_build = static_cast<int32_t>(options.host_build);
  to.cache_dir = pointer_to(options.cache_dir);
  to.disk_cache = options.disk_cache ? 1 : 0;
  to.cache_max_bytes = options.cache_max_bytes;
  to.bundles = from.bundles.data();
  to.num_bundles = from.bundles.size();
  to.read_only_dirs = from.read_only_dirs.data();
  to.num_read_only_dirs = from.read_only_dirs.size();
  to.remote = pointer_to(options.remote);
  to.remote_layout = static_cast<int32_t>(options.remote_layout);
  to.remote_write = options.remote_write ? 1 : 0;
  to.trusted_keys = from.trusted_keys.data();
  to.num_trusted_keys = from.trusted_keys.size();
  to.require_signed = options.require_signed ? 1 : 0;
  to.compile_threads = options.compile_threads;
  to.jit = static_cast<int32_t>(options.jit);
  to.record_path = pointer_to(options.record_path);
  to.dump_dir = pointer_to(options.dump_dir);
  to.stats_path = pointer_to(options.stats_path);
  to.log_level = static_cast<int32_t>(options.log_level);
  to.tuned = options.tuned ? 1 : 0;
  return to;
}

}  // namespace pagejit::c_api

using pagejit::EngineOptions;
using pagejit::Result;
using pagejit::Status;
using pagejit::c_api::EnvironmentObject;
using pagejit::c_api::Kind;

pagejit_status pagejit_engine_options_init(pagejit_engine_options* options, size_t struct_size) {
  EnvironmentObject defaults;
  return pagejit::c_api::init_struct(options, struct_size, pagejit::c_api::to_c(defaults));
}

pagejit_status pagejit_engine_options_from_environment(pagejit_engine_options* options,
                                                       pagejit_environment** environment,
                                                       pagejit_error* error) {
  return pagejit::c_api::call(error, [&]() -> Status {
    if (Status s = pagejit::c_api::check_output("pagejit_engine_options", options); !s) return s;
    if (Status s = pagejit::c_api::need(environment, "environment"); !s) return s;
    Result<EngineOptions> read = EngineOptions::from_environment();
    if (!read) return read.status();
    // Held by a pointer, so that its texts stay where they are.
    auto owned = std::make_unique<EnvironmentObject>();
    owned->options = std::move(*read);
    const pagejit_engine_options filled = pagejit::c_api::to_c(*owned);
    if (Status s = pagejit::c_api::hand_out(Kind::kEnvironment, std::move(owned), environment);
        !s) {
      return s;
    }
    pagejit::c_api::fill(options, filled);
    return {};
  });
}

pagejit_status pagejit_environment_destroy(pagejit_environment* environment, pagejit_error* error) {
  return pagejit::c_api::destroy(Kind::kEnvironment, environment, error);
}
