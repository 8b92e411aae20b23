// Where the 16-byte chunks of a row of shared memory lie, so that eight rows of one column, which is what ldmatrix
// reads at a time, fall into eight different groups of banks.
// [PTX ISA, "Shared Memory Matrix Layout: Swizzling Modes"]
#pragma once
#include "base.h"

namespace tl {

// Rows of `span` bytes; chunk c of row r moves to c ^ (r / (128 / span)) % (span / 16). The pattern repeats after eight
// rows. A tile wider than the span is stored slab after slab, a slab being all rows of one span.
template <int span_> struct XorSwizzle {
  static constexpr int span = span_, padding = 0, alignment = 8 * span;
  static TL_DEVICE constexpr unsigned chunk(unsigned row, unsigned chunk) {
    return chunk ^ (row / (128 / span) % (span / 16));
  }
};
using Swizzle128B = XorSwizzle<128>;
using Swizzle64B = XorSwizzle<64>;
using Swizzle32B = XorSwizzle<32>;

// Rows as they come, one after the other.
struct NoSwizzle {
  static constexpr int span = 0, padding = 0, alignment = 16;
  static TL_DEVICE constexpr unsigned chunk(unsigned, unsigned chunk) { return chunk; }
};

// Rows with unused bytes behind each, which shifts the banks from row to row.
template <int bytes> struct Padded {
  static_assert(bytes % 16 == 0, "padding keeps chunks of 16 bytes aligned");
  static constexpr int span = 0, padding = bytes, alignment = 16;
  static TL_DEVICE constexpr unsigned chunk(unsigned, unsigned chunk) { return chunk; }
};

}  // namespace tl
