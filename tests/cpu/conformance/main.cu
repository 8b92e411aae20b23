// Runs every micro-kernel of ../kernels/primitives.cu and two GEMMs on integer-valued data and writes all outputs to
// the file argv[1]. Built by g++ (CPU engine, checking on) and by nvcc (GPU) from this text, it gives the same bytes.
// Exit status: 0; 1 when a launch fails, or the engine has findings (they go to standard error).
#include "../kernels/gemm_sm80.cu"
#include "../kernels/gemm_sm90.cu"
#include "../kernels/primitives.cu"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace conformance {

// ---- the machine: memory, and the end of a launch ---------------------------------------------------------

#if defined(__CUDACC__)

void demand(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}
void begin() {}
void* to_device(const void* from, size_t bytes) {
  void* memory;
  demand(cudaMalloc(&memory, bytes));
  demand(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice));
  return memory;
}
void from_device(void* to, void* memory, size_t bytes) {
  demand(cudaMemcpy(to, memory, bytes, cudaMemcpyDeviceToHost));
  demand(cudaFree(memory));
}
void finish() { demand(cudaDeviceSynchronize()); }

#else

void begin() {
  tl_engine_options options{};
  options.check = options.workers = 1;
  tl_engine_set_options(&options);
}
void* to_device(const void* from, size_t bytes) {
  void* memory = tl_engine_alloc(bytes, 1);
  std::memcpy(memory, from, bytes);
  return memory;
}
void from_device(void* to, void* memory, size_t bytes) {
  std::memcpy(to, memory, bytes);
  tl_engine_free(memory);
}
void finish() {
  const char* report = tl_engine_report_json();
  if (std::strncmp(report, "{\"findings\": []", 15) == 0) return;
  std::fprintf(stderr, "%s\n", report);
  std::exit(1);
}

#endif

// ---- data -------------------------------------------------------------------------------------------------

uint32_t state = 12345;
int small_integer() {  // -8 .. 7: exact in 16 bits, and so are sums of products in float
  state = state * 1664525u + 1013904223u;
  return int(state >> 16 & 15) - 8;
}
uint16_t half_bits(int value) {
  if (value == 0) return 0;
  const unsigned magnitude = unsigned(std::abs(value));
  int exponent = 0;
  while (magnitude >> (exponent + 1)) ++exponent;
  return uint16_t((value < 0 ? 0x8000 : 0) | unsigned(exponent + 15) << 10 | (magnitude << (10 - exponent) & 0x3ff));
}
uint32_t float_bits(int value) {
  const float number = float(value);
  uint32_t bits;
  std::memcpy(&bits, &number, 4);
  return bits;
}
template <class T, class Element> std::vector<T> filled(size_t count, Element element) {
  std::vector<T> values(count);
  for (T& value : values) value = T(element());
  return values;
}
std::vector<uint16_t> halves(size_t count) {
  return filled<uint16_t>(count, [] { return half_bits(small_integer()); });
}
std::vector<uint16_t> bfloat16s(size_t count) {
  return filled<uint16_t>(count, [] { return float_bits(small_integer()) >> 16; });
}
std::vector<uint32_t> floats(size_t count) {
  return filled<uint32_t>(count, [] { return float_bits(small_integer()); });
}
std::vector<unsigned char> any_bytes(size_t count) {
  return filled<unsigned char>(count, [] { return small_integer() * 16 + small_integer(); });
}
std::vector<uint16_t> all_16bit(uint16_t exponent) {  // every value that is no NaN
  std::vector<uint16_t> values(65536);
  for (int bits = 0; bits < 65536; ++bits) {
    const bool is_nan = (bits & exponent) == exponent && (bits & 0x7fff) != exponent;
    values[bits] = uint16_t(is_nan ? 0 : bits);
  }
  return values;
}

// ---- cases ------------------------------------------------------------------------------------------------

std::FILE* file;

// A device copy of values for as long as it lives.
template <class T> struct Input {
  explicit Input(const std::vector<T>& values_)
      : values(values_), memory(to_device(values.data(), values.size() * sizeof(T))) {}
  Input(const Input&) = delete;
  ~Input() { from_device(values.data(), memory, values.size() * sizeof(T)); }
  std::vector<T> values;
  void* memory;
  template <class U> U* as() const { return static_cast<U*>(memory); }
};

