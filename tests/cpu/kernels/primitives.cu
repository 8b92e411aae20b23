// One micro-kernel a primitive, each a block (or a warp) that reads integers and writes what the primitive gave it. The
// same text runs on the CPU engine and on a GPU; the results must be equal byte for byte.
#include <tl/sm90.h>
#include <tl/sm90/wgmma_bfloat16.h>
#include <tl/sm90/wgmma_half.h>

namespace primitives {

template <class T> __device__ __forceinline__ T& shared() { return *static_cast<T*>(tl::shared_memory()); }

// ---- memory -----------------------------------------------------------------------------------------------
__global__ void widths(const unsigned char* in, unsigned char* out) {
  const int t = tl::thread();
  tl::store16(out + t * 32, tl::load16(in + t * 16));
  tl::store8(out + t * 32 + 16, tl::load8(in + t * 8));
  tl::store4(out + t * 32 + 24, tl::load4(in + t * 4));
  tl::store2(out + t * 32 + 28, tl::load2(in + t * 2));
}
template <int bytes> __global__ void cp_async(const unsigned char* in, unsigned char* out) {
  auto* s = &shared<unsigned char>();
  const int t = tl::thread();
  tl::cp_async<bytes>(s + t * bytes, in + t * bytes, t % (bytes + 1));  // a part of it, the rest zero
  tl::cp_async_commit();
  tl::cp_async_wait<0>();
  tl::sync_threads();
  for (int i = 0; i < bytes; ++i) out[t * bytes + i] = s[(127 - t) * bytes + i];
}
__global__ void atomics(float* out) {
  tl::atomic_add(&out[0], float(tl::thread()));
  tl::atomic_add(reinterpret_cast<int*>(out) + 1, tl::thread());
  tl::atomic_add(reinterpret_cast<tl::half*>(out + 2) + tl::thread() % 2, tl::half(1.0f));
  tl::atomic_add(reinterpret_cast<tl::bfloat16*>(out + 3) + tl::thread() % 2, tl::bfloat16(1.0f));
}

// ---- threads, barriers, shuffles --------------------------------------------------------------------------
__global__ void barriers(int* out) {
  int* s = &shared<int>();
  const int t = tl::thread();
  s[t] = tl::lane() * 1000 + tl::warp();
  tl::sync_threads();
  const int across = s[127 - t];
  tl::sync_threads();
  if (tl::warp() < 2) {
    s[t] = t * 3;
    tl::barrier_arrive(1, 128);
  } else {
    tl::barrier_sync(1, 128);
    out[128 + t] = s[t - 64];
  }
  out[t] = across;
}
__global__ void shuffles(const int* in, int* out) {
  const int t = tl::thread(), v = in[t];
  out[t * 8 + 0] = tl::shuffle_xor(v, 5);
  out[t * 8 + 1] = tl::shuffle(v, (t * 7) % 32);
  out[t * 8 + 2] = tl::shuffle_up(v, 3);
  out[t * 8 + 3] = tl::shuffle_down(v, 9);
  const uint64_t votes = tl::ballot(v % 3 == 0);
  out[t * 8 + 4] = int(votes);
  out[t * 8 + 5] = int(votes >> 32);
  const double wide = tl::shuffle_xor(double(v), 1);
  out[t * 8 + 6] = int(wide);
  out[t * 8 + 7] = int(float(tl::shuffle_xor(tl::half(float(v % 100)), 2)));
}

// ---- matrices ---------------------------------------------------------------------------------------------
// in: 32 rows of 16 bytes. out: for each thread 4 + 4 + 2 + 2 registers.
__global__ void ldmatrix(const unsigned char* in, uint32_t* out) {
  auto* s = &shared<unsigned char>();
  const int t = tl::thread();
  tl::store16(s + t * 16, tl::load16(in + t * 16));
  tl::sync_threads();
  uint32_t r[12];
  tl::ldmatrix_x4(r, s + t * 16);
  tl::ldmatrix_x4_trans(r + 4, s + t * 16);
  tl::ldmatrix_x2(r + 8, s + t % 16 * 16);
  tl::ldmatrix_x2_trans(r + 10, s + t % 16 * 16);
  for (int i = 0; i < 12; ++i) out[t * 12 + i] = r[i];
}

// a: 4 registers a thread, b: 2, d: 4 (2 for half accumulators), read and written.
struct MmaHalf {
  static constexpr int registers = 4;
  template <class D> static __device__ void run(D* d, const uint32_t* a, const uint32_t* b) {
    tl::mma_m16n8k16(reinterpret_cast<float*>(d), a, b, tl::half());
  }
};
struct MmaBfloat16 {
  static constexpr int registers = 4;
  template <class D> static __device__ void run(D* d, const uint32_t* a, const uint32_t* b) {
    tl::mma_m16n8k16(reinterpret_cast<float*>(d), a, b, tl::bfloat16());
  }
};
struct MmaHalfAccumulators {
  static constexpr int registers = 2;
  template <class D> static __device__ void run(D* d, const uint32_t* a, const uint32_t* b) {
    tl::mma_m16n8k16(d, a, b, tl::half());
  }
};
struct MmaTf32 {
  static constexpr int registers = 4;
  template <class D> static __device__ void run(D* d, const uint32_t* a, const uint32_t* b) {
    tl::mma_m16n8k8_tf32(reinterpret_cast<float*>(d), a, b);
  }
};
struct MmaInt8 {
  static constexpr int registers = 4;
  template <class D> static __device__ void run(D* d, const uint32_t* a, const uint32_t* b) {
    tl::mma_m16n8k32_int8(reinterpret_cast<int32_t*>(d), a, b);
  }
};
template <bool is_signed> struct MmaInt4 {
  static constexpr int registers = 4;
  template <class D> static __device__ void run(D* d, const uint32_t* a, const uint32_t* b) {
    tl::Int4Instructions::mma_m16n8k64(reinterpret_cast<int32_t*>(d), a, b, is_signed);
  }
};
template <class Instruction> __global__ void mma(const uint32_t* a, const uint32_t* b, uint32_t* d) {
  constexpr int n = Instruction::registers;
  uint32_t ra[4], rb[2], rd[4] = {};
  const int t = tl::thread();
  for (int i = 0; i < 4; ++i) ra[i] = a[t * 4 + i];
  for (int i = 0; i < 2; ++i) rb[i] = b[t * 2 + i];
  for (int i = 0; i < n; ++i) rd[i] = d[t * n + i];
  Instruction::run(rd, ra, rb);
  for (int i = 0; i < n; ++i) d[t * n + i] = rd[i];
}

// ---- numbers ----------------------------------------------------------------------------------------------
template <class T> __global__ void widen(const T* in, float* out) {
  const int i = blockIdx.x * 128 + tl::thread();
  out[i] = float(in[i]);
}
template <class T> __global__ void narrow(const float* in, T* out, uint32_t* packed) {
  const int i = blockIdx.x * 128 + tl::thread();
  out[i] = T(in[i]);
  packed[i] = tl::pack2(in[i], in[i ^ 1], T());
}
template <class T> __global__ void arithmetic(const T* in, T* out) {
  const int i = blockIdx.x * 128 + tl::thread();
  const T a = in[i], b = in[i * 7919 % 65536];
  out[i * 5 + 0] = a + b;
  out[i * 5 + 1] = a - b;
  out[i * 5 + 2] = a * b;
  out[i * 5 + 3] = a / b;
  out[i * 5 + 4] = a < b ? a : b;
}
// Powers of two, where the approximations are exact, the logarithm but nearly.
__global__ void approximations(float* out) {
  const int t = tl::thread();
  const float power = tl::exp2_approx(float(t % 64 - 32));
  out[t * 5 + 0] = power;
  out[t * 5 + 1] = rintf(tl::log2_approx(power) * 1024);
  out[t * 5 + 2] = tl::rsqrt_approx(power * power);
  out[t * 5 + 3] = tl::reciprocal_approx(power);
  out[t * 5 + 4] = tl::tanh_approx(0.0f) + tl::exp2_approx(-140.0f);
}

// ---- sm_90a -----------------------------------------------------------------------------------------------
template <int n> struct __align__(1024) WgmmaOperands {
  unsigned char a[64 * 128], b[n * 128];
};
// a: 64 x 64, b: n x 64 16-bit elements as they lie in shared memory; d: for each quarter of K, thread and register.
template <int n, class T>
__global__ void __launch_bounds__(128) wgmma(const unsigned char* a, const unsigned char* b, float* d) {
  auto& s = shared<WgmmaOperands<n>>();
  const int t = tl::thread();
  for (int i = t; i < 64 * 8; i += 128) tl::store16(&s.a[i * 16], tl::load16(a + i * 16));
  for (int i = t; i < n * 8; i += 128) tl::store16(&s.b[i * 16], tl::load16(b + i * 16));
  tl::fence_async_proxy();
  tl::sync_threads();
  for (int k = 0; k < 4; ++k) {
    float acc[n / 2];
#pragma unroll
    for (int i = 0; i < n / 2; ++i) acc[i] = float(i);
    tl::wgmma_fence();
    tl::wgmma_m64<n>(acc, tl::wgmma_descriptor(s.a, 16, 1024) + k * 2, tl::wgmma_descriptor(s.b, 16, 1024) + k * 2,
                        k % 2 == 1, T());
    tl::wgmma_commit();
    tl::wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < n / 2; ++i) d[(k * 128 + t) * (n / 2) + i] = acc[i];
  }
}

