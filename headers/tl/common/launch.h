// Functions that launchers call. Host side.
#pragma once
#include "../status.h"
#include "base.h"

namespace tl {

// Whether all pointers are aligned to `bytes` bytes.
template <int bytes, class... P> bool aligned(const P*... pointers) {
  return (true && ... && (reinterpret_cast<uintptr_t>(pointers) % bytes == 0));
}

// Whether an int holds this number.
constexpr bool fits_int(int64_t n) { return n == static_cast<int>(n); }

// The type in which a launcher takes the argument of a kernel parameter of type P; it converts to P. The argument of a
// tensor map also reports whether its encoding succeeded (tensor_map.h, cute_sm90.h).
template <class P> struct ArgumentFor {
  using type = const P&;
};
template <class Argument> tl_status argument_status(const Argument&) { return TL_OK; }

// Whether a grid has no blocks; one with an extent below zero, such as N - 1 for N = 0, has none.
inline bool is_empty(const dim3& grid) {
  return static_cast<int>(grid.x) <= 0 || static_cast<int>(grid.y) <= 0 || static_cast<int>(grid.z) <= 0;
}
// Whether a launch with these arguments starts a kernel; if not, `status` is the result of the launch. An empty grid
// starts no kernel and returns TL_OK.
template <class... Arguments> bool starts(dim3 grid, tl_status& status, const Arguments&... arguments) {
  status = TL_OK;
  if (is_empty(grid)) return false;
  return (true && ... && ((status = argument_status(arguments)) == TL_OK));
}
// The status of a return value of launch_kernel and its variants; 0 is TL_OK.
inline tl_status status_of(int error) { return error == 0 ? TL_OK : TL_LAUNCH_FAILED + error; }

// Launches kernel(arguments...) on `stream` with `shared_bytes` of dynamic shared memory; an empty grid starts no
// kernel and returns TL_OK. Launches are asynchronous: the status only reports whether the launch was accepted. Never
// throws or exits.
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

// The same with programmatic dependent launch: the kernel calls tl::griddepcontrol_wait, and may start before the
// preceding kernels on the stream complete if these allow it (tl::griddepcontrol_launch_dependents).
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
