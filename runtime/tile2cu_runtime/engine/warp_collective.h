// Operations that the lanes of a warp do together: the last to arrive does the work for all.
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

// A meeting of the lanes in `mask`; `arguments` holds what each brought, by lane.
struct Meeting {
  Meeting(std::uint64_t mask_, CollectiveKind kind_, Site site_) : mask(mask_), kind(kind_), site(site_) {}
  std::uint64_t mask, arrived = 0;
  CollectiveKind kind;
  Site site;  // of the first to arrive
  std::array<void*, max_warp_size> arguments;
};

struct Warp {
  std::uint64_t living = 0;       // lanes that have not returned
  std::vector<Meeting> meetings;  // open ones; halves of a diverged warp may each have their own
};

// Visits the lanes of a mask in ascending order.
template <class Visit> void for_each_lane(std::uint64_t mask, Visit&& visit) {
  for (; mask; mask &= mask - 1) visit(__builtin_ctzll(mask));
}

constexpr std::uint64_t all_lanes = ~std::uint64_t(0);

// Joins the current thread. Null when others held the meeting while it waited, else the complete meeting, for the
// caller to hold and then dismiss. Millions of times a second, so nothing is copied.
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
