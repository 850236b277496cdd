// The driver API on graphs: what a stream captured, replayed in order.
#include "runtime/emulator/driver_state.h"

namespace pagejit_emulator {

PAGEJIT_EMULATOR_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                                          unsigned long long) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DriverState& state = driver_state();
  if (!state.graphs.contains(graph)) return CUDA_ERROR_INVALID_HANDLE;
  auto created = std::make_unique<GraphExec>();
  created->nodes = graph->nodes;
  *exec = created.get();
  state.graph_execs.emplace(*exec, std::move(created));
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  const Guard guard(Guard::kContext);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (!driver_state().graph_execs.contains(exec)) return CUDA_ERROR_INVALID_HANDLE;
  // By value: a graph that is captured into another one is copied, as a child graph would be.
  return enqueue(stream, [nodes = exec->nodes] {
    for (const Work& node : nodes) {
      if (CUresult error = node(); error != CUDA_SUCCESS) return error;
    }
    return CUDA_SUCCESS;
  });
}

// Counts nodes; their handles are not given out.
PAGEJIT_EMULATOR_API CUresult cuGraphGetNodes(CUgraph graph, void* nodes, size_t* count) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!driver_state().graphs.contains(graph)) return CUDA_ERROR_INVALID_HANDLE;
  if (nodes != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  *count = graph->nodes.size();
  return CUDA_SUCCESS;
}

PAGEJIT_EMULATOR_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return driver_state().graph_execs.erase(exec) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

PAGEJIT_EMULATOR_API CUresult cuGraphDestroy(CUgraph graph) {
  const Guard guard(Guard::kInitialised);
  if (guard.error() != CUDA_SUCCESS) return guard.error();
  return driver_state().graphs.erase(graph) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace pagejit_emulator
