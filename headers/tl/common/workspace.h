// A kernel's workspace: the tensors in global memory that its launches share, one after the other. Host side.
#pragma once
#include "base.h"

namespace tl {

// Tensors in a workspace start at multiples of this, a line of the caches.
constexpr size_t workspace_alignment = 128;

// What a tensor of these extents takes in a workspace.
template <class T, class... Extents> size_t workspace_bytes(Extents... extents) {
  const size_t bytes = (sizeof(T) * ... * static_cast<size_t>(extents));
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

// Hands out the tensors of a workspace in the order in which workspace_bytes counted them.
class Workspace {
 public:
  explicit Workspace(void* start) : next_(static_cast<char*>(start)) {}
  template <class T, class... Extents> T* take(Extents... extents) {
    T* const tensor = static_cast<T*>(static_cast<void*>(next_));
    next_ += workspace_bytes<T>(extents...);
    return tensor;
  }

 private:
  char* next_;
};

}  // namespace tl
