// The unsigned integer of `bytes` bytes, for the sizes that native atomics support.
#pragma once

namespace tl {

template <int bytes> struct BitsOf;
template <> struct BitsOf<2> {
  using type = unsigned short;
};
template <> struct BitsOf<4> {
  using type = unsigned;
};
template <> struct BitsOf<8> {
  using type = unsigned long long;
};

}  // namespace tl
