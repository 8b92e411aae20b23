// Operators of a 16-bit type, computed in float and rounded once. The result is correctly rounded, because float has
// more than twice the mantissa bits.
#pragma once

#define TL_COMPUTED_IN_FLOAT(Type)                                                                     \
  TL_DEVICE Type operator+(Type a, Type b) { return Type(float(a) + float(b)); }                       \
  TL_DEVICE Type operator-(Type a, Type b) { return Type(float(a) - float(b)); }                       \
  TL_DEVICE Type operator*(Type a, Type b) { return Type(float(a) * float(b)); }                       \
  TL_DEVICE Type operator/(Type a, Type b) { return Type(float(a) / float(b)); }                       \
  TL_DEVICE Type operator-(Type a) { return Type::from_bits(static_cast<uint16_t>(a.bits ^ 0x8000)); } \
  TL_DEVICE Type& operator+=(Type& a, Type b) { return a = a + b; }                                    \
  TL_DEVICE Type& operator-=(Type& a, Type b) { return a = a - b; }                                    \
  TL_DEVICE Type& operator*=(Type& a, Type b) { return a = a * b; }                                    \
  TL_DEVICE Type& operator/=(Type& a, Type b) { return a = a / b; }                                    \
  TL_DEVICE bool operator==(Type a, Type b) { return float(a) == float(b); }                           \
  TL_DEVICE bool operator!=(Type a, Type b) { return float(a) != float(b); }                           \
  TL_DEVICE bool operator<(Type a, Type b) { return float(a) < float(b); }                             \
  TL_DEVICE bool operator<=(Type a, Type b) { return float(a) <= float(b); }                           \
  TL_DEVICE bool operator>(Type a, Type b) { return float(a) > float(b); }                             \
  TL_DEVICE bool operator>=(Type a, Type b) { return float(a) >= float(b); }
