// What launchers call. Host side.
#pragma once
#include "../status.h"
#include "base.h"

namespace tl {

// Whether all pointers are multiples of `bytes`.
template <int bytes, class... P> bool aligned(const P*... pointers) {
  return (true && ... && (reinterpret_cast<uintptr_t>(pointers) % bytes == 0));
}

// What an argument says about itself before a launch: TL_OK, unless it could not be made (tensor_map.h).
template <class Argument> tl_status argument_status(const Argument&) { return TL_OK; }

// What `start` returns, which starts a kernel with these arguments; 0 is TL_OK. A grid without blocks is TL_OK, too,
// and starts nothing.
template <class Start, class... Arguments>
tl_status started(dim3 grid, const Start& start, const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return TL_OK;
  const tl_status statuses[] = {TL_OK, argument_status(arguments)...};
  for (const tl_status status : statuses)
    if (status != TL_OK) return status;
  const int error = start();
  return error == 0 ? TL_OK : TL_LAUNCH_FAILED + error;
}

// Starts kernel(arguments...) on `stream` with `shared_bytes` of dynamic shared memory; a grid without blocks is TL_OK
// and starts nothing. Only says whether the launch was accepted, as launches are asynchronous. Never throws or exits.
template <class... Parameters, class... Arguments>
tl_status launch_with(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared_bytes, void* stream,
                      Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument for each parameter of the kernel");
  const auto start = [&] { return launch_kernel(kernel, grid, dim3(threads), shared_bytes, stream, arguments...); };
  return started(grid, start, arguments...);
}
template <class Shared, class... Parameters, class... Arguments>
tl_status launch(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream, Arguments... arguments) {
  return launch_with(kernel, grid, threads, sizeof(Shared), stream, arguments...);
}
template <class... Parameters, class... Arguments>
tl_status launch(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream, Arguments... arguments) {
  return launch_with(kernel, grid, threads, 0, stream, arguments...);
}

// The same for a kernel that waits by tl::wait_for_earlier_kernels: it may start before those before it on the stream
// are done, if they let it.
template <class... Parameters, class... Arguments>
tl_status launch_early_with(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared_bytes, void* stream,
                            Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument for each parameter of the kernel");
  const auto start = [&] {
    return launch_kernel_early(kernel, grid, dim3(threads), shared_bytes, stream, arguments...);
  };
  return started(grid, start, arguments...);
}
template <class Shared, class... Parameters, class... Arguments>
tl_status launch_early(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream, Arguments... arguments) {
  return launch_early_with(kernel, grid, threads, sizeof(Shared), stream, arguments...);
}
template <class... Parameters, class... Arguments>
tl_status launch_early(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream, Arguments... arguments) {
  return launch_early_with(kernel, grid, threads, 0, stream, arguments...);
}

}  // namespace tl
