#include "tools/inspect/inspection_text.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "generator/families.h"
#include "tools/cli/text_table.h"
#include "tools/inspect/name_text.h"
#include "tools/inspect/number_text.h"
#include "tools/inspect/pipeline_drawing.h"

namespace pagejit::inspect {
namespace {

// Numbers to the right but for the first column and, where it holds words, the last.
std::string aligned(const Table& table, bool last_is_words, const cli::Terminal& terminal) {
  if (table.empty()) return "";
  std::vector<cli::TableColumn> columns;
  for (size_t i = 0; i < table[0].size(); ++i) {
    const bool is_words = i == 0 || (last_is_words && i + 1 == table[0].size());
    columns.push_back({table[0][i], is_words ? cli::Align::kLeft : cli::Align::kRight});
  }
  cli::TextTable text(columns);
  for (size_t i = 1; i < table.size(); ++i) text.add_row(table[i]);
  return text.to_string(terminal);
}

std::string heading(const std::string& text) {
  return "\n" + text + "\n" + std::string(text.size(), '=') + "\n";
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%04llx", static_cast<unsigned long long>(value));
  return text;
}

std::string head_text(const Inspection& i) {
  std::string text = "kernel   " + name_text(i.symbol) + "\n";
  if (i.config) text += "spec     " + spec_text(*i.config) + "\n";
  text += "target   " + i.target.to_string() + "\n";
  text += "origin   " + name_text(i.origin) + "\n";
  if (!i.tool.empty()) text += "made by  " + name_text(i.tool) + "\n";
  return text;
}

// "128-bit 16, 32-bit 4".
std::string widths_of(const SassMix& mix, SassClass c) {
  std::string text;
  for (auto entry = mix.by_width.rbegin(); entry != mix.by_width.rend(); ++entry) {
    if (entry->first.first != c) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(entry->second) + " of " +
            std::to_string(entry->first.second / 8) + " B";
  }
  return text;
}

std::string sass_text(const Inspection& i, const cli::Terminal& terminal) {
  std::string text = heading("Instructions (SASS)");
  if (!i.sass) return text + cli::fitted(i.no_sass + "\n", terminal);
  const std::string loop = describe_main_loop(i);
  text += loop.empty() ? "it has no loop\n" : cli::fitted("main loop: " + loop + "\n", terminal);
  return text + "\n" + aligned(mix_table(i), true, terminal);
}

std::string roofline_text(const Inspection& i) {
  if (!i.config) {
    return heading("Roofline") + "it takes a spec: of a bare cubin no problem is known\n";
  }
  if (!i.gpu) {
    return heading("Roofline") + "no GPU that runs " + i.target.to_string() +
           " is in the table of GPUs\n";
  }
  std::string text = heading("Roofline on " + std::string(i.gpu->title)) + explained_roofline(i);
  for (const std::string& sentence : i.caveats()) text += sentence + "\n";
  return text;
}

}  // namespace

std::string explained_roofline(const Inspection& i) {
  if (i.unit_roofline) return explain_unit_roofline(*i.unit_roofline, *i.gpu);
  return i.roofline ? explain_roofline(*i.roofline, *i.attention_spec(), *i.gpu) : "";
}

Table resource_table(const Inspection& i) {
  Table table = {{"resource", "value", "from"}};
  const auto add = [&](const char* name, const Sourced& number) {
    table.push_back({name, number.source.empty() ? "-" : with_commas(number.value),
                     number.source.empty() ? "not known" : number.source});
  };
  add("threads per CTA", i.threads);
  add("registers per thread", i.registers);
  add("spill stores, bytes", i.spill_store_bytes);
  add("spill loads, bytes", i.spill_load_bytes);
  add("stack per thread, bytes", i.stack_bytes);
  add("static shared memory, bytes", i.static_shared_bytes);
  add("dynamic shared memory, bytes", i.dynamic_shared_bytes);
  add("barriers", i.barriers);
  table.push_back({"code, bytes", with_commas(static_cast<int64_t>(i.code_bytes)), "cubin"});
  return table;
}

Table occupancy_table(const Inspection& i) {
  Table table = {{"GPU", "SMs", "CTAs/SM", "warps/SM", "occupancy", "by registers", "by shared",
                  "by warps", "by CTAs", "by barriers", "limit"}};
  for (const GpuOccupancy& row : i.occupancy) {
    const Occupancy& o = row.occupancy;
    const auto limit = [](int ctas) {
      return ctas == Occupancy::kUnlimited ? std::string("-") : std::to_string(ctas);
    };
    table.push_back({row.gpu.title, std::to_string(row.gpu.num_sms), std::to_string(o.ctas),
                     std::to_string(o.warps) + " of " + std::to_string(o.max_warps),
                     percent(o.fraction()), limit(o.by_registers), limit(o.by_shared),
                     limit(o.by_warps), limit(o.by_ctas), limit(o.by_barriers), o.limit});
  }
  return table;
}

Table mix_table(const Inspection& i) {
  Table table = {{"class", "kernel", "main loop", "of the loop", "widths in the loop"}};
  if (!i.sass) return table;
  const SassLoop* loop = main_loop(*i.sass);
  const SassMix all = count_mix(*i.sass);
  const SassMix inner = loop == nullptr ? SassMix{} : count_mix(*i.sass, *loop);
  std::vector<SassClass> classes;
  for (size_t c = 0; c < kNumSassClasses; ++c) classes.push_back(static_cast<SassClass>(c));
  for (const SassClass c : classes) {
    if (all.of(c) == 0) continue;
    table.push_back({std::string(class_name(c)), with_commas(all.of(c)), with_commas(inner.of(c)),
                     inner.total == 0 ? "-" : percent(double(inner.of(c)) / inner.total),
                     widths_of(inner, c)});
  }
  table.push_back({"all", with_commas(all.total), with_commas(inner.total), "", ""});
  return table;
}

std::string describe_main_loop(const Inspection& i) {
  const SassLoop* loop = i.sass ? main_loop(*i.sass) : nullptr;
  if (loop == nullptr) return "";
  const auto& instructions = i.sass->instructions;
  const SassMix mix = count_mix(*i.sass, *loop);
  return with_commas(mix.total) + " instructions and " + with_commas(mix.no_operations) +
         " no-operations, " + hex(instructions[loop->begin].address) + " to " +
         hex(instructions[loop->end - 1].address) + "; of " + std::to_string(i.sass->loops.size()) +
         " loops the one with the most " +
         (mix.of(SassClass::kMatrixProduct) > 0 ? "matrix products" : "loads");
}

std::string to_text(const Inspection& i, const cli::Terminal& terminal) {
  std::string text = cli::fitted(head_text(i), terminal);
  text += heading("Resources") + aligned(resource_table(i), true, terminal);
  for (const std::string& sentence : i.contradictions) {
    text += cli::fitted(sentence + "\n", terminal);
  }
  text += heading("Occupancy");
  for (const std::string& note : i.occupancy_notes()) text += cli::fitted(note + "\n", terminal);
  if (!i.occupancy.empty()) text += aligned(occupancy_table(i), true, terminal);
  if (i.config) text += heading("Pipeline") + draw_pipeline(*i.config, terminal);
  return text + cli::fitted(roofline_text(i), terminal) + sass_text(i, terminal);
}

}  // namespace pagejit::inspect
