// The unsigned integer of so many bytes, of those that the machines' atomics take.
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
