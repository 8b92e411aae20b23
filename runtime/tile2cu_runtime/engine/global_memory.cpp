#include "global_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "worker.h"

namespace tile2cu::engine {
namespace {

// A shadow word: for each of its two bytes whether it is allocated, initialised, and written in this launch by the
// block in the last bits (its number + 1, modulo 2^24; none with several). Bit 25: all of these writes were atomic;
// bit 24: no kernel writes here.
constexpr std::uint32_t allocated_shift = 30, initialised_shift = 28, written_shift = 26;
constexpr std::uint32_t atomic_bit = 1u << 25, read_only_bit = 1u << 24, writer_mask = read_only_bit - 1;
constexpr std::uint32_t several_writers = 0;
constexpr std::uint32_t launch_mask = writer_mask | atomic_bit | 3u << written_shift;

// The launch-related part of a shadow word after block `self` wrote the bytes `touched`. Plain writes stay recorded if
// the same block then uses atomics.
std::uint32_t after_write(std::uint32_t word, std::uint32_t touched, std::uint32_t self, bool is_atomic) {
  const std::uint32_t before = word & 3u << written_shift, written = before | touched << written_shift;
  const std::uint32_t writer = word & writer_mask;
  if (!is_atomic) return (writer == self ? written : touched << written_shift) | self;
  if (before && !(word & atomic_bit)) return word & launch_mask;
  return written | atomic_bit | (before && writer != self ? several_writers : self);
}

// The bytes of the word at `offset` (even) that are in [begin, end).
std::uint32_t bytes_touched(std::size_t offset, std::size_t begin, std::size_t end) {
  return (offset >= begin ? 1u : 0u) | (offset + 1 < end ? 2u : 0u);
}

}  // namespace

// Never destroyed: at process exit kernels may still be unloaded, and memory freed.
GlobalMemory& GlobalMemory::instance() {
  static auto* memory = new GlobalMemory;
  return *memory;
}

bool GlobalMemory::reserve() {
  if (base_) return true;
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* base = mmap(nullptr, heap_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (base == MAP_FAILED) return false;
  void* shadow = mmap(nullptr, heap_bytes / 2 * sizeof(std::uint32_t), PROT_READ | PROT_WRITE, flags, -1, 0);
  if (shadow == MAP_FAILED) {
    munmap(base, heap_bytes);
    return false;
  }
  shadow_ = static_cast<std::uint32_t*>(shadow);
  base_ = static_cast<char*>(base);
  return true;
}

// First fit after each allocation's red zone. The first page stays free, so that underruns are detected.
std::optional<std::size_t> GlobalMemory::find_gap(std::size_t bytes) const {
  std::size_t candidate = page;
  for (const auto& [offset, size] : allocated_) {
    if (candidate + bytes + red_zone <= offset) break;
    candidate = (offset + size + red_zone + page - 1) / page * page;
  }
  if (bytes > heap_bytes || candidate + bytes + red_zone > heap_bytes) return std::nullopt;
  return candidate;
}

void* GlobalMemory::allocate(std::size_t bytes, bool initialised) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!reserve()) return nullptr;
  const auto offset = find_gap(bytes);
  if (!offset) return nullptr;
  allocated_[*offset] = bytes;
  paint(*offset, bytes, initialised);
  if (!initialised) std::memset(base_ + *offset, 0xff, bytes);
  return base_ + *offset;
}

void GlobalMemory::release(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!memory || !contains(memory)) return;
  const auto allocation = allocated_.find(offset_of(memory));
  if (allocation == allocated_.end()) return;
  const std::size_t span = (allocation->second + page - 1) / page * page;
  std::memset(shadow_ + allocation->first / 2, 0, (allocation->second + 1) / 2 * sizeof(std::uint32_t));
  madvise(base_ + allocation->first, span, MADV_DONTNEED);
  elements_.erase(allocation->first);
  allocated_.erase(allocation);
}

void GlobalMemory::set_element_type(void* memory, Element element) {
  const std::lock_guard<std::mutex> lock(mutex_);
  elements_[offset_of(memory)] = element;
}

void GlobalMemory::set_read_only(void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto allocation = allocated_.find(offset_of(memory));
  if (allocation == allocated_.end()) return;
  std::uint32_t* words = shadow_ + allocation->first / 2;
  for (std::size_t index = 0; index < (allocation->second + 1) / 2; ++index) words[index] |= read_only_bit;
}

bool GlobalMemory::is_read_only(const void* address) const { return shadow_[offset_of(address) / 2] & read_only_bit; }

std::string GlobalMemory::name(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto above = allocated_.upper_bound(offset_of(address));
  if (above == allocated_.begin()) return "global memory";
  const auto& [begin, bytes] = *std::prev(above);
  return text("byte %zu of a %zu-byte tensor", offset_of(address) - begin, bytes);
}

Element GlobalMemory::element_at(std::size_t offset) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto above = allocated_.upper_bound(offset);
  if (above == allocated_.begin()) return Element::opaque;
  const auto element = elements_.find(std::prev(above)->first);
  return element == elements_.end() ? Element::opaque : element->second;
}

void GlobalMemory::paint(std::size_t offset, std::size_t bytes, bool initialised) {
  const std::uint32_t whole = 3u << allocated_shift | (initialised ? 3u << initialised_shift : 0u);
  std::fill_n(shadow_ + offset / 2, bytes / 2, whole);
  if (bytes % 2) {
    shadow_[(offset + bytes) / 2] = 1u << allocated_shift | (initialised ? 1u << initialised_shift : 0u);
  }
}

