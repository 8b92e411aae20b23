// What launchers call. Host side.
#pragma once
#include "../status.h"
#include "base.h"

namespace tl {

// Whether all pointers are multiples of `bytes`.
template <int bytes, class... P> bool aligned(const P*... pointers) {
  return (true && ... && (reinterpret_cast<uintptr_t>(pointers) % bytes == 0));
}

// How a launch takes the argument for a parameter of type P: as what converts to it. A tensor map also says whether it
// could be made (tensor_map.h).
template <class P> struct ArgumentFor {
  using type = const P&;
};
template <class Argument> tl_status argument_status(const Argument&) { return TL_OK; }

// Whether a launch with these arguments is to start a kernel at all; if not, `status` is its result. A grid without
// blocks starts nothing, and is TL_OK.
template <class... Arguments> bool starts(dim3 grid, tl_status& status, const Arguments&... arguments) {
  status = TL_OK;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return false;
  return (true && ... && ((status = argument_status(arguments)) == TL_OK));
}
// Of what launch_kernel and its like return: 0 is TL_OK.
inline tl_status status_of(int error) { return error == 0 ? TL_OK : TL_LAUNCH_FAILED + error; }

// Starts kernel(arguments...) on `stream` with `shared_bytes` of dynamic shared memory; a grid without blocks is TL_OK
// and starts nothing. Only says whether the launch was accepted, as launches are asynchronous. Never throws or exits.
template <class... Parameters>
tl_status launch_with(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared_bytes, void* stream,
                      typename ArgumentFor<Parameters>::type... arguments) {
  tl_status status;
  if (!starts(grid, status, arguments...)) return status;
  return status_of(launch_kernel(kernel, grid, dim3(threads), shared_bytes, stream, arguments...));
}
template <class Shared, class... Parameters>
tl_status launch(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream,
                 typename ArgumentFor<Parameters>::type... arguments) {
  return launch_with(kernel, grid, threads, sizeof(Shared), stream, arguments...);
}
template <class... Parameters>
tl_status launch(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream,
                 typename ArgumentFor<Parameters>::type... arguments) {
  return launch_with(kernel, grid, threads, 0, stream, arguments...);
}

// The same for a kernel that waits by tl::griddepcontrol_wait: it may start before those before it on the stream
// are done, if they let it.
template <class... Parameters>
tl_status launch_early_with(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared_bytes, void* stream,
                            typename ArgumentFor<Parameters>::type... arguments) {
  tl_status status;
  if (!starts(grid, status, arguments...)) return status;
  return status_of(launch_kernel_early(kernel, grid, dim3(threads), shared_bytes, stream, arguments...));
}
template <class Shared, class... Parameters>
tl_status launch_pdl(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream,
                     typename ArgumentFor<Parameters>::type... arguments) {
  return launch_early_with(kernel, grid, threads, sizeof(Shared), stream, arguments...);
}
template <class... Parameters>
tl_status launch_pdl(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream,
                     typename ArgumentFor<Parameters>::type... arguments) {
  return launch_early_with(kernel, grid, threads, 0, stream, arguments...);
}

}  // namespace tl
