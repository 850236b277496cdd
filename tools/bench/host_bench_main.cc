// pagejit-bench-host: what the host side costs, on a machine with or without a GPU. Run by `pagejit
// bench host`.
//
// Cold figures come from child processes of this program, one measurement each; launch figures from
// a driver library that only counts its calls.
#include <benchmark/benchmark.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "generator/planner.h"
#include "generator/renderer.h"
#include "pagejit/engine.h"
#include "pagejit/pagejit.h"
#include "runtime/driver/driver.h"
#include "runtime/jit/compiler.h"
#include "tools/bench/bench_child.h"
#include "tools/bench/quartiles.h"

extern char** environ;

// Counts every allocation of this program. Not inlined, or GCC sees malloc's memory deleted.
static std::atomic<uint64_t> g_allocations{0};
[[gnu::noinline]] void* operator new(size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace pagejit {
namespace {

using bench::Clock;
using bench::ms_since;
using bench::print_at_most;

const KernelSpec kSpec{.head_size = 128, .block_size = 16, .group_size = 4};

struct Paths {
  std::string self;
  std::string stub_driver;
  std::string library;
  std::string cache_dir;
  std::string nvrtc;  // as EngineOptions::nvrtc_path
};

// Children print one number of milliseconds, or a sentence and exit with 1.

int child_compile(const Paths& paths) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  const Clock::time_point begin = Clock::now();
  const auto config = plan(kSpec, *parse_target("sm_90a"));
  const auto source = render(*config);
  const auto image = make_nvrtc_compiler(paths.nvrtc, 1)->compile(*source);
  if (!image) {
    std::printf("%s\n", image.status().to_string().c_str());
    return 1;
  }
  // The whole: rendering, opening NVRTC, compiling; then the compile alone.
  std::printf("%.3f %.3f\n", ms_since(begin), image->compile_ms);
  return 0;
}

bool is_mapped(const char* name) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

EngineOptions engine_options(const Paths& paths) {
  EngineOptions options;
  options.driver = paths.stub_driver;
  options.cache_dir = paths.cache_dir;
  options.nvrtc_path = paths.nvrtc;
  return options;
}

int child_prepare(const Paths& paths, Clock::time_point begin) {
  const auto engine = Engine::create(engine_options(paths));
  const Result<Kernel> kernel = engine ? (*engine)->prepare(kSpec, 0) : engine.status();
  const double ms = ms_since(begin);
  if (!kernel) {
    std::printf("%s\n", kernel.status().to_string().c_str());
    return 1;
  }
  if (kernel->info().origin != ImageOrigin::kDisk || is_mapped("libnvrtc")) {
    std::printf("the kernel did not come from the disk alone\n");
    return 1;
  }
  std::printf("%.3f 0\n", ms);
  return 0;
}

// Runs this program with `mode` and returns the two numbers it prints; negative where it failed.
std::pair<double, double> run_child(const Paths& paths, const std::string& mode) {
  const std::optional<std::string> text = bench::run_child(
      {paths.self, mode, paths.stub_driver, paths.library, paths.cache_dir, paths.nvrtc});
  double a = 0;
  double b = 0;
  if (!text || std::sscanf(text->c_str(), "%lf %lf", &a, &b) != 2) return {-1, -1};
  return {a, b};
}

constexpr int kChildren = 9;

bool bench_compile(const Paths& paths) {
  std::vector<double> whole;
  std::vector<double> alone;
  for (int i = 0; i < kChildren; ++i) {
    const auto [all_ms, compile_ms] = run_child(paths, "--child-compile");
    if (all_ms < 0) return false;
    whole.push_back(all_ms);
    alone.push_back(compile_ms);
  }
  bench::print_figure("  render, open NVRTC, compile: new process, one core, median",
                      median(whole) / 1000, "s", bench::noise_of(whole));
  return print_at_most("compile to cubin, bf16 head_size 128: new process, one core",
                       median(alone) / 1000, 0.3, "s", bench::noise_of(alone));
}

bool bench_prepare(const Paths& paths) {
  {
    const auto engine = Engine::create(engine_options(paths));
    const Result<Kernel> kernel = engine ? (*engine)->prepare(kSpec, 0) : engine.status();
    if (!kernel) {
      std::fprintf(stderr, "%s\n", kernel.status().to_string().c_str());
      return false;
    }
  }
  std::vector<double> times;
  for (int i = 0; i < kChildren; ++i) {
    const double ms = run_child(paths, "--child-prepare").first;
    if (ms < 0) return false;
    times.push_back(ms);
  }
  return print_at_most("prepare from the disk cache: new process, NVRTC not loaded", median(times),
                       2, "ms", bench::noise_of(times));
}

struct LaunchSetup {
  std::shared_ptr<Engine> engine;
  std::shared_ptr<const Driver> driver;
  Kernel kernel;
  AttentionArgs args;
  // The same kernel and arguments for the C API.
  pagejit_kernel* c_kernel = nullptr;
  pagejit_attention_args c_args;
};

// Pointers that the stub never follows.
template <class T>
T* fake_pointer(uintptr_t value) {
  return reinterpret_cast<T*>(value);
}

// For the arguments of both languages, whose fields have the same names.
template <class Args>
void fill_args(Args& args) {
  args.q = fake_pointer<void>(0x1000);
  args.k_cache = args.v_cache = fake_pointer<void>(0x2000);
  args.out = fake_pointer<void>(0x3000);
  args.block_table = fake_pointer<int32_t>(0x4000);
  args.seq_lens = fake_pointer<int32_t>(0x5000);
  args.workspace = fake_pointer<void>(0x100000);
  args.workspace_bytes = size_t{1} << 30;
  args.q_stride_head = args.out_stride_head = 128;
  args.q_stride_token = args.out_stride_token = 4096;
  args.k_strides = args.v_strides = {.block = 16384, .token = 1024, .head = 128};
  args.block_table_stride = args.max_blocks_per_seq = 2048;
  args.num_seqs = 8;
  args.num_kv_heads = 8;
  args.scale = 0.088f;
}

bool make_c_setup(const Paths& paths, LaunchSetup& setup) {
  pagejit_engine_options options;
  pagejit_engine_options_init(&options, sizeof options);
  options.driver = paths.stub_driver.c_str();
  options.cache_dir = paths.cache_dir.c_str();
  options.nvrtc_path = paths.nvrtc.c_str();
  pagejit_engine* engine = nullptr;  // lives as long as the program
  pagejit_kernel_spec spec;
  pagejit_kernel_spec_init(&spec, sizeof spec);
  spec.head_size = kSpec.head_size;
  spec.block_size = kSpec.block_size;
  spec.group_size = kSpec.group_size;
  pagejit_attention_args_init(&setup.c_args, sizeof setup.c_args);
  fill_args(setup.c_args);
  return pagejit_engine_create(&options, &engine, nullptr) == PAGEJIT_OK &&
         pagejit_kernel_prepare(engine, &spec, 0, nullptr, &setup.c_kernel, nullptr) == PAGEJIT_OK;
}

bool make_launch_setup(const Paths& paths, LaunchSetup& setup) {
  auto engine = Engine::create(engine_options(paths));
  auto driver = Driver::open(paths.stub_driver);
  if (!engine || !driver) return false;
  setup.engine = *engine;
  setup.driver = *driver;
  CUcontext context = nullptr;
  CUdevice device = 0;
  if (setup.driver->cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      setup.driver->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      setup.driver->cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return false;
  }
  const Result<Kernel> kernel = setup.engine->prepare(kSpec, 0);
  if (!kernel) return false;
  setup.kernel = *kernel;
  fill_args(setup.args);
  return make_c_setup(paths, setup);
}

double g_raw_ns = 0;
double g_launch_ns = 0;
double g_c_launch_ns = 0;
double g_allocations_per_launch = -1;

void benchmark_raw(benchmark::State& state, const LaunchSetup* setup) {
  // As large as a decode launch's parameters, which the driver copies.
  AttentionParams attention_params = {};
  void* params[1] = {&attention_params};
  for (auto _ : state) {
    CUlaunchConfig config = {};
    config.gridDimX = 8;
    config.gridDimY = 8;
    config.gridDimZ = 8;
    config.blockDimX = 128;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = 1024;
    benchmark::DoNotOptimize(setup->driver->cuLaunchKernelEx(&config, nullptr, params, nullptr));
  }
}

void benchmark_launch(benchmark::State& state, const LaunchSetup* setup) {
  const uint64_t before = g_allocations.load();
  for (auto _ : state) {
    const Status status = setup->kernel.launch(setup->args, nullptr);
    if (!status) {
      state.SkipWithError(status.to_string().c_str());
      return;
    }
  }
  // Google Benchmark itself allocates nothing inside the loop.
  g_allocations_per_launch =
      static_cast<double>(g_allocations.load() - before) / static_cast<double>(state.iterations());
}

void benchmark_c_launch(benchmark::State& state, const LaunchSetup* setup) {
  for (auto _ : state) {
    if (pagejit_kernel_launch(setup->c_kernel, &setup->c_args, nullptr, nullptr) != PAGEJIT_OK) {
      state.SkipWithError("pagejit_kernel_launch failed");
      return;
    }
  }
}

// Google Benchmark's table, and the medians for the difference.
class Collector : public benchmark::ConsoleReporter {
 public:
  Collector() : ConsoleReporter(OO_Tabular) {}  // without colours, wherever it is printed
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Aggregate || run.aggregate_name != "median") continue;
      const std::string name = run.benchmark_name();
      double& slot = name.starts_with("raw")       ? g_raw_ns
                     : name.starts_with("pagejit") ? g_c_launch_ns
                                                   : g_launch_ns;
      slot = run.GetAdjustedCPUTime();  // wall time would count what else this machine does
    }
    ConsoleReporter::ReportRuns(runs);
  }
};

