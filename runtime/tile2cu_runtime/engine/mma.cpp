// mma.sync.m16n8kK.row.col: d += a * b on the registers of a warp.
// Fragments [PTX ISA, "Matrix Fragments for mma.m16n8k8 / k16 / k32"], with g = lane / 4, t = lane % 4 and v elements
// per 32-bit register: A register r holds row g + 8 * (r % 2), columns v * (t + 4 * (r / 2)) to + v - 1; B register r
// holds column g, rows v * (t + 4 * r) to + v - 1; accumulator r holds row g + 8 * (r / 2), column 2 * t + r % 2. v is
// 1 for tf32, 2 for 16-bit types, 4 for int8, 8 for 4-bit integers (the first in bits 0..3).
#include <cstring>

#include <tl/host/numeric.h>

#include "matrix_product.h"
#include "unwritten.h"
#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int lanes = 32, m = 16, n = 8, a_registers = 4, b_registers = 2, accumulators_per_lane = m * n / lanes;

struct MmaArgument {
  void* d;
  const std::uint32_t* a;
  const std::uint32_t* b;
};

const MmaArgument& of(const Meeting& meeting, int lane) {
  return *static_cast<const MmaArgument*>(meeting.arguments[lane]);
}

// The row-major operands of the warp, gathered from its registers. Element: the register type; k = 8 * v.
template <class Element> struct Operands {
  static constexpr int v = 4 / sizeof(Element), k = 8 * v;
  alignas(32) Element a[m * k];
  alignas(32) Element b[k * n];

  explicit Operands(const Meeting& meeting) {
    for (int lane = 0; lane < lanes; ++lane) {
      const int group = lane / 4, t = lane % 4;
#pragma GCC unroll 4
      for (int r = 0; r < a_registers; ++r) {
        std::memcpy(&a[(group + 8 * (r % 2)) * k + v * (t + 4 * (r / 2))], &of(meeting, lane).a[r], 4);
      }
#pragma GCC unroll 2
      for (int r = 0; r < b_registers; ++r) {
        Element elements[v];
        std::memcpy(elements, &of(meeting, lane).b[r], 4);
        for (int e = 0; e < v; ++e) b[(v * (t + 4 * r) + e) * n + group] = elements[e];
      }
    }
  }
};

constexpr int accumulator_index(int lane, int r) { return (lane / 4 + 8 * (r / 2)) * n + lane % 4 * 2 + r % 2; }

// Registers 0 and 1, and 2 and 3, are adjacent columns of a row.
template <class T> void gather(T* c, const Meeting& meeting) {
  for (int lane = 0; lane < lanes; ++lane) {
    const T* d = static_cast<const T*>(of(meeting, lane).d);
    std::memcpy(&c[accumulator_index(lane, 0)], d, 2 * sizeof(T));
    std::memcpy(&c[accumulator_index(lane, 2)], d + 2, 2 * sizeof(T));
  }
}
template <class T> void scatter(const T* c, const Meeting& meeting) {
  for (int lane = 0; lane < lanes; ++lane) {
    T* d = static_cast<T*>(of(meeting, lane).d);
    std::memcpy(d, &c[accumulator_index(lane, 0)], 2 * sizeof(T));
    std::memcpy(d + 2, &c[accumulator_index(lane, 2)], 2 * sizeof(T));
  }
}

void multiply_16bit(const Meeting& meeting, float* c, int type) {
  const Operands<std::uint16_t> operands(meeting);
  alignas(32) float a[m * 16], b[16 * n];
  widen(a, operands.a, m * 16, type);
  widen(b, operands.b, 16 * n, type);
  multiply_add<m, n, 16>(c, a, b);
  mark_computed(c, m * n);
}

void mma_16bit(const Meeting& meeting, int type) {
  alignas(32) float c[m * n];
  gather(c, meeting);
  multiply_16bit(meeting, c, type);
  scatter(c, meeting);
}

