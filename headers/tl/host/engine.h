/* The C interface of the CPU engine (libtile2cu_engine.so), which runs kernels one fiber a GPU thread.
 *
 * Three users: the primitives of headers/tl/host (called from kernels), the launch of headers/tl/host/launch.h, and
 * the Python runtime (options, device memory, report). Functions marked "kernel" may only be called by a thread of a
 * running kernel; the address they return to names the source line in findings. Sizes are bytes.
 */
#ifndef TL_HOST_ENGINE_H
#define TL_HOST_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- settings and report ----------------------------------------------------------------------------------- */

enum tl_engine_schedule { TL_ENGINE_ROUND_ROBIN = 0, TL_ENGINE_REVERSE = 1, TL_ENGINE_SHUFFLE = 2 };
/* When asynchronous copies become visible: as late as the programming model allows, at once, or at random. */
enum tl_engine_landing { TL_ENGINE_LATE = 0, TL_ENGINE_EARLY = 1, TL_ENGINE_RANDOM = 2 };

typedef struct tl_engine_options {
  int32_t check;      /* 1: races, bounds, uninitialised memory, barriers, asynchronous copies */
  int32_t statistics; /* 1: bank conflicts and sectors; like check, it needs kernels built with -fsanitize=thread */
  int32_t schedule;   /* enum tl_engine_schedule: which ready thread runs next */
  int32_t landing;    /* enum tl_engine_landing */
  double preempt;     /* probability that a thread yields at a memory access */
  uint64_t seed;      /* of shuffle, random landing and preemption */
  int32_t workers;    /* OS threads that share the blocks; each is pinned to a core when there are several */
  int32_t banks;      /* of shared memory, for statistics: 32, for which 0 stands, or 64 */
} tl_engine_options;

/* Process-wide, for launches that start later. A null pointer restores the defaults (all zero, one worker). */
void tl_engine_set_options(const tl_engine_options* options);
void tl_engine_get_options(tl_engine_options* options);

/* JSON about all launches of the calling thread since its last report: {"findings": [...], "statistics": {...}}.
 * The text stays valid until the thread's next call; the next launch after it starts a new report. */
const char* tl_engine_report_json(void);

/* Begins a new report, whether a launch follows or not. */
void tl_engine_drop_report(void);

/* ---- device memory ----------------------------------------------------------------------------------------- */

/* Memory with bounds and initialisation shadow, 4096-byte aligned, a red zone behind it. `initialised` 0: filled
 * with 0xff, and reading it before a kernel wrote it is a finding. Null when the heap is full. */
void* tl_engine_alloc(size_t bytes, int initialised);
/* Says which floats such memory has, as in tl_engine_check_accumulators: storing one that nothing has written is then a
 * finding. */
void tl_engine_set_element_type(void* memory, int type);
void tl_engine_free(void* memory);

/* ---- launch ------------------------------------------------------------------------------------------------ */

typedef struct tl_engine_launch_request {
  uint32_t grid[3], block[3];
  size_t shared_bytes;
  int32_t warp_size;    /* 32, or 64 for AMD's wave64 */
  int32_t instrumented; /* 1: the kernel was compiled with -fsanitize=thread, so plain accesses are seen */
  void (*run_thread)(void* argument);
  void* argument;
  const char* name;    /* for messages; may be null */
  int32_t together;    /* 1: all blocks are there at once, at most 256, so that they may wait for one another */
  uint32_t cluster[3]; /* extents of a cluster in blocks, for 0 stands 1: its blocks, at most 8, run side by side */
} tl_engine_launch_request;

/* Runs all blocks, one launch at a time in the process. 0 when every thread returned; 1 when the launch was refused or
 * abandoned (a deadlock, a wild access): the report says why. Findings alone do not change the answer. */
int tl_engine_launch(const tl_engine_launch_request* request);

/* ---- kernel: threads and memory ---------------------------------------------------------------------------- */

/* Of operands. */
enum tl_engine_type {
  TL_ENGINE_HALF = 0,
  TL_ENGINE_BFLOAT16 = 1,
  TL_ENGINE_TF32 = 2,
  TL_ENGINE_INT8 = 3,
  TL_ENGINE_FLOAT = 4,
  TL_ENGINE_DOUBLE = 5,
  TL_ENGINE_E4M3 = 6,
  TL_ENGINE_E5M2 = 7,
  TL_ENGINE_UINT8 = 8,
  TL_ENGINE_INT4 = 9,
  TL_ENGINE_UINT4 = 10
};

