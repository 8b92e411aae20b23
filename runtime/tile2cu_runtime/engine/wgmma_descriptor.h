// How wgmma finds an operand in shared memory.
#pragma once
#include <cstdint>

namespace tile2cu::engine {

constexpr std::uint32_t chunk_bytes = 16;

// The fields of a descriptor.  [PTX ISA, Matrix Descriptor Format]
struct Descriptor {
  explicit Descriptor(std::uint64_t bits)
      : start(std::uint32_t(bits & 0x3fff) << 4),
        leading(std::uint32_t(bits >> 16 & 0x3fff) << 4),
        stride(std::uint32_t(bits >> 32 & 0x3fff) << 4),
        span(bits >> 62 == 0 ? chunk_bytes : 256u >> (bits >> 62)) {}
  std::uint32_t start, leading, stride;
  std::uint32_t span;  // bytes of a row before the next one starts; 16 without a swizzle
};

// The swizzle works on addresses.
inline std::uint32_t swizzled(std::uint32_t address, std::uint32_t span) {
  return address ^ (address >> 7 & (span / 16 - 1)) << 4;
}

// Shared-window address of 16-byte chunk `chunk` of row `row` of an operand with K contiguous. A swizzled operand lies
// within a span; without a swizzle each chunk is a core matrix's row.
inline std::uint32_t k_major_address(const Descriptor& d, int row, int chunk) {
  const std::uint32_t linear = d.start + std::uint32_t(row / 8) * d.stride + std::uint32_t(row % 8) * d.span;
  if (d.span == chunk_bytes) return linear + std::uint32_t(chunk) * d.leading;
  return swizzled(linear + std::uint32_t(chunk) * chunk_bytes, d.span);
}

// The same of an operand with M or N contiguous: row `k` of K, and along M or N spans of 8 rows of K each. With a
// swizzle they are `leading` bytes apart along M or N and `stride` bytes along K; without one, the other way round.
// [CUTLASS, "cute/arch/mma_sm90_desc.hpp": canonical layouts, MN major]
inline std::uint32_t mn_major_address(const Descriptor& d, int k, int chunk) {
  const bool plain = d.span == chunk_bytes;
  const std::uint32_t along_mn = plain ? d.stride : d.leading, along_k = plain ? d.leading : d.stride;
  const int chunks = int(d.span / chunk_bytes);
  const std::uint32_t linear = d.start + std::uint32_t(chunk / chunks) * along_mn + std::uint32_t(k / 8) * along_k +
                               std::uint32_t(k % 8) * d.span + std::uint32_t(chunk % chunks) * chunk_bytes;
  return swizzled(linear, d.span);
}

}  // namespace tile2cu::engine
