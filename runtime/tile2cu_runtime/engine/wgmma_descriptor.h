// wgmma's shared-memory matrix descriptors.
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
  std::uint32_t span;  // bytes per row; 16 without a swizzle
};

// The swizzle permutes address bits.
inline std::uint32_t swizzled(std::uint32_t address, std::uint32_t span) {
  return address ^ (address >> 7 & (span / 16 - 1)) << 4;
}

// The shared-window address of 16-byte chunk `chunk` of row `row` of a K-major operand. A swizzled operand is within
// one span; without a swizzle each chunk is a row of a core matrix.
inline std::uint32_t k_major_address(const Descriptor& d, int row, int chunk) {
  const std::uint32_t linear = d.start + std::uint32_t(row / 8) * d.stride + std::uint32_t(row % 8) * d.span;
  if (d.span == chunk_bytes) return linear + std::uint32_t(chunk) * d.leading;
  return swizzled(linear + std::uint32_t(chunk) * chunk_bytes, d.span);
}

// The same for an MN-major operand: row `k` of K, in spans of 8 rows of K along M or N. With a swizzle, spans are
// `leading` bytes apart along M or N and `stride` bytes along K; without one, the reverse.
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
