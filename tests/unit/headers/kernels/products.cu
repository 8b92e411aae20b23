// One tile C = A B for each way to store and to hold the operands.
#include <tl/tl.h>

namespace products {

template <class T, int rows, int cols, class Swizzle> struct Operand {
  using type = tl::SharedTile<T, rows, cols, Swizzle>;
};

template <class T, class Acc, int M, int N, int K, class W, class SwizzleA, class SwizzleB, bool trans_a, bool trans_b>
struct Case {
  static constexpr int threads = 32 * W::m * W::n;
  using A = tl::SharedTile<T, trans_a ? K : M, trans_a ? M : K, SwizzleA>;
  using B = tl::SharedTile<T, trans_b ? N : K, trans_b ? K : N, SwizzleB>;
  using C_layout = tl::MmaAccumulator<M, N, W>;
  struct Shared {
    A a;
    B b;
  };

  static __global__ void __launch_bounds__(threads)
      kernel(const T* __restrict__ A_data, const T* __restrict__ B_data, Acc* __restrict__ C_data) {
    auto& a = tl::shared<Shared>().a;
    auto& b = tl::shared<Shared>().b;
    tl::copy<threads>(tl::tensor<tl::RowStart<16>>(A_data, A::rows, A::cols).tile(0, 0), a);
    tl::copy<threads>(tl::tensor<tl::RowStart<16>>(B_data, B::rows, B::cols).tile(0, 0), b);
    tl::sync_threads();
    tl::Fragment<Acc, C_layout> C;
    tl::fill(C, 7);
    if constexpr (trans_a && trans_b) tl::gemm(tl::transposed(a), tl::transposed(b), C, tl::overwrite);
    if constexpr (trans_a && !trans_b) tl::gemm(tl::transposed(a), b, C, tl::overwrite);
    if constexpr (!trans_a && trans_b) tl::gemm(a, tl::transposed(b), C, tl::overwrite);
    if constexpr (!trans_a && !trans_b) tl::gemm(a, b, C, tl::overwrite);
    tl::copy(C, tl::tensor<tl::RowStart<8>>(C_data, M, N).tile(0, 0));
  }
  static tl_status run(const void* A, const void* B, void* C) {
    return tl::launch<Shared>(kernel, dim3(1), threads, nullptr, static_cast<const T*>(A), static_cast<const T*>(B),
                              static_cast<Acc*>(C));
  }
};

// The left operand in registers: rows over the warps along M, copies in the warps along N.
template <class T, int M, int N, int K, class W> struct FromRegisters {
  static constexpr int threads = 32 * W::m * W::n;
  struct Shared {
    tl::SharedTile<T, M, K, tl::Swizzle128B> a;
    tl::SharedTile<T, K, N, tl::Swizzle128B> b;
  };
  static __global__ void __launch_bounds__(threads)
      kernel(const T* __restrict__ A_data, const T* __restrict__ B_data, float* __restrict__ C_data) {
    auto& a_shared = tl::shared<Shared>().a;
    auto& b_shared = tl::shared<Shared>().b;
    tl::copy<threads>(tl::tensor<tl::RowStart<16>>(A_data, M, K).tile(0, 0), a_shared);
    tl::copy<threads>(tl::tensor<tl::RowStart<16>>(B_data, K, N).tile(0, 0), b_shared);
    tl::sync_threads();
    tl::Fragment<T, tl::MmaOperandA<M, K, W>> a;
    tl::Fragment<float, tl::MmaAccumulator<M, N, W>> C;
    tl::copy(a_shared, a);
    tl::clear(C);
    tl::gemm(a, b_shared, C);
    tl::gemm(a, b_shared, C);
    tl::copy(C, tl::tensor<tl::RowStart<8>>(C_data, M, N).tile(0, 0));
  }
  static tl_status run(const void* A, const void* B, void* C) {
    return tl::launch<Shared>(kernel, dim3(1), threads, nullptr, static_cast<const T*>(A), static_cast<const T*>(B),
                              static_cast<float*>(C));
  }
};

// What tl::gemm hands to mma for the first 16 rows, 16 columns and step of K: for each lane, A's registers, then those of
// B's two instructions. The tiles hold numbers of elements.
template <class A, class B> TL_DEVICE void store_operands(const A& a, const B& b, uint32_t* Y) {
  tl::MmaStep<1, 2> step;
  step.load(tl::operand_a(a), tl::operand_b(b), 0, 0, 0);
  for (int r = 0; r < 4; ++r) Y[tl::lane() * 8 + r] = step.a[0][r];
  for (int r = 0; r < 4; ++r) Y[tl::lane() * 8 + 4 + r] = step.b[r / 2][r % 2];
}
template <class T, bool transposes> __global__ void operands(const T* A_data, const T* B_data, uint32_t* Y) {
  constexpr int k = tl::mma_k<T>;
  using Square = tl::SharedTile<T, 16, k, tl::Swizzle32B>;
  struct Shared {
    Square a, b;
  };
  auto& a = tl::shared<Shared>().a;
  auto& b = tl::shared<Shared>().b;
  tl::copy<32>(tl::tensor<tl::RowStart<16>>(A_data, 16, k).tile(0, 0), a);
  tl::copy<32>(tl::tensor<tl::RowStart<16>>(B_data, 16, k).tile(0, 0), b);
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

#define TL_CASE(name, ...) \
  extern "C" tl_status name(const void* A, const void* B, void* C) { return products::__VA_ARGS__::run(A, B, C); }
using tl::bfloat16;
using tl::half;
using tl::NoSwizzle;
using tl::Padded;
using tl::Swizzle128B;
using tl::Swizzle32B;
using tl::Swizzle64B;
using tl::Warps;
TL_CASE(half_nn, Case<half, float, 64, 64, 32, Warps<2, 2>, Swizzle64B, Swizzle128B, false, false>)
TL_CASE(half_nt, Case<half, float, 64, 64, 32, Warps<2, 2>, Swizzle64B, Swizzle64B, false, true>)
TL_CASE(half_tn, Case<half, float, 64, 64, 32, Warps<2, 2>, Swizzle128B, Swizzle128B, true, false>)
TL_CASE(half_tt, Case<half, float, 64, 64, 32, Warps<2, 2>, Swizzle128B, Swizzle64B, true, true>)
TL_CASE(half_panels, Case<half, float, 128, 128, 128, Warps<4, 1>, Swizzle128B, Swizzle128B, true, false>)
TL_CASE(half_narrow, Case<half, float, 32, 16, 16, Warps<2, 1>, Swizzle32B, Swizzle32B, false, false>)
TL_CASE(half_narrow_t, Case<half, float, 16, 32, 16, Warps<1, 2>, Swizzle32B, Swizzle32B, true, true>)
TL_CASE(half_padded, Case<half, float, 96, 48, 48, Warps<2, 2>, Padded<16>, Padded<16>, false, false>)
TL_CASE(half_padded_t, Case<half, float, 48, 72, 48, Warps<1, 3>, Padded<16>, Padded<16>, true, true>)
TL_CASE(half_plain, Case<half, float, 16, 8, 16, Warps<1, 1>, NoSwizzle, NoSwizzle, false, false>)
TL_CASE(half_into_half, Case<half, half, 64, 64, 32, Warps<2, 2>, Swizzle64B, Swizzle128B, false, false>)
TL_CASE(bfloat16_nn, Case<bfloat16, float, 64, 64, 32, Warps<2, 2>, Swizzle64B, Swizzle128B, false, false>)
TL_CASE(bfloat16_tt, Case<bfloat16, float, 64, 64, 32, Warps<4, 1>, Swizzle128B, Swizzle64B, true, true>)
TL_CASE(int8_nt, Case<int8_t, int32_t, 64, 64, 128, Warps<2, 2>, Swizzle128B, Swizzle128B, false, true>)
TL_CASE(tf32_nt, Case<float, float, 64, 64, 32, Warps<2, 2>, Swizzle128B, Swizzle128B, false, true>)
TL_CASE(registers_41, FromRegisters<half, 64, 64, 64, Warps<4, 1>>)
TL_CASE(registers_22, FromRegisters<half, 64, 64, 64, Warps<2, 2>>)
TL_CASE(registers_bfloat16, FromRegisters<bfloat16, 32, 64, 64, Warps<1, 4>>)

#define TL_OPERANDS(name, ...)                                       \
  extern "C" tl_status name(const void* A, const void* B, void* Y) { \
    return products::run_operands<__VA_ARGS__>(A, B, Y);             \
  }
TL_OPERANDS(operands_half, half, false)
TL_OPERANDS(operands_half_trans, half, true)
TL_OPERANDS(operands_int8, int8_t, false)
TL_OPERANDS(operands_tf32, float, false)
