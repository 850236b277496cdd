// StoreLayer: a place where kernels are looked for before the cache directory, as EngineOptions
// name them: bundles and read-only directories. Thread-safety: a layer may be asked from several
// threads at once.
#pragma once

#include <memory>
#include <vector>

#include "cache/file_system.h"
#include "cache/layer.h"
#include "pagejit/options.h"
#include "runtime/engine/trust.h"
#include "runtime/logger.h"

namespace pagejit {

struct StoreLayer {
  std::unique_ptr<cache::Layer> layer;
  ImageOrigin origin = ImageOrigin::kBundle;
};

// In the order in which they are asked. One that cannot be opened is left out, with a warning that
// names it.
std::vector<StoreLayer> open_store_layers(const EngineOptions& options, const Trust& trust,
                                          const Logger& logger,
                                          const std::shared_ptr<cache::FileSystem>& file_system);

}  // namespace pagejit
