// Operators of a type of 16 bits whose arithmetic is done in float and rounded once, which is correctly rounded since
// float has more than twice the digits.
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
