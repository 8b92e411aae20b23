/* The C interface of the CPU engine (libtile2cu_engine.so), which runs each GPU thread as a fiber.
 *
 * Callers: the primitives of headers/tl/host (in kernels), headers/tl/host/launch.h, and the Python runtime (options,
 * device memory, report). Functions in "kernel" sections are called by threads of a running kernel only; their return
 * address determines the source line of findings. Sizes are in bytes.
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
/* When asynchronous copies write their destination: as late as the programming model allows, immediately, or at a
 * random time. */
enum tl_engine_landing { TL_ENGINE_LATE = 0, TL_ENGINE_EARLY = 1, TL_ENGINE_RANDOM = 2 };

typedef struct tl_engine_options {
  int32_t check;       /* 1: races, bounds, uninitialised memory, barriers, asynchronous copies */
  int32_t statistics;  /* 1: bank conflicts and sectors; like check, it needs kernels built with -fsanitize=thread */
  int32_t schedule;    /* enum tl_engine_schedule: the order of runnable threads */
  int32_t landing;     /* enum tl_engine_landing */
  double preempt;      /* probability that a thread yields at a memory access */
  uint64_t seed;       /* seed of TL_ENGINE_SHUFFLE, TL_ENGINE_RANDOM and preemption */
  int32_t workers;     /* OS threads that execute blocks; pinned to cores if more than one */
  int32_t banks;       /* shared-memory banks, for statistics: 32 or 64; 0 means 32 */
  int32_t aliased[2];  /* offsets of shared memory of which the report has "flows": the reads of each write, by lines */
  int32_t most_blocks; /* 0, or how many blocks of a launch run, at least two clusters: tl_engine_runs */
} tl_engine_options;

/* Whether a block (or cluster), by its linear number with x fastest, is one of the `most` (at least 2) of a grid that
 * run: they are spread evenly, the first and the last among them. Where there are no more than that, all run. */
static inline int tl_engine_runs(uint64_t number, uint64_t blocks, int32_t most) {
  const uint64_t last = blocks - 1, steps = (uint64_t)most - 1;
  if (most < 2 || blocks <= (uint64_t)most) return 1;
  return (number * steps + last - 1) / last * last / steps == number;
}

/* Process-wide, for later launches. A null pointer restores the defaults (all zero, one worker). */
void tl_engine_set_options(const tl_engine_options* options);
void tl_engine_get_options(tl_engine_options* options);

/* JSON report of the calling thread's launches since its last report: {"findings": [...], "statistics": {...}}.
 * The string is valid until the thread's next call; the thread's next launch starts a new report. */
const char* tl_engine_report_json(void);

/* Discards the report. */
void tl_engine_drop_report(void);

/* ---- device memory ----------------------------------------------------------------------------------------- */

/* Allocates memory with shadow state for bounds and initialisation, 4096-byte aligned, followed by a red zone. With
 * `initialised` 0 it is filled with 0xff, and a read before a kernel's write is a finding. Null if the heap is full. */
void* tl_engine_alloc(size_t bytes, int initialised);
/* Sets the element type of such memory, one of tl_engine_check_accumulators': the store of an unwritten value is then a
 * finding. */
void tl_engine_set_element_type(void* memory, int type);
/* Says that no kernel writes such memory: accesses of it are not followed, as no race is possible. */
void tl_engine_set_read_only(void* memory);
void tl_engine_free(void* memory);

/* ---- launch ------------------------------------------------------------------------------------------------ */

typedef struct tl_engine_launch_request {
  uint32_t grid[3], block[3];
  size_t shared_bytes;
  int32_t warp_size;    /* 32, or 64 for AMD's wave64 */
  int32_t instrumented; /* 1: compiled with -fsanitize=thread, so that the engine observes plain accesses */
  void (*run_thread)(void* argument);
  void* argument;
  const char* name;    /* for messages; may be null */
  int32_t together;    /* 1: cooperative launch: all blocks are resident at once, at most 256 */
  uint32_t cluster[3]; /* cluster shape in blocks, at most 8 in total; 0 means 1 */
} tl_engine_launch_request;

/* Runs all blocks; launches of the process are serialised. Returns 0 if every thread returned, 1 if the launch was
 * rejected or aborted (deadlock, invalid access); the report has the reason. Other findings do not change this. */
int tl_engine_launch(const tl_engine_launch_request* request);

