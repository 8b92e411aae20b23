// The parts of the C++ standard library that standard.h provides, for NVRTC, which has only size_t, printf and the
// functions of <math.h>. libcu++'s <cuda/std/type_traits> adds up to 1.5 s to each compilation.
#pragma once

// The same types as in libcu++'s <cuda/std/cstdint>, so that a program may include both.
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;

// Suppresses "declared but never referenced": constants that only the launcher uses are unused here.
#pragma nv_diag_suppress 177

// NVRTC's spelling of compiler built-ins.
#define __builtin_memcpy memcpy
#define __builtin_huge_val() __builtin_bit_cast(double, 0x7ff0000000000000ull)
#define __builtin_nan(payload) __builtin_bit_cast(double, 0x7ff8000000000000ull)

namespace tl {

// Name lookup in namespace tl finds this tl::std; nothing is added to ::std. Volatile types, arrays and functions are
// not supported.
namespace std {

template <bool value_> struct bool_constant {
  static constexpr bool value = value_;
};

template <bool condition, class A, class B> struct conditional {
  using type = A;
};
template <class A, class B> struct conditional<false, A, B> {
  using type = B;
};
template <bool condition, class A, class B> using conditional_t = typename conditional<condition, A, B>::type;

template <bool condition, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> {
  using type = T;
};
template <bool condition, class T = void> using enable_if_t = typename enable_if<condition, T>::type;

template <class...> using void_t = void;

template <class T> struct remove_const {
  using type = T;
};
template <class T> struct remove_const<const T> {
  using type = T;
};
template <class T> using remove_const_t = typename remove_const<T>::type;

template <class T> struct remove_reference {
  using type = T;
};
template <class T> struct remove_reference<T&> {
  using type = T;
};
template <class T> struct remove_reference<T&&> {
  using type = T;
};
template <class T> using remove_reference_t = typename remove_reference<T>::type;
template <class T> using decay_t = remove_const_t<remove_reference_t<T>>;

template <class A, class B> struct is_same : bool_constant<false> {};
template <class T> struct is_same<T, T> : bool_constant<true> {};
template <class T> struct is_const : bool_constant<false> {};
template <class T> struct is_const<const T> : bool_constant<true> {};
template <class T> struct is_class : bool_constant<__is_class(T)> {};
template <class From, class To> struct is_convertible : bool_constant<__is_convertible_to(From, To)> {};

template <class T, class... Types> constexpr bool is_one_of = (is_same<T, Types>::value || ...);
template <class T>
struct is_integral
    : bool_constant<is_one_of<remove_const_t<T>, bool, char, signed char, unsigned char, short, unsigned short, int,
                              unsigned, long, unsigned long, long long, unsigned long long>> {};
template <class T> struct is_floating_point : bool_constant<is_one_of<remove_const_t<T>, float, double>> {};
template <class T> struct is_arithmetic : bool_constant<is_integral<T>::value || is_floating_point<T>::value> {};
template <class T> struct is_signed : bool_constant<is_arithmetic<T>::value && T(-1) < T(0)> {};
template <class T> struct is_unsigned : bool_constant<is_arithmetic<T>::value && T(0) < T(-1)> {};

// The unsigned integer type of a given size.
template <int bytes> struct UnsignedOf;
template <> struct UnsignedOf<1> {
  using type = uint8_t;
};
template <> struct UnsignedOf<2> {
  using type = uint16_t;
};
template <> struct UnsignedOf<4> {
  using type = uint32_t;
};
template <> struct UnsignedOf<8> {
  using type = uint64_t;
};
template <class T> using make_unsigned_t = typename UnsignedOf<sizeof(T)>::type;

template <class T> __device__ T&& declval();  // never called

// For arithmetic types only.
template <class A, class B> using common_type_t = decay_t<decltype(true ? A() : B())>;

}  // namespace std
}  // namespace tl
