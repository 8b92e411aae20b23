// Definitions shared by all parts of the engine.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string>

#include <tl/host/engine.h>
#include <tl/host/kernel.h>

namespace tile2cu::engine {

using Clock = std::uint32_t;         // a component of a vector clock
using ThreadNumber = std::uint16_t;  // linear in the cluster; asynchronous agents follow the threads
using Site = const void*;            // a return address in a kernel, which identifies a source line

constexpr int max_threads_per_block = 1024;
constexpr int max_blocks_per_cluster = 8;  // the portable maximum [CUDA C++ Programming Guide, "Thread Block Clusters"]
constexpr int max_warp_size = 64;
constexpr int threads_per_warpgroup = 128;

// The return address of an entry point of the C interface.
#define TILE2CU_CALL_SITE __builtin_return_address(0)
#define TILE2CU_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

// printf into a string; used only for findings.
__attribute__((format(printf, 1, 2))) inline std::string text(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

// xorshift64*: reproducible from a seed, and cheap enough for one call per memory access.
class Random {
 public:
  explicit Random(std::uint64_t seed = 0) : state_(seed * 0x9E3779B97F4A7C15u + 0x2545F4914F6CDD1Du) {
    if (state_ == 0) state_ = 1;
  }
  std::uint32_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return std::uint32_t(state_ >> 11);
  }
  std::uint32_t below(std::uint32_t bound) { return next() % bound; }
  bool happens(double probability) { return probability > 0 && (next() & 0xffff) < probability * 0x10000; }

 private:
  std::uint64_t state_;
};

}  // namespace tile2cu::engine