void GlobalMemory::begin_launch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [offset, bytes] : allocated_) {
    std::uint32_t* words = shadow_ + offset / 2;
    for (std::size_t index = 0; index < (bytes + 1) / 2; ++index) words[index] &= ~launch_mask;
  }
}

// The distance of an address from the allocation below it.
std::optional<GlobalMemory::Overrun> GlobalMemory::overrun(std::size_t offset) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto above = allocated_.upper_bound(offset);
  if (above == allocated_.begin()) return std::nullopt;
  --above;
  return Overrun{offset - (above->first + above->second), above->second};
}

void GlobalMemory::report_out_of_bounds(Worker& worker, std::size_t offset, std::uint32_t bytes, bool is_write,
                                        Site site) {
  worker.report("global out-of-bounds", {site}, [&] {
    const char* what = is_write ? "write" : "read";
    const std::string who = worker.describe_current();
    const auto past = overrun(offset);
    if (!past) return text("%s of %u bytes before any allocation by %s at {0}", what, bytes, who.c_str());
    return text("%s of %u bytes, %zu bytes past the end of a %zu-byte allocation, by %s at {0}", what, bytes,
                past->distance, past->allocation, who.c_str());
  });
}

void GlobalMemory::check(Worker& worker, const void* address, std::uint32_t bytes, bool is_write, bool is_atomic,
                         Site site, bool blind) {
  const std::size_t begin = offset_of(address), end = begin + bytes;
  const std::uint32_t self = (worker.block_number + 1) & writer_mask;
  if (is_atomic) note_atomic(worker, begin, is_write);
  for (std::size_t offset = begin & ~std::size_t(1); offset < end; offset += 2) {
    std::uint32_t& word = shadow_[offset / 2];
    const std::uint32_t touched = bytes_touched(offset, begin, end);
    if (TILE2CU_UNLIKELY((word >> allocated_shift & touched) != touched)) {
      report_out_of_bounds(worker, word >> allocated_shift & 1 ? offset + 1 : offset, bytes, is_write, site);
      return;
    }
    const std::uint32_t writer = word & writer_mask;
    const bool foreign = writer != self && (word >> written_shift & touched);
    if (TILE2CU_UNLIKELY((!is_write || (is_atomic && !blind)) && (word >> initialised_shift & touched) != touched)) {
      worker.report("uninitialised global read", {site}, [&] {
        return text("%s %s unwritten memory at {0}", worker.describe_current().c_str(),
                    is_atomic ? "updates" : "reads");
      });
      if (!is_write) return;
    }
    if (TILE2CU_UNLIKELY(foreign && !(is_atomic && word & atomic_bit)) && !is_ordered(worker, word, offset))
      report_race(worker, word, is_write, is_atomic, site);
    if (is_write)
      word = (word & ~launch_mask) | touched << initialised_shift | after_write(word, touched, self, is_atomic);
  }
}

void GlobalMemory::check_stored(Worker& worker, const void* address, std::uint32_t bytes, Site site) const {
  // Which type it has is asked only where some type might have such a value.
  const bool is_suspicious = has_dependent(address, bytes / 2, Element::half) ||
                             has_dependent(address, bytes / 2, Element::bfloat16) ||
                             has_dependent(address, bytes / 8, Element::float64);
  if (!is_suspicious) return;
  const Element element = element_at(offset_of(address));
  if (!has_dependent(address, bytes / std::uint32_t(bytes_of(element)), element)) return;
  worker.report("uninitialised value stored", {site}, [&] {
    return text("%s stores an unwritten value, or a result computed from one, at {0}",
                worker.describe_current().c_str());
  });
}

void GlobalMemory::note_atomic(Worker& worker, std::size_t offset, bool is_write) {
  const std::uint32_t word = shadow_[offset / 2], writer = word & writer_mask;
  const bool others = word & atomic_bit && writer != ((worker.block_number + 1) & writer_mask);
  Thread& thread = *worker.current;
  BlockOrder& order = worker.launch.block_order;
  if (order.touch(offset, worker.block_number, worker.told, is_write, thread.has_fenced_memory, others) &&
      (thread.words.empty() || thread.words.back() != offset))
    thread.words.push_back(offset);
}

// Whether this block has acquired the releases of the other writers.
bool GlobalMemory::is_ordered(const Worker& worker, std::uint32_t word, std::size_t offset) const {
  const std::uint32_t writer = word & writer_mask;
  if (writer != several_writers) return worker.told.count(writer - 1);
  return worker.launch.block_order.has_all(offset, worker.block_number, worker.told);
}

void GlobalMemory::report_race(Worker& worker, std::uint32_t word, bool is_write, bool is_atomic, Site site) {
  worker.report("race between blocks", {site}, [&] {
    const std::uint32_t writer = word & writer_mask;
    const std::string other = writer == several_writers ? "other blocks" : text("block %u", writer - 1);
    return text("block %u %s memory at {0} that %s %s in the same launch", worker.block_number,
                is_atomic  ? "updates atomically"
                : is_write ? "writes"
                           : "reads",
                other.c_str(), word & atomic_bit ? "updated atomically" : "wrote");
  });
}

}  // namespace tile2cu::engine
