// Launches of a kernel on the engine.
#pragma once
#include <tuple>
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

template <class... Parameters> struct Invocation {
  void (*kernel)(Parameters...);
  std::tuple<Parameters...> arguments;
  static void run_thread(void* self) {
    auto* invocation = static_cast<Invocation*>(self);
    std::apply(invocation->kernel, invocation->arguments);
  }
};

// A parameter's type, but not deduced from this argument: it converts to what the kernel takes.
template <class T> struct Exactly {
  using type = T;
};

// 0 when the kernel ran to its end. Instrumentation is a template argument so that objects built with and without
// -fsanitize=thread do not share one instance.
template <int instrumented_, class... Parameters>
int launch(void (*kernel)(Parameters...), dim3 cluster, dim3 grid, dim3 block, size_t shared_bytes, bool together,
           typename Exactly<Parameters>::type... arguments) {
  Invocation<Parameters...> invocation{kernel, std::tuple<Parameters...>(arguments...)};
  tl_engine_launch_request request{};
  request.grid[0] = grid.x, request.grid[1] = grid.y, request.grid[2] = grid.z;
  request.block[0] = block.x, request.block[1] = block.y, request.block[2] = block.z;
  request.shared_bytes = shared_bytes;
  request.warp_size = warp_size;
  request.instrumented = instrumented_;
  request.run_thread = &Invocation<Parameters...>::run_thread;
  request.argument = &invocation;
  request.together = together;
  request.cluster[0] = cluster.x, request.cluster[1] = cluster.y, request.cluster[2] = cluster.z;
  return tl_engine_launch(&request);
}

}  // namespace host

// How many blocks a grid may have along y, and along z: as on a GPU.
constexpr int max_grid_yz = 65535;

// The CPU engine is one device, and runs the text for any `arch`.
inline tl_status check_device(const char* /*arch*/, int device) {
  return device == TL_CURRENT_DEVICE || device == 0 ? TL_OK : TL_WRONG_DEVICE;
}

// Few, so that blocks which stay take several tiles.
inline int multiprocessors() { return 3; }

// The seam: launches with `shared_bytes` of dynamic shared memory; 0, or a non-zero error code. `stream` is unused.
template <class... Parameters>
int launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* /*stream*/,
                  typename host::Exactly<Parameters>::type... arguments) {
  return host::launch<host::instrumented, Parameters...>(kernel, dim3(), grid, block, shared_bytes, false,
                                                         arguments...);
}
// The engine has nothing to overlap: kernels run one after the other.
template <class... Parameters>
int launch_kernel_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                        typename host::Exactly<Parameters>::type... arguments) {
  return launch_kernel<Parameters...>(kernel, grid, block, shared_bytes, stream, arguments...);
}
// The same in clusters of blocks, for which the compiler of a GPU takes the kernel's __cluster_dims__.
template <class... Parameters>
int launch_kernel_in_clusters(void (*kernel)(Parameters...), dim3 cluster, dim3 grid, dim3 block, size_t shared_bytes,
                              void* /*stream*/, typename host::Exactly<Parameters>::type... arguments) {
  return host::launch<host::instrumented, Parameters...>(kernel, cluster, grid, block, shared_bytes, false,
                                                         arguments...);
}

// Writes zeros to device memory: by a thread of the engine, which so knows that they are there. 0, or an error code.
inline int zero_memory(void* memory, size_t bytes, void* stream) {
  const auto zero = +[](char* to, size_t count) {
    const int nothing = 0;
    for (size_t i = 0; i < count; i += sizeof(int)) tl_engine_store(to + i, &nothing, sizeof(int));
  };
  return launch_kernel(zero, dim3(1), dim3(1), 0, stream, static_cast<char*>(memory), bytes);
}

}  // namespace tl
