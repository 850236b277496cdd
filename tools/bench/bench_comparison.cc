#include "tools/bench/bench_comparison.h"

#include <algorithm>
#include <iterator>

#include "tools/bench/bench_compare.h"
#include "tools/bench/bench_svg.h"
#include "tools/cli/text_table.h"
#include "tools/models/config_reader.h"

namespace pagejit::cli {
namespace {

void warn_of_other_machines(const BenchEnvironment& a, const BenchEnvironment& b,
                            CommandContext& context) {
  const auto differ = [&](const char* what, const std::string& first, const std::string& second) {
    if (first == second) return;
    context.note(std::string(what) +
                 " differs: " + (first.empty() ? "none" : models::printable(first)) + "; " +
                 (second.empty() ? "none" : models::printable(second)));
  };
  differ("the GPU", a.gpu, b.gpu);
  differ("the driver's CUDA", a.driver_cuda, b.driver_cuda);
  if (a.gpu.empty()) differ("the CPU", a.cpu, b.cpu);
}

// A file's text in a table: whole, but without the control bytes that would move the cursor.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

void print_comparison(const std::vector<BenchDifference>& differences, CommandContext& context) {
  TextTable table({{"case"},
                   {"shape"},
                   {"A", Align::kRight},
                   {"B", Align::kRight},
                   {"unit"},
                   {"B / A", Align::kRight},
                   {"noise", Align::kRight},
                   {"verdict"}});
  for (const BenchDifference& d : differences) {
    const bool has_first = d.verdict != BenchVerdict::kOnlySecond;
    const bool has_second = d.verdict != BenchVerdict::kOnlyFirst;
    std::string shape;
    for (const auto& [key, value] : d.any().shape.items()) {
      shape += (shape.empty() ? "" : " ") + key + "=" + value.dump();
    }
    const Style style = d.verdict == BenchVerdict::kWorse    ? Style::kBad
                        : d.verdict == BenchVerdict::kBetter ? Style::kGood
                                                             : Style::kPlain;
    table.add_row({one_line(d.any().suite + " " + d.any().name), one_line(shape),
                   has_first ? format_number("%.3f", d.first.value) : "",
                   has_second ? format_number("%.3f", d.second.value) : "", one_line(d.any().unit),
                   has_first && has_second ? format_number("%.3f", d.ratio) : "",
                   has_first && has_second ? format_number("%.1f %%", 100 * d.noise) : "",
                   verdict_name(d.verdict)},
                  style);
  }
  context.out << table.to_string(context.out_terminal);
}

}  // namespace

void compare_files(const BenchFlags& flags, CommandContext& context) {
  const Result<BenchRun> first = load_bench_run(flags.compare[0]);
  if (!first) return context.fail(first.status());
  const Result<BenchRun> second = load_bench_run(flags.compare[1]);
  if (!second) return context.fail(second.status());
  const std::vector<BenchDifference> differences = compare_runs(*first, *second);
  const auto count = [&](BenchVerdict verdict) {
    return std::count_if(differences.begin(), differences.end(),
                         [&](const BenchDifference& d) { return d.verdict == verdict; });
  };
  const auto alone = count(BenchVerdict::kOnlyFirst) + count(BenchVerdict::kOnlySecond);
  if (alone == std::ssize(differences)) {
    return context.fail(
        bad_usage(flags.compare[0] + " and " + flags.compare[1] + " have no case in common"));
  }
  warn_of_other_machines(first->environment, second->environment, context);
  if (!flags.is_quiet()) {
    print_comparison(differences, context);
    context.out << differences.size() << " cases: " << count(BenchVerdict::kWorse) << " worse, "
                << count(BenchVerdict::kBetter) << " better, " << count(BenchVerdict::kSame)
                << " the same within their noise";
    if (alone > 0) context.out << ", " << alone << " in one file only";
    context.out << "\n";
  }
  write_files(flags, comparison_json(*first, *second, differences), comparison_svg(differences),
              context);
  if (!flags.threshold) return;
  for (const BenchDifference& d : differences) {
    if (d.verdict != BenchVerdict::kWorse || 100 * d.loss() <= *flags.threshold) continue;
    context.fail(Status(StatusCode::kDeviceCheckFailed,
                        d.any().suite + " " + models::printable(d.any().name) + ": worse by " +
                            format_number("%.1f", 100 * d.loss()) + " %, more than --threshold " +
                            format_number("%g", *flags.threshold)));
  }
}

}  // namespace pagejit::cli
