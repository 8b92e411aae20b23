// C = sum over turns of A B_turn on one 64 x 64 tile, written as emitted texts are: A by ordinary copies, the B tiles
// by a TMA pipeline, two boxes each, C out by a TMA store. Each fault is one omission; comments name the lines that
// tests expect in findings.
#include <tl/tl.h>
#include <tl/sm90/wgmma_half.h>

namespace hopper {

enum Fault {
  none,
  store_without_fence,
  released_before_product,
  copy_without_barrier,
  barrier_without_fence,
  too_many_bytes_expected,
  too_few_bytes_expected,
  staging_not_waited_for,
  operand_overwritten_in_flight,
  staging_overwritten_in_flight
};

constexpr int threads = 128, stages = 2, turns = 5;
using Tile = tl::SharedTile<tl::half, 64, 64, tl::Swizzle128B>;
using HalfTile = tl::SharedTile<tl::half, 32, 64, tl::Swizzle128B>;  // box of the upper or lower half of B
using Layout = tl::WgmmaAccumulator<64, 64, 1>;

struct Shared {
  Tile A;
  Tile B[stages];
  tl::StagingTile<tl::half, 64, 64, tl::Swizzle128B> C;
  tl::TmaBarriers<stages> barriers;
};

// The two halves of a tile are next to each other, as its only panel has all rows.
__device__ __forceinline__ HalfTile& half_of(Tile& tile, int half) {
  return *reinterpret_cast<HalfTile*>(tile.data + half * 32 * 64);
}

template <Fault fault>
__device__ __forceinline__ void store(tl::Fragment<float, Layout>& c, Shared& s, const tl::TensorMap& C_map) {
  if (fault == none) return tl::tma_store(c, s.C, C_map, tl::at(0, 0));
  tl::stage_rows<0, 64, 0>(c, s.C, 0);  // @stage
  if (fault != store_without_fence) tl::fence_async_proxy();
  tl::sync_warp();
  if (tl::lane() == 0) {
    const int row = Layout::warp_row(0);
    tl::tma_store_box(C_map, {row, 0}, s.C.at(row, 0));  // @store
    tl::tma_store_commit();
    if (fault == staging_overwritten_in_flight) *s.C.at(row, 0) = 1.0f;  // @overwrite
    if (fault != staging_not_waited_for) tl::tma_store_wait_read<0>();
  }
}

// C += A B with A in registers, of which one is changed before the product is waited for.
__device__ __forceinline__ void multiply_and_spoil(tl::Fragment<tl::half, Layout>& a, const Tile& b,
                                                   tl::Fragment<float, Layout>& c) {
  tl::gemm_start(a, b, c);  // @spoiled
  a.reg[0] = a.reg[0] + tl::half(1.0f);
  tl::gemm_wait<0>(c);
}

template <Fault fault>
__global__ void kernel(const tl::half* A_data, const __grid_constant__ tl::TensorMap B_map,
                       const __grid_constant__ tl::TensorMap C_map) {
  auto& s = tl::shared<Shared>();
  const auto A = tl::tensor<tl::Aligned<16>>(A_data, 64, 64);
  auto load = [&](int turn, tl::Barrier& full) {
    tl::tma_load(B_map, tl::at(turn * 64, 0), half_of(s.B[turn % stages], 0), full);       // @load_upper
    tl::tma_load(B_map, tl::at(turn * 64 + 32, 0), half_of(s.B[turn % stages], 1), full);  // @load_lower
  };
  constexpr int bytes = fault == too_many_bytes_expected  ? 2 * int(sizeof(Tile))
                        : fault == too_few_bytes_expected ? int(sizeof(HalfTile))
                                                          : int(sizeof(Tile));
  const tl::TmaPipeline<stages, threads> pipeline(s.barriers, bytes);
  if (tl::thread() == 0) {
    pipeline.init();
    tl::mbarrier_init_fence();
  }
  tl::sync_threads();
  if (tl::is_producer<threads>()) {
    if (tl::thread() == threads)
      for (int turn = 0; turn < turns; ++turn) load(turn, pipeline.producer_acquire(turn));  // @produce
    return;
  }

  tl::Fragment<float, Layout> c;
  tl::clear(c);
  tl::copy<threads>(A.tile(0, 0), s.A);  // @copy_A
  if (fault == barrier_without_fence)
    tl::barrier_sync(1, threads);
  else if (fault != copy_without_barrier)
    tl::sync_consumers<threads>();
  if (fault == released_before_product) {
    for (int turn = 0; turn < turns; ++turn) {
      const int slot = turn % stages;
      tl::mbarrier_wait(s.barriers.full[slot], turn / stages & 1);
      tl::sync_warp();
      if (tl::lane() == 0) tl::mbarrier_arrive(s.barriers.empty[slot]);
      tl::gemm(s.A, s.B[slot], c);  // @early
    }
  } else {
    for (int turn = 0; turn < turns; ++turn) {
      pipeline.consumer_wait(turn);  // @turns
      if (fault == operand_overwritten_in_flight) {
        tl::Fragment<tl::half, Layout> a;
        tl::copy(A.tile(0, 0), a);
        multiply_and_spoil(a, s.B[turn % stages], c);
      } else {
        tl::gemm(s.A, s.B[turn % stages], c);  // @gemm
      }
      pipeline.consumer_release(turn);
    }
  }
  store<fault>(c, s, C_map);
}

template <Fault fault> int run(const void* A, const void* B, void* C) {
  return tl::launch<Shared>(kernel<fault>, dim3(1), threads + tl::producer_threads, nullptr,
                            static_cast<const tl::half*>(A), tl::tensor_map<HalfTile>(B, turns * 64, 64),
                            tl::tensor_map<decltype(Shared::C)>(C, 64, 64));
}

}  // namespace hopper

extern "C" __attribute__((visibility("default"))) int hopper_run(int fault, const void* A, const void* B, void* C) {
  using namespace hopper;
  using Run = int (*)(const void*, const void*, void*);
  static const Run runs[] = {run<none>,
                             run<store_without_fence>,
                             run<released_before_product>,
                             run<copy_without_barrier>,
                             run<barrier_without_fence>,
                             run<too_many_bytes_expected>,
                             run<too_few_bytes_expected>,
                             run<staging_not_waited_for>,
                             run<operand_overwritten_in_flight>,
                             run<staging_overwritten_in_flight>};
  return runs[fault](A, B, C);
}
