// MFMA and LDS loads on the CPU engine, for wave64 kernels (compiled with -DTL_WARP_SIZE=64).
#pragma once
#include <type_traits>
#include "../engine.h"
#include "../kernel.h"
#include "../memory.h"
#include "../../common/vec.h"
#include "../numeric.h"

namespace tl {
namespace host {

template <int bytes>
using Bits =
    std::conditional_t<bytes == 16, uint4,
                       std::conditional_t<bytes == 8, uint2, std::conditional_t<bytes == 4, uint32_t, uint16_t>>>;

template <class T> struct MfmaType;
template <> struct MfmaType<half> {
  static constexpr int value = TL_ENGINE_HALF;
};
template <> struct MfmaType<bfloat16> {
  static constexpr int value = TL_ENGINE_BFLOAT16;
};
template <> struct MfmaType<int8_t> {
  static constexpr int value = TL_ENGINE_INT8;
};
template <> struct MfmaType<float> {
  static constexpr int value = TL_ENGINE_FLOAT;
};
template <> struct MfmaType<tfloat32> {
  static constexpr int value = TL_ENGINE_FLOAT;
};
template <> struct MfmaType<double> {
  static constexpr int value = TL_ENGINE_DOUBLE;
};

}  // namespace host

// Loads `bytes` bytes of shared memory, aligned to their number, to registers by one access. Any thread.
template <int bytes> TL_DEVICE void load_bits_to(void* to, const void* from) {
  const auto bits = host::load<host::Bits<bytes>>(from);
  std::memcpy(to, &bits, bytes);
}

// The number of consecutive elements along K that each lane passes to an instruction; targets differ, here it is 16
// bytes.
template <class T> constexpr int mfma_items = 16 / static_cast<int>(sizeof(T));

// D += A B with `size` rows and columns, and 64 / size * n of K. Lane l holds n elements of row l % size of A and of
// column l % size of B, from n * (l / size) on along K. Element i of d is in column l % size, row 4 * (l / size + 64 /
// size * (i / 4)) + i % 4; for double in row l / size + 4 i. Called by: every lane of the wave.
template <int size, int n, class Result, class T, class U> TL_DEVICE void mfma(Result* d, const T* a, const U* b) {
  static_assert(size == 16 || size == 32, "16 or 32 rows and columns");
  static_assert(std::is_same<Result, double>::value == std::is_same<T, double>::value, "double accumulates double");
  static_assert(std::is_same<Result, int32_t>::value == std::is_same<T, int8_t>::value, "int32 accumulates int8");
  static_assert(std::is_same<T, U>::value || (is_float8<T> && is_float8<U>),
                "A and B have the same element type, or are both 8-bit floating point");
  if constexpr (is_float8<T>) {  // float represents its values exactly
    float wide_a[n], wide_b[n];
    for (int i = 0; i < n; ++i) wide_a[i] = a[i], wide_b[i] = b[i];
    tl_engine_mfma(d, wide_a, wide_b, size, n, TL_ENGINE_FLOAT);
  } else {
    tl_engine_mfma(d, a, b, size, n, host::MfmaType<T>::value);
  }
}

// The wave's priority, 0 to 3; the engine ignores it. Called by: each wave.
template <int priority> TL_DEVICE void set_wave_priority() {
  static_assert(priority >= 0 && priority <= 3, "a wave's priority is 0 to 3");
}

// Transposing read: each group of 16 lanes reads rows of 16 elements, 8 bytes per lane. 2-byte elements: lane l reads
// four of row l / 4, from column 4 * (l % 4) on; 1-byte elements: eight of row l / 2. Lane l receives column l of the
// four or eight rows. The address is a multiple of 8 in shared memory. Called by: every lane of the wave.
template <class T> constexpr bool has_transposing_reads = sizeof(T) <= 2;
template <class T> TL_DEVICE Vec<T, 8 / sizeof(T)> load_transposed(const T* from) {
  Vec<T, 8 / sizeof(T)> column;
  tl_engine_read_transposed(&column, from, sizeof(T));
  return column;
}

// Copies 4 bytes per lane to lds + 4 * lane; `lds` is uniform.
TL_DEVICE void global_load_lds_4(void* lds, const void* from) { tl_engine_global_load_lds(lds, from, 4, 4); }

}  // namespace tl
