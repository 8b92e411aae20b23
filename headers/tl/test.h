// Support for the test program of an emitted kernel (NAME_test.cpp): double-precision reference arrays, random data,
// device memory, comparison and timing. Plain C++17; independent of the kernel headers.
// With TL_ON_GPU the kernel runs on the current GPU by the CUDA or HIP runtime, otherwise on tile2cu's CPU engine.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>
#include "status.h"

// TL_GPU(Malloc) is cudaMalloc or hipMalloc.
#if defined(TL_ON_GPU) && (defined(__HIP__) || defined(__HIP_PLATFORM_AMD__))
#include <hip/hip_runtime_api.h>
#define TL_GPU(name) hip##name
#elif defined(TL_ON_GPU)
#include <cuda_runtime_api.h>
#define TL_GPU(name) cuda##name
#else
#include "host/engine.h"
#endif

namespace tl {
namespace test {

// ---- element types: rounding and bit representation -----------------------------------------------------------------

// The special values of a format: infinities and NaN (ieee); NaN as the all-ones code only, no infinity (nan; OCP
// E4M3); NaN as the code of negative zero, and an exponent bias one larger (fnuz); neither (numbers).
enum class Codes { ieee, nan, fnuz, numbers };

// An IEEE-like floating-point type of up to 16 bits. Rounds to nearest even; overflow gives infinity, or the largest
// number if the format has no infinity.
template <int exponent_bits, int mantissa_bits, Codes codes> struct SmallFloat {
  using value = double;
  static constexpr bool has_infinity = codes == Codes::ieee, is_fnuz = codes == Codes::fnuz;
  static constexpr bool all_numbers = codes == Codes::numbers;
  static constexpr int bits = 1 + exponent_bits + mantissa_bits;
  static constexpr int bias = (1 << (exponent_bits - 1)) - (is_fnuz ? 0 : 1);
  static constexpr int least_exponent = 1 - bias;
  static double largest() {
    if (all_numbers) return std::ldexp(2.0 - std::ldexp(1.0, -mantissa_bits), bias + 1);
    if (is_fnuz) return std::ldexp(2.0 - std::ldexp(1.0, -mantissa_bits), bias - 1);
    if (has_infinity) return std::ldexp(2.0 - std::ldexp(1.0, -mantissa_bits), bias);
    return std::ldexp(2.0 - std::ldexp(1.0, 1 - mantissa_bits), bias + 1);
  }
  static double from(double x) {
    if (all_numbers && std::isnan(x)) return largest();
    if (x == 0 || std::isnan(x)) return x;
    if (std::isinf(x)) return has_infinity ? x : std::copysign(largest(), x);
    int exponent;
    std::frexp(x, &exponent);
    const int step = std::max(exponent - 1, least_exponent) - mantissa_bits;
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -step)), step);
    if (std::fabs(rounded) <= largest()) return rounded;
    return std::copysign(has_infinity ? std::numeric_limits<double>::infinity() : largest(), x);
  }
  static uint64_t pack(double x) {
    const uint64_t sign = uint64_t(std::signbit(x)) << (exponent_bits + mantissa_bits);
    const uint64_t top = ((uint64_t(1) << exponent_bits) - 1) << mantissa_bits;
    if (is_fnuz && std::isnan(x)) return uint64_t(1) << (exponent_bits + mantissa_bits);
    if (is_fnuz && x == 0) return 0;
    if (std::isnan(x))
      return sign | top | (has_infinity ? uint64_t(1) << (mantissa_bits - 1) : (1u << mantissa_bits) - 1);
    if (std::isinf(x)) return sign | top;
    if (x == 0) return sign;
    int exponent;
    std::frexp(x, &exponent);
    exponent = std::max(exponent - 1, least_exponent);
    const auto digits = uint64_t(std::ldexp(std::fabs(x), mantissa_bits - exponent));  // with the implicit 1, if normal
    return sign | ((uint64_t(exponent - least_exponent) << mantissa_bits) + digits);
  }
  static double unpack(uint64_t bits) {
    const double sign = bits >> (exponent_bits + mantissa_bits) & 1 ? -1.0 : 1.0;
    const int exponent = int(bits >> mantissa_bits & ((1 << exponent_bits) - 1));
    const auto digits = double(bits & ((uint64_t(1) << mantissa_bits) - 1));
    const bool is_top = exponent == (1 << exponent_bits) - 1;
    if (is_top && has_infinity) {
      return sign * (digits == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN());
    }
    if (is_fnuz && sign < 0 && exponent == 0 && digits == 0) return std::numeric_limits<double>::quiet_NaN();
    if (is_top && codes == Codes::nan && digits == (1 << mantissa_bits) - 1)
      return std::numeric_limits<double>::quiet_NaN();
    if (exponent == 0) return sign * std::ldexp(digits, least_exponent - mantissa_bits);
    return sign * std::ldexp(digits + double(uint64_t(1) << mantissa_bits), exponent - bias - mantissa_bits);
  }
};
using float16 = SmallFloat<5, 10, Codes::ieee>;
using bfloat16 = SmallFloat<8, 7, Codes::ieee>;
using float8_e4m3fn = SmallFloat<4, 3, Codes::nan>;
using float8_e5m2 = SmallFloat<5, 2, Codes::ieee>;
using float8_e4m3fnuz = SmallFloat<4, 3, Codes::fnuz>;
using float8_e5m2fnuz = SmallFloat<5, 2, Codes::fnuz>;
// A power of two: the magnitude, rounded up.
struct float8_e8m0fnu {
  using value = double;
  static constexpr int bits = 8;
  static double from(double x) {
    if (std::isnan(x)) return x;
    int exponent;
    const bool is_power = std::frexp(std::fabs(x), &exponent) == 0.5;
    const int rounded = x == 0 ? -127 : std::isinf(x) ? 127 : is_power ? exponent - 1 : exponent;
    return std::ldexp(1.0, std::min(std::max(rounded, -127), 127));
  }
  static uint64_t pack(double x) { return std::isnan(x) ? 255 : uint64_t(std::ilogb(from(x)) + 127); }
  static double unpack(uint64_t bits) {
    return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, int(bits) - 127);
  }
};
using float4_e2m1fn = SmallFloat<2, 1, Codes::numbers>;

