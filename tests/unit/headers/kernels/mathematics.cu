// Functions on scalars and packets of each floating type, a row of results each.
#include <tl/tl.h>

namespace mathematics {

constexpr int n = 256;
using Layout = tl::Blocked<tl::Shape<n>, tl::Shape<32>, 4>;

// X is any number, U lies in [-1, 1], P is positive.
template <class T, int vector> __global__ void functions(const T* X_data, const T* U_data, const T* P_data, T* Y_data) {
  const auto in = [&](const T* data) { return tl::tensor<tl::Aligned<8>>(data, n); };
  const auto X = in(X_data), U = in(U_data), P = in(P_data);
  const auto Y = tl::tensor<tl::Aligned<8>>(Y_data, 28, n);
  tl::parallel<vector>(Layout{}, [&](auto i) {
    const auto x = X(i);
    const auto u = U(i);
    const auto p = P(i);
    Y(0, i) = tl::tan(u), Y(1, i) = tl::asin(u), Y(2, i) = tl::acos(u), Y(3, i) = tl::atan(x), Y(4, i) = tl::sinh(u);
    Y(5, i) = tl::cosh(u), Y(6, i) = tl::exp10(u), Y(7, i) = tl::log10(p), Y(8, i) = tl::atan2(u, p);
    Y(9, i) = tl::fmod(x, p), Y(10, i) = tl::copysign(p, u), Y(11, i) = tl::fma(u, p, x), Y(12, i) = tl::sign(x);
    Y(13, i) = tl::clamp(x, -1.5f, 2.0f), Y(14, i) = tl::pow(p, u), Y(15, i) = tl::fast_exp(u);
    Y(16, i) = tl::fast_exp10(u), Y(17, i) = tl::fast_log(p), Y(18, i) = tl::fast_log2(p);
    Y(19, i) = tl::fast_log10(p), Y(20, i) = tl::fast_sin(u), Y(21, i) = tl::fast_cos(u), Y(22, i) = tl::fast_tan(u);
    Y(23, i) = tl::fast_pow(p, u), Y(24, i) = tl::fast_divide(x, p), Y(25, i) = tl::fast_reciprocal(p);
    Y(26, i) = tl::fast_tanh(u), Y(27, i) = tl::divide(x, p);
  });
}

// Of special values: isnan, isinf, isfinite as bits 0, 1, 2; the sign; the bits themselves, and their complement.
template <class T, class Bits, int vector>
__global__ void special(const T* X_data, int* Y_data, T* S_data, Bits* B_data) {
  const auto X = tl::tensor<tl::Aligned<8>>(X_data, n);
  const auto Y = tl::tensor<tl::Aligned<16>>(Y_data, n);
  const auto S = tl::tensor<tl::Aligned<8>>(S_data, n);
  const auto B = tl::tensor<tl::Aligned<8>>(B_data, 2, n);
  tl::parallel<vector>(Layout{}, [&](auto i) {
    const auto x = X(i);
    Y(i) = tl::cast<int>(tl::isnan(x)) + 2 * tl::cast<int>(tl::isinf(x)) + 4 * tl::cast<int>(tl::isfinite(x));
    S(i) = tl::sign(x);
    B(0, i) = tl::reinterpret<Bits>(x);
    B(1, i) = ~tl::reinterpret<Bits>(tl::reinterpret<T>(tl::reinterpret<Bits>(x)));
  });
}

// Integers: powers, remainders, minimum and maximum, the sign.
__global__ void integers(const int* X_data, const int* E_data, int* Y_data) {
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, n), E = tl::tensor<tl::Aligned<16>>(E_data, n);
  const auto Y = tl::tensor<tl::Aligned<16>>(Y_data, 5, n);
  tl::parallel<4>(Layout{}, [&](auto i) {
    Y(0, i) = tl::pow(X(i), E(i)), Y(1, i) = tl::clamp(X(i), -2, 5), Y(2, i) = tl::sign(X(i));
    Y(3, i) = tl::fma(X(i), E(i), 7), Y(4, i) = tl::cast<int>(tl::isfinite(X(i)));
  });
}

