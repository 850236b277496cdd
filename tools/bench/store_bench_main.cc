// pagejit-bench-store: what the store of kernels costs, with real processes and files; needs NVRTC
// and no GPU. Run by `pagejit bench store`.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pagejit/engine.h"
#include "tools/bench/bench_child.h"
#include "tools/bench/store_figures.h"

namespace pagejit::bench {
namespace {

constexpr Target kTarget{TargetKind::kCuda, 80, TargetVariant::kPlain};

// Distinct kernels that compile in about the same time.
std::vector<KernelSpec> make_specs(size_t count) {
  std::vector<KernelSpec> specs;
  for (int head_size = 64; head_size <= 128; head_size += 8) {
    for (int block_size : {8, 16, 32, 64}) {
      for (int group_size : {1, 2, 3, 4, 5, 6, 7, 8}) {
        if (specs.size() == count) return specs;
        specs.push_back(
            {.head_size = head_size, .block_size = block_size, .group_size = group_size});
      }
    }
  }
  return specs;
}

// What all children are given alike.
struct Setup {
  std::string self;    // this program
  std::string folder;  // for their cache directories
  std::string nvrtc;   // as EngineOptions::nvrtc_path
};

EngineOptions options_of(const std::string& cache_dir, const std::string& nvrtc,
                         int compile_threads) {
  EngineOptions options;
  options.cache_dir = cache_dir;
  options.nvrtc_path = nvrtc;
  options.compile_threads = compile_threads;
  return options;
}

// `num_threads` threads that make all kernels, each beginning at another one. Prints how many this
// process compiled.
int child_make(const std::string& cache_dir, const std::string& nvrtc, int num_threads,
               int compile_threads, size_t num_kernels) {
  const auto engine = Engine::create(options_of(cache_dir, nvrtc, compile_threads));
  if (!engine) return 1;
  const std::vector<KernelSpec> specs = make_specs(num_kernels);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(num_threads));
  for (int thread = 0; thread < num_threads; ++thread) {
    threads.emplace_back([&, thread] {
      const size_t first =
          specs.size() * static_cast<size_t>(thread) / static_cast<size_t>(num_threads);
      for (size_t i = 0; i < specs.size(); ++i) {
        const Result<KernelInfo> info =
            (*engine)->precompile(specs[(first + i) % specs.size()], kTarget);
        if (!info && failures++ == 0) std::printf("%s\n", info.status().to_string().c_str());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failures == 0) std::printf("%d\n", static_cast<int>((*engine)->stats().compiles));
  return failures == 0 ? 0 : 1;
}

struct Run {
  double wall_ms = -1;  // negative: it failed
  int compiles = 0;
};

// `num_processes` children on one new directory.
Run run_children(const Setup& setup, int num_processes, int num_threads, int compile_threads,
                 size_t num_kernels) {
  std::string cache_dir = setup.folder + "/cache-XXXXXX";
  if (mkdtemp(cache_dir.data()) == nullptr) return {};
  Run run;
  const Clock::time_point begin = Clock::now();
  std::vector<Child> children;
  for (int i = 0; i < num_processes; ++i) {
    const std::optional<Child> child =
        start_child({setup.self, "--make", cache_dir, setup.nvrtc, std::to_string(num_threads),
                     std::to_string(compile_threads), std::to_string(num_kernels)});
    if (child) children.push_back(*child);
  }
  bool good = static_cast<int>(children.size()) == num_processes;
  for (const Child& child : children) {
    const std::optional<std::string> text = finish_child(child);
    good = good && text;
    if (text) run.compiles += std::atoi(text->c_str());
  }
  if (good) run.wall_ms = ms_since(begin);
  return run;
}

bool bench_cold_start(const Setup& setup) {
  constexpr int kProcesses = 8;
  constexpr int kThreads = 4;
  constexpr size_t kKeys = 16;
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  // Ratios of one run after the other; the better of two of each, since a machine has other work.
  double alone_ms = -1;
  double together_ms = -1;
  int compiles = 0;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Run alone = run_children(setup, 1, kThreads, processors, kKeys);
    const Run together = run_children(setup, kProcesses, kThreads, processors, kKeys);
    if (alone.wall_ms < 0 || together.wall_ms < 0) return false;
    alone_ms = repeat == 0 ? alone.wall_ms : std::min(alone_ms, alone.wall_ms);
    together_ms = repeat == 0 ? together.wall_ms : std::min(together_ms, together.wall_ms);
    compiles = std::max(compiles, together.compiles);
  }
  print_figure("  16 cold keys, 1 process x 4 threads", alone_ms / 1000, "s");
  print_figure("  16 cold keys, 8 processes x 4 threads", together_ms / 1000, "s");
  const bool once =
      print_at_most("compiles of 16 cold keys by 8 processes x 4 threads", compiles, kKeys, "", 0);
  return print_at_most("  their wall time against one process", together_ms / alone_ms, 1.15,
                       "x") &&
         once;
}

bool bench_precompile(const Setup& setup) {
  constexpr size_t kKernels = 200;
  const Run one = run_children(setup, 1, 1, 1, kKernels);
  const Run two = run_children(setup, 1, 2, 2, kKernels);
  if (one.wall_ms < 0 || two.wall_ms < 0) return false;
  print_figure("  200 kernels, -j1", one.wall_ms / 1000, "s");
  print_figure("  200 kernels, -j2", two.wall_ms / 1000, "s");
  return print_at_least("precompile of 200 kernels, -j2 against -j1", one.wall_ms / two.wall_ms,
                        1.7, "x");
}

// The test that kills a publishing process says what it found.
bool bench_kills(const std::string& self) {
  const std::string program =
      std::filesystem::path(self).parent_path() / "../tests/faults/store_process_test";
  const std::optional<std::string> text =
      run_child({program, "--gtest_filter=*KilledAtAnySystemCall*"});
  if (!text) return false;
  const size_t at = text->find(" kills at system calls");
  if (at == std::string::npos) return false;
  const size_t begin = text->rfind('\n', at) + 1;
  std::printf("%s\n", text->substr(begin, text->find('\n', at) - begin).c_str());
  std::fflush(stdout);
  return true;
}

int bench(const Setup& setup) {
  bool good = bench_disk_hit(setup.folder);
  good = bench_bundle(setup.self, setup.folder) && good;
  good = bench_eviction(setup.folder) && good;
  good = bench_kills(setup.self) && good;
  good = bench_cold_start(setup) && good;
  good = bench_precompile(setup) && good;
  return good ? 0 : 5;
}

}  // namespace
}  // namespace pagejit::bench

int main(int argc, char** argv) {
  if (argc == 5) {
    if (!pagejit::bench::open_figures_file(argv[2])) {
      std::perror(argv[2]);
      return 4;
    }
    return pagejit::bench::bench({argv[1], argv[3], argv[4]});
  }
  if (argc == 3 && std::strcmp(argv[1], "--open") == 0) return pagejit::bench::child_open(argv[2]);
  if (argc == 7 && std::strcmp(argv[1], "--make") == 0) {
    return pagejit::bench::child_make(argv[2], argv[3], std::atoi(argv[4]), std::atoi(argv[5]),
                                      static_cast<size_t>(std::atoi(argv[6])));
  }
  std::fprintf(stderr,
               "usage: pagejit-bench-store SELF FIGURES FOLDER NVRTC; `pagejit bench store` knows "
               "them\n");
  return 1;
}