struct __align__(1024) Box {
  unsigned char bytes[64 * 128];
  tl::Barrier loaded;
};
// Loads a box of 64 x 64 16-bit elements, writes it out as it lies, and stores it elsewhere.
__global__ void tma(const __grid_constant__ tl::TensorMap from, const __grid_constant__ tl::TensorMap to,
                    unsigned char* out, int row, int column) {
  auto& s = shared<Box>();
  const int t = tl::thread();
  if (t == 0) {
    tl::mbarrier_init(s.loaded, 1);
    tl::mbarrier_init_fence();
  }
  tl::sync_threads();
  if (t == 0) {
    tl::mbarrier_arrive_expect(s.loaded, sizeof s.bytes);
    tl::tma_load_box(s.bytes, from, row, column, s.loaded);
  }
  tl::mbarrier_wait(s.loaded, 0);
  for (int i = t; i < 512; i += 32) tl::store16(out + i * 16, tl::load16(&s.bytes[i * 16]));
  tl::sync_threads();
  if (t == 0) {
    tl::tma_store_box(to, row < 0 ? 0 : row, column < 0 ? 0 : column, s.bytes);  // no store at negative places
    tl::tma_store_commit();
    tl::tma_store_wait<0>();
  }
}

template <class Kernel, class... Arguments>
int run(Kernel kernel, int blocks, int threads, size_t shared_bytes, Arguments... arguments) {
  return tl::launch_kernel(kernel, dim3(blocks), dim3(threads), shared_bytes, nullptr, arguments...);
}