// Tensor cores read 10 mantissa bits of tf32 and ignore the others.
void mma_tf32(const Meeting& meeting) {
  const Operands<std::uint32_t> operands(meeting);
  alignas(32) float a[m * 8], b[8 * n], c[m * n];
  for (int index = 0; index < m * 8; ++index) a[index] = tl::host::bit_cast<float>(operands.a[index] & 0xffffe000);
  for (int index = 0; index < 8 * n; ++index) b[index] = tl::host::bit_cast<float>(operands.b[index] & 0xffffe000);
  gather(c, meeting);
  multiply_add<m, n, 8>(c, a, b);
  mark_computed(c, m * n);
  scatter(c, meeting);
}

template <int k, class Element> void multiply_add_integers(std::int32_t* c, const Element* a, const Element* b) {
  for (int row = 0; row < m; ++row) {
    for (int inner = 0; inner < k; ++inner) {
      const std::int32_t left = a[row * k + inner];
      for (int column = 0; column < n; ++column) c[row * n + column] += left * b[inner * n + column];
    }
  }
}

void mma_int8(const Meeting& meeting) {
  const Operands<std::int8_t> operands(meeting);
  std::int32_t c[m * n];
  gather(c, meeting);
  multiply_add_integers<32>(c, operands.a, operands.b);
  scatter(c, meeting);
}

// 4-bit integers, eight per register.
void mma_int4(const Meeting& meeting, bool is_signed) {
  constexpr int v = 8, k = 8 * v;
  const auto item = [is_signed](std::uint32_t word, int e) {
    const int bits = static_cast<int>(word >> 4 * e & 15);
    return is_signed && bits > 7 ? bits - 16 : bits;
  };
  std::int32_t a[m * k], b[k * n], c[m * n];
  for (int lane = 0; lane < lanes; ++lane) {
    const int group = lane / 4, t = lane % 4;
    for (int e = 0; e < v; ++e) {
      for (int r = 0; r < a_registers; ++r) {
        a[(group + 8 * (r % 2)) * k + v * (t + 4 * (r / 2)) + e] = item(of(meeting, lane).a[r], e);
      }
      for (int r = 0; r < b_registers; ++r) b[(v * (t + 4 * r) + e) * n + group] = item(of(meeting, lane).b[r], e);
    }
  }
  gather(c, meeting);
  multiply_add_integers<k>(c, a, b);
  scatter(c, meeting);
}

// mma.sp: A holds two of each four consecutive elements along k, in the registers of a dense A with k / 2 columns. The
// metadata has 4 bits per four elements: the index of the first element in bits 0..1, of the second in bits 2..3.
// 16-bit elements: lane 4 g + t with t < 2 has those of columns 16 t to 16 t + 15, of row g in the lower half and of
// row g + 8 in the upper; 8-bit elements: lane 4 g + t has those of columns 32 (t / 2) to 32 (t / 2) + 31 of row g + 8
// (t % 2). B is that of two dense instructions.
// [PTX ISA, "Sparse matrix storage", "Sparse MMA metadata layout for .m16n8k32 for .f16 / .bf16 type", "... for
// .m16n8k64 for .u8 / .s8 type"]
struct SparseArgument : MmaArgument {
  std::uint32_t metadata;
};

template <class Element> struct SparseOperands {
  static constexpr int v = 4 / sizeof(Element), k = 16 * v;
  alignas(32) Element a[m * k] = {};
  alignas(32) Element b[k * n];

  explicit SparseOperands(const Meeting& meeting) {
    const auto argument = [&](int lane) -> const SparseArgument& {
      return *static_cast<const SparseArgument*>(meeting.arguments[lane]);
    };
    const Operands<Element> operands(meeting);
    for (int row = 0; row < m; ++row) {
      for (int four = 0; four < k / 4; ++four) {
        const int group = row % 8 * 4, lane = group + (v == 2 ? four / 4 : four / 8 * 2 + row / 8);
        const int shift = v == 2 ? row / 8 * 16 + four % 4 * 4 : four % 8 * 4;
        const std::uint32_t places = argument(lane).metadata >> shift;
        for (int i = 0; i < 2; ++i) {
          a[row * k + 4 * four + static_cast<int>(places >> 2 * i & 3)] = operands.a[row * (k / 2) + 2 * four + i];
        }
      }
    }
    for (int lane = 0; lane < lanes; ++lane) {
      for (int r = 0; r < 2 * b_registers; ++r) {
        Element elements[v];
        std::memcpy(elements, &argument(lane).b[r], 4);
        for (int e = 0; e < v; ++e) b[(v * (lane % 4 + 4 * r) + e) * n + lane / 4] = elements[e];
      }
    }
  }
};