// Runs `launch` on a device buffer that holds `content` and writes out what it then holds.
template <class T> void record(const char* name, std::vector<T> content, const std::function<int(void*)>& launch) {
  const size_t bytes = content.size() * sizeof(T);
  void* memory = to_device(content.data(), bytes);
  if (const int status = launch(memory)) {
    std::fprintf(stderr, "%s: launch error %d\n", name, status);
    finish();
    std::exit(1);
  }
  finish();
  from_device(content.data(), memory, bytes);
  std::fwrite(content.data(), 1, bytes, file);
  uint64_t hash = 1469598103934665603u;  // FNV-1a
  for (size_t i = 0; i < bytes; ++i)
    hash = (hash ^ reinterpret_cast<unsigned char*>(content.data())[i]) * 1099511628211u;
  std::printf("%-24s %8zu bytes  %016llx\n", name, bytes, static_cast<unsigned long long>(hash));
}
std::vector<unsigned char> zeros(size_t bytes) { return std::vector<unsigned char>(bytes); }

using Bytes = unsigned char;
using namespace primitives;

void memory_cases() {
  const Input<Bytes> in(any_bytes(2048));
  record("load and store", zeros(128 * 32),
         [&](void* out) { return run(widths, 1, 128, 0, in.as<const Bytes>(), static_cast<Bytes*>(out)); });
  record("cp.async 16", zeros(2048), [&](void* out) {
    return run(primitives::cp_async<16>, 1, 128, 2048, in.as<const Bytes>(), static_cast<Bytes*>(out));
  });
  record("cp.async 8", zeros(1024), [&](void* out) {
    return run(primitives::cp_async<8>, 1, 128, 1024, in.as<const Bytes>(), static_cast<Bytes*>(out));
  });
  record("cp.async 4", zeros(512), [&](void* out) {
    return run(primitives::cp_async<4>, 1, 128, 512, in.as<const Bytes>(), static_cast<Bytes*>(out));
  });
  record("atomics", zeros(16), [&](void* out) { return run(atomics, 2, 128, 0, static_cast<float*>(out)); });
}

void thread_cases() {
  record("barriers", zeros(1024), [&](void* out) { return run(barriers, 1, 128, 512, static_cast<int*>(out)); });
  const Input<int> in(filled<int>(32, small_integer));
  record("shuffles", zeros(1024), [&](void* out) { return shuffles_run(in.as<const int>(), static_cast<int*>(out)); });
}

void matrix_cases() {
  const Input<Bytes> tile(any_bytes(512));
  record("ldmatrix", zeros(32 * 12 * 4),
         [&](void* out) { return ldmatrix_run(tile.as<const Bytes>(), static_cast<uint32_t*>(out)); });
  const auto mma_case = [](const char* name, int instruction, auto a_values, auto b_values, auto d_values) {
    const Input<typename decltype(a_values)::value_type> a(a_values);
    const Input<typename decltype(b_values)::value_type> b(b_values);
    record(name, d_values, [&](void* d) {
      return mma_run(instruction, a.template as<const uint32_t>(), b.template as<const uint32_t>(),
                     static_cast<uint32_t*>(d));
    });
  };
  mma_case("mma half", 0, halves(256), halves(128), floats(128));
  mma_case("mma bfloat16", 1, bfloat16s(256), bfloat16s(128), floats(128));
  mma_case("mma half accumulators", 2, halves(256), halves(128), halves(128));
  mma_case("mma tf32", 3, floats(128), floats(64), floats(128));
  mma_case("mma int8", 4, any_bytes(512), any_bytes(256), filled<int>(128, small_integer));
}