// A 4-bit integer; conversions keep the low 4 bits.
template <bool is_signed> struct Int4 {
  using value = int32_t;
  static constexpr int bits = 4;
  template <class X> static value from(X x) { return unpack(uint64_t(int64_t(x))); }
  static uint64_t pack(value x) { return uint64_t(x) & 15; }
  static value unpack(uint64_t bits) { return value(bits & 15) - (is_signed && bits & 8 ? 16 : 0); }
};
using int4 = Int4<true>;
using uint4 = Int4<false>;

// A C++ arithmetic type. Floating-point types are computed in double and rounded when stored.
template <class T> struct Native {
  using value = typename std::conditional<std::is_floating_point<T>::value, double, T>::type;
  static constexpr int bits = 8 * sizeof(T);
  template <class X> static value from(X x) { return static_cast<value>(static_cast<T>(x)); }
  static uint64_t pack(value x) {
    const T own = static_cast<T>(x);
    uint64_t bits = 0;
    std::memcpy(&bits, &own, sizeof(T));
    return bits;
  }
  static value unpack(uint64_t bits) {
    T own;
    std::memcpy(&own, &bits, sizeof(T));
    return static_cast<value>(own);
  }
};

// Reinterprets the bits of a value as another type.
template <class To, class From> typename To::value reinterpret(typename From::value x) {
  return To::unpack(From::pack(x));
}

// ---- arrays ---------------------------------------------------------------------------------------------------------

