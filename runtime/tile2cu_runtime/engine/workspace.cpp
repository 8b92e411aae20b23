#include "workspace.h"

#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>

namespace tile2cu::engine {

Workspace::Workspace()
    : mapping_(
          mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
  arena_ = reinterpret_cast<char*>((address + arena_alignment - 1) & ~std::uintptr_t(arena_alignment - 1));
}

Workspace::~Workspace() { munmap(mapping_, mapping_bytes); }

// Never destroyed: at process exit another thread may still run a launch.
Workspace& Workspace::of_worker(int number) {
  static std::mutex mutex;
  static auto* all = new std::map<int, std::unique_ptr<Workspace>>;
  const std::lock_guard<std::mutex> lock(mutex);
  auto& workspace = (*all)[number];
  if (!workspace) workspace = std::make_unique<Workspace>();
  return *workspace;
}

}  // namespace tile2cu::engine