void number_cases() {
  const Input<uint16_t> half_values(all_16bit(0x7c00)), bfloat16_values(all_16bit(0x7f80));
  record("half to float", zeros(65536 * 4),
         [&](void* out) { return half_to_float_run(half_values.as<const tl::half>(), static_cast<float*>(out)); });
  record("bfloat16 to float", zeros(65536 * 4), [&](void* out) {
    return bfloat16_to_float_run(bfloat16_values.as<const tl::bfloat16>(), static_cast<float*>(out));
  });
  // Float bit patterns, a prime apart, without NaNs.
  uint32_t bits = 0;
  const Input<uint32_t> patterns(filled<uint32_t>(65536, [&] {
    bits += 65521 * 65521u;
    return (bits & 0x7f800000) == 0x7f800000 ? bits & 0xff800000 : bits;
  }));
  record("float to half", zeros(65536 * 6), [&](void* out) {
    auto* packed = static_cast<uint32_t*>(out);
    return float_to_half_run(512, patterns.as<const float>(), reinterpret_cast<tl::half*>(packed + 65536), packed);
  });
  record("float to bfloat16", zeros(65536 * 6), [&](void* out) {
    auto* packed = static_cast<uint32_t*>(out);
    return float_to_bfloat16_run(512, patterns.as<const float>(), reinterpret_cast<tl::bfloat16*>(packed + 65536),
                                 packed);
  });
  // Finite operands near one: sums, differences, products and quotients that are all numbers.
  const Input<uint16_t> half_near_one(filled<uint16_t>(65536, [&] { return 0x3000 + (bits += 40503) % 0x1800; }));
  const Input<uint16_t> bfloat16_near_one(filled<uint16_t>(65536, [&] { return 0x3e00 + (bits += 40503) % 0x0300; }));
  record("half arithmetic", zeros(65536 * 10), [&](void* out) {
    return half_arithmetic_run(half_near_one.as<const tl::half>(), static_cast<tl::half*>(out));
  });
  record("bfloat16 arithmetic", zeros(65536 * 10), [&](void* out) {
    return bfloat16_arithmetic_run(bfloat16_near_one.as<const tl::bfloat16>(), static_cast<tl::bfloat16*>(out));
  });
  record("approximations", zeros(128 * 5 * 4),
         [&](void* out) { return run(approximations, 1, 128, 0, static_cast<float*>(out)); });
}

void sm90_cases() {
  const auto wgmma_case = [](const char* name, int n, const std::vector<uint16_t>& a_values,
                             const std::vector<uint16_t>& b_values, auto launch) {
    const Input<uint16_t> a(a_values), b(b_values);
    record(name, zeros(size_t(4) * 128 * n / 2 * 4),
           [&](void* d) { return launch(n, a.as<const Bytes>(), b.as<const Bytes>(), static_cast<float*>(d)); });
  };
  wgmma_case("wgmma n64", 64, halves(4096), halves(4096), run_wgmma<tl::half>);
  wgmma_case("wgmma n128", 128, halves(4096), halves(8192), run_wgmma<tl::half>);
  wgmma_case("wgmma n256", 256, halves(4096), halves(16384), run_wgmma<tl::half>);
  wgmma_case("wgmma n128 bfloat16", 128, bfloat16s(4096), bfloat16s(8192), run_wgmma<tl::bfloat16>);
  const int rows = 100, columns = 200;
  const Input<uint16_t> tensor(halves(rows * columns));
  const int corners[3][2] = {{0, 0}, {60, 160}, {-4, -8}};
  for (const auto& corner : corners) {
    record("tma", zeros(8192 + rows * columns * 2), [&](void* out) {
      auto* box = static_cast<Bytes*>(out);
      return tma_run(tensor.memory, box + 8192, box, rows, columns, corner[0], corner[1]);
    });
  }
}

void gemm_cases() {
  const int size = 256;
  const Input<uint16_t> a(halves(size * size)), b(halves(size * size));
  record("gemm sm80", zeros(size * size * 4),
         [&](void* c) { return gemm_sm80_run(0, a.memory, b.memory, c, size, size, size); });
  record("gemm sm90", zeros(size * size * 2),
         [&](void* c) { return gemm_sm90_run(0, a.memory, b.memory, c, size, size, size); });
}

}  // namespace conformance

int main(int count, char** arguments) {
  if (count != 2 || !(conformance::file = std::fopen(arguments[1], "wb"))) {
    std::fprintf(stderr, "usage: %s FILE\n", arguments[0]);
    return 2;
  }
  conformance::begin();
  conformance::memory_cases();
  conformance::thread_cases();
  conformance::matrix_cases();
  conformance::number_cases();
  conformance::sm90_cases();
  conformance::gemm_cases();
  return std::fclose(conformance::file) ? 1 : 0;
}
