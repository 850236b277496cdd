#include "tools/cli/precompile_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <variant>

#include "generator/families.h"
#include "generator/spec_parser.h"
#include "tools/cli/text_table.h"
#include "tools/cli/work_flags.h"

namespace pagejit::cli {
namespace {

std::string job_text(const PrecompileJob& job) {
  return job.target.to_string() + " " + short_spec(job.spec);
}

bool is_missing(const PrecompileOutcome& outcome) {
  return outcome.result && outcome.result->status().code() == StatusCode::kNotFound;
}

std::string step_text(const PrecompileOutcome& outcome) {
  const Result<KernelInfo>& result = *outcome.result;
  if (!result) {  // the reason follows the table
    return (is_missing(outcome) ? "missing  " : "failed   ") + job_text(outcome.job);
  }
  std::string word(origin_name(result->origin));
  word.resize(8, ' ');
  return word + " " + job_text(outcome.job) + " in " + format_ms(result->prepare_ms) + " ms";
}

// The columns that say what an attention kernel is; of the others what they have in common.
std::vector<std::string> shape_columns(const AnySpec& any) {
  if (const auto* spec = std::get_if<KernelSpec>(&any)) {
    return {std::string(data_type_name(spec->q_dtype)), std::to_string(spec->head_size),
            std::to_string(spec->block_size), std::to_string(spec->group_size)};
  }
  std::string head_size = "-", block_size = "-";
  std::visit(
      [&](const auto& spec) {
        if constexpr (requires { spec.head_size; }) head_size = std::to_string(spec.head_size);
        if constexpr (requires { spec.block_size; }) block_size = std::to_string(spec.block_size);
      },
      any);
  return {std::string(family_name(any)), head_size, block_size, "-"};
}

// Whether a failure is of the machine and not of this kernel: NVRTC that is not there, or that does
// not know the target.
bool is_environment(const Status& status) {
  return status.code() == StatusCode::kUnsupported ||
         exit_code_of(status) == ExitCode::kEnvironment;
}

ExitCode failure_code(const Status& status) {
  if (status.code() == StatusCode::kNotFound || status.code() == StatusCode::kDataCorrupt) {
    return ExitCode::kVerification;
  }
  return is_environment(status) ? ExitCode::kEnvironment : ExitCode::kKernelFailed;
}

}  // namespace

std::vector<PrecompileOutcome> run_precompile(const std::vector<PrecompileJob>& jobs,
                                              const PrecompileFunction& precompile, int num_threads,
                                              const std::atomic<bool>& interrupted,
                                              Progress* progress) {
  std::vector<PrecompileOutcome> outcomes;
  outcomes.reserve(jobs.size());
  for (const PrecompileJob& job : jobs) outcomes.push_back({job, std::nullopt});
  std::atomic<size_t> next{0};
  const auto work = [&] {
    while (!interrupted.load()) {
      const size_t index = next.fetch_add(1);
      if (index >= outcomes.size()) return;
      PrecompileOutcome& outcome = outcomes[index];
      outcome.result = precompile(outcome.job.spec, outcome.job.target);
      progress->step(step_text(outcome));
    }
  };
  const size_t count = std::min(jobs.size(), static_cast<size_t>(std::max(1, num_threads)));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::string outcome_table(const std::vector<PrecompileOutcome>& outcomes,
                          const Terminal& terminal) {
  TextTable table({{"target"},
                   {"dtype"},
                   {"head", Align::kRight},
                   {"block", Align::kRight},
                   {"group", Align::kRight},
                   {"from"},
                   {"ms", Align::kRight},
                   {"bytes", Align::kRight},
                   {"registers", Align::kRight},
                   {"spilled B", Align::kRight},
                   {"shared B", Align::kRight}});
  for (const PrecompileOutcome& outcome : outcomes) {
    std::vector<std::string> row = {outcome.job.target.to_string()};
    for (std::string& column : shape_columns(outcome.job.spec)) row.push_back(std::move(column));
    if (!outcome.result) {
      row.push_back("not started");
    } else if (!*outcome.result) {
      row.push_back(is_missing(outcome) ? "MISSING" : "FAILED");
    } else {
      const KernelInfo& info = **outcome.result;
      row.emplace_back(origin_name(info.origin));
      row.push_back(format_ms(info.prepare_ms));
      row.push_back(format_count(static_cast<int64_t>(info.image_bytes)));
      // The C++ compiler for "host" reports neither.
      const bool host = outcome.job.target.is_host();
      row.push_back(host ? "-" : std::to_string(info.registers));
      row.push_back(host ? "-" : format_count(info.spill_store_bytes + info.spill_load_bytes));
      row.push_back(format_count(info.shared_bytes));
    }
    const bool is_bad = outcome.result && !*outcome.result;
    table.add_row(std::move(row), is_bad ? Style::kBad : Style::kPlain);
  }
  return table.to_string(terminal);
}

std::string outcome_summary(const std::vector<PrecompileOutcome>& outcomes, double wall_ms) {
  int compiled = 0, cached = 0, failed = 0, missing = 0, skipped = 0;
  for (const PrecompileOutcome& outcome : outcomes) {
    if (!outcome.result) {
      ++skipped;
    } else if (is_missing(outcome)) {
      ++missing;
    } else if (!*outcome.result) {
      ++failed;
    } else if ((**outcome.result).origin == ImageOrigin::kCompiled) {
      ++compiled;
    } else {
      ++cached;
    }
  }
  std::string text = format_kernels(outcomes.size()) + ": " + std::to_string(compiled) +
                     " compiled, " + std::to_string(cached) + " cached";
  if (missing > 0) text += ", " + std::to_string(missing) + " missing";
  if (failed > 0) text += ", " + std::to_string(failed) + " failed";
  if (skipped > 0) text += ", " + std::to_string(skipped) + " not started";
  return text + ", in " + format_ms(wall_ms) + " ms";
}

std::string outcome_json(const std::vector<PrecompileOutcome>& outcomes) {
  std::string text;
  for (const PrecompileOutcome& outcome : outcomes) {
    nlohmann::ordered_json line;
    line["spec"] = text_of(outcome.job.spec);
    line["target"] = outcome.job.target.to_string();
    if (!outcome.result) {
      line["result"] = "not started";
    } else if (!*outcome.result) {
      line["result"] = is_missing(outcome) ? "missing" : "failed";
      line["code"] = std::string(status_code_name(outcome.result->status().code()));
      line["message"] = outcome.result->status().message();
    } else {
      const KernelInfo& info = **outcome.result;
      line["result"] = origin_name(info.origin);
      line["kernel"] = info.kernel_name;
      line["key"] = info.key;
      line["compile_ms"] = info.compile_ms;
      line["prepare_ms"] = info.prepare_ms;
      line["image_bytes"] = info.image_bytes;
      line["registers"] = info.registers;
      line["spill_store_bytes"] = info.spill_store_bytes;
      line["spill_load_bytes"] = info.spill_load_bytes;
      line["stack_bytes"] = info.stack_bytes;
      line["shared_bytes"] = info.shared_bytes;
      line["threads_per_cta"] = info.threads_per_cta;
    }
    text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  return text;
}

ExitCode outcome_exit_code(const std::vector<PrecompileOutcome>& outcomes) {
  ExitCode code = ExitCode::kOk;
  for (const PrecompileOutcome& outcome : outcomes) {
    if (!outcome.result) {
      code = worse(code, ExitCode::kInterrupted);
    } else if (!*outcome.result) {
      code = worse(code, failure_code(outcome.result->status()));
    }
  }
  return code;
}

}  // namespace pagejit::cli
