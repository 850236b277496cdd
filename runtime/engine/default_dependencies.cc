#include "generator/families.h"
#include "generator/renderer.h"
#include "runtime/engine/dependencies.h"
#include "runtime/guard.h"

namespace pagejit {

EngineDependencies default_dependencies(const EngineOptions& options) {
  EngineDependencies dependencies;
  dependencies.plan = plan_any;
  dependencies.render = [](const AnyConfig& config) { return render(config); };
  dependencies.open_driver = open_driver;
  dependencies.nvrtc = make_nvrtc_compiler(options.nvrtc_path, options.compile_threads);
  dependencies.host =
      make_host_compiler(options.host_compiler, options.host_build, options.compile_threads);
  return dependencies;
}

Result<std::shared_ptr<Engine>> Engine::create(EngineOptions options) {
  return guarded([&] {
    EngineDependencies dependencies = default_dependencies(options);
    return create_engine(std::move(options), std::move(dependencies));
  });
}

}  // namespace pagejit
