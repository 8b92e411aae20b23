// Small kernels, each clean with fault 0 and with one planted fault otherwise. Comments name the lines that tests
// expect in findings. All take (input, output) floats; see the table at the end for threads and shared bytes.
#include <tl/sm90.h>

namespace micro {

template <class T> __device__ __forceinline__ T& shared() { return *static_cast<T*>(tl::shared_memory()); }

// ---- plain shared accesses, shuffles and __syncthreads ----------------------------------------------------------
struct Sum {
  float part[8];
  float total;
};
template <int fault> __global__ void block_sum(const float* in, float* out) {
  Sum& s = shared<Sum>();
  float v = 0;
  for (int i = tl::thread(); i < 4096; i += 256) v += in[i];
  for (int mask = 16; mask; mask /= 2) v += tl::shuffle_xor(v, mask);
  if (tl::lane() == 0) s.part[tl::warp()] = v;  // @sum_part
  if (fault != 1) tl::sync_threads();
  if (tl::thread() == 0) {
    const float* parts = &shared<float>();
    float total = 0;
    for (int i = 0; i < (fault == 2 ? 9 : 8); i++) total += parts[i];  // @sum_total
    s.total = total;
  }
  tl::sync_threads();
  const float* past = &s.total + (fault == 3 && tl::thread() == 255 ? 5 : 0);
  out[tl::thread()] = *past;  // @sum_out
}

// ---- exchange inside a warp ---------------------------------------------------------------------------------------
template <int fault> __global__ void warp_exchange(const float*, float* out) {
  float* s = &shared<float>();
  s[tl::lane()] = float(tl::lane());  // @exchange_write
  if (fault != 1) tl::sync_warp();
  out[tl::lane()] = s[31 - tl::lane()];  // @exchange_read
}

// ---- named barriers: warp 0 produces, warp 1 consumes -----------------------------------------------------
template <int fault> __global__ void named(const float*, float* out) {
  float* s = &shared<float>();
  if (tl::warp() == 0) {
    s[tl::lane()] = float(tl::lane());  // @named_write
    tl::barrier_arrive(1, 64);          // @named_arrive
  } else {
    if (fault != 1) tl::barrier_sync(1, fault == 2 ? 96 : 64);  // @named_sync
    out[tl::lane()] = s[31 - tl::lane()];                       // @named_read
  }
}

// ---- a barrier that not all threads reach, or reach elsewhere ---------------------------------------------
template <int fault> __global__ void diverged(const float*, float* out) {
  if (fault == 1 && tl::warp() == 0) {
    tl::sync_threads();  // @diverged_then
    out[tl::thread()] = 1;
  } else if (fault == 2 && tl::warp() == 0) {
    return;
  } else if (fault == 3 && tl::warp() == 0) {
    tl::barrier_sync(2, 64);  // @diverged_stuck
  } else {
    tl::sync_threads();  // @diverged_else
    out[tl::thread()] = 2;
  }
}

// ---- a collective that half of a warp reaches -------------------------------------------------------------
template <int fault> __global__ void half_warp(const float*, float* out) {
  float v = float(tl::lane());
  if (fault == 0 || tl::lane() < 16) v = tl::shuffle_xor(v, 1);  // @half_shuffle
  out[tl::thread()] = v;
}

// ---- cp.async ---------------------------------------------------------------------------------------------
template <int fault> __global__ void copy(const float* in, float* out) {
  float* s = &shared<float>();
  const int shift = fault == 3 ? 1 : 0;
  tl::cp_async<16>(&s[tl::thread() * 4], &in[tl::thread() * 4 + shift], fault == 4 ? 8 : 16);  // @copy_issue
  tl::cp_async_commit();
  if (fault != 1 && fault != 2) tl::cp_async_wait<0>();
  if (fault != 2) tl::sync_threads();
  if (fault != 2) out[tl::thread()] = s[(tl::thread() + 4) % 128];  // @copy_read
}

// ---- global memory ----------------------------------------------------------------------------------------
template <int fault> __global__ void global(const float* in, float* out) {
  const int i = blockIdx.x * 32 + tl::thread();
  if (fault == 1) {
    out[i] = in[4096 + i];  // @global_past
  } else if (fault == 2) {
    out[i] = out[i + 64];  // @global_uninitialised
  } else if (fault == 3) {
    out[tl::thread()] = in[i];  // @global_two_blocks
  } else if (fault == 4) {
    tl::store16(&out[tl::thread() * 4 + 1], tl::load16(&in[0]));  // @global_misaligned
  } else {
    out[i] = in[i];
  }
}

// Wild accesses and divisions: they must not end the process.
template <int depth> __device__ __attribute__((noinline)) int deep(volatile int* out) {
  volatile int frame[4096];
  frame[tl::thread()] = out[0];
  if constexpr (depth > 0) return deep<depth - 1>(frame) + frame[0];
  return frame[tl::thread()];
}
template <int fault> __global__ void wild(const float* in, float* out) {
  if (fault == 1 && tl::thread() == 3) *reinterpret_cast<volatile float*>(size_t(64)) = 1;  // @wild_null
  if (fault == 2) {
    volatile int zero = 0;
    zero = deep<32>(&zero);
  }
  if (fault == 3 && tl::thread() == 3) {
    volatile int one = 1, zero = 0;
    one = one / zero;  // @wild_zero
  }
  out[tl::thread()] = in[tl::thread()];
}

// Blocks 0 and 1 write even and odd bytes: no race. Block 2 reads nothing.
template <int fault> __global__ void bytes(const float*, float* out) {
  auto* to = reinterpret_cast<uint8_t*>(out);
  to[2 * tl::thread() + (fault == 1 ? 0 : blockIdx.x)] = uint8_t(blockIdx.x);  // @bytes_write
}
// The same inside a block, in shared memory: neighbours write neighbouring bytes.
template <int fault> __global__ void shared_bytes(const float*, float* out) {
  auto* s = &shared<uint8_t>();
  s[tl::thread()] = uint8_t(tl::thread());  // @shared_bytes_write
  if (fault == 1) s[tl::thread() ^ 1] = 0;  // @shared_bytes_other
  tl::sync_threads();
  out[tl::thread()] = s[31 - tl::thread()];
}

// All threads store the same float: no order changes what is there. One that stores another makes it a race.
template <int fault> __global__ void agreed(const float* in, float* out) {
  float& s = shared<float>();
  s = in[fault == 1 && tl::thread() == 9 ? 1 : 3];  // @agreed_write
  tl::sync_threads();
  out[tl::thread()] = s;
}

// ---- global memory inside a block -------------------------------------------------------------------------
template <int fault> __global__ void passed(const float*, float* out) {
  const int t = tl::thread();
  out[t] = float(t);  // @passed_write
  if (fault != 1) tl::sync_threads();
  const float other = out[63 - t];  // @passed_read
  if (fault != 2) tl::sync_threads();
  out[fault == 3 ? t & ~1 : t] = other + 1;                   // @passed_again
  if (fault == 4) tl::atomic_add(&out[(t + 32) % 64], 1.0f);  // @passed_atomic
}
// All threads store the same float, or add to it: no race.
template <int fault> __global__ void agreed_global(const float* in, float* out) {
  out[0] = in[fault == 1 && tl::thread() == 9 ? 1 : 3];  // @agreed_global_write
  tl::sync_threads();
  tl::atomic_add(&out[0], 1.0f);
  tl::sync_threads();
  if (tl::thread() > 0) out[tl::thread()] = out[0];
}
// An asynchronous copy reads its source until it is waited for.
template <int fault> __global__ void source(const float*, float* out) {
  float* s = &shared<float>();
  const int mine = tl::thread() * 4, next = (mine + 4) % 128;
  for (int i = 0; i < 4; ++i) out[mine + i] = float(mine + i);
  tl::cp_async<16>(&s[mine], &out[mine], 16);  // @source_copy
  tl::cp_async_commit();
  if (fault == 1) out[mine] = -1;  // @source_own
  if (fault == 2) tl::sync_threads();
  if (fault == 2) out[next] = -1;  // @source_next
  tl::cp_async_wait<0>();
  if (fault == 3) out[next] = -1;  // @source_late
  tl::sync_threads();
  for (int i = 0; i < 4; ++i) out[next + i] = s[next + i] + 1;
}

// ---- atomics and order ------------------------------------------------------------------------------------
struct Counter {
  int count;
  int slot[64];
};
template <int fault> __global__ void counter(const float*, float* out) {
  Counter& s = shared<Counter>();
  if (tl::thread() == 0) s.count = 0;
  tl::sync_threads();
  const int slot = fault == 1 ? tl::atomic_add(&s.count, 1) : tl::thread();  // fault 1: no data race, yet wrong
  if (fault == 2) s.count += 1;                                              // @counter_plain
  tl::sync_threads();
  s.slot[slot] = tl::thread();
  tl::sync_threads();
  out[tl::thread()] = float(s.slot[tl::thread()]);
}
template <int fault> __global__ void atomics(const float*, float* out) {
  if (blockIdx.x == 0 && tl::thread() == 0) out[0] = 0;  // fault 0 expects zeroed memory from the host
  auto* halves = reinterpret_cast<tl::half*>(out + 32);
  tl::atomic_add(&out[1], 1.0f);
  tl::atomic_add(reinterpret_cast<int*>(out) + 2, 1);
  tl::atomic_add(&halves[tl::lane() % 2], tl::half(1.0f));
}

// ---- wgmma and its fences ---------------------------------------------------------------------------------
struct __align__(1024) Operands {
  tl::half A[64 * 64];
  tl::half B[128 * 64];
};
template <int fault> __global__ void fences(const float*, float* out) {
  Operands& s = shared<Operands>();
  for (int i = tl::thread(); i < 64 * 64; i += 128) s.A[i] = tl::half(1.0f);   // @fences_write_A
  if (fault != 1) tl::fence_async_proxy();                                     // by those who store
  for (int i = tl::thread(); i < 128 * 64; i += 128) s.B[i] = tl::half(1.0f);  // @fences_write_B
  tl::sync_threads();
  if (fault != 1 && (fault != 4 || tl::thread() != 5)) tl::fence_async_proxy();  // by those who multiply
  float acc[64];
  if (fault != 2) tl::wgmma_fence();
  const uint64_t a = tl::wgmma_descriptor(s.A, 16, 1024), b = tl::wgmma_descriptor(s.B, 16, 1024);
  tl::wgmma_m64<128>(acc, a, b, false, tl::half());  // @fences_wgmma
  tl::wgmma_commit();
  if (fault == 3) acc[0] = 0;
  tl::wgmma_wait<0>();
  out[tl::thread()] = acc[0] + acc[63];
}

// ---- memory barriers --------------------------------------------------------------------------------------
struct Handover {
  float value[32];
  tl::Barrier ready;
};
template <int fault> __global__ void handover(const float*, float* out) {
  Handover& s = shared<Handover>();
  if (fault != 1 && tl::thread() == 0) tl::mbarrier_init(s.ready, fault == 4 ? 64 : 32);  // @handover_init
  tl::sync_threads();
  if (tl::warp() == 0) {
    s.value[tl::lane()] = float(tl::lane());
    tl::mbarrier_arrive(s.ready);                                          // @handover_arrive
    if (fault == 3 && tl::lane() == 0) tl::store8(&s.ready, uint2{0, 0});  // @handover_plain
  } else {
    tl::mbarrier_wait(s.ready, 0);  // @handover_wait
    out[tl::lane()] = s.value[31 - tl::lane()];
  }
}

// ---- TMA --------------------------------------------------------------------------------------------------
struct __align__(1024) Box {
  float values[32 * 32];
  tl::Barrier loaded;
};
template <int fault> __global__ void boxes(const tl::TensorMap from, const tl::TensorMap to, float* out) {
  Box& s = shared<Box>();
  const int t = tl::thread();
  if (t == 0) tl::mbarrier_init(s.loaded, 1);
  tl::sync_threads();
  if (t == 0) {
    tl::mbarrier_arrive_expect(s.loaded, sizeof s.values);
    tl::tma_load_box(s.values, from, 0, fault == 1 ? 4 : 0, s.loaded);  // @boxes_load
  }
  tl::mbarrier_wait(s.loaded, 0);
  for (int i = t; i < 32 * 32; i += 32) s.values[i] += 1;  // @boxes_add
  if (fault != 3) tl::fence_async_proxy();
  tl::sync_threads();
  if (t == 0) {
    tl::tma_store_box(to, fault == 2 ? -1 : 0, 0, s.values);  // @boxes_store
    tl::tma_store_commit();
    if (fault != 4) tl::tma_store_wait<0>();
  }
  out[t] = 0;
}
// A store's destination must not be used before it is complete, nor a load's source changed before it has landed.
template <int fault>
__global__ void completed(const tl::TensorMap from, const tl::TensorMap to, float* in, const float* written,
                          float* out) {
  Box& s = shared<Box>();
  const int t = tl::thread();
  if (t == 0) tl::mbarrier_init(s.loaded, 1);
  tl::sync_threads();
  if (t == 0) {
    tl::mbarrier_arrive_expect(s.loaded, sizeof s.values);
    tl::tma_load_box(s.values, from, 0, 0, s.loaded);  // @completed_load
    if (fault == 1) in[7] = -1;                        // @completed_source
  }
  tl::mbarrier_wait(s.loaded, 0);
  if (t == 0) {
    tl::tma_store_box(to, 0, 0, s.values);  // @completed_store
    tl::tma_store_commit();
    if (fault == 2) out[0] = written[3];                                            // @completed_own
    if (fault == 3) tl::tma_store_box(to, 0, 0, s.values), tl::tma_store_commit();  // @completed_twice
    tl::tma_store_wait_read<0>();
    if (fault != 4) tl::tma_store_wait<0>();
  }
  tl::sync_threads();
  in[t] = -1;
  out[t] = written[t];  // @completed_read
}

}  // namespace micro