// A tensor or tile. Out-of-bounds reads return zero, out-of-bounds writes are ignored; writes round to the
// element type.
template <class Type> class Array {
 public:
  using value = typename Type::value;
  explicit Array(std::vector<int64_t> extents, std::vector<int64_t> strides = {})
      : extents_(std::move(extents)), strides_(std::move(strides)) {
    if (strides_.empty()) {
      strides_.assign(extents_.size(), 1);
      for (size_t d = extents_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * extents_[d];
    }
    int64_t last = 0, count = 1;
    for (size_t d = 0; d < extents_.size(); ++d) last += (extents_[d] - 1) * strides_[d], count *= extents_[d];
    data_.assign(count > 0 ? size_t(last) + 1 : 0, value(0));
  }
  template <class... I> value operator()(I... indices) const {
    const int64_t place = find({static_cast<int64_t>(indices)...});
    return place < 0 ? value(0) : data_[size_t(place)];
  }
  template <class X, class... I> void set(X x, I... indices) {
    const int64_t place = find({static_cast<int64_t>(indices)...});
    if (place >= 0) data_[size_t(place)] = Type::from(x);
  }
  size_t bytes() const { return (data_.size() * Type::bits + 7) / 8; }
  std::vector<value>& data() { return data_; }
  const std::vector<value>& data() const { return data_; }

 private:
  int64_t find(std::initializer_list<int64_t> indices) const {
    int64_t place = 0;
    size_t d = 0;
    for (const int64_t index : indices) {
      if (index < 0 || index >= extents_[d]) return -1;
      place += index * strides_[d++];
    }
    return place;
  }
  std::vector<int64_t> extents_, strides_;
  std::vector<value> data_;
};

// Random values, the same in every run: floating point in [-1, 1), any 8-bit or 4-bit code, other integers in 0..7.
template <class Type> void fill(Array<Type>& array, unsigned seed) {
  std::mt19937 random(seed);
  for (auto&& x : array.data()) {  // of bool, a proxy
    const double unit = (random() >> 8) * 0x1p-24;
    if (std::is_same<typename Type::value, double>::value) {
      x = Type::from(2 * unit - 1);
    } else if (std::is_same<typename Type::value, bool>::value) {
      x = unit < 0.5;
    } else {
      x = Type::unpack(Type::bits <= 8 ? random() & 0xff : random() & 7);
    }
  }
}

// ---- functions that the reference calls -----------------------------------------------------------------------------

template <class A, class B> using Common = typename std::common_type<A, B>::type;
// If one operand is NaN, the result is the other, as in the kernel.
template <class A, class B> Common<A, B> maximum(A a, B b) { return a != a ? b : b != b ? a : a < b ? b : a; }
template <class A, class B> Common<A, B> minimum(A a, B b) { return a != a ? b : b != b ? a : b < a ? b : a; }
template <class A, class B> Common<A, B> floordiv(A a, B b) {
  if constexpr (std::is_floating_point<Common<A, B>>::value)
    return std::floor(a / b);
  else
    return b == 0 ? 0 : a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
template <class A, class B> Common<A, B> floormod(A a, B b) { return a - floordiv(a, b) * b; }
template <class A, class B> Common<A, B> ceildiv(A a, B b) { return -floordiv(-a, b); }
template <class A> A absolute(A a) { return a < 0 ? -a : a; }
inline double exp10(double x) { return std::pow(10.0, x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// ---- the device -----------------------------------------------------------------------------------------------------

inline void require(bool is_fine, const char* what) {
  if (is_fine) return;
  std::printf("cannot go on: %s\n", what);
  std::exit(2);
}

#if defined(TL_ON_GPU)
// Exits if a runtime call has failed.
inline void require_done(TL_GPU(Error_t) error) { require(error == TL_GPU(Success), TL_GPU(GetErrorString)(error)); }
#endif

// Element i of a byte array; the first of two 4-bit elements is in the lower half of its byte.
template <class Type> void put(std::vector<unsigned char>& bytes, size_t i, uint64_t bits) {
  if (Type::bits < 8)
    bytes[i / 2] |= static_cast<unsigned char>(bits << i % 2 * 4);
  else
    std::memcpy(&bytes[i * (Type::bits / 8)], &bits, Type::bits / 8);  // little-endian
}
template <class Type> uint64_t get(const std::vector<unsigned char>& bytes, size_t i) {
  uint64_t bits = 0;
  if (Type::bits < 8)
    bits = bytes[i / 2] >> i % 2 * 4 & 15;
  else
    std::memcpy(&bits, &bytes[i * (Type::bits / 8)], Type::bits / 8);
  return bits;
}

// A tensor in device memory.
template <class Type> class OnDevice {
 public:
  explicit OnDevice(const Array<Type>& array) : bytes_(array.bytes()) {
    std::vector<unsigned char> content(bytes_);
    for (size_t i = 0; i < array.data().size(); ++i) put<Type>(content, i, Type::pack(array.data()[i]));
#if defined(TL_ON_GPU)
    if (bytes_) require_done(TL_GPU(Malloc)(&data_, bytes_));
    if (bytes_) require_done(TL_GPU(Memcpy)(data_, content.data(), bytes_, TL_GPU(MemcpyHostToDevice)));
#else
    if (bytes_) data_ = tl_engine_alloc(bytes_, 1);
    require(bytes_ == 0 || data_ != nullptr, "no memory in the CPU engine");
    if (bytes_) std::memcpy(data_, content.data(), bytes_);
#endif
  }
  ~OnDevice() {
#if defined(TL_ON_GPU)
    (void)TL_GPU(Free)(data_);  // fails after a device fault
#else
    if (data_) tl_engine_free(data_);
#endif
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  void* data() const { return data_; }

  // Copies the tensor back into an array of the same shape.
  void read(Array<Type>& array) const {
    std::vector<unsigned char> content(bytes_);
#if defined(TL_ON_GPU)
    if (bytes_) require_done(TL_GPU(Memcpy)(content.data(), data_, bytes_, TL_GPU(MemcpyDeviceToHost)));
#else
    if (bytes_) std::memcpy(content.data(), data_, bytes_);
#endif
    for (size_t i = 0; i < array.data().size(); ++i) array.data()[i] = Type::unpack(get<Type>(content, i));
  }

 private:
  size_t bytes_;
  void* data_ = nullptr;
};

// A launcher's workspace.
class Workspace {
 public:
  explicit Workspace(size_t bytes) : memory_(Array<Native<uint8_t>>({int64_t(bytes)})), bytes_(bytes) {}
  void* data() const { return memory_.data(); }
  size_t bytes() const { return bytes_; }

 private:
  OnDevice<Native<uint8_t>> memory_;
  size_t bytes_;
};

// Synchronises the device. Returns false if a kernel failed, or if the CPU engine has findings (races, out-of-bounds
// accesses and others: with TL_CHECK set and the kernel compiled with -fsanitize=thread).
inline bool device_is_fine() {
#if defined(TL_ON_GPU)
  const auto error = TL_GPU(DeviceSynchronize)();
  if (error != TL_GPU(Success)) std::printf("  %s\n", TL_GPU(GetErrorString)(error));
  return error == TL_GPU(Success);
#else
  const char* const report = tl_engine_report_json();
  const bool is_fine =
      report == nullptr || std::strstr(report, "\"findings\": []") || !std::strstr(report, "\"findings\"");
  if (!is_fine) std::printf("  %s\n", report);
  return is_fine;
#endif
}

// Prepares the device; a test without one ends with 77, which CTest and automake take as skipped.
inline void start() {
#if defined(TL_ON_GPU)
  int devices = 0;
  if (TL_GPU(GetDeviceCount)(&devices) != TL_GPU(Success) || devices == 0) std::printf("no device\n"), std::exit(77);
#else
  tl_engine_options options{};
  options.check = std::getenv("TL_CHECK") != nullptr;
  options.workers = 1;
  tl_engine_set_options(&options);
#endif
}

// The CPU engine runs at most so many blocks of a launch from now on; a GPU runs all.
inline void run_few_blocks(int most) {
#if !defined(TL_ON_GPU)
  tl_engine_options options{};
  tl_engine_get_options(&options);
  options.most_blocks = most;
  tl_engine_set_options(&options);
#else
  (void)most;
#endif
}

// Whether a launch, after which `later` others ran, computed a tile of its grid.
inline bool is_computed(int later, int64_t x, int64_t y = 0, int64_t z = 0) {
#if defined(TL_ON_GPU)
  (void)later, (void)x, (void)y, (void)z;
  return true;
#else
  return tl_engine_computed(uint32_t(later), uint32_t(x), uint32_t(y), uint32_t(z)) != 0;
#endif
}

// ---- comparison and timing ------------------------------------------------------------------------------------------

// Compares arrays. Floating point: the maximum error relative to the largest expected magnitude is at most `tolerance`.
// Integers: equality.
template <class Type>
bool same(const char* name, const Array<Type>& found, const Array<Type>& expected, double tolerance) {
  double scale = 0, error = 0;
  for (const auto x : expected.data()) {
    if (std::isfinite(double(x))) scale = std::max(scale, std::fabs(double(x)));
  }
  for (size_t i = 0; i < expected.data().size(); ++i) {
    const double a = double(found.data()[i]), b = double(expected.data()[i]);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double off = std::fabs(a - b);
    error = off <= error ? error : off == off ? off : std::numeric_limits<double>::infinity();
  }
  const bool is_float = std::is_same<typename Type::value, double>::value;
  const bool is_same = is_float ? error <= tolerance * scale : error == 0;
  if (!is_same)
    std::printf("  %s: error %.3g, largest value %.3g, tolerance %.3g of it\n", name, error, scale, tolerance);
  return is_same;
}

// The time of one call in milliseconds: the median of 20 batches of 10 queued calls on a GPU, of 3 calls on the engine.
template <class Call> double milliseconds(Call call) {
  std::vector<double> times;
#if defined(TL_ON_GPU)
  TL_GPU(Event_t) begin, end;
  for (auto* event : {&begin, &end}) require_done(TL_GPU(EventCreate)(event));
  for (int i = 0; i < 3; ++i) call();
  for (int i = 0; i < 20; ++i) {
    require_done(TL_GPU(EventRecord)(begin, nullptr));
    for (int j = 0; j < 10; ++j) call();
    require_done(TL_GPU(EventRecord)(end, nullptr));
    require_done(TL_GPU(EventSynchronize)(end));
    float ms = 0;
    require_done(TL_GPU(EventElapsedTime)(&ms, begin, end));
    times.push_back(ms / 10);
  }
  for (auto event : {begin, end}) require_done(TL_GPU(EventDestroy)(event));
#else
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
#endif
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace test
}  // namespace tl
