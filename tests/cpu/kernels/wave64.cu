// AMD's wave64: a matrix product on mfma, and copies straight to LDS with planted faults.
#define TL_WARP_SIZE 64
#include <tl/tl.h>
#include <tl/host/cdna/mfma.h>

namespace wave64 {

// d[size][size] = a[size][k] * b[k][size] by one instruction; operands as four halves a lane.
template <int size> __global__ void mfma(const uint2* a, const uint2* b, float* d) {
  float registers[size * size / 64] = {};
  const auto halves = [](const uint2* of) { return reinterpret_cast<const tl::half*>(of + tl::lane()); };
  tl::mfma<size, 4>(registers, halves(a), halves(b));
  for (int v = 0; v < size * size / 64; ++v) d[tl::lane() * (size * size / 64) + v] = registers[v];
}

// Each lane reads 16 bytes: 16 chunks of the rows 0, 4, 8 and 12, whose chunks are permuted by the row if `swizzled`.
template <bool swizzled> __global__ void read_b128(const uint4* in, uint4* out) {
  auto* s = static_cast<uint4*>(tl::shared_memory());
  const int row = tl::lane() / 16 * 4, chunk = tl::lane() % 16 ^ (swizzled ? row % 8 : 0);
  tl::store16(s + row * 16 + tl::lane() % 16, in[tl::lane()]);
  tl::sync_threads();
  out[tl::lane()] = tl::load16(s + row * 16 + chunk);  // @read_b128
}

template <int fault> __global__ void load_lds(const float* in, float* out) {
  auto* s = static_cast<float*>(tl::shared_memory());
  tl::global_load_lds_4(fault == 2 ? s + tl::lane() : s, in + tl::lane());  // @lds_load
  if (fault != 1) tl::wait_vector_memory<0>();
  tl::sync_threads();
  out[tl::lane()] = s[63 - tl::lane()];  // @lds_read
}

// Every 16 lanes read four rows of 16 elements, and each gets a column.
template <bool misaligned> __global__ void transposed(const uint2* in, uint2* out) {
  auto* s = static_cast<uint16_t*>(tl::shared_memory());
  reinterpret_cast<uint2*>(s)[tl::lane()] = in[tl::lane()];
  tl::sync_threads();
  const auto column = tl::load_transposed(s + 4 * tl::lane() + (misaligned ? 1 : 0));  // @tr_read
  out[tl::lane()] = tl::bit_cast<uint2>(column);
}

}  // namespace wave64

extern "C" __attribute__((visibility("default"))) int mfma_run(int size, const void* a, const void* b, void* d) {
  const auto run = [&](auto kernel) {
    return tl::launch_kernel(kernel, dim3(1), dim3(64), 0, nullptr, static_cast<const uint2*>(a),
                             static_cast<const uint2*>(b), static_cast<float*>(d));
  };
  return size == 32 ? run(wave64::mfma<32>) : run(wave64::mfma<16>);
}
extern "C" __attribute__((visibility("default"))) int read_b128_run(int swizzled, const void* in, void* out) {
  const auto run = [&](auto kernel) {
    return tl::launch_kernel(kernel, dim3(1), dim3(64), 4096, nullptr, static_cast<const uint4*>(in),
                             static_cast<uint4*>(out));
  };
  return swizzled ? run(wave64::read_b128<true>) : run(wave64::read_b128<false>);
}
extern "C" __attribute__((visibility("default"))) int transposed_run(int misaligned, const void* in, void* out) {
  const auto run = [&](auto kernel) {
    return tl::launch_kernel(kernel, dim3(1), dim3(64), 1024, nullptr, static_cast<const uint2*>(in),
                             static_cast<uint2*>(out));
  };
  return misaligned ? run(wave64::transposed<true>) : run(wave64::transposed<false>);
}
extern "C" __attribute__((visibility("default"))) int load_lds_run(int fault, const void* in, void* out) {
  const auto run = [&](auto kernel) {
    return tl::launch_kernel(kernel, dim3(1), dim3(64), 256, nullptr, static_cast<const float*>(in),
                             static_cast<float*>(out));
  };
  return fault == 0 ? run(wave64::load_lds<0>) : fault == 1 ? run(wave64::load_lds<1>) : run(wave64::load_lds<2>);
}
