// The status of tensor maps that CuTe encodes, as tl::launch reports it.
#include <cstdio>
#include <tl/cute_sm90.h>

using namespace cute;

inline auto make_map(const void* data, int rows, int columns) {
  const auto pointer = make_gmem_ptr(static_cast<const half_t*>(data));
  const Tensor tensor = make_tensor(pointer, make_shape(rows, columns), make_stride(int64_t(columns), _1{}));
  const auto tile = tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_64, _64>{});
  return tl::make_tma_map(SM90_TMA_LOAD{}, tensor, tile);
}
using Map = decltype(make_map(nullptr, 0, 0))::Map;

__global__ void kernel(const __grid_constant__ Map map) { prefetch_tma_descriptor(map.get_tma_descriptor()); }

int main() {
  const void* const misaligned = reinterpret_cast<const void*>(uintptr_t(4098));  // no map has such a base
  const int launched = tl::launch(kernel, dim3(1), 32, nullptr, make_map(misaligned, 64, 64));
  const int without_blocks = tl::launch(kernel, dim3(0), 32, nullptr, make_map(misaligned, 64, 64));
  std::printf("%d %d %d %d\n", make_map(nullptr, 0, 64).status, make_map(misaligned, 64, 64).status, launched,
              without_blocks);
}