inline int run_mma(int instruction, const uint32_t* a, const uint32_t* b, uint32_t* d) {
  switch (instruction) {
    case 0:
      return run(mma<MmaHalf>, 1, 32, 0, a, b, d);
    case 1:
      return run(mma<MmaBfloat16>, 1, 32, 0, a, b, d);
    case 2:
      return run(mma<MmaHalfAccumulators>, 1, 32, 0, a, b, d);
    case 3:
      return run(mma<MmaTf32>, 1, 32, 0, a, b, d);
    case 4:
      return run(mma<MmaInt8>, 1, 32, 0, a, b, d);
    case 5:
      return run(mma<MmaInt4<true>>, 1, 32, 0, a, b, d);
    case 6:
      return run(mma<MmaInt4<false>>, 1, 32, 0, a, b, d);
  }
  return -1;
}
template <class T> int run_wgmma(int n, const unsigned char* a, const unsigned char* b, float* d) {
  switch (n) {
    case 64:
      return run(wgmma<64, T>, 1, 128, sizeof(WgmmaOperands<64>), a, b, d);
    case 128:
      return run(wgmma<128, T>, 1, 128, sizeof(WgmmaOperands<128>), a, b, d);
    case 256:
      return run(wgmma<256, T>, 1, 128, sizeof(WgmmaOperands<256>), a, b, d);
  }
  return -1;
}
inline int run_tma(const void* from, void* to, unsigned char* out, int rows, int columns, int row, int column) {
  tl::TensorMap source, target;
  if (tl::tensor_map_16bit(source, from, rows, columns, columns * 2, 64, 64, 128)) return -2;
  if (tl::tensor_map_16bit(target, to, rows, columns, columns * 2, 64, 64, 128)) return -2;
  return run(tma, 1, 32, sizeof(Box), source, target, out, row, column);
}

}  // namespace primitives

#define EXPORT extern "C" __attribute__((visibility("default"))) int
EXPORT mma_run(int instruction, const uint32_t* a, const uint32_t* b, uint32_t* d) {
  return primitives::run_mma(instruction, a, b, d);
}
EXPORT ldmatrix_run(const unsigned char* in, uint32_t* out) {
  return primitives::run(primitives::ldmatrix, 1, 32, 512, in, out);
}
EXPORT shuffles_run(const int* in, int* out) { return primitives::run(primitives::shuffles, 1, 32, 0, in, out); }
EXPORT wgmma_run(int n, const unsigned char* a, const unsigned char* b, float* d) {
  return primitives::run_wgmma<tl::half>(n, a, b, d);
}
EXPORT tma_run(const void* from, void* to, unsigned char* out, int rows, int columns, int row, int column) {
  return primitives::run_tma(from, to, out, rows, columns, row, column);
}
EXPORT half_to_float_run(const tl::half* in, float* out) {
  return primitives::run(primitives::widen<tl::half>, 512, 128, 0, in, out);
}
EXPORT bfloat16_to_float_run(const tl::bfloat16* in, float* out) {
  return primitives::run(primitives::widen<tl::bfloat16>, 512, 128, 0, in, out);
}
EXPORT float_to_half_run(int blocks, const float* in, tl::half* out, uint32_t* packed) {
  return primitives::run(primitives::narrow<tl::half>, blocks, 128, 0, in, out, packed);
}
EXPORT float_to_bfloat16_run(int blocks, const float* in, tl::bfloat16* out, uint32_t* packed) {
  return primitives::run(primitives::narrow<tl::bfloat16>, blocks, 128, 0, in, out, packed);
}
EXPORT half_arithmetic_run(const tl::half* in, tl::half* out) {
  return primitives::run(primitives::arithmetic<tl::half>, 512, 128, 0, in, out);
}
EXPORT bfloat16_arithmetic_run(const tl::bfloat16* in, tl::bfloat16* out) {
  return primitives::run(primitives::arithmetic<tl::bfloat16>, 512, 128, 0, in, out);
}