/* Whether a launch, after which `later` others ran, computed a tile of the grid; for launches of which not all blocks
 * run. A block computes the tile at its index, or those that it notes (tl_engine_note_tile). Of the last 16 launches.
 */
int tl_engine_computed(uint32_t later, uint32_t x, uint32_t y, uint32_t z);

/* ---- kernel: threads and memory ---------------------------------------------------------------------------- */

/* Element types of operands. */
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
  TL_ENGINE_UINT4 = 10,
  TL_ENGINE_INT32 = 11 /* of tensors only */
};

void* tl_engine_shared_memory(void) __attribute__((const));   /* 1024-byte aligned */
void tl_engine_note_tile(uint32_t x, uint32_t y, uint32_t z); /* the block computes this tile, not that at its index */
uint32_t tl_engine_shared_address(const void* p);             /* 32-bit address in the shared window, as in PTX */
void tl_engine_yield(void);

void tl_engine_load(void* value, const void* from, int bytes);
void tl_engine_store(void* to, const void* value, int bytes);
void tl_engine_replace_bits(uint8_t* byte, uint8_t mask, uint8_t bits); /* atomic */
float tl_engine_atomic_add_float(float* to, float value);
int32_t tl_engine_atomic_add_int(int32_t* to, int32_t value);
uint16_t tl_engine_atomic_add_16bit(void* to, uint16_t bits, int type); /* TL_ENGINE_HALF or TL_ENGINE_BFLOAT16 */

/* Reports a failed assertion and aborts the launch; does not return. */
void tl_engine_assertion_failed(const char* message);
/* Reports that an index of a tile or register array is not in 0 .. extent - 1, and aborts the launch. */
void tl_engine_index_outside(int index, int extent) __attribute__((cold));

/* ---- kernel: barriers -------------------------------------------------------------------------------------- */

int tl_engine_sync_threads_count(int predicate); /* number of threads whose predicate is true */
void tl_engine_sync_threads(void);
void tl_engine_barrier_sync(int barrier, int threads);
void tl_engine_barrier_arrive(int barrier, int threads);
void tl_engine_sync_warp(uint64_t mask);
void tl_engine_sync_grid(void); /* the block's first thread waits; block barriers precede and follow */

/* ---- kernel: warp collectives ------------------------------------------------------------------------------ */

enum tl_engine_shuffle_mode {
  TL_ENGINE_SHUFFLE_INDEX = 0,
  TL_ENGINE_SHUFFLE_UP = 1,
  TL_ENGINE_SHUFFLE_DOWN = 2,
  TL_ENGINE_SHUFFLE_XOR = 3
};
/* Replaces `value` (up to 16 bytes) by that of the lane that mode and operand select within groups of `width` lanes. */
void tl_engine_shuffle(void* value, int bytes, int mode, int operand, int width, uint64_t mask);
uint64_t tl_engine_ballot(uint64_t mask, int predicate);
void tl_engine_ldmatrix(uint32_t* registers, const void* row, int matrices, int transposed);

/* Unwritten registers (tl::host::mark_unwritten) and shared memory hold signalling NaNs. Their six payload bits below
 * the quiet bit are TL_ENGINE_PAYLOAD_UNWRITTEN in half, bfloat16 and float; in registers also in double. Conversions
 * preserve these bits; arithmetic sets the quiet bit, and may change the sign. Integers of 32 bits hold those of float,
 * as long as nothing is computed from them. An MMA that reads unwritten operands sets its results' payload to
 * TL_ENGINE_PAYLOAD_COMPUTED. */
#define TL_ENGINE_PAYLOAD_UNWRITTEN 0x36
#define TL_ENGINE_PAYLOAD_COMPUTED 0x2d
#define TL_ENGINE_UNWRITTEN_SHARED 0x7fb6u
#define TL_ENGINE_UNWRITTEN 0x7fb60000u
#define TL_ENGINE_UNWRITTEN_HALF 0x7db0u
#define TL_ENGINE_UNWRITTEN_BFLOAT16 0x7fb6u
#define TL_ENGINE_UNWRITTEN_DOUBLE 0x7ff6c00000000000u

/* Reports unwritten values among `count` accumulators of TL_ENGINE_FLOAT, TL_ENGINE_DOUBLE, TL_ENGINE_HALF or
 * TL_ENGINE_BFLOAT16; other types are not checked. */
