// The device heap of tl_engine_alloc, with shadow state for bounds, initialisation and writing blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "basics.h"
#include "unwritten.h"

namespace tile2cu::engine {

struct Worker;

class GlobalMemory {
 public:
  static GlobalMemory& instance();

  void* allocate(std::size_t bytes, bool initialised);
  void release(void* memory);
  void set_element_type(void* memory, Element element);
  void set_read_only(void* memory);
  // Offset in the heap, or one past every size when the address lies elsewhere.
  std::size_t offset_of(const void* address) const { return std::size_t(static_cast<const char*>(address) - base_); }
  bool contains(const void* address) const { return base_ && offset_of(address) < heap_bytes; }
  const char* address_of(std::size_t offset) const { return base_ + offset; }
  // Whether no kernel writes the memory that has this place in the heap.
  bool is_read_only(const void* address) const;
  // A place in the heap, for a message.
  std::string name(const void* address) const;

  // Clears the record of writing blocks: launches on one stream are ordered.
  void begin_launch();
  void check(Worker& worker, const void* address, std::uint32_t bytes, bool is_write, bool is_atomic, Site site,
             bool blind = false);
  // Reports an unwritten value in the stored bytes.
  void check_stored(Worker& worker, const void* address, std::uint32_t bytes, Site site) const;

 private:
  // Reserved address space; pages are committed when touched.
  static constexpr std::size_t heap_bytes = std::size_t(16) << 30;
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t red_zone = 4096;
  struct Overrun {
    std::size_t distance, allocation;
  };

  bool reserve();
  std::optional<std::size_t> find_gap(std::size_t bytes) const;
  void paint(std::size_t offset, std::size_t bytes, bool initialised);
  void report_out_of_bounds(Worker& worker, std::size_t offset, std::uint32_t bytes, bool is_write, Site site);
  void note_atomic(Worker& worker, std::size_t offset, bool is_write);
  bool is_ordered(const Worker& worker, std::uint32_t word, std::size_t offset) const;
  void report_race(Worker& worker, std::uint32_t word, bool is_write, bool is_atomic, Site site);
  Element element_at(std::size_t offset) const;
  std::optional<Overrun> overrun(std::size_t offset) const;

  char* base_ = nullptr;
  std::uint32_t* shadow_ = nullptr;               // one word per two bytes
  std::map<std::size_t, std::size_t> allocated_;  // offset -> bytes
  std::map<std::size_t, Element> elements_;       // by the same offsets, if known
  mutable std::mutex mutex_;
};

}  // namespace tile2cu::engine
