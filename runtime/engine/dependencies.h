// EngineDependencies: what an engine is made of besides its options, so that tests can put in their
// own generator, compilers, driver and
// file system. Internal. Thread-safety: plain values.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "cache/disk_cache.h"
#include "cache/http_transport.h"
#include "cache/single_flight.h"
#include "generator/config.h"
#include "pagejit/engine.h"
#include "runtime/driver/driver.h"
#include "runtime/jit/compiler.h"
#include "runtime/logger.h"

namespace pagejit {

struct EngineDependencies {
  std::function<Result<AnyConfig>(const AnySpec&, const Target&)> plan;
  std::function<Result<KernelSource>(const AnyConfig&)> render;
  std::function<Result<std::shared_ptr<const Driver>>(const DriverRequest&, const Logger&)>
      open_driver;
  std::shared_ptr<Compiler> nvrtc;
  std::shared_ptr<Compiler> host;
  // Kernels kept loaded though nobody holds a handle. A module takes some 100 KB of host and device
  // memory, so 1,024 of them stay near 100 MB; a model needs a few dozen.
  size_t max_resident_kernels = 1024;
  std::shared_ptr<cache::HttpTransport> http;  // of a remote; null = libcurl
  cache::DiskCacheOptions disk;                // the engine sets the directory and the callbacks
  cache::SingleFlightOptions flights;
};

EngineDependencies default_dependencies(const EngineOptions& options);

// Engine::create with other parts.
Result<std::shared_ptr<Engine>> create_engine(EngineOptions options,
                                              EngineDependencies dependencies);

}  // namespace pagejit
