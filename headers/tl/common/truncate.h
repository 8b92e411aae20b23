// Floating-point numbers to integers of 32 or 64 bits where C++ leaves open what is out of range.
#pragma once
#include "../standard.h"

namespace tl {

// As NVIDIA's instructions truncate: out of range saturates; NaN becomes 0, but from double, or to 64 bits, the highest
// bit alone. [PTX ISA, cvt]
template <class To, class From> constexpr To saturating_truncate(From x) {
  using Bits = std::make_unsigned_t<To>;
  constexpr Bits highest = Bits(1) << (8 * sizeof(To) - 1);
  constexpr To high = static_cast<To>(std::is_signed<To>::value ? highest - 1 : ~Bits(0));
  constexpr To low = static_cast<To>(std::is_signed<To>::value ? highest : 0);
  if (x != x) return sizeof(To) == 8 || sizeof(From) == 8 ? static_cast<To>(highest) : To(0);
  if (x <= static_cast<From>(low)) return low;
  return x >= static_cast<From>(high) ? high : static_cast<To>(x);
}

}  // namespace tl
