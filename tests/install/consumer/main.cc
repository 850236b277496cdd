// A program that has pagejit from outside of its tree: renders a kernel, and asks for one that
// cannot be. Prints one line.
#include <pagejit/engine.h>

#include <cstdio>

int main() {
  pagejit::EngineOptions options;
  options.disk_cache = false;
  const auto engine = pagejit::Engine::create(options);
  if (!engine) return std::puts(engine.status().message().c_str()), 1;
  pagejit::KernelSpec spec;
  spec.head_size = 128;
  spec.block_size = 16;
  spec.group_size = 4;
  const auto target = pagejit::parse_target("sm_90a");
  if (!target) return std::puts(target.status().message().c_str()), 1;
  const auto source = (*engine)->render(spec, *target);
  if (!source || source->find("__global__") == std::string::npos) return std::puts("no kernel"), 1;
  spec.head_size = 7;
  if ((*engine)->render(spec, *target)) return std::puts("head size 7 was rendered"), 1;
  std::printf("rendered %zu bytes\n", source->size());
  return 0;
}
