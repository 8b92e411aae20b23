// HIP's runtime as far as an emitted launcher and clang's host code call it, for device="sim": a launch is handed to a
// function that Python sets. Included by a binding, hidden there: a real libamdhip64 in the process is not touched.
// Source: HIP, hip_runtime_api.h, and clang, CGCUDANV.cpp, which registers each kernel when the library is loaded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace tile2cu {

struct Extent {
  uint32_t x, y, z;
};

struct Memory {
  void* start;
  size_t bytes;
};

// Carries out a launch of the kernel of that symbol; 0, or the hipError_t that the launcher is to see.
using Launch = int (*)(const char* kernel, const Extent* grid, const Extent* block, void** arguments,
                       size_t shared_bytes, const Memory* workspace);

// Each kernel's host address and its symbol in the code object.
using Kernels = std::vector<std::pair<const void*, const char*>>;

static Kernels& kernels() {
  static Kernels known;  // in a function: registration comes before this file's own initialisers
  return known;
}
static Launch& launch() {
  static Launch chosen = nullptr;
  return chosen;
}

// The workspace of the call that runs now; it holds poison at first, NaN as every type of floating point.
static Memory& workspace() {
  static Memory memory{};
  return memory;
}
inline void* allocate_workspace(size_t bytes) {
  void* const start = aligned_alloc(128, (bytes + 127) / 128 * 128);
  if (start != nullptr) memset(start, 0xff, bytes);
  workspace() = {start, bytes};
  return start;
}
inline void free_workspace() {
  free(workspace().start);
  workspace() = {};
}

constexpr int no_such_kernel = 98;  // hipErrorInvalidDeviceFunction

}  // namespace tile2cu

extern "C" {

__attribute__((visibility("default"))) void tile2cu_set_launch(tile2cu::Launch launch) { tile2cu::launch() = launch; }

void** __hipRegisterFatBinary(const void*) {
  static void* module = nullptr;
  return &module;
}
void __hipUnregisterFatBinary(void**) {}
void __hipRegisterFunction(void**, const void* host, char*, const char* symbol, unsigned, void*, void*, void*, void*,
                           int*) {
  tile2cu::kernels().emplace_back(host, symbol);
}
int __hipPopCallConfiguration(tile2cu::Extent*, tile2cu::Extent*, size_t*, void**) { return 1; }  // kernel<<<>>> only

int hipLaunchKernel(const void* function, tile2cu::Extent grid, tile2cu::Extent block, void** arguments,
                    size_t shared_bytes, void*) {
  for (const auto& [host, symbol] : tile2cu::kernels())
    if (host == function && tile2cu::launch())
      return tile2cu::launch()(symbol, &grid, &block, arguments, shared_bytes, &tile2cu::workspace());
  return tile2cu::no_such_kernel;
}

}  // extern "C"
