// Uses each primitive that headers/tl/hip has, so that the compiler has to select an instruction for it.
#include <tl/hip/primitives.h>

__global__ void __launch_bounds__(256) primitives(const float* from, float* to, int* counter, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto* shared = static_cast<float*>(tl::shared_memory());
  tl::cp_async<16>(shared + 4 * tl::thread(), from + 4 * i, 4 * i + 4 <= n ? 16 : 0);
  tl::cp_async_commit();
  tl::cp_async_wait<0>();
  tl::sync_threads();

  float value = shared[tl::thread() ^ 1];
  value += tl::shuffle_xor(value, 16) + tl::shuffle(value, 0) + tl::shuffle_up(value, 1) + tl::shuffle_down(value, 1);
  value += tl::exp2_approx(value) + tl::log2_approx(value) + tl::rsqrt_approx(value) + tl::tanh_approx(value);
  const tl::half half_value = value;
  tl::bfloat16 bfloat_value = value;
  bfloat_value += tl::bfloat16::from_bits(0x3f80);
  tl::sync_warp();
  if (tl::ballot(value > 0) & 1) tl::atomic_add(counter, 1);
  tl::atomic_add(to, static_cast<float>(half_value) * static_cast<float>(gridDim.x + gridDim.y + gridDim.z));
  tl::store4(to + i, tl::pack2(value, bfloat_value, bfloat_value));
}

int launch(const float* from, float* to, int* counter, int n, void* stream) {
  return tl::launch_kernel(primitives, dim3(1), dim3(256), 4096, stream, from, to, counter, n);
}
