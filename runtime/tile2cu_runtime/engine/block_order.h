// What blocks of a launch have told one another by fences and atomics: what one wrote, the other may then touch.
//
// A thread that fences and then updates a word atomically tells whoever updates or reads that word later and then
// fences (PTX ISA, "Release and Acquire Patterns"): so the last of several blocks finds what all of them wrote. Whole
// blocks are followed, not threads: the barriers of a block around its fence and atomic are not asked for, and what a
// block writes after it has told counts as told, too.
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

  // A thread of `block`, which was told of the blocks `told`, updates or reads the word at `place` atomically. `fenced`:
  // it has fenced before; `others`: blocks of which nothing is known here have updated the word. True where a fence that
  // follows tells the block something.
  bool touch(std::size_t place, std::uint32_t block, const Blocks& told, bool is_write, bool fenced, bool others);
  // That fence: who updated the word, and of whom they were told, become part of `told`.
  void learn(std::size_t place, Blocks& told) const;
  // Whether `told` has all blocks that updated the word, but `block` itself.
  bool has_all(std::size_t place, std::uint32_t block, const Blocks& told) const;

 private:
  struct Word {
    Blocks updaters, told;
    bool is_silent = false;  // somebody updated it without a fence before
  };
  static std::size_t number_of(std::size_t place) { return place / 4; }
  const Word* find(std::size_t place) const;

  std::unordered_map<std::size_t, Word> words_;
  std::atomic<bool> is_used_{false};
  mutable std::mutex mutex_;
};

}  // namespace tile2cu::engine
