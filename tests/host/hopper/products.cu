// Products of one tile by wgmma: every N, each way an operand may lie, every type, shared among warpgroups. Operands come by ordinary loads.
#include <tl/tl.h>
#include <tl/sm90/wgmma_bfloat16.h>
#include <tl/sm90/wgmma_float8.h>
#include <tl/sm90/wgmma_half.h>
#include <tl/sm90/wgmma_half_accumulators.h>
#include <tl/sm90/wgmma_int8.h>
#include <tl/sm90/wgmma_tfloat32.h>

namespace products {

enum Kind { k_contiguous, mn_contiguous, in_registers };

// A is M x K (or stored K x M), B is K x N (or stored N x K).
template <class T_, int M_, int N_, int K_, int along_m_, Kind a_, Kind b_, class SwizzleA, class SwizzleB,
          bool overwrites_ = false, int along_n_ = 1, class Sum_ = tl::WgmmaSum<T_>>
struct Case {
  using T = T_;
  static constexpr int M = M_, N = N_, K = K_, along_m = along_m_, along_n = along_n_;
  static constexpr int threads = 128 * along_m * along_n;
  using Sum = Sum_;
  static constexpr Kind a = a_, b = b_;
  static constexpr bool overwrites = overwrites_;
  using A = tl::SharedTile<T, a == mn_contiguous ? K : M, a == mn_contiguous ? M : K, SwizzleA>;
  using B = tl::SharedTile<T, b == mn_contiguous ? K : N, b == mn_contiguous ? N : K, SwizzleB>;
  struct Shared {
    A A_shared;
    B B_shared;
  };
};

template <class Case, class A, class B, class C> TL_DEVICE void multiply(const A& a, const B& b, C& c) {
  if constexpr (Case::overwrites)
    tl::gemm(a, b, c, tl::overwrite);
  else
    tl::gemm(a, b, c);
}
template <class Case, class A, class C> TL_DEVICE void multiply_with(const A& a, typename Case::Shared& shared, C& c) {
  if constexpr (Case::b == mn_contiguous)
    multiply<Case>(a, shared.B_shared, c);
  else
    multiply<Case>(a, tl::transposed(shared.B_shared), c);
}

// C += A B
template <class Case>
__global__ void __launch_bounds__(Case::threads, 1)
    kernel(const typename Case::T* A_data, const typename Case::T* B_data, typename Case::Sum* C_data) {
  using T = typename Case::T;
  constexpr int threads = Case::threads, M = Case::M, N = Case::N, K = Case::K;
  auto& shared = tl::shared<typename Case::Shared>();
  using TileA = typename Case::A;
  using TileB = typename Case::B;
  const auto A = tl::tensor<tl::Aligned<16>>(A_data, TileA::rows, TileA::cols);
  const auto B = tl::tensor<tl::Aligned<16>>(B_data, TileB::rows, TileB::cols);
  const auto C = tl::tensor<tl::Aligned<16>>(C_data, M, N);
  tl::copy<threads>(A.tile(0, 0), shared.A_shared);
  tl::copy<threads>(B.tile(0, 0), shared.B_shared);
  tl::sync_consumers<threads>();
  tl::Fragment<typename Case::Sum, tl::WgmmaAccumulator<M, N, Case::along_m, Case::along_n>> C_local;
  tl::copy(C.tile(0, 0), C_local);
  if constexpr (Case::a == in_registers) {
    tl::Fragment<T, tl::WgmmaAccumulator<M, K, Case::along_m>> A_local;
    tl::copy(A.tile(0, 0), A_local);
    multiply_with<Case>(A_local, shared, C_local);
  } else if constexpr (Case::a == mn_contiguous) {
    multiply_with<Case>(tl::transposed(shared.A_shared), shared, C_local);
  } else {
    multiply_with<Case>(shared.A_shared, shared, C_local);
  }
  tl::copy(C_local, C.tile(0, 0));
}

using tl::bfloat16;
using tl::half;
using e4m3 = tl::float8_e4m3;
using e5m2 = tl::float8_e5m2;
using S128 = tl::Swizzle128B;
using S64 = tl::Swizzle64B;
using S32 = tl::Swizzle32B;
constexpr Kind k = k_contiguous, mn = mn_contiguous, reg = in_registers;

template <class... Cases> struct List {};
template <int n> using Width = Case<half, 64, n, 64, 1, k, k, S128, S128>;
// The same with sums in half.
template <int M, int n, int K, Kind a, Kind b, int along_m = 1, bool overwrites = false, int along_n = 1>
using InHalf = Case<half, M, n, K, along_m, a, b, S128, S128, overwrites, along_n, half>;
template <int n> using HalfWidth = InHalf<64, n, 64, k, k>;
using All = List<
    // every N
    Width<8>, Width<16>, Width<24>, Width<32>, Width<40>, Width<48>, Width<56>, Width<64>, Width<72>, Width<80>,
    Width<88>, Width<96>, Width<104>, Width<112>, Width<120>, Width<128>, Width<136>, Width<144>, Width<152>,
    Width<160>, Width<168>, Width<176>, Width<184>, Width<192>, Width<200>, Width<208>, Width<216>, Width<224>,
    Width<232>, Width<240>, Width<248>, Width<256>,
    // more than an instruction's N, more than a warpgroup's rows
    Case<half, 64, 320, 64, 1, k, k, S128, S128>, Case<half, 64, 384, 32, 1, k, mn, S64, S128>,
    Case<half, 128, 64, 64, 1, k, mn, S128, S128>, Case<half, 256, 128, 64, 2, k, mn, S128, S128>,
    Case<half, 256, 64, 64, 2, mn, k, S128, S128>, Case<half, 128, 256, 64, 2, reg, mn, S128, S128>,
    Case<half, 256, 64, 128, 2, reg, k, S128, S128>,
    // how operands lie: K over several panels, each swizzle, each side
    Case<half, 64, 64, 128, 1, k, k, S128, S128>, Case<half, 64, 64, 64, 1, k, k, S64, S32>,
    Case<half, 64, 64, 64, 1, k, k, S32, S64>, Case<half, 64, 64, 64, 1, k, mn, S128, S64>,
    Case<half, 64, 64, 64, 1, k, mn, S128, S32>, Case<half, 64, 96, 64, 1, k, mn, S128, S64>,
    Case<half, 64, 48, 64, 1, k, mn, S128, S32>, Case<half, 64, 64, 64, 1, mn, k, S128, S128>,
    Case<half, 128, 64, 64, 2, mn, mn, S64, S128>, Case<half, 128, 64, 64, 1, mn, mn, S32, S64>,
    Case<half, 64, 192, 128, 1, mn, mn, S128, S128>,
    // A in registers
    Case<half, 64, 128, 128, 1, reg, mn, S128, S128>, Case<half, 64, 128, 128, 1, reg, k, S128, S128>,
    Case<half, 64, 80, 16, 1, reg, k, S32, S32>,
    // bfloat16, overwriting
    Case<bfloat16, 128, 256, 64, 2, k, mn, S128, S128>, Case<bfloat16, 64, 128, 128, 1, reg, mn, S128, S128>,
    Case<bfloat16, 64, 64, 64, 1, mn, k, S64, S64>, Case<half, 128, 256, 64, 2, k, mn, S128, S128, true>,
    Case<half, 64, 320, 64, 1, reg, k, S128, S128, true>, Case<bfloat16, 64, 72, 32, 1, reg, k, S64, S64, true>,
    // operands of 8 bits, of which one instruction reads 32 along K
    Case<e4m3, 64, 128, 128, 1, k, k, S128, S128>, Case<e4m3, 128, 256, 256, 2, k, k, S128, S128, true>,
    Case<e5m2, 64, 40, 64, 1, k, k, S64, S32>, Case<e5m2, 64, 320, 32, 1, k, k, S32, S32>,
    Case<int8_t, 64, 128, 128, 1, k, k, S128, S128>, Case<int8_t, 256, 64, 128, 2, k, k, S128, S64, true>,
    Case<int8_t, 64, 24, 32, 1, k, k, S32, S32>, Case<uint8_t, 64, 64, 256, 1, k, k, S128, S128>,
    // floats, of which it reads 8
    Case<float, 64, 128, 64, 1, k, k, S128, S128>, Case<float, 128, 256, 96, 2, k, k, S128, S64, true>,
    Case<tl::tfloat32, 64, 40, 16, 1, k, k, S64, S64>, Case<tl::tfloat32, 64, 320, 8, 1, k, k, S32, S32>,
    // columns shared among warpgroups
    Case<half, 64, 64, 64, 1, k, k, S128, S128, false, 2>, Case<half, 64, 512, 64, 1, k, mn, S128, S128, false, 2>,
    Case<half, 64, 256, 64, 1, reg, mn, S128, S128, false, 2>,
    Case<bfloat16, 128, 128, 64, 2, k, mn, S128, S128, true, 2>,
    Case<half, 128, 96, 64, 2, reg, k, S128, S128, false, 2>, Case<half, 64, 96, 64, 1, mn, k, S128, S64, false, 4>,
    Case<int8_t, 64, 128, 128, 1, k, k, S128, S128, false, 2>,
    // sums in half: each way operands may lie, several instructions and warpgroups, both kinds of list of registers
    InHalf<64, 320, 128, k, mn>, InHalf<128, 64, 64, mn, k>, InHalf<64, 192, 64, mn, mn>, InHalf<64, 128, 128, reg, mn>,
    InHalf<256, 72, 64, reg, k, 2>, InHalf<128, 256, 64, k, mn, 2, true>, InHalf<128, 128, 64, k, mn, 2, true, 2>,
#ifdef __CUDACC__  // a width is an asm statement
    HalfWidth<16>, HalfWidth<24>, HalfWidth<32>, HalfWidth<40>, HalfWidth<48>, HalfWidth<56>, HalfWidth<64>,
    HalfWidth<72>, HalfWidth<80>, HalfWidth<88>, HalfWidth<96>, HalfWidth<104>, HalfWidth<112>, HalfWidth<120>,
    HalfWidth<128>, HalfWidth<136>, HalfWidth<144>, HalfWidth<152>, HalfWidth<160>, HalfWidth<168>, HalfWidth<176>,
    HalfWidth<184>, HalfWidth<192>, HalfWidth<200>, HalfWidth<208>, HalfWidth<216>, HalfWidth<224>, HalfWidth<232>,
    HalfWidth<240>, HalfWidth<248>, HalfWidth<256>,
#endif
    HalfWidth<8>>;

template <class Case> int run(const void* A, const void* B, void* C) {
  using T = typename Case::T;
  return tl::launch<typename Case::Shared>(kernel<Case>, dim3(1), Case::threads, nullptr, static_cast<const T*>(A),
                                           static_cast<const T*>(B), static_cast<typename Case::Sum*>(C));
}

struct Entry {
  int M, N, K, a, b, type, overwrites, half_sums;
  int (*run)(const void*, const void*, void*);
};
// hopper_calls.TYPES
template <class T> constexpr int type_number = 0;
template <> constexpr int type_number<bfloat16> = 1;
template <> constexpr int type_number<e4m3> = 2;
template <> constexpr int type_number<e5m2> = 3;
template <> constexpr int type_number<int8_t> = 4;
template <> constexpr int type_number<uint8_t> = 5;
template <> constexpr int type_number<float> = 6;
template <> constexpr int type_number<tl::tfloat32> = 7;
template <class... Cases> const Entry* entries(List<Cases...>, int& count) {
  static const Entry all[] = {{Cases::M, Cases::N, Cases::K, Cases::a, Cases::b, type_number<typename Cases::T>,
                               Cases::overwrites, std::is_same<typename Cases::Sum, half>::value, run<Cases>}...};
  count = sizeof...(Cases);
  return all;
}

}  // namespace products

// Which case `index` is: M, N, K, how A and B lie, their type's number, whether C is overwritten, and
// whether it is half. Returns the number of cases.
extern "C" int products_case(int index, int* what) {
  int count;
  const auto& entry = products::entries(products::All{}, count)[index];
  const int fields[] = {entry.M, entry.N, entry.K, entry.a, entry.b, entry.type, entry.overwrites, entry.half_sums};
  for (int i = 0; i < 8; ++i) what[i] = fields[i];
  return count;
}
extern "C" int products_run(int index, const void* A, const void* B, void* C) {
  int count;
  return products::entries(products::All{}, count)[index].run(A, B, C);
}
