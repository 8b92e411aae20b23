// One tile C = A B for each way to store and to hold the operands.
#include <tl/tl.h>

namespace products {

template <class T_, class Acc_, int M_, int N_, int K_, class W, class SwizzleA, class SwizzleB, bool trans_a_,
          bool trans_b_>
struct Case {
  using T = T_;
  using Acc = Acc_;
  static constexpr int M = M_, N = N_, K = K_, threads = 32 * W::m * W::n;
  static constexpr bool trans_a = trans_a_, trans_b = trans_b_;
  using A = tl::SharedTile<T, trans_a ? K : M, trans_a ? M : K, SwizzleA>;
  using B = tl::SharedTile<T, trans_b ? N : K, trans_b ? K : N, SwizzleB>;
  using C_layout = tl::MmaAccumulator<M, N, W>;
  A a;
  B b;
};

template <class Case>
__global__ void __launch_bounds__(Case::threads)
    product(const typename Case::T* __restrict__ A_data, const typename Case::T* __restrict__ B_data,
            typename Case::Acc* __restrict__ C_data) {
  constexpr int threads = Case::threads;
  auto& a = tl::shared<Case>().a;
  auto& b = tl::shared<Case>().b;
  tl::copy<threads>(tl::tensor<tl::Aligned<16>>(A_data, Case::A::rows, Case::A::cols).tile(0, 0), a);
  tl::copy<threads>(tl::tensor<tl::Aligned<16>>(B_data, Case::B::rows, Case::B::cols).tile(0, 0), b);
  tl::sync_threads();
  tl::Fragment<typename Case::Acc, typename Case::C_layout> C;
  tl::fill(C, 7);
  if constexpr (Case::trans_a && Case::trans_b) tl::gemm(tl::transposed(a), tl::transposed(b), C, tl::overwrite);
  if constexpr (Case::trans_a && !Case::trans_b) tl::gemm(tl::transposed(a), b, C, tl::overwrite);
  if constexpr (!Case::trans_a && Case::trans_b) tl::gemm(a, tl::transposed(b), C, tl::overwrite);
  if constexpr (!Case::trans_a && !Case::trans_b) tl::gemm(a, b, C, tl::overwrite);
  tl::copy(C, tl::tensor<tl::Aligned<8>>(C_data, Case::M, Case::N).tile(0, 0));
}

// The left operand in registers: rows over the warps along M, copies in the warps along N.
template <class T_, int M_, int N_, int K_, class W_> struct FromRegisters {
  using T = T_;
  using Acc = float;
  using W = W_;
  static constexpr int M = M_, N = N_, K = K_, threads = 32 * W::m * W::n;
  tl::SharedTile<T, M, K, tl::Swizzle128B> a;
  tl::SharedTile<T, K, N, tl::Swizzle128B> b;
};

template <class Case>
__global__ void __launch_bounds__(Case::threads)
    product_from_registers(const typename Case::T* __restrict__ A_data, const typename Case::T* __restrict__ B_data,
                           float* __restrict__ C_data) {
  constexpr int M = Case::M, N = Case::N, K = Case::K, threads = Case::threads;
  auto& a_shared = tl::shared<Case>().a;
  auto& b_shared = tl::shared<Case>().b;
  tl::copy<threads>(tl::tensor<tl::Aligned<16>>(A_data, M, K).tile(0, 0), a_shared);
  tl::copy<threads>(tl::tensor<tl::Aligned<16>>(B_data, K, N).tile(0, 0), b_shared);
  tl::sync_threads();
  tl::Fragment<typename Case::T, tl::MmaOperandA<M, K, typename Case::W>> a;
  tl::Fragment<float, tl::MmaAccumulator<M, N, typename Case::W>> C;
  tl::copy(a_shared, a);
  tl::clear(C);
  tl::gemm(a, b_shared, C);
  tl::gemm(a, b_shared, C);
  tl::copy(C, tl::tensor<tl::Aligned<8>>(C_data, M, N).tile(0, 0));
}

// The same for other widths of elements, into any accumulator.
template <class T_, class Acc_, int M_, int N_, int K_, class W_, bool trans_b_> struct WideRegisters {
  using T = T_;
  using Acc = Acc_;
  using W = W_;
  static constexpr int M = M_, N = N_, K = K_, threads = 32 * W::m * W::n;
  static constexpr bool trans_b = trans_b_;
  using B = tl::SharedTile<T, trans_b ? N : K, trans_b ? K : N, tl::Padded<16>>;
  B b;
};
template <class Case>
__global__ void __launch_bounds__(Case::threads)
    product_from_wide_registers(const typename Case::T* __restrict__ A_data,
                                const typename Case::T* __restrict__ B_data, typename Case::Acc* __restrict__ C_data) {
  constexpr int M = Case::M, N = Case::N, K = Case::K, threads = Case::threads;
  auto& b = tl::shared<Case>().b;
  tl::copy<threads>(tl::tensor<tl::Aligned<8>>(B_data, Case::B::rows, Case::B::cols).tile(0, 0), b);
  tl::sync_threads();
  tl::Fragment<typename Case::T, tl::MmaOperandA<M, K, typename Case::W>> a;
  tl::copy(tl::tensor<tl::Aligned<8>>(A_data, M, K).tile(0, 0), a);
  tl::Fragment<typename Case::Acc, tl::MmaAccumulator<M, N, typename Case::W>> C;
  if constexpr (Case::trans_b)
    tl::gemm(a, tl::transposed(b), C, tl::overwrite);
  else
    tl::gemm(a, b, C, tl::overwrite);
  tl::copy(C, tl::tensor<tl::Aligned<8>>(C_data, M, N).tile(0, 0));
}

// C = 2 A B without tensor cores.
template <class T_, class Acc_, int M_, int N_, int K_, bool trans_> struct Fma {
  using T = T_;
  using Acc = Acc_;
  static constexpr int M = M_, N = N_, K = K_, threads = 64;
  static constexpr bool trans = trans_;
  tl::SharedTile<T, trans ? K : M, trans ? M : K, tl::NoSwizzle> a;
  tl::SharedTile<T, trans ? N : K, trans ? K : N, tl::NoSwizzle> b;
};
template <class Case>
__global__ void __launch_bounds__(Case::threads)
    product_by_fma(const typename Case::T* __restrict__ A_data, const typename Case::T* __restrict__ B_data,
                   typename Case::Acc* __restrict__ C_data) {
  constexpr int M = Case::M, N = Case::N, threads = Case::threads;
  auto& a = tl::shared<Case>().a;
  auto& b = tl::shared<Case>().b;
  tl::copy<threads>(tl::tensor<tl::Aligned<1>>(A_data, a.rows, a.cols).tile(0, 0), a);
  tl::copy<threads>(tl::tensor<tl::Aligned<1>>(B_data, b.rows, b.cols).tile(0, 0), b);
  tl::sync_threads();
  tl::Fragment<typename Case::Acc, tl::Blocked<tl::Shape<M, N>, tl::Shape<4, 16>, 1>> C;
  if constexpr (Case::trans) {
    tl::gemm_fma(tl::transposed(a), tl::transposed(b), C, tl::overwrite);
    tl::gemm_fma(tl::transposed(a), tl::transposed(b), C);
  } else {
    tl::gemm_fma(a, b, C, tl::overwrite);
    tl::gemm_fma(a, b, C);
  }
  tl::copy(C, tl::tensor<tl::Aligned<1>>(C_data, M, N).tile(0, 0));
}

// B in registers, as K x N or, transposed, as N x K; A in registers too, or in shared memory.
template <class T_, int M_, int N_, int K_, class W_, bool trans_b_, bool rr_> struct RegistersB {
  using T = T_;
  using Acc = float;
  using W = W_;
  static constexpr int M = M_, N = N_, K = K_, threads = 32 * W::m * W::n;
  static constexpr bool trans_b = trans_b_, rr = rr_;
  tl::SharedTile<T, M, K, tl::Swizzle32B> a;
};
template <class Case>
__global__ void __launch_bounds__(Case::threads)
    product_of_registers(const typename Case::T* __restrict__ A_data, const typename Case::T* __restrict__ B_data,
                         float* __restrict__ C_data) {
  constexpr int M = Case::M, N = Case::N, K = Case::K, threads = Case::threads;
  using W = typename Case::W;
  auto& a_shared = tl::shared<Case>().a;
  tl::copy<threads>(tl::tensor<tl::Aligned<16>>(A_data, M, K).tile(0, 0), a_shared);
  tl::sync_threads();
  tl::Fragment<typename Case::T, tl::MmaOperandA<M, K, W>> a;
  tl::Fragment<float, tl::MmaAccumulator<M, N, W>> C;
  tl::copy(a_shared, a);
  tl::clear(C);
  const auto multiply = [&](const auto& b) {
    if constexpr (Case::rr)
      tl::gemm(a, b, C);
    else
      tl::gemm(a_shared, b, C);
  };
  if constexpr (Case::trans_b) {
    tl::Fragment<typename Case::T, tl::MmaTransposedOperandB<N, K, W>> b;
    tl::copy(tl::tensor<tl::Aligned<16>>(B_data, N, K).tile(0, 0), b);
    multiply(tl::transposed(b));
  } else {
    tl::Fragment<typename Case::T, tl::MmaOperandB<K, N, W>> b;
    tl::copy(tl::tensor<tl::Aligned<16>>(B_data, K, N).tile(0, 0), b);
    multiply(b);
  }
  tl::copy(C, tl::tensor<tl::Aligned<8>>(C_data, M, N).tile(0, 0));
}

// Rows and columns of shared tiles as operands: rows [8, 8 + M) of A, with K in slices; B transposed or not.
template <class SwizzleA_, class SwizzleB_, bool trans_b_> struct Parts {
  using T = tl::half;
  using Acc = float;
  static constexpr int M = 32, N = 32, K = 64, threads = 64;
  static constexpr bool trans_b = trans_b_;
  tl::SharedTile<T, 8 + M, K, SwizzleA_> a;
  tl::SharedTile<T, trans_b ? 8 + N : K, trans_b ? K : N + 64, SwizzleB_> b;
};
template <class Case>
__global__ void __launch_bounds__(Case::threads)
    product_of_parts(const tl::half* __restrict__ A_data, const tl::half* __restrict__ B_data,
                     float* __restrict__ C_data) {
  constexpr int M = Case::M, N = Case::N, K = Case::K, threads = Case::threads;
  auto& a = tl::shared<Case>().a;
  auto& b = tl::shared<Case>().b;
  tl::copy<threads>(tl::tensor<tl::Aligned<16>>(A_data, M, K).tile(0, 0), tl::rows<M>(a, 8));
  tl::Fragment<float, tl::MmaAccumulator<M, N, tl::Warps<2, 1>>> C;
  tl::clear(C);
  if constexpr (Case::trans_b) {
    tl::copy<threads>(tl::tensor<tl::Aligned<16>>(B_data, N, K).tile(0, 0), tl::rows<N>(b, 8));
    tl::sync_threads();
    for (int k = 0; k < K; k += 16)
      tl::gemm(tl::cols<16>(tl::rows<M>(a, 8), k), tl::transposed(tl::cols<16>(tl::rows<N>(b, 8), k)), C);
  } else {
    tl::copy<threads>(tl::tensor<tl::Aligned<16>>(B_data, K, N).tile(0, 0), tl::cols<N>(b, 64));
    tl::sync_threads();
    for (int k = 0; k < K; k += 32)
      tl::gemm(tl::cols<32>(tl::rows<M>(a, 8), k), tl::rows<32>(tl::cols<N>(b, 64), k), C);
  }
  tl::copy(C, tl::tensor<tl::Aligned<8>>(C_data, M, N).tile(0, 0));
}

template <class Case, class Kernel> tl_status run(Kernel kernel, const void* A, const void* B, void* C) {
  using T = typename Case::T;
  return tl::launch<Case>(kernel, dim3(1), Case::threads, nullptr, static_cast<const T*>(A), static_cast<const T*>(B),
                          static_cast<typename Case::Acc*>(C));
}

// What tl::gemm hands to mma for the first 16 rows, 16 columns and step of K: for each lane, A's registers, then those of
// B's two instructions. The tiles hold numbers of elements.
template <class A, class B> TL_DEVICE void store_operands(const A& a, const B& b, uint32_t* Y) {
  tl::MmaStep<1, 2> step;
  step.load(tl::operand_a(a), tl::operand_b<tl::KOrder::memory>(b), 0, 0, 0);
  for (int r = 0; r < 4; ++r) Y[tl::lane() * 8 + r] = step.a[0][r];
  for (int r = 0; r < 4; ++r) Y[tl::lane() * 8 + 4 + r] = step.b[r / 2][r % 2];
}
template <class T, bool transposes> __global__ void operands(const T* A_data, const T* B_data, uint32_t* Y) {
  constexpr int k = tl::mma_k<T>, rows = transposes ? k : 16, cols = transposes ? 16 : k;
  struct Shared {
    tl::SharedTile<T, rows, cols, tl::NoSwizzle> a, b;
  };
  auto& a = tl::shared<Shared>().a;
  auto& b = tl::shared<Shared>().b;
  tl::copy<32>(tl::tensor<tl::Aligned<16>>(A_data, rows, cols).tile(0, 0), a);
  tl::copy<32>(tl::tensor<tl::Aligned<16>>(B_data, rows, cols).tile(0, 0), b);
  tl::sync_threads();
  if constexpr (transposes)
    store_operands(tl::transposed(a), b, Y);
  else
    store_operands(a, tl::transposed(b), Y);
}
template <class T, bool transposes> tl_status run_operands(const void* A, const void* B, void* Y) {
  return tl::launch_with(operands<T, transposes>, dim3(1), 32, 1024, nullptr, static_cast<const T*>(A),
                         static_cast<const T*>(B), static_cast<uint32_t*>(Y));
}

}  // namespace products

