#include "tools/inspect/inspection_json.h"

#include "generator/families.h"
#include "generator/tile_cost.h"

namespace pagejit::inspect {
namespace {

using nlohmann::json;

json number_of(const Sourced& number) {
  if (number.source.empty()) return nullptr;
  return {{"value", number.value}, {"from", number.source}};
}

json mix_of(const SassListing& sass, SassLoop range) {
  const SassMix mix = count_mix(sass, range);
  json classes = json::object();
  for (size_t c = 0; c < kNumSassClasses; ++c) {
    if (mix.by_class[c] == 0) continue;
    json widths = json::object();
    for (const auto& [key, count] : mix.by_width) {
      if (key.first == static_cast<SassClass>(c)) widths[std::to_string(key.second / 8)] = count;
    }
    json entry = {{"count", mix.by_class[c]}};
    if (!widths.empty()) entry["by_bytes"] = widths;
    classes[std::string(class_name(static_cast<SassClass>(c)))] = entry;
  }
  return {{"instructions", mix.total},
          {"no_operations", mix.no_operations},
          {"classes", classes},
          {"operations", mix.by_operation}};
}

json sass_of(const Inspection& i) {
  if (!i.sass) return {{"missing", i.no_sass}};
  json result = {{"kernel", mix_of(*i.sass, {0, i.sass->instructions.size()})},
                 {"loops", i.sass->loops.size()},
                 {"main_loop", nullptr}};
  if (const SassLoop* loop = main_loop(*i.sass)) {
    result["main_loop"] = mix_of(*i.sass, *loop);
    result["main_loop"]["first_address"] = i.sass->instructions[loop->begin].address;
    result["main_loop"]["last_address"] = i.sass->instructions[loop->end - 1].address;
  }
  return result;
}

json pipeline_of(const Inspection& i) {
  const auto* config = i.config ? std::get_if<KernelConfig>(&*i.config) : nullptr;
  if (config == nullptr) return nullptr;
  const AttentionConfig& c = config->attention;
  return {{"token_groups", c.token_groups},
          {"row_warps", c.row_warps},
          {"stages", c.num_stages},
          {"group_tokens", c.group_tokens},
          {"tile_rows", pagejit_shared::tile_rows(c)},
          {"stage_bytes", pagejit_shared::kv_stage_bytes(c)},
          {"min_ctas_per_sm", c.min_ctas_per_sm},
          {"bytes_in_flight_per_sm", bytes_in_flight(c)}};
}

json gpu_of(const Gpu& gpu) {
  json result = {{"id", gpu.id},
                 {"name", gpu.title},
                 {"compute_capability", gpu.sm},
                 {"sms", gpu.num_sms},
                 {"gb_per_s", gpu.bandwidth_gb_s},
                 {"tflops", nullptr},
                 {"from", gpu.source}};
  if (gpu.tensor_tflops > 0) result["tflops"] = gpu.tensor_tflops;
  return result;
}

json unit_roofline_of(const Inspection& i) {
  const UnitRoofline& r = *i.unit_roofline;
  json result = {{"gpu", gpu_of(*i.gpu)},
                 {"unit", r.work.unit},
                 {"read_bytes", r.work.read_bytes},
                 {"written_bytes", r.work.written_bytes},
                 {"flops", r.work.flops},
                 {"memory_ns", r.memory_ns},
                 {"product_ns", nullptr},
                 {"limit_ns", r.limit_ns()},
                 {"limit", r.is_memory_bound() ? "memory" : "products"},
                 {"caveats", i.caveats()}};
  if (r.compute_ns > 0) result["product_ns"] = r.compute_ns;
  return result;
}

json roofline_of(const Inspection& i) {
  if (i.unit_roofline) return unit_roofline_of(i);
  if (!i.roofline) return nullptr;
  const Roofline& r = *i.roofline;
  const Problem& p = r.problem;
  const bool has_rate = i.gpu->tensor_tflops > 0;
  json result = {{"gpu", gpu_of(*i.gpu)},
                 {"batch", p.batch},
                 {"seq_len", p.seq_len},
                 {"query_len", p.query_len},
                 {"num_kv_heads", p.num_kv_heads},
                 {"window", p.window == 0 ? json(nullptr) : json(p.window)},
                 {"keys", r.num_keys},
                 {"kv_bytes", r.kv_bytes},
                 {"query_bytes", r.query_bytes},
                 {"flops", r.flops},
                 {"products_each", r.products_each},
                 {"flop_per_byte", r.intensity()},
                 {"memory_us", r.memory_us},
                 {"product_us", nullptr},
                 {"limit_us", r.limit_us()},
                 {"limit", "memory"},
                 {"caveats", i.caveats()}};
  if (has_rate) {
    result["product_us"] = r.compute_us;
    result["limit"] = r.is_memory_bound() ? "memory" : "products";
  }
  return result;
}

}  // namespace

json to_json(const Inspection& i) {
  json occupancy = json::array();
  for (const GpuOccupancy& row : i.occupancy) {
    const Occupancy& o = row.occupancy;
    const auto limit = [](int ctas) { return ctas == Occupancy::kUnlimited ? json() : json(ctas); };
    occupancy.push_back({{"gpu", row.gpu.id},
                         {"ctas_per_sm", o.ctas},
                         {"warps_per_sm", o.warps},
                         {"max_warps_per_sm", o.max_warps},
                         {"by_registers", limit(o.by_registers)},
                         {"by_shared_memory", limit(o.by_shared)},
                         {"by_warps", limit(o.by_warps)},
                         {"by_ctas", limit(o.by_ctas)},
                         {"by_barriers", limit(o.by_barriers)},
                         {"limit", o.limit}});
  }
  return {{"kernel", i.symbol},
          {"spec", i.config ? json(spec_text(*i.config)) : json(nullptr)},
          {"target", i.target.to_string()},
          {"origin", i.origin},
          {"made_by", i.tool},
          {"resources",
           {{"threads_per_cta", number_of(i.threads)},
            {"registers", number_of(i.registers)},
            {"spill_store_bytes", number_of(i.spill_store_bytes)},
            {"spill_load_bytes", number_of(i.spill_load_bytes)},
            {"stack_bytes", number_of(i.stack_bytes)},
            {"static_shared_bytes", number_of(i.static_shared_bytes)},
            {"dynamic_shared_bytes", number_of(i.dynamic_shared_bytes)},
            {"barriers", number_of(i.barriers)},
            {"code_bytes", i.code_bytes}}},
          {"contradictions", i.contradictions},
          {"occupancy", occupancy},
          {"occupancy_notes", i.occupancy_notes()},
          {"pipeline", pipeline_of(i)},
          {"roofline", roofline_of(i)},
          {"sass", sass_of(i)}};
}

}  // namespace pagejit::inspect
