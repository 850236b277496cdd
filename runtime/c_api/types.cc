#include "runtime/c_api/types.h"

#include "pagejit/spec.h"

namespace pagejit::c_api {
namespace {

// As much of a text as fits before the closing 0.
template <size_t kSize>
void copy_text(const std::string& from, char (&to)[kSize]) {
  const size_t length = std::min(from.size(), kSize - 1);
  std::memcpy(to, from.data(), length);
}

}  // namespace

Status to_cpp(const pagejit_target* from, Target* to) {
  pagejit_target copy;
  Status refusal;
  const pagejit_target* known = open_struct("pagejit_target", from, &copy, &refusal);
  if (known == nullptr) return refusal;
  Fields fields("pagejit_target");
  to->kind = fields.enumerator("kind", known->kind, TargetKind::kHost);
  to->sm = known->sm;
  to->variant = fields.enumerator("variant", known->variant, TargetVariant::kPtx);
  fields.reserved(known->reserved);
  return fields.status();
}

pagejit_target to_c(const Target& from) {
  return {.struct_size = sizeof(pagejit_target),
          .kind = static_cast<int32_t>(from.kind),
          .sm = from.sm,
          .variant = static_cast<int32_t>(from.variant),
          .reserved = 0};
}

pagejit_kernel_info to_c(const KernelInfo& from) {
  pagejit_kernel_info to = {};
  to.struct_size = sizeof to;
  copy_text(from.kernel_name, to.kernel_name);
  copy_text(from.key, to.key);
  to.target = to_c(from.target);
  to.origin = static_cast<int32_t>(from.origin);
  to.compile_ms = from.compile_ms;
  to.prepare_ms = from.prepare_ms;
  to.image_bytes = from.image_bytes;
  to.registers = from.registers;
  to.spill_store_bytes = from.spill_store_bytes;
  to.spill_load_bytes = from.spill_load_bytes;
  to.stack_bytes = from.stack_bytes;
  to.shared_bytes = from.shared_bytes;
  to.threads_per_cta = from.threads_per_cta;
  to.pdl = from.pdl ? 1 : 0;
  to.tuned = from.tuned ? 1 : 0;
  return to;
}

namespace {

// Names of enumerators are literals: they end in 0.
template <class Enum>
const char* name_of(int32_t value, Enum last, std::string_view (*name)(Enum)) {
  if (value < 0 || value > static_cast<int32_t>(last)) return "unknown";
  return name(static_cast<Enum>(value)).data();
}

bool is_data_type(int32_t type) {
  return type >= 0 && type <= static_cast<int32_t>(DataType::kInt4);
}

}  // namespace
}  // namespace pagejit::c_api

using pagejit::DataType;
using pagejit::ImageOrigin;
using pagejit::Result;
using pagejit::Status;
using pagejit::StatusCode;
using pagejit::Target;
using pagejit::c_api::call;
using pagejit::c_api::check_output;
using pagejit::c_api::fill;
using pagejit::c_api::init_struct;
using pagejit::c_api::is_data_type;
using pagejit::c_api::name_of;
using pagejit::c_api::need;
using pagejit::c_api::to_c;
using pagejit::c_api::to_cpp;
using pagejit::c_api::write_text;

#define PAGEJIT_TEXT_OF(number) #number
#define PAGEJIT_TEXT(number) PAGEJIT_TEXT_OF(number)

int32_t pagejit_version(void) { return PAGEJIT_VERSION; }

const char* pagejit_version_text(void) {
  return PAGEJIT_TEXT(PAGEJIT_VERSION_MAJOR) "." PAGEJIT_TEXT(
      PAGEJIT_VERSION_MINOR) "." PAGEJIT_TEXT(PAGEJIT_VERSION_PATCH);
}

const char* pagejit_status_name(pagejit_status status) {
  return pagejit::status_code_name(static_cast<StatusCode>(status)).data();
}

const char* pagejit_data_type_name(int32_t type) {
  return name_of(type, DataType::kInt4, pagejit::data_type_name);
}

pagejit_status pagejit_data_type_parse(const char* text, int32_t* type, pagejit_error* error) {
  return call(error, [&]() -> Status {
    if (Status s = need(text, "text"); !s) return s;
    if (Status s = need(type, "type"); !s) return s;
    const Result<DataType> parsed = pagejit::parse_data_type(text);
    if (!parsed) return parsed.status();
    *type = static_cast<int32_t>(*parsed);
    return {};
  });
}

int32_t pagejit_data_type_bytes(int32_t type) {
  return is_data_type(type) ? pagejit::data_type_bytes(static_cast<DataType>(type)) : 0;
}

int32_t pagejit_data_type_bits(int32_t type) {
  return is_data_type(type) ? pagejit::data_type_bits(static_cast<DataType>(type)) : 0;
}

pagejit_status pagejit_target_init(pagejit_target* target, size_t struct_size) {
  return init_struct(target, struct_size, to_c(Target{}));
}

pagejit_status pagejit_target_parse(const char* text, pagejit_target* target,
                                    pagejit_error* error) {
  return call(error, [&]() -> Status {
    if (Status s = need(text, "text"); !s) return s;
    if (Status s = check_output("pagejit_target", target); !s) return s;
    const Result<Target> parsed = pagejit::parse_target(text);
    if (!parsed) return parsed.status();
    fill(target, to_c(*parsed));
    return {};
  });
}

pagejit_status pagejit_target_text(const pagejit_target* target, char* buffer, size_t buffer_size,
                                   size_t* length, pagejit_error* error) {
  return call(error, [&]() -> Status {
    Target known;
    if (Status s = to_cpp(target, &known); !s) return s;
    return write_text(known.to_string(), buffer, buffer_size, length);
  });
}

const char* pagejit_origin_name(int32_t origin) {
  return name_of(origin, ImageOrigin::kRemote, pagejit::origin_name);
}

pagejit_status pagejit_kernel_info_init(pagejit_kernel_info* info, size_t struct_size) {
  return init_struct(info, struct_size, to_c(pagejit::KernelInfo{}));
}