namespace {

// 32 x 64 16-bit elements are 32 x 32 floats.
template <class Kernel> int run_boxes(Kernel kernel, const void* in, void* out) {
  tl::TensorMap from, to;
  if (tl::tensor_map_16bit(from, in, 32, 64, 128, 32, 64, 0)) return -2;
  if (tl::tensor_map_16bit(to, out, 32, 64, 128, 32, 64, 0)) return -2;
  return tl::launch_kernel(kernel, dim3(1), dim3(32), sizeof(micro::Box), nullptr, from, to,
                           static_cast<float*>(out) + 1024);
}

template <class Kernel> int run_completed(Kernel kernel, const void* in, void* out) {
  tl::TensorMap from, to;
  if (tl::tensor_map_16bit(from, in, 32, 64, 128, 32, 64, 0)) return -2;
  if (tl::tensor_map_16bit(to, out, 32, 64, 128, 32, 64, 0)) return -2;
  auto* written = static_cast<float*>(out);
  return tl::launch_kernel(kernel, dim3(1), dim3(32), sizeof(micro::Box), nullptr, from, to,
                           static_cast<float*>(const_cast<void*>(in)), static_cast<const float*>(written),
                           written + 1024);
}

template <class Kernel>
int run(Kernel kernel, int blocks, int threads, size_t shared_bytes, const void* in, void* out) {
  return tl::launch_kernel(kernel, dim3(blocks), dim3(threads), shared_bytes, nullptr, static_cast<const float*>(in),
                           static_cast<float*>(out));
}

}  // namespace