#define TL_CASE(name, ...)                                           \
  extern "C" tl_status name(const void* A, const void* B, void* C) { \
    using Case = products::Case<__VA_ARGS__>;                        \
    return products::run<Case>(products::product<Case>, A, B, C);    \
  }
#define TL_REGISTERS(name, ...)                                                  \
  extern "C" tl_status name(const void* A, const void* B, void* C) {             \
    using Case = products::FromRegisters<__VA_ARGS__>;                           \
    return products::run<Case>(products::product_from_registers<Case>, A, B, C); \
  }
#define TL_WIDE_REGISTERS(name, ...)                                                  \
  extern "C" tl_status name(const void* A, const void* B, void* C) {                  \
    using Case = products::WideRegisters<__VA_ARGS__>;                                \
    return products::run<Case>(products::product_from_wide_registers<Case>, A, B, C); \
  }
#define TL_FMA(name, ...)                                                \
  extern "C" tl_status name(const void* A, const void* B, void* C) {     \
    using Case = products::Fma<__VA_ARGS__>;                             \
    return products::run<Case>(products::product_by_fma<Case>, A, B, C); \
  }
#define TL_REGISTERS_B(name, ...)                                              \
  extern "C" tl_status name(const void* A, const void* B, void* C) {           \
    using Case = products::RegistersB<__VA_ARGS__>;                            \
    return products::run<Case>(products::product_of_registers<Case>, A, B, C); \
  }
