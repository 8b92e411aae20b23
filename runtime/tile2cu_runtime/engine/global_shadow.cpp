#include "global_shadow.h"

#include <algorithm>

#include "worker.h"

namespace tile2cu::engine {

void GlobalShadow::reset(int clock_columns) {
  columns_ = clock_columns;
  pages_.clear();
  stored_.clear();
  last_number_ = ~std::size_t(0);
}

GranuleShadow& GlobalShadow::page(std::size_t number) {
  if (number == last_number_) return *last_;
  GranuleShadow*& found = pages_[number];
  if (!found) {
    if (pages_.size() > pool_.size()) pool_.emplace_back();
    found = &pool_[pages_.size() - 1];
    found->reset(GlobalMemory::instance().address_of(number * page_bytes), false, page_bytes, columns_,
                 granule_initialised);
  }
  last_number_ = number;
  last_ = found;
  return *found;
}

template <class Visit> void GlobalShadow::for_each_page(const void* address, std::uint32_t bytes, Visit&& visit) {
  auto& memory = GlobalMemory::instance();
  if (!memory.contains(address) || memory.is_read_only(address)) return;
  std::size_t offset = memory.offset_of(address);
  for (const std::size_t end = offset + bytes; offset < end;) {
    const std::size_t number = offset / page_bytes, within = offset % page_bytes;
    const std::size_t piece = std::min(end - offset, page_bytes - within);
    visit(page(number), std::uint32_t(within), std::uint32_t(piece));
    offset += piece;
  }
}

void GlobalShadow::read(Worker& worker, const void* address, std::uint32_t bytes, const MemoryAccess& access) {
  settle(worker);
  for_each_page(address, bytes, [&](GranuleShadow& page, std::uint32_t offset, std::uint32_t piece) {
    page.read(worker, offset, piece, access);
  });
}

void GlobalShadow::write(Worker& worker, const void* address, std::uint32_t bytes, const MemoryAccess& access,
                         std::uint16_t flags) {
  settle(worker);
  for_each_page(address, bytes, [&](GranuleShadow& page, std::uint32_t offset, std::uint32_t piece) {
    page.write(worker, offset, piece, access, flags);
    if (access.follows) stored_.push_back(&page);
  });
}

void GlobalShadow::land(const void* address, std::uint32_t bytes, ThreadNumber writer, Clock clock) {
  for_each_page(address, bytes, [&](GranuleShadow& page, std::uint32_t offset, std::uint32_t piece) {
    page.land(offset, piece, writer, clock, granule_initialised);
  });
}

}  // namespace tile2cu::engine
