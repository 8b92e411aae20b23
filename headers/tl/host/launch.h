// Kernel launches on the engine.
#pragma once
#include "../status.h"
#include "engine.h"
#include "kernel.h"

namespace tl {
namespace host {

#if defined(TL_ENGINE_INSTRUMENTED)
constexpr int instrumented = 1;
#else
constexpr int instrumented = 0;
#endif

// Runs all threads of a launch, each by run_thread(argument). Returns 0 if they ran to completion.
inline int launch(void (*run_thread)(void*), void* argument, dim3 cluster, dim3 grid, dim3 block, size_t shared_bytes,
                  bool together) {
  tl_engine_launch_request request{};
  request.grid[0] = grid.x, request.grid[1] = grid.y, request.grid[2] = grid.z;
  request.block[0] = block.x, request.block[1] = block.y, request.block[2] = block.z;
  request.shared_bytes = shared_bytes;
  request.warp_size = warp_size;
  request.instrumented = instrumented;
  request.run_thread = run_thread;
  request.argument = argument;
  request.together = together;
  request.cluster[0] = cluster.x, request.cluster[1] = cluster.y, request.cluster[2] = cluster.z;
  return tl_engine_launch(&request);
}

// Calls a kernel with the arguments of its launch.
template <class Call> void run_thread(void* call) { (*static_cast<Call*>(call))(); }

// A non-deduced parameter type: the argument converts to the kernel's parameter.
template <class T> struct Exactly {
  using type = T;
};

// The same for a kernel. The template argument keeps instances of objects built with and without -fsanitize=thread
// apart.
template <int instrumented_, class... Parameters>
int launch(void (*kernel)(Parameters...), dim3 cluster, dim3 grid, dim3 block, size_t shared_bytes, bool together,
           typename Exactly<Parameters>::type... arguments) {
  auto call = [=] { kernel(arguments...); };
  return launch(&run_thread<decltype(call)>, &call, cluster, grid, block, shared_bytes, together);
}

}  // namespace host

// The largest gridDim.y and gridDim.z, as on a GPU.
constexpr int max_grid_yz = 65535;

// The engine is device 0, runs code for any `arch`, and allows a block any shared memory.
inline tl_status check_device(const char* /*arch*/, int device, size_t /*shared_bytes*/ = 0) {
  return device == TL_CURRENT_DEVICE || device == 0 ? TL_OK : TL_WRONG_DEVICE;
}

// The number of SMs: 3, so that a persistent kernel's blocks process several tiles each.
inline int multiprocessors() { return 3; }

// Launches with `shared_bytes` of dynamic shared memory; returns 0 or a non-zero error code. `stream` is unused.
template <class... Parameters>
int launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* /*stream*/,
                  typename host::Exactly<Parameters>::type... arguments) {
  return host::launch<host::instrumented, Parameters...>(kernel, dim3(), grid, block, shared_bytes, false,
                                                         arguments...);
}
// Programmatic dependent launch: kernels run one after another on the engine.
template <class... Parameters>
int launch_kernel_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                        typename host::Exactly<Parameters>::type... arguments) {
  return launch_kernel<Parameters...>(kernel, grid, block, shared_bytes, stream, arguments...);
}
// The same with thread block clusters; a GPU's compiler reads their shape from __cluster_dims__.
template <class... Parameters>
int launch_kernel_in_clusters(void (*kernel)(Parameters...), dim3 cluster, dim3 grid, dim3 block, size_t shared_bytes,
                              void* /*stream*/, typename host::Exactly<Parameters>::type... arguments) {
  return host::launch<host::instrumented, Parameters...>(kernel, cluster, grid, block, shared_bytes, false,
                                                         arguments...);
}

// Zeroes device memory by a kernel, so that the engine marks it as initialised. Returns 0 or an error code.
inline int zero_memory(void* memory, size_t bytes, void* /*stream*/) {
  struct Range {
    char* first;
    size_t bytes;
  } range{static_cast<char*>(memory), bytes};
  const auto zero = +[](void* of) {
    const int nothing = 0;
    const Range to = *static_cast<Range*>(of);
    for (size_t i = 0; i < to.bytes; i += sizeof(int)) tl_engine_store(to.first + i, &nothing, sizeof(int));
  };
  return host::launch(zero, &range, dim3(), dim3(1), dim3(1), 0, false);
}

}  // namespace tl
