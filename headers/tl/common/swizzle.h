// Swizzles of the 16-byte chunks of rows in shared memory: a column of chunks in eight rows, which ldmatrix reads at a
// time, maps to eight different groups of banks.
// [PTX ISA, "Shared Memory Matrix Layout: Swizzling Modes"]
#pragma once
#include "base.h"

namespace tl {

// Rows of `span` bytes; chunk c of row r is stored at c ^ (r / (128 / span)) % (span / 16). The pattern repeats after
// eight rows. A tile wider than the span is stored slab by slab; a slab is all rows of one span.
template <int span_> struct XorSwizzle {
  static constexpr int span = span_, padding = 0, alignment = 8 * span;
  static TL_DEVICE constexpr unsigned chunk(unsigned row, unsigned chunk) {
    return chunk ^ (row / (128 / span) % (span / 16));
  }
};
using Swizzle128B = XorSwizzle<128>;
using Swizzle64B = XorSwizzle<64>;
using Swizzle32B = XorSwizzle<32>;

// Contiguous rows without a swizzle.
struct NoSwizzle {
  static constexpr int span = 0, padding = 0, alignment = 16;
  static TL_DEVICE constexpr unsigned chunk(unsigned, unsigned chunk) { return chunk; }
};

// Rows followed by unused bytes, which shift the banks from row to row.
template <int bytes> struct Padded {
  static_assert(bytes % 16 == 0, "padding keeps 16-byte chunks aligned");
  static constexpr int span = 0, padding = bytes, alignment = 16;
  static TL_DEVICE constexpr unsigned chunk(unsigned, unsigned chunk) { return chunk; }
};

}  // namespace tl