template <class T, int vector> tl_status run(const void* X, const void* U, const void* P, void* Y) {
  return tl::launch(functions<T, vector>, dim3(1), 32, nullptr, static_cast<const T*>(X), static_cast<const T*>(U),
                    static_cast<const T*>(P), static_cast<T*>(Y));
}
template <class T, class Bits, int vector> tl_status run_special(const void* X, void* Y, void* S, void* B) {
  return tl::launch(special<T, Bits, vector>, dim3(1), 32, nullptr, static_cast<const T*>(X), static_cast<int*>(Y),
                    static_cast<T*>(S), static_cast<Bits*>(B));
}

// To 8-bit floating point one by one and in packets, back to float and half, and what arithmetic makes of it.
template <class T> __global__ void float8(const float* X_data, T* Y_data, float* Z_data, tl::half* H_data) {
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, n);
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, 3, n);
  const auto Z = tl::tensor<tl::Aligned<16>>(Z_data, 2, n);
  const auto H = tl::tensor<tl::Aligned<8>>(H_data, n);
  tl::Fragment<T, Layout> y;
  tl::parallel(Layout{}, [&](auto i) { Y(0, i) = X(i), y(i) = tl::cast<T>(X(i)); });
  tl::parallel<4>(Layout{}, [&](auto i) { Y(1, i) = tl::cast<T>(X(i)); });
  tl::parallel(Layout{}, [&](auto i) { Z(0, i) = y(i); });
  tl::parallel<4>(Layout{}, [&](auto i) { Z(1, i) = tl::max(Y(1, i), 0.0f) + 2 * tl::cast<float>(Y(1, i)); });
  tl::parallel<4>(Layout{}, [&](auto i) { H(i) = tl::cast<tl::half>(Y(1, i)); });
  tl::parallel(Layout{}, [&](auto i) { Y(2, i) = y(i) * y(i) + tl::exp(y(i)); });
}
// Every bit pattern as a float, and as a half, four together.
template <class T> __global__ void all_float8(float* Z_data, uint32_t* H_data) {
  for (int i = tl::thread(); i < 256; i += 32) Z_data[i] = T::from_bits(uint8_t(i));
  for (int i = tl::thread(); i < 64; i += 32) T::halves(0x03020100 + 0x04040404 * i, H_data[2 * i], H_data[2 * i + 1]);
}
template <class T> tl_status run_float8(const void* X, void* Y, void* Z, void* H) {
  return tl::launch(float8<T>, dim3(1), 32, nullptr, static_cast<const float*>(X), static_cast<T*>(Y),
                    static_cast<float*>(Z), static_cast<tl::half*>(H));
}

}  // namespace mathematics

#define TL_FLOAT8(name, T)                                                                      \
  extern "C" tl_status name(const void* X, void* Y, void* Z, void* H) {                         \
    return mathematics::run_float8<T>(X, Y, Z, H);                                              \
  }                                                                                             \
  extern "C" tl_status all_##name(void* Z, void* H) {                                           \
    return tl::launch(mathematics::all_float8<T>, dim3(1), 32, nullptr, static_cast<float*>(Z), \
                      static_cast<uint32_t*>(H));                                               \
  }
TL_FLOAT8(e4m3, tl::float8_e4m3)
TL_FLOAT8(e5m2, tl::float8_e5m2)
TL_FLOAT8(e4m3fnuz, tl::float8_e4m3fnuz)
TL_FLOAT8(e5m2fnuz, tl::float8_e5m2fnuz)

#define TL_TYPE(name, T, Bits, vector)                                                          \
  extern "C" tl_status functions_##name(const void* X, const void* U, const void* P, void* Y) { \
    return mathematics::run<T, vector>(X, U, P, Y);                                             \
  }                                                                                             \
  extern "C" tl_status special_##name(const void* X, void* Y, void* S, void* B) {               \
    return mathematics::run_special<T, Bits, vector>(X, Y, S, B);                               \
  }
TL_TYPE(float, float, uint32_t, 4)
TL_TYPE(float_scalar, float, int32_t, 1)
TL_TYPE(double, double, uint64_t, 2)
TL_TYPE(half, tl::half, uint16_t, 4)
TL_TYPE(half_scalar, tl::half, uint16_t, 1)
TL_TYPE(bfloat16, tl::bfloat16, int16_t, 4)
extern "C" tl_status integers(const void* X, const void* E, void* Y) {
  return tl::launch(mathematics::integers, dim3(1), 32, nullptr, static_cast<const int*>(X), static_cast<const int*>(E),
                    static_cast<int*>(Y));
}