void* tl_engine_shared_memory(void) __attribute__((const)); /* 1024-byte aligned */
uint32_t tl_engine_shared_address(const void* p);           /* the 32-bit shared-window address that PTX would see */
void tl_engine_yield(void);

void tl_engine_load(void* value, const void* from, int bytes);
void tl_engine_store(void* to, const void* value, int bytes);
void tl_engine_replace_bits(uint8_t* byte, uint8_t mask, uint8_t bits); /* in one step; reads nothing */
float tl_engine_atomic_add_float(float* to, float value);
int32_t tl_engine_atomic_add_int(int32_t* to, int32_t value);
uint16_t tl_engine_atomic_add_16bit(void* to, uint16_t bits, int type); /* TL_ENGINE_HALF or TL_ENGINE_BFLOAT16 */

/* Reports that a condition of the kernel does not hold, and abandons the launch; it does not return. */
void tl_engine_assertion_failed(const char* message);
/* Reports that an index of a tile, or of an array in registers, is not in 0 .. extent - 1, and abandons the launch. */
void tl_engine_index_outside(int index, int extent) __attribute__((cold));

/* ---- kernel: barriers -------------------------------------------------------------------------------------- */

int tl_engine_sync_threads_count(int predicate); /* of the threads for which it holds */
void tl_engine_sync_threads(void);
void tl_engine_barrier_sync(int barrier, int threads);
void tl_engine_barrier_arrive(int barrier, int threads);
void tl_engine_sync_warp(uint64_t mask);
void tl_engine_sync_grid(void); /* the first thread's: between two barriers of the block */

/* ---- kernel: warp collectives ------------------------------------------------------------------------------ */

enum tl_engine_shuffle_mode {
  TL_ENGINE_SHUFFLE_INDEX = 0,
  TL_ENGINE_SHUFFLE_UP = 1,
  TL_ENGINE_SHUFFLE_DOWN = 2,
  TL_ENGINE_SHUFFLE_XOR = 3
};
/* `value` of up to 16 bytes is replaced by that of the lane that mode and operand select inside `width` lanes. */
void tl_engine_shuffle(void* value, int bytes, int mode, int operand, int width, uint64_t mask);
uint64_t tl_engine_ballot(uint64_t mask, int predicate);
void tl_engine_ldmatrix(uint32_t* registers, const void* row, int matrices, int transposed);

/* What registers hold until they are written: tl::host::mark_unwritten. One signalling NaN in all floating-point types:
 * a conversion between them gives that of the other type. Arithmetic may change the sign and sets the quiet bit. */
#define TL_ENGINE_UNWRITTEN 0x7fb50000u
#define TL_ENGINE_UNWRITTEN_HALF 0x7da8u
#define TL_ENGINE_UNWRITTEN_BFLOAT16 0x7fb5u
#define TL_ENGINE_UNWRITTEN_DOUBLE 0x7ff6a00000000000u

/* Reports accumulators of which nothing has written one: `count` of TL_ENGINE_FLOAT, TL_ENGINE_DOUBLE, TL_ENGINE_HALF or
 * TL_ENGINE_BFLOAT16; of other types nothing is known. */
void tl_engine_check_accumulators(const void* accumulators, int count, int type);

/* d += a * b of one m16n8kK mma.sync; fragments as in the PTX ISA. K is 16 for 16-bit operands, 8 for tf32, 32 for
 * int8, 64 for integers of 4 bits; d is float[4], int32_t[4] for integers. */
void tl_engine_mma(void* d, const uint32_t* a, const uint32_t* b, int type);
/* m16n8k16 with half accumulators, uint32_t d[2]. */
void tl_engine_mma_half(uint32_t* d, const uint32_t* a, const uint32_t* b);
/* mma.sp of a sparse a, selector 0: uint32_t a[4], b[4]; m16n8k32 of TL_ENGINE_HALF and TL_ENGINE_BFLOAT16, m16n8k64 of
 * TL_ENGINE_INT8 (int32_t d[4]), TL_ENGINE_E4M3 and TL_ENGINE_E5M2. */
void tl_engine_mma_sparse(void* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, int type);

/* ---- kernel: cp.async -------------------------------------------------------------------------------------- */

