// Warp collectives: the last lane to arrive executes the operation for all.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

struct Worker;

enum class CollectiveKind {
  shuffle,
  ballot,
  sync_warp,
  ldmatrix,
  stmatrix,
  mma,
  mfma,
  global_load_lds,
  read_transposed
};
const char* name_of(CollectiveKind kind);

// A collective in progress: `mask` has its lanes, `arguments` each lane's operands.
struct Meeting {
  Meeting(std::uint64_t mask_, CollectiveKind kind_, Site site_) : mask(mask_), kind(kind_), site(site_) {}
  std::uint64_t mask, arrived = 0;
  CollectiveKind kind;
  Site site;  // of the first arrival
  std::array<void*, max_warp_size> arguments;
};

struct Warp {
  std::uint64_t living = 0;       // lanes that have not exited
  std::vector<Meeting> meetings;  // in progress; parts of a diverged warp may each have one
};

// Visits the lanes of a mask in ascending order.
template <class Visit> void for_each_lane(std::uint64_t mask, Visit&& visit) {
  for (; mask; mask &= mask - 1) visit(__builtin_ctzll(mask));
}

constexpr std::uint64_t all_lanes = ~std::uint64_t(0);

// Joins the current thread. Returns null if the collective was executed while it waited, else the complete collective,
// which the caller executes and then dismisses. Called millions of times per second, so nothing is copied.
Meeting* join_meeting(Worker& worker, std::uint64_t mask, CollectiveKind kind, void* argument, Site site);
void dismiss_meeting(Worker& worker, Meeting& meeting);

template <class Work>
void warp_collective(Worker& worker, std::uint64_t mask, CollectiveKind kind, void* argument, Site site, Work&& work) {
  if (Meeting* meeting = join_meeting(worker, mask, kind, argument, site)) {
    work(static_cast<const Meeting&>(*meeting));
    dismiss_meeting(worker, *meeting);
  }
}

}  // namespace tile2cu::engine
