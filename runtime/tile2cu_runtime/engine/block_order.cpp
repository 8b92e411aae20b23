#include "block_order.h"

#include <algorithm>

namespace tile2cu::engine {

bool BlockOrder::touch(std::size_t place, std::uint32_t block, const Blocks& told, bool is_write, bool fenced,
                       bool others) {
  const bool tells = is_write && fenced;
  if (!tells && !is_used_) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = words_.find(number_of(place));
  if (found == words_.end() && !tells) return false;
  Word& word = found == words_.end() ? words_[number_of(place)] : found->second;
  if (found == words_.end()) word.is_silent = others;
  if (tells) {
    is_used_ = true;
    word.updaters.insert(block);
    word.told.insert(block);
    word.told.insert(told.begin(), told.end());
  } else if (is_write) {
    word.is_silent = true;
  }
  return true;
}

void BlockOrder::learn(std::size_t place, Blocks& told) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const Word* word = find(place)) told.insert(word->told.begin(), word->told.end());
}

bool BlockOrder::has_all(std::size_t place, std::uint32_t block, const Blocks& told) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Word* word = find(place);
  return word && !word->is_silent && std::all_of(word->updaters.begin(), word->updaters.end(), [&](std::uint32_t each) {
           return each == block || told.count(each);
         });
}

const BlockOrder::Word* BlockOrder::find(std::size_t place) const {
  const auto found = words_.find(number_of(place));
  return found == words_.end() ? nullptr : &found->second;
}

}  // namespace tile2cu::engine