void tl_engine_check_accumulators(const void* accumulators, int count, int type);
/* Sets the payload of NaNs among them that an MMA computed from unwritten operands. */
void tl_engine_mark_computed(void* accumulators, int count, int type);
/* Begins or ends a section in which the calling thread's reads of shared memory load operands of an MMA of half,
 * bfloat16 or float: reads of unwritten operands are no finding there, since the store of a dependent result is. */
void tl_engine_operand_reads(int begins);

/* mma.sync m16n8kK, d += a * b, with the fragments of the PTX ISA. K is 16 for 16-bit operands, 8 for tf32, 32 for
 * int8, 64 for 4-bit integers; d is float[4], or int32_t[4] for integers. */
void tl_engine_mma(void* d, const uint32_t* a, const uint32_t* b, int type);
/* mma.sync m16n8k16 with half accumulators, uint32_t d[2]. */
void tl_engine_mma_half(uint32_t* d, const uint32_t* a, const uint32_t* b);
/* mma.sp (2:4 sparse a), selector 0: uint32_t a[4], b[4]; m16n8k32 of TL_ENGINE_HALF and TL_ENGINE_BFLOAT16, m16n8k64
 * of TL_ENGINE_INT8 (int32_t d[4]), TL_ENGINE_E4M3 and TL_ENGINE_E5M2. */
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

/* stmatrix.x4, optionally transposed: the inverse of tl_engine_ldmatrix. */
void tl_engine_stmatrix(void* row, const uint32_t* registers, int transposed);

/* A tensor map, innermost dimension first: extents and box in elements, strides in bytes (the first is the element
 * size). Dimensions beyond `rank` have extent and box 1. */
typedef struct tl_engine_tensor_map {
  const void* base;
  uint64_t extents[5], strides[5];
  int32_t box[5];
  int32_t rank, element_bytes, swizzle_bytes; /* swizzle 0, 32, 64 or 128 */
} tl_engine_tensor_map;
/* Loads and stores of the box at these `rank` coordinates, outermost dimension first. */
void tl_engine_tma_load(void* to, const tl_engine_tensor_map* map, void* barrier, const int32_t* at, int rank);
void tl_engine_tma_store(const tl_engine_tensor_map* map, const void* from, const int32_t* at, int rank);
/* Reduction: adds floats to those of the box. */
void tl_engine_tma_add(const tl_engine_tensor_map* map, const void* from, const int32_t* at, int rank);
void tl_engine_tma_store_commit(void);
/* For the tiles: that they are read. Then for the tensors, too: that the stores are complete. */
void tl_engine_tma_store_wait_read(int groups_left);
void tl_engine_tma_store_wait(int groups_left);

/* Clusters. The rank of the calling thread's block in its cluster, x fastest. */
int tl_engine_block_rank(void);
void tl_engine_cluster_arrive(int releases);
void tl_engine_cluster_wait(void);
/* The address of `own` in the shared memory of the block with this rank. */
void* tl_engine_in_block(const void* own, int rank);
/* As tl_engine_tma_load, multicast to the same address, with the same mbarrier, in each block of the mask. */
void tl_engine_tma_load_multicast(void* to, const tl_engine_tensor_map* map, void* barrier, const int32_t* at, int rank,
                                  uint32_t mask);
/* Issues a copy from the caller's shared memory to another block's; the bytes complete on the mbarrier there. */
void tl_engine_copy_to_block(void* to, const void* from, int bytes, void* barrier);

/* wgmma m64nN; K is 32 bytes. A and B are descriptors; with a_registers, a 16-bit A is in four registers. a_mn, b_mn:
 * the 16-bit operand is MN-major. Accumulators are float[n / 2]; int32_t for TL_ENGINE_INT8 and TL_ENGINE_UINT8; half
 * with half_sums. */
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

/* v_mfma with `size` (32 or 16) rows and columns, and `n` (up to 16) elements of `type` per lane and operand. d is
 * float[size * size / 64]; int32_t for TL_ENGINE_INT8, double for TL_ENGINE_DOUBLE. */
void tl_engine_mfma(void* d, const void* a, const void* b, int size, int n, int type);
/* `lds` is uniform; each lane copies `bytes` bytes: source_bytes from memory, and zeros. */
void tl_engine_global_load_lds(void* lds, const void* from, int bytes, int source_bytes);
void tl_engine_wait_vector_memory(int operations_left);
/* ds_read_b64_tr_b16, _b8: 8 bytes of the column that belongs to the lane in its group of 16 lanes. */
void tl_engine_read_transposed(void* to, const void* from, int element_bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif
