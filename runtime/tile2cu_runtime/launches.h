// The functions of the CUDA and HIP runtimes that an emitted launcher and its compiler's host code call, for
// device="ptx" and "sim": launches are forwarded to a function that Python sets. Included by a binding, with hidden
// visibility: a real libcudart or libamdhip64 in the process is unaffected.
// Source: hip_runtime_api.h and clang's CGCUDANV.cpp; cuda_runtime_api.h and crt/host_runtime.h of CUDA 13. Compilers
// register each kernel, its host address and its symbol, when the library is loaded.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tile2cu {

struct Extent {
  uint32_t x, y, z;
};

// cudaLaunchConfig_t. Attributes (such as programmatic dependent launch) are ignored: kernels run one after another.
struct Config {
  Extent grid, block;
  size_t shared_bytes;
  void *stream, *attributes;
  unsigned attribute_count;
};

struct Memory {
  void* start;
  size_t bytes;
};

// Executes a launch of the kernel with that symbol; returns 0, or the launcher's hipError_t.
using Launch = int (*)(const char* kernel, const Extent* grid, const Extent* block, void** arguments,
                       size_t shared_bytes, const Memory* workspace);

// A registered kernel: host address, symbol in the code object, and the previously registered one.
struct Kernel {
  const void* host;
  const char* symbol;
  Kernel* before;
};

static Kernel*& kernels() {
  static Kernel* last = nullptr;  // function-local: registration precedes this file's initialisers
  return last;
}
static void register_kernel(const void* host, const char* symbol) { kernels() = new Kernel{host, symbol, kernels()}; }
static Launch& launch() {
  static Launch chosen = nullptr;
  return chosen;
}

// The workspace of the current call, initialised with a NaN of every floating-point type.
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

constexpr int no_such_kernel = 98;  // hipErrorInvalidDeviceFunction, cudaErrorInvalidDeviceFunction

// The compute capability that a CUDA launcher queries: 80 for 8.0.
static int& compute_capability() {
  static int capability = 0;
  return capability;
}

// What a block may have. [CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"]
static int shared_bytes_per_block() {
  switch (compute_capability()) {
    case 80:
    case 87:
      return 163 * 1024;
    case 90:
    case 100:
    case 103:
      return 227 * 1024;
    default:
      return 99 * 1024;
  }
}

// cuTensorMapEncodeTiled: rejects what the driver rejects, and stores its arguments in the CUtensorMap, as
// ptx/tensor_map.py reads them. [CUDA Driver API, "cuTensorMapEncodeTiled"]
static int encode_tensor_map(void* map, int type, uint32_t rank, void* address, const uint64_t* extents,
                             const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                             int swizzle, int /*l2_promotion*/, int fill) {
  constexpr int invalid_value = 1, not_supported = 801;  // CUDA_ERROR_...
  constexpr uint8_t element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  if (type < 0 || type >= int(sizeof element_bytes) || rank < 1 || rank > 5) return invalid_value;
  if (interleave != 0 || swizzle < 0 || swizzle > 3) return not_supported;
  const uint64_t row_bytes = uint64_t(box[0]) * element_bytes[type];
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0 || row_bytes % 16 != 0) return invalid_value;
  if (swizzle != 0 && row_bytes > uint64_t(16) << swizzle) return invalid_value;
  struct {
    uint32_t magic;
    uint8_t type, rank, interleave, swizzle, fill, steps[5], unused[2];
    uint64_t address, strides[4];
    uint32_t last[5];  // extents - 1
    uint16_t box[5];
  } encoded{0x70614d54,
            uint8_t(type),
            uint8_t(rank),
            0,
            uint8_t(swizzle),
            uint8_t(fill),
            {},
            {},
            reinterpret_cast<uint64_t>(address),
            {},
            {},
            {1, 1, 1, 1, 1}};
  static_assert(sizeof encoded <= 128, "a CUtensorMap");
  for (uint32_t d = 0; d < rank; ++d) {
    if (extents[d] == 0 || extents[d] > uint64_t(1) << 32 || box[d] == 0 || box[d] > 256) return invalid_value;
    if (steps[d] != 1) return steps[d] == 0 || steps[d] > 8 ? invalid_value : not_supported;
    if (d + 1 < rank && (strides[d] % 16 != 0 || strides[d] >= uint64_t(1) << 40)) return invalid_value;
    encoded.last[d] = uint32_t(extents[d] - 1), encoded.box[d] = uint16_t(box[d]), encoded.steps[d] = 1;
    if (d + 1 < rank) encoded.strides[d] = strides[d];
  }
  memset(map, 0, 128);
  memcpy(map, &encoded, sizeof encoded);
  return 0;
}

static int launch_kernel(const void* function, Extent grid, Extent block, void** arguments, size_t shared_bytes) {
  const Kernel* kernel = kernels();
  while (kernel != nullptr && kernel->host != function) kernel = kernel->before;
  if (kernel != nullptr && launch())
    return launch()(kernel->symbol, &grid, &block, arguments, shared_bytes, &workspace());
  return no_such_kernel;
}

}  // namespace tile2cu

extern "C" {

__attribute__((visibility("default"))) void tile2cu_set_launch(tile2cu::Launch launch, int compute_capability) {
  tile2cu::launch() = launch;
  tile2cu::compute_capability() = compute_capability;
}

// ---- HIP ----
void** __hipRegisterFatBinary(const void*) {
  static void* module = nullptr;
  return &module;
}
void __hipUnregisterFatBinary(void**) {}
void __hipRegisterFunction(void**, const void* host, char*, const char* symbol, unsigned, void*, void*, void*, void*,
                           int*) {
  tile2cu::register_kernel(host, symbol);
}
int __hipPopCallConfiguration(tile2cu::Extent*, tile2cu::Extent*, size_t*, void**) { return 1; }  // kernel<<<>>> only
int hipLaunchKernel(const void* function, tile2cu::Extent grid, tile2cu::Extent block, void** arguments,
                    size_t shared_bytes, void*) {
  return tile2cu::launch_kernel(function, grid, block, arguments, shared_bytes);
}

// ---- CUDA ----
void** __cudaRegisterFatBinary(void*) {
  static void* module = nullptr;
  return &module;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* symbol, int, void*, void*, void*, void*,
                            int*) {
  tile2cu::register_kernel(host, symbol);
}
// CuTe has namespace-scope __device__ constants, which no launcher writes.
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
int __cudaPopCallConfiguration(tile2cu::Extent*, tile2cu::Extent*, size_t*, void*) { return 1; }  // kernel<<<>>> only
int __cudaGetKernel(void**, const void*) { return tile2cu::no_such_kernel; }
int __cudaLaunchKernel(void*, tile2cu::Extent, tile2cu::Extent, void**, size_t, void*) {
  return tile2cu::no_such_kernel;
}
int cudaLaunchKernel(const void* function, tile2cu::Extent grid, tile2cu::Extent block, void** arguments,
                     size_t shared_bytes, void*) {
  return tile2cu::launch_kernel(function, grid, block, arguments, shared_bytes);
}
int cudaLaunchKernelExC(const tile2cu::Config* config, const void* function, void** arguments) {
  return tile2cu::launch_kernel(function, config->grid, config->block, arguments, config->shared_bytes);
}
int cudaFuncSetAttribute(const void*, int, int) { return 0; }
int cudaGetLastError() { return 0; }
int cudaGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long, int* result) {
  const bool known = strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
  *function = known ? reinterpret_cast<void*>(&tile2cu::encode_tensor_map) : nullptr;
  *result = known ? 0 : 1;  // cudaDriverEntryPointSymbolNotFound
  return 0;
}
int cudaMemsetAsync(void* memory, int value, size_t bytes, void*) {
  memset(memory, value, bytes);
  return 0;
}
int cudaDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 16:
      *value = 3;
      return 0;  // cudaDevAttrMultiProcessorCount: few, so that persistent blocks loop
    case 75:
      *value = tile2cu::compute_capability() / 10;
      return 0;  // cudaDevAttrComputeCapabilityMajor
    case 76:
      *value = tile2cu::compute_capability() % 10;
      return 0;  // cudaDevAttrComputeCapabilityMinor
    case 97:
      *value = tile2cu::shared_bytes_per_block();
      return 0;  // cudaDevAttrMaxSharedMemoryPerBlockOptin
    default:
      return 1;  // cudaErrorInvalidValue
  }
}

}  // extern "C"