#define TL_PARTS(name, ...)                                                \
  extern "C" tl_status name(const void* A, const void* B, void* C) {       \
    using Case = products::Parts<__VA_ARGS__>;                             \
    return products::run<Case>(products::product_of_parts<Case>, A, B, C); \
  }
using tl::bfloat16;
using tl::half;
using tl::NoSwizzle;
using tl::Padded;
using tl::Swizzle128B;
using tl::Swizzle32B;
using tl::Swizzle64B;
using tl::Warps;
TL_CASE(half_nn, half, float, 64, 64, 32, Warps<2, 2>, Swizzle64B, Swizzle128B, false, false)
TL_CASE(half_nt, half, float, 64, 64, 32, Warps<2, 2>, Swizzle64B, Swizzle64B, false, true)
TL_CASE(half_tn, half, float, 64, 64, 32, Warps<2, 2>, Swizzle128B, Swizzle128B, true, false)
TL_CASE(half_tt, half, float, 64, 64, 32, Warps<2, 2>, Swizzle128B, Swizzle64B, true, true)
TL_CASE(half_panels, half, float, 128, 128, 128, Warps<4, 1>, Swizzle128B, Swizzle128B, true, false)
TL_CASE(half_narrow, half, float, 32, 16, 16, Warps<2, 1>, Swizzle32B, Swizzle32B, false, false)
TL_CASE(half_narrow_t, half, float, 16, 32, 16, Warps<1, 2>, Swizzle32B, Swizzle32B, true, true)
TL_CASE(half_padded, half, float, 96, 48, 48, Warps<2, 2>, Padded<16>, Padded<16>, false, false)
TL_CASE(half_padded_t, half, float, 48, 72, 48, Warps<1, 3>, Padded<16>, Padded<16>, true, true)
TL_CASE(half_plain, half, float, 16, 8, 16, Warps<1, 1>, NoSwizzle, NoSwizzle, false, false)
TL_CASE(half_into_half, half, half, 64, 64, 32, Warps<2, 2>, Swizzle64B, Swizzle128B, false, false)
TL_CASE(bfloat16_nn, bfloat16, float, 64, 64, 32, Warps<2, 2>, Swizzle64B, Swizzle128B, false, false)
TL_CASE(bfloat16_tt, bfloat16, float, 64, 64, 32, Warps<4, 1>, Swizzle128B, Swizzle64B, true, true)
TL_CASE(int8_nt, int8_t, int32_t, 64, 64, 128, Warps<2, 2>, Swizzle128B, Swizzle128B, false, true)
TL_CASE(e4m3_nt, tl::float8_e4m3, float, 64, 64, 64, Warps<2, 2>, Swizzle64B, Swizzle64B, false, true)
TL_CASE(e5m2_nt, tl::float8_e5m2, float, 32, 24, 128, Warps<2, 1>, Swizzle128B, Swizzle128B, false, true)
TL_CASE(tf32_nt, float, float, 64, 64, 32, Warps<2, 2>, Swizzle128B, Swizzle128B, false, true)
TL_CASE(tf32_tn, float, float, 64, 96, 32, Warps<2, 2>, Padded<32>, Padded<32>, true, false)
TL_CASE(tf32_rounded, tl::tfloat32, float, 32, 48, 64, Warps<1, 2>, Swizzle128B, Padded<96>, false, false)
TL_CASE(int8_tn, int8_t, int32_t, 32, 64, 64, Warps<2, 2>, Padded<16>, Padded<16>, true, false)
TL_CASE(e4m3_tt, tl::float8_e4m3, float, 48, 32, 32, Warps<1, 1>, Padded<32>, Padded<16>, true, true)
TL_CASE(double_nn, double, double, 64, 64, 32, Warps<2, 2>, Padded<32>, Padded<32>, false, false)
TL_CASE(double_tt, double, double, 32, 48, 20, Warps<1, 2>, Padded<32>, NoSwizzle, true, true)
TL_REGISTERS_B(rr_22, half, 32, 48, 32, Warps<2, 2>, false, true)
TL_REGISTERS_B(rr_14, half, 16, 32, 48, Warps<1, 4>, true, true)
TL_REGISTERS_B(sr_41, bfloat16, 64, 24, 32, Warps<4, 1>, false, false)
TL_REGISTERS_B(sr_22, half, 64, 32, 16, Warps<2, 2>, true, false)
TL_PARTS(parts, Swizzle128B, Swizzle64B, false)
TL_PARTS(parts_padded, Padded<16>, Padded<16>, false)
TL_PARTS(parts_transposed, Swizzle32B, Swizzle128B, true)
TL_WIDE_REGISTERS(wide_tf32, float, float, 64, 32, 32, Warps<2, 2>, false)
TL_WIDE_REGISTERS(wide_tf32_t, float, float, 32, 32, 24, Warps<2, 1>, true)
TL_WIDE_REGISTERS(wide_e4m3, tl::float8_e4m3, float, 64, 32, 64, Warps<4, 1>, false)
TL_WIDE_REGISTERS(wide_int8_t, int8_t, int32_t, 32, 32, 32, Warps<1, 2>, true)
TL_WIDE_REGISTERS(wide_double, double, double, 32, 16, 24, Warps<2, 2>, false)
TL_FMA(fma_half_double, half, double, 33, 20, 7, false)
TL_FMA(fma_transposed, double, float, 16, 40, 24, true)
TL_FMA(fma_int16, int16_t, int32_t, 8, 8, 5, false)
TL_REGISTERS(registers_41, half, 64, 64, 64, Warps<4, 1>)
TL_REGISTERS(registers_22, half, 64, 64, 64, Warps<2, 2>)
TL_REGISTERS(registers_bfloat16, bfloat16, 32, 64, 64, Warps<1, 4>)

#define TL_OPERANDS(name, ...)                                       \
  extern "C" tl_status name(const void* A, const void* B, void* Y) { \
    return products::run_operands<__VA_ARGS__>(A, B, Y);             \
  }
TL_OPERANDS(operands_half, half, false)
TL_OPERANDS(operands_half_trans, half, true)
TL_OPERANDS(operands_int8, int8_t, false)
TL_OPERANDS(operands_tf32, float, false)
TL_OPERANDS(operands_int8_trans, int8_t, true)
TL_OPERANDS(operands_tf32_trans, float, true)
TL_OPERANDS(operands_double, double, false)
TL_OPERANDS(operands_double_trans, double, true)
