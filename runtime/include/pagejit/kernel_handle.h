// KernelHandle: what the handles of all families of kernels have in common; Engine::prepare() fills
// them. Thread-safety: a handle may be launched from any number of threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pagejit/export.h"
#include "pagejit/target.h"

namespace pagejit {

// A CUstream. Null is the default stream of the current context.
using Stream = void*;

// Where an image came from.
enum class ImageOrigin : uint8_t {
  kMemory = 0,
  kDisk = 1,  // the cache directory
  kCompiled = 2,
  kBundle = 3,
  kReadOnlyDirectory = 4,
  kRemote = 5,
};
inline constexpr size_t kNumImageOrigins = 6;
// "memory", "cached", "compiled", "bundle", "read-only directory", "remote".
PAGEJIT_EXPORT std::string_view origin_name(ImageOrigin origin);

// What is known of a compiled kernel. Numbers are the compiler's own (its log), never estimates.
struct KernelInfo {
  std::string kernel_name;
  std::string key;  // name of the cache entry
  Target target;
  ImageOrigin origin = ImageOrigin::kCompiled;
  double compile_ms = 0;  // of the compile that made the image, whenever that was
  double prepare_ms = 0;  // wall time of this call, compiling or reading included
  size_t image_bytes = 0;
  int registers = 0;  // per thread; 0 for the target "host"
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
  int stack_bytes = 0;
  int shared_bytes = 0;  // dynamic and static, per CTA
  int threads_per_cta = 0;
  bool pdl = false;    // launched with programmatic stream serialization
  bool tuned = false;  // of the tile configuration that a tuned record names, not the planner's
};

class Engine;
struct LoadedKernel;  // internal

// A kernel that is ready on one device. Cheap to copy; keeps its module loaded as long as a copy
// lives, also after its engine is gone. A module is not unloaded while work that was launched
// through it may still run: the contexts in which it was prepared are synchronised first, if it was
// launched at all. A CUDA graph that captured a launch needs a copy of the handle for as long as it
// is used.
class PAGEJIT_EXPORT KernelHandle {
 public:
  KernelHandle() = default;  // empty: a launch is kInvalidArgument

  // Of an empty handle: default values.
  const KernelInfo& info() const;
  explicit operator bool() const { return loaded_ != nullptr; }

 protected:
  std::shared_ptr<const LoadedKernel> loaded_;

 private:
  friend class Engine;
  std::shared_ptr<const KernelInfo> info_;  // of the prepare() that made this handle
};

}  // namespace pagejit