void mma_sparse_int8(const Meeting& meeting) {
  const SparseOperands<std::int8_t> operands(meeting);
  std::int32_t c[m * n];
  gather(c, meeting);
  multiply_add_integers<operands.k>(c, operands.a, operands.b);
  scatter(c, meeting);
}

template <class Element, class Widen> void mma_sparse_floats(const Meeting& meeting, const Widen& widen_all) {
  using Sparse = SparseOperands<Element>;
  const Sparse operands(meeting);
  alignas(32) float a[m * Sparse::k], b[Sparse::k * n], c[m * n];
  widen_all(a, operands.a, m * Sparse::k);
  widen_all(b, operands.b, Sparse::k * n);
  gather(c, meeting);
  multiply_add<m, n, Sparse::k>(c, a, b);
  mark_computed(c, m * n);
  scatter(c, meeting);
}

void mma_sparse(const Meeting& meeting, int type) {
  if (type == TL_ENGINE_INT8) return mma_sparse_int8(meeting);
  if (type == TL_ENGINE_E4M3 || type == TL_ENGINE_E5M2) {
    return mma_sparse_floats<std::uint8_t>(meeting, [type](float* to, const std::uint8_t* from, int count) {
      for (int i = 0; i < count; ++i) to[i] = float8_value(from[i], type);
    });
  }
  mma_sparse_floats<std::uint16_t>(
      meeting, [type](float* to, const std::uint16_t* from, int count) { widen(to, from, count, type); });
}

// Two packed accumulator registers; the accumulation is in float and rounded once.
void mma_half(const Meeting& meeting) {
  alignas(32) float c[m * n];
  const auto packed = [&](int lane) { return static_cast<std::uint16_t*>(of(meeting, lane).d); };
  for (int lane = 0; lane < lanes; ++lane) {
    for (int r = 0; r < 4; ++r) c[accumulator_index(lane, r)] = tl::host::half_to_float(packed(lane)[r]);
  }
  multiply_16bit(meeting, c, TL_ENGINE_HALF);
  for (int lane = 0; lane < lanes; ++lane) {
    for (int r = 0; r < 4; ++r) packed(lane)[r] = tl::host::float_to_half(c[accumulator_index(lane, r)]);
  }
}

Element accumulator_of(int type) {
  const bool is_integer = type == TL_ENGINE_INT8 || type == TL_ENGINE_INT4 || type == TL_ENGINE_UINT4;
  return is_integer ? Element::int32 : Element::float32;
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_mma(void* d, const std::uint32_t* a, const std::uint32_t* b, int type) {
  MmaArgument argument{d, a, b};
  check_accumulators(current_worker(), d, accumulators_per_lane, accumulator_of(type), TILE2CU_CALL_SITE);
  warp_collective(current_worker(), all_lanes, CollectiveKind::mma, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) {
                    if (type == TL_ENGINE_TF32) return mma_tf32(meeting);
                    if (type == TL_ENGINE_INT8) return mma_int8(meeting);
                    if (type == TL_ENGINE_INT4 || type == TL_ENGINE_UINT4)
                      return mma_int4(meeting, type == TL_ENGINE_INT4);
                    mma_16bit(meeting, type);
                  });
}

void tl_engine_mma_half(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b) {
  MmaArgument argument{d, a, b};
  check_accumulators(current_worker(), d, accumulators_per_lane, Element::half, TILE2CU_CALL_SITE);
  warp_collective(current_worker(), all_lanes, CollectiveKind::mma, &argument, TILE2CU_CALL_SITE,
                  [](const Meeting& meeting) { mma_half(meeting); });
}

void tl_engine_mma_sparse(void* d, const std::uint32_t* a, const std::uint32_t* b, std::uint32_t metadata, int type) {
  SparseArgument argument;
  argument.d = d, argument.a = a, argument.b = b, argument.metadata = metadata;
  check_accumulators(current_worker(), d, accumulators_per_lane, accumulator_of(type), TILE2CU_CALL_SITE);
  warp_collective(current_worker(), all_lanes, CollectiveKind::mma, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { mma_sparse(meeting, type); });
}

}  // extern "C"
