#include "tools/inspect/inspection.h"

#include "generator/families.h"
#include "tools/inspect/disassembler.h"
#include "tools/inspect/name_text.h"

namespace pagejit::inspect {
namespace {

Result<CubinKernel> choose_kernel(const CubinFile& cubin, const std::string& symbol) {
  std::string names;
  for (const CubinKernel& kernel : cubin.kernels) {
    if (kernel.symbol == symbol) return kernel;
    names += (names.empty() ? "" : ", ") + name_text(kernel.symbol);
  }
  if (symbol.empty() && cubin.kernels.size() == 1) return cubin.kernels.front();
  if (symbol.empty()) {
    return Status(StatusCode::kInvalidArgument, "the cubin holds " +
                                                    std::to_string(cubin.kernels.size()) +
                                                    " kernels; --kernel chooses one: " + names);
  }
  return Status(StatusCode::kNotFound,
                "the cubin holds no kernel " + name_text(symbol) + "; it has " + names);
}

// The log's number, checked against the cubin's, where there is a log.
Sourced agreed(const char* what, const std::optional<int>& log, int cubin, Inspection* result) {
  if (!log) return {cubin, "cubin"};
  if (*log == cubin) return {cubin, "compile log and cubin"};
  result->contradictions.push_back(std::string(what) + ": " + std::to_string(*log) +
                                   " by the compile log, " + std::to_string(cubin) +
                                   " by the cubin");
  return {cubin, "cubin"};
}

void read_resources(const Subject& subject, const CubinKernel& kernel, Inspection* result) {
  const std::optional<CompileReport>& report = subject.report;
  const auto of_log = [&](auto field) -> std::optional<int> {
    return report ? std::optional<int>((*report).*field) : std::nullopt;
  };
  result->registers =
      agreed("registers", of_log(&CompileReport::registers), kernel.registers, result);
  result->stack_bytes =
      agreed("stack bytes", of_log(&CompileReport::stack_bytes), kernel.stack_bytes, result);
  result->static_shared_bytes =
      agreed("static shared bytes", of_log(&CompileReport::static_shared_bytes),
             kernel.static_shared_bytes, result);
  if (report) {
    result->spill_store_bytes = {report->spill_store_bytes, "compile log"};
    result->spill_load_bytes = {report->spill_load_bytes, "compile log"};
  }
  result->barriers = {kernel.barriers, "cubin"};
  result->code_bytes = kernel.code_bytes;
  if (result->config) {
    result->threads = {threads_per_cta(*result->config), "configuration"};
    result->dynamic_shared_bytes = {shared_bytes(*result->config), "configuration"};
    return;
  }
  if (subject.threads.value_or(0) > 0) {
    result->threads = {*subject.threads, "as given"};
  } else if (kernel.max_threads > 0) {
    result->threads = {kernel.max_threads, "cubin: its launch bound"};
  }
  if (subject.dynamic_shared_bytes) {
    result->dynamic_shared_bytes = {*subject.dynamic_shared_bytes, "as given"};
  }
}

Status choose_gpu(const InspectOptions& options, Inspection* result) {
  const std::vector<Gpu> gpus = gpus_of(result->target);
  if (options.gpu.empty()) {
    if (!gpus.empty()) result->gpu = gpus.front();
    return Status::ok();
  }
  const Result<Gpu> gpu = find_gpu(options.gpu);
  if (!gpu) return gpu.status().with_context("--gpu");
  std::string ids;
  for (const Gpu& known : gpus) {
    if (known.id == std::string_view(gpu->id)) {
      result->gpu = *gpu;
      return Status::ok();
    }
    ids += std::string(ids.empty() ? "" : ", ") + known.id;
  }
  return Status(StatusCode::kUnsupported, "--gpu " + options.gpu + ": a cubin for " +
                                              result->target.to_string() +
                                              " does not run on it; of those known it runs on " +
                                              (ids.empty() ? "none" : ids));
}

void add_sass(const Subject& subject, const InspectOptions& options, Inspection* result) {
  const Result<std::string> program = find_disassembler(options.nvdisasm, options.environment);
  if (!program) {
    result->no_sass = program.status().message();
    return;
  }
  const Result<std::string> listing = disassemble(*program, subject.image);
  if (!listing) {
    result->no_sass = listing.status().message();
    const std::string& detail = listing.status().detail();
    if (!detail.empty()) result->no_sass += ": " + name_text(detail.substr(0, detail.find('\n')));
    return;
  }
  SassListing sass = parse_sass(*listing, result->symbol);
  if (sass.instructions.empty()) {
    result->no_sass = *program + " printed no instruction of " + name_text(result->symbol);
    return;
  }
  result->sass = std::move(sass);
}

}  // namespace

std::vector<std::string> Inspection::occupancy_notes() const {
  if (threads.source.empty()) {
    return {
        "not known: the cubin has no launch bound, and its threads per CTA are not known "
        "(--threads)"};
  }
  std::vector<std::string> notes;
  if (dynamic_shared_bytes.source.empty()) {
    notes.emplace_back(
        "without dynamic shared memory, which a cubin does not tell (--dynamic-shared)");
  }
  if (occupancy.empty()) {
    notes.push_back("no GPU that runs " + target.to_string() + " is in the table of GPUs");
  }
  return notes;
}

Result<Inspection> inspect(const Subject& subject, const InspectOptions& options) {
  const Result<CubinFile> cubin = read_cubin(subject.image);
  if (!cubin) return cubin.status();
  const std::string wanted = subject.source ? subject.source->kernel_name : options.symbol;
  const Result<CubinKernel> kernel = choose_kernel(*cubin, wanted);
  if (!kernel) return kernel.status();
  const Result<Target> target = parse_target(cubin->target);
  if (!target) return target.status().with_context("the cubin's target");

  Inspection result;
  result.symbol = kernel->symbol;
  result.origin = subject.origin;
  result.tool = cubin->tool;
  // A family target's cubin may name itself; what was asked for is what is known best.
  result.target = subject.source ? subject.source->target : *target;
  if (subject.source) {
    result.config = subject.source->config;
    result.source = subject.source->text;
  }
  read_resources(subject, *kernel, &result);
  if (Status s = choose_gpu(options, &result); !s) return s;
  // Of a CTA of no known size nothing is known.
  const bool has_threads = !result.threads.source.empty();
  for (const Gpu& gpu : has_threads ? gpus_of(result.target) : std::vector<Gpu>()) {
    const Result<Occupancy> occupancy = occupancy_of(result.resources(), gpu.sm);
    if (occupancy) result.occupancy.push_back({gpu, *occupancy});
  }
  if (const KernelSpec* spec = result.attention_spec()) {
    if (Status s = check_problem(options.problem, *spec); !s) return s;
    if (result.gpu) {
      result.roofline =
          roofline_of(std::get<KernelConfig>(*result.config), options.problem, *result.gpu);
    }
  } else if (result.config && result.gpu) {
    result.unit_roofline = unit_roofline_of(*result.config, *result.gpu);
  }
  add_sass(subject, options, &result);
  return result;
}

}  // namespace pagejit::inspect
