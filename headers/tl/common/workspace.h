// The workspace of a kernel: tensors in global memory, which its consecutive launches share. Host side.
#pragma once
#include "base.h"

namespace tl {

// The alignment of tensors in a workspace in bytes, one cache line.
constexpr size_t workspace_alignment = 128;

// The size of a tensor with these extents in a workspace, in bytes; 2^60 if there are more, as no memory has so many.
template <class T, class... Extents> size_t workspace_bytes(Extents... extents) {
  constexpr size_t most = size_t(1) << 60;
  if ((false || ... || (extents <= 0))) return 0;
  if ((static_cast<double>(sizeof(T)) * ... * static_cast<double>(extents)) >= static_cast<double>(most)) return most;
  const size_t bytes = (sizeof(T) * ... * static_cast<size_t>(extents));
  return (bytes + workspace_alignment - 1) / workspace_alignment * workspace_alignment;
}

// Allocates the tensors of a workspace in the order in which workspace_bytes counted them.
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