bool bench_launch(const Paths& paths) {
  static LaunchSetup setup;
  if (!make_launch_setup(paths, setup)) {
    std::fprintf(stderr, "the stub driver %s cannot be used\n", paths.stub_driver.c_str());
    return false;
  }
  for (auto* bench :
       {benchmark::RegisterBenchmark("raw cuLaunchKernelEx on the stub", benchmark_raw, &setup),
        benchmark::RegisterBenchmark("Kernel::launch on the stub", benchmark_launch, &setup),
        benchmark::RegisterBenchmark("pagejit_kernel_launch on the stub", benchmark_c_launch,
                                     &setup)}) {
    bench->Repetitions(9)->ReportAggregatesOnly(true);
  }
  Collector collector;
  benchmark::RunSpecifiedBenchmarks(&collector);
  const bool is_fast =
      print_at_most("launch beyond the raw driver call", g_launch_ns - g_raw_ns, 300, "ns");
  const bool is_fast_in_c =
      print_at_most("  the same through the C API", g_c_launch_ns - g_raw_ns, 300, "ns");
  return print_at_most("allocations per launch", g_allocations_per_launch, 0, "", 0) && is_fast &&
         is_fast_in_c;
}

bool bench_size(const Paths& paths) {
  const std::string stripped = paths.cache_dir + "/stripped.so";
  std::vector<std::string> words = {"strip", "-o", stripped, paths.library};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int status = 1;
  if (posix_spawnp(&child, "strip", nullptr, nullptr, arguments.data(), environ) == 0)
    waitpid(child, &status, 0);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(stripped, error);
  if (status != 0 || error) {
    std::printf("libpagejit.so stripped: unmeasured, strip failed on %s\n", paths.library.c_str());
    return true;
  }
  return print_at_most("libpagejit.so, stripped", static_cast<double>(bytes) / (1024.0 * 1024.0), 3,
                       "MiB", 0);
}

int run(const Paths& paths) {
  bool good = bench_compile(paths);
  good = bench_prepare(paths) && good;
  good = bench_launch(paths) && good;
  good = bench_size(paths) && good;
  return good ? 0 : 5;
}

}  // namespace
}  // namespace pagejit

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  if (argc != 6 && argc != 7) {
    std::fprintf(stderr,
                 "usage: pagejit-bench-host SELF FIGURES FOLDER STUB_DRIVER LIBPAGEJIT NVRTC; "
                 "`pagejit bench host` knows them\n");
    return 1;
  }
  if (argc == 6) {
    const pagejit::Paths paths{argv[0], argv[2], argv[3], argv[4], argv[5]};
    if (std::strcmp(argv[1], "--child-compile") == 0) return pagejit::child_compile(paths);
    if (std::strcmp(argv[1], "--child-prepare") == 0) return pagejit::child_prepare(paths, begin);
    return 1;
  }
  if (!pagejit::bench::open_figures_file(argv[2])) {
    std::perror(argv[2]);
    return 4;
  }
  return pagejit::run({argv[1], argv[4], argv[5], argv[3], argv[6]});
}
