// Grid-wide barriers, and cooperative launches.
#pragma once
#include "engine.h"
#include "launch.h"
#include "sync.h"

namespace tl {

// Called by: every thread of the grid, in a launch by tl::launch_cooperative.
TL_DEVICE void sync_grid() {
  sync_block();
  tl_engine_sync_grid();
  sync_block();
}

// The engine supports at most 256 concurrently resident blocks.
template <class... Parameters> tl_status all_at_once(void (*)(Parameters...), dim3 grid, int, size_t) {
  constexpr uint64_t most_blocks = 256;
  return uint64_t(grid.x) * grid.y * grid.z <= most_blocks ? TL_OK : TL_NOT_SUPPORTED;
}
template <class... Parameters>
int launch_kernel_together(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* /*stream*/,
                           typename host::Exactly<Parameters>::type... arguments) {
  return host::launch<host::instrumented, Parameters...>(kernel, dim3(), grid, block, shared_bytes, true, arguments...);
}

}  // namespace tl
