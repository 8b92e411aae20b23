// Tiles as emitted texts use them: what goes wrong inside headers/tl has to be reported at the lines of this file.
#include <tl/tl.h>

namespace vocabulary {

struct Shared {
  tl::SharedTile<tl::half, 64, 64, tl::Swizzle128B> tile;
};
using Layout = tl::MmaAccumulator<64, 64, tl::Warps<4, 1>>;

// Out = In * In^T.
template <bool synchronised> __global__ void __launch_bounds__(128) square(const tl::half* in, float* out) {
  const auto In = tl::tensor<tl::Aligned<16>>(in, 64, 64);
  const auto Out = tl::tensor<tl::Aligned<16>>(out, 64, 64);
  auto& tile = tl::shared<Shared>().tile;
  tl::Fragment<float, Layout> C;
  tl::clear(C);
  tl::copy<128>(In.tile(0, 0), tile);  // @copy
  if (synchronised) tl::sync_threads();
  tl::gemm(tile, tl::transposed(tile), C);  // @gemm
  tl::copy(C, Out.tile(0, 0));
}

}  // namespace vocabulary

extern "C" __attribute__((visibility("default"))) int square_run(int fault, const void* in, void* out) {
  using namespace vocabulary;
  const auto kernel = fault ? square<false> : square<true>;
  return tl::launch<Shared>(kernel, dim3(1), 128, nullptr, static_cast<const tl::half*>(in), static_cast<float*>(out));
}
