// The interface of cp.async as synchronous copies: a load, and a store to shared memory.
#pragma once
#include "memory.h"

namespace tl {

// Copies source_bytes (0..bytes) and fills the rest of `bytes` with zeros; with 0 nothing is read. Both addresses are
// aligned to `bytes`. Any thread. A barrier makes the bytes visible to other threads.
template <int bytes> TL_DEVICE void cp_async(void* to, const void* from, int source_bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp_async copies 4, 8 or 16 bytes");
  uint32_t words[bytes / 4] = {};
  if (source_bytes == bytes) {
    if constexpr (bytes == 16)
      store16(to, load16(from));
    else if constexpr (bytes == 8)
      store8(to, load8(from));
    else
      store4(to, load4(from));
    return;
  }
  TL_UNROLL
  for (int i = 0; i < bytes; ++i)  // constant indices: `words` is kept in registers
    if (i < source_bytes) words[i / 4] |= uint32_t(static_cast<const unsigned char*>(from)[i]) << 8 * (i % 4);
  TL_UNROLL
  for (int word = 0; word < bytes / 4; ++word) store4(static_cast<uint32_t*>(to) + word, words[word]);
}

// As cp_async: these targets have no such cache hint.
TL_DEVICE bool spares_l2(int64_t) { return false; }
template <int bytes> TL_DEVICE void cp_async_once(void* to, const void* from, int source_bytes) {
  cp_async<bytes>(to, from, source_bytes);
}
// No copies are pending: nothing to commit or to wait for.
TL_DEVICE void cp_async_commit() {}
template <int n> TL_DEVICE void cp_async_wait() {}

}  // namespace tl
