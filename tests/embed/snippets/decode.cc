#include <pagejit/engine.h>

pagejit::Status decode(pagejit::Engine& engine, pagejit::AttentionArgs args,
                       pagejit::Stream stream) {
  pagejit::KernelSpec spec;  // bf16
  spec.head_size = 128;
  spec.block_size = 16;
  spec.group_size = 4;                 // 32 query heads, 8 KV heads
  auto kernel = engine.prepare(spec);  // once: from memory, from disk, or compiled now
  if (!kernel) return kernel.status();
  args.num_splits = 1;  // or let the library choose, and give it kernel->workspace_bytes(...)
  return kernel->launch(args, stream);  // no allocation, no lock, safe in graph capture
}