void tl_engine_cp_async(void* to, const void* from, int bytes, int source_bytes);
void tl_engine_cp_async_commit(void);
void tl_engine_cp_async_wait(int groups_left);
void tl_engine_cp_async_arrive(void* barrier);

/* ---- kernel: sm_90 ----------------------------------------------------------------------------------------- */

void tl_engine_mbarrier_init(void* barrier, int arrivals);
void tl_engine_mbarrier_arrive(void* barrier);
void tl_engine_mbarrier_expect(void* barrier, int bytes);
void tl_engine_mbarrier_arrive_expect(void* barrier, int bytes);
void tl_engine_mbarrier_wait(void* barrier, int parity);
void tl_engine_mbarrier_arrive_and_wait(void* barrier);
void tl_engine_fence_async_proxy(void);

/* Stores four 8x8 matrices of 16-bit elements, or their transposes: the inverse of tl_engine_ldmatrix. */
void tl_engine_stmatrix(void* row, const uint32_t* registers, int transposed);

/* What TMA knows of a tensor, innermost dimension first: extents and box in elements, strides in bytes (the first is
 * that of neighbouring elements). Dimensions beyond `rank` have extent and box 1. */
typedef struct tl_engine_tensor_map {
  const void* base;
  uint64_t extents[5], strides[5];
  int32_t box[5];
  int32_t rank, element_bytes, swizzle_bytes; /* swizzle 0, 32, 64 or 128 */
} tl_engine_tensor_map;
/* The box at these `rank` coordinates, outermost dimension first. */
void tl_engine_tma_load(void* to, const tl_engine_tensor_map* map, void* barrier, const int32_t* at, int rank);
void tl_engine_tma_store(const tl_engine_tensor_map* map, const void* from, const int32_t* at, int rank);
/* Adds floats to those of the box. */
void tl_engine_tma_add(const tl_engine_tensor_map* map, const void* from, const int32_t* at, int rank);
void tl_engine_tma_store_commit(void);
void tl_engine_tma_store_wait(int groups_left);

/* Clusters. The calling thread's block has a rank in its own, along x first. */
int tl_engine_block_rank(void);
void tl_engine_cluster_arrive(int releases);
void tl_engine_cluster_wait(void);
/* The place in the block of that rank that lies where `own` does in the caller's. */
void* tl_engine_in_block(const void* own, int rank);
/* As tl_engine_tma_load, to the same place in each block of the mask, and arriving at the same barrier there. */
void tl_engine_tma_load_multicast(void* to, const tl_engine_tensor_map* map, void* barrier, const int32_t* at, int rank,
                                  uint32_t mask);
/* Starts to copy from the caller's shared memory to that of another block, at whose barrier the bytes arrive. */
void tl_engine_copy_to_block(void* to, const void* from, int bytes, void* barrier);

/* wgmma m64nN with 32 bytes of K. A and B are given by descriptors; A, of 16 bits, instead by four registers where
 * a_registers is not null. a_mn, b_mn: the operand, of 16 bits, has M or N contiguous, not K. Accumulators are
 * float[n / 2], of TL_ENGINE_INT8 and TL_ENGINE_UINT8 int32_t, with half_sums halves. */
typedef struct tl_engine_wgmma_operation {
  const uint32_t* a_registers;
  uint64_t a, b;
  int32_t a_mn, b_mn, n, accumulate, type, half_sums;
} tl_engine_wgmma_operation;
void tl_engine_wgmma(void* accumulators, const tl_engine_wgmma_operation* operation);
void tl_engine_wgmma_fence(void);
void tl_engine_wgmma_commit(void);
void tl_engine_wgmma_wait(int groups_left);

/* ---- kernel: AMD ------------------------------------------------------------------------------------------- */

/* v_mfma of `size` 32 or 16 rows and columns, `n` operands of `type` a lane, up to 16: d is float[size * size / 64], of
 * TL_ENGINE_INT8 int32_t, of TL_ENGINE_DOUBLE double. */
void tl_engine_mfma(void* d, const void* a, const void* b, int size, int n, int type);
/* `lds` is the same in all lanes, each of which brings `bytes` to it: source_bytes from memory, and zeros. */
void tl_engine_global_load_lds(void* lds, const void* from, int bytes, int source_bytes);
void tl_engine_wait_vector_memory(int operations_left);
/* ds_read_b64_tr_b16: four elements of 16 bits of the column that is the lane's among its 16 lanes. */
void tl_engine_read_transposed(void* to, const void* from, int element_bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
