// Happens-before between blocks of a launch, established by fences and atomics.
// A release pattern (fence, then atomic update of a word) synchronises with an acquire pattern (later atomic access to
// that word, then fence) of another block [PTX ISA, "Release and Acquire Patterns"]: the last of several blocks sees
// the writes of all. Tracked per block, not per thread: barriers around the fence and the atomic are not checked, and
// writes after the release count as released.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <unordered_map>

namespace tile2cu::engine {

class BlockOrder {
 public:
  using Blocks = std::set<std::uint32_t>;

  // An atomic access to the word at `place` by a thread of `block`, which has acquired the blocks `told`. `fenced`: a
  // fence precedes it; `others`: blocks that are not tracked here have updated the word. Returns whether a fence that
  // follows acquires anything.
  bool touch(std::size_t place, std::uint32_t block, const Blocks& told, bool is_write, bool fenced, bool others);
  // The acquiring fence: adds to `told` the blocks that updated the word, and the blocks that they had acquired.
  void learn(std::size_t place, Blocks& told) const;
  // Whether `told` contains all blocks that updated the word, except `block`.
  bool has_all(std::size_t place, std::uint32_t block, const Blocks& told) const;

 private:
  struct Word {
    Blocks updaters, told;
    bool is_silent = false;  // updated without a preceding fence
  };
  static std::size_t number_of(std::size_t place) { return place / 4; }
  const Word* find(std::size_t place) const;

  std::unordered_map<std::size_t, Word> words_;
  std::atomic<bool> is_used_{false};
  mutable std::mutex mutex_;
};

}  // namespace tile2cu::engine
