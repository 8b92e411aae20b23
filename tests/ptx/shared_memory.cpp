// A CUDA runtime that only keeps books on shared memory, and calls of gemm_relu on it from several devices and threads.
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>
#include "gemm_relu.h"

struct dim3 {
  unsigned x, y, z;
};

static thread_local int device = 0, last_error = 0;
static int most_shared = 166912;  // bytes that a device allows a block
static std::mutex books;
static std::map<std::pair<const void*, int>, std::pair<int, size_t>> allowed;  // kernel, device: times asked, bytes
static std::atomic<int> launches{0}, refused{0};

extern "C" {
void** __cudaRegisterFatBinary(void*) {
  static void* module = nullptr;
  return &module;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
int __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) { return 1; }
int __cudaGetKernel(void**, const void*) { return 1; }
int __cudaLaunchKernel(void*, dim3, dim3, void**, size_t, void*) { return 1; }
int cudaGetDevice(int* current) {
  *current = device;
  return 0;
}
int cudaDeviceGetAttribute(int* value, int attribute, int) {
  // cudaDevAttrComputeCapabilityMajor: 8.0; cudaDevAttrMaxSharedMemoryPerBlockOptin
  *value = attribute == 75 ? 8 : attribute == 97 ? most_shared : 0;
  return 0;
}
int cudaGetLastError() { return std::exchange(last_error, 0); }
int cudaFuncSetAttribute(const void* kernel, int attribute, int bytes) {
  const std::lock_guard<std::mutex> lock(books);
  auto& entry = allowed[{kernel, device}];
  ++entry.first;
  entry.second = size_t(bytes);
  return attribute == 8 ? 0 : 1;  // cudaFuncAttributeMaxDynamicSharedMemorySize
}
int cudaLaunchKernel(const void* kernel, dim3, dim3, void**, size_t bytes, void*) {
  const std::lock_guard<std::mutex> lock(books);
  if (bytes > 49152 && allowed[{kernel, device}].second < bytes) {
    ++refused;
    return last_error = 1;  // cudaErrorInvalidValue
  }
  ++launches;
  return 0;
}
}

// Both kernels of the text: rows that start at multiples of 16 bytes, and others.
static void call_both(const char* when) {
  alignas(16) static char tensor[16];
  for (const int K : {64, 63})
    if (const tl_status status = gemm_relu(tensor, tensor, tensor, 128, 128, K, nullptr, 0, nullptr))
      std::printf("%s: status %d\n", when, status);
}

static void report(const char* what) {
  int most = 0, pairs = 0;
  for (const auto& [key, entry] : allowed) {
    if (entry.first > most) most = entry.first;
    ++pairs;
  }
  std::printf("%s: %d launches, %d refused, %d pairs, asked at most %d times, last error %d\n", what, launches.load(),
              refused.load(), pairs, most, last_error);
  allowed.clear();
  launches = refused = 0;
}

int main() {
  for (int round = 0; round < 5; ++round)
    for (device = 0; device < 3; ++device) call_both("one thread");
  report("three devices");

  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([t] {
      device = 10 + t % 4;
      for (int i = 0; i < 100; ++i) call_both("eight threads");
    });
  for (auto& thread : threads) thread.join();
  report("eight threads");

  device = 0;
  call_both("after a reset");  // report() has cleared what device 0 allows, as cudaDeviceReset does
  report("after a reset");

  device = 70;
  for (int i = 0; i < 3; ++i) call_both("device 70");
  report("device 70");

  int bytes = 0;  // which the launches before have asked for
  call_both("bytes");
  for (const auto& [key, entry] : allowed) bytes = int(entry.second);
  report("bytes");
  for (const int less : {1, 0}) {
    most_shared = bytes - less;
    const tl_status status = gemm_relu_supports(128, 128, 64, TL_CURRENT_DEVICE);
    alignas(16) static char tensor[16];
    const tl_status called = gemm_relu(tensor, tensor, tensor, 128, 128, 64, nullptr, 0, nullptr);
    std::printf("%s: %d %d %d %d\n", less ? "too little" : "just enough", status, called, launches.load(), bytes);
  }
}