#define RUN(fault_, ...) \
  if (fault == fault_) return run(__VA_ARGS__, in, out);
#define MICRO(kernel, blocks, threads, bytes)                                                                    \
  extern "C" __attribute__((visibility("default"))) int kernel##_run(int fault, const void* in, void* out) {     \
    RUN(0, micro::kernel<0>, blocks, threads, bytes)                                                             \
    RUN(1, micro::kernel<1>, blocks, threads, bytes)                                                             \
    RUN(2, micro::kernel<2>, blocks, threads, bytes)                                                             \
    RUN(3, micro::kernel<3>, blocks, threads, bytes) RUN(4, micro::kernel<4>, blocks, threads, bytes) return -1; \
  }
MICRO(block_sum, 1, 256, fault == 2 ? 64 : sizeof(micro::Sum))
MICRO(warp_exchange, 1, 32, 128)
MICRO(named, 1, 64, 128)
MICRO(diverged, 1, 64, 0)
MICRO(half_warp, 1, 32, 0)
MICRO(copy, 1, 32, 512)
MICRO(global, 2, 32, 0)
MICRO(wild, 1, 32, 0)
MICRO(bytes, 2, 32, 0)
MICRO(shared_bytes, 1, 32, 32)
MICRO(agreed, 1, 64, sizeof(float))
MICRO(passed, 1, 64, 0)
MICRO(agreed_global, 1, 64, 0)
MICRO(source, 1, 32, 512)
MICRO(counter, 1, 64, sizeof(micro::Counter))
MICRO(atomics, 4, 64, 0)
MICRO(fences, 1, 128, sizeof(micro::Operands))
MICRO(handover, 1, 64, sizeof(micro::Handover))

extern "C" __attribute__((visibility("default"))) int boxes_run(int fault, const void* in, void* out) {
  switch (fault) {
    case 0:
      return run_boxes(micro::boxes<0>, in, out);
    case 1:
      return run_boxes(micro::boxes<1>, in, out);
    case 2:
      return run_boxes(micro::boxes<2>, in, out);
    case 3:
      return run_boxes(micro::boxes<3>, in, out);
    case 4:
      return run_boxes(micro::boxes<4>, in, out);
  }
  return -1;
}

extern "C" __attribute__((visibility("default"))) int completed_run(int fault, const void* in, void* out) {
  static constexpr decltype(&micro::completed<0>) kernels[] = {
      micro::completed<0>, micro::completed<1>, micro::completed<2>, micro::completed<3>, micro::completed<4>};
  return run_completed(kernels[fault], in, out);
}
