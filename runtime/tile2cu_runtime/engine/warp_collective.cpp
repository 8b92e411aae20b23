#include "warp_collective.h"

#include <algorithm>
#include <cstring>

#include "symbolize.h"
#include "worker.h"

namespace tile2cu::engine {
namespace {

std::uint64_t lanes_below(int count) { return count >= 64 ? all_lanes : (std::uint64_t(1) << count) - 1; }

// The lanes that exist: the last warp of a block may be incomplete.
std::uint64_t lanes_of(const Worker& worker, int warp) {
  const int warp_size = worker.launch.request.warp_size;
  const int first = worker.threads[warp * warp_size].in_block;
  return lanes_below(std::min(warp_size, worker.block_threads - first));
}

void check_same_operation(Worker& worker, const Meeting& meeting, CollectiveKind kind, Site site) {
  if (meeting.kind == kind && (!worker.options.check || same_line(meeting.site, site))) return;
  worker.report("divergent warp collective", {site, meeting.site}, [&] {
    return text("%s executes %s at {0} while another lane of its warp waits in %s at {1}",
                worker.describe_current().c_str(), name_of(kind), name_of(meeting.kind));
  });
}

void report_mask(Worker& worker, std::uint64_t mask, CollectiveKind kind, Site site) {
  worker.report("collective mask", {site}, [&] {
    return text("%s executes %s at {0} with a mask, %llx, that excludes it", worker.describe_current().c_str(),
                name_of(kind), static_cast<unsigned long long>(mask));
  });
}

}  // namespace

const char* name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::shuffle:
      return "a shuffle";
    case CollectiveKind::ballot:
      return "a ballot";
    case CollectiveKind::sync_warp:
      return "__syncwarp";
    case CollectiveKind::ldmatrix:
      return "ldmatrix";
    case CollectiveKind::stmatrix:
      return "stmatrix";
    case CollectiveKind::mma:
      return "mma";
    case CollectiveKind::mfma:
      return "mfma";
    case CollectiveKind::global_load_lds:
      return "global_load_lds";
    case CollectiveKind::read_transposed:
      return "ds_read_tr";
  }
  return "?";
}

Meeting* join_meeting(Worker& worker, std::uint64_t mask, CollectiveKind kind, void* argument, Site site) {
  const Thread& self = *worker.current;
  const std::uint64_t own_lane = std::uint64_t(1) << self.lane;
  auto& meetings = worker.warps[self.warp].meetings;
  mask &= lanes_of(worker, self.warp);
  if (TILE2CU_UNLIKELY(!(mask & own_lane))) report_mask(worker, mask, kind, site);
  std::size_t open = 0;
  while (open < meetings.size() && (meetings[open].mask != mask || meetings[open].arrived & own_lane)) ++open;
  if (open == meetings.size()) meetings.emplace_back(mask, kind, site);
  Meeting& meeting = meetings[open];
  check_same_operation(worker, meeting, kind, site);
  meeting.arguments[self.lane] = argument;
  meeting.arrived |= own_lane;
  if (meeting.arrived != mask) {
    worker.block_current(name_of(kind), site);
    return nullptr;
  }
  worker.collectives++;
  return &meeting;
}

void dismiss_meeting(Worker& worker, Meeting& meeting) {
  const int first_thread = worker.current->warp * worker.launch.request.warp_size;
  for_each_lane(meeting.mask & ~(std::uint64_t(1) << worker.current->lane),
                [&](int lane) { worker.make_ready(ThreadNumber(first_thread + lane)); });
  auto& meetings = worker.warps[worker.current->warp].meetings;
  if (&meeting != &meetings.back()) meeting = meetings.back();
  meetings.pop_back();
}

namespace {

struct ShuffleArgument {
  void* value;
  int mode, operand;
};

// The source lane of `lane`. Outside its segment of `width` lanes the index form wraps; the others return their own
// value.
int source_lane(int lane, int width, const ShuffleArgument& argument) {
  const int segment = lane / width * width, within = lane % width;
  int source = within;
  switch (argument.mode) {
    case TL_ENGINE_SHUFFLE_INDEX:
      source = (argument.operand % width + width) % width;
      break;
    case TL_ENGINE_SHUFFLE_UP:
      source = within - argument.operand;
      break;
    case TL_ENGINE_SHUFFLE_DOWN:
      source = within + argument.operand;
      break;
    case TL_ENGINE_SHUFFLE_XOR:
      source = within ^ argument.operand;
      break;
  }
  return segment + (source < 0 || source >= width ? within : source);
}

void shuffle(Worker& worker, const Meeting& meeting, int bytes, int width) {
  struct Value {
    char bytes[16];
  };
  std::array<Value, max_warp_size> before;
  const auto argument = [&](int lane) { return static_cast<ShuffleArgument*>(meeting.arguments[lane]); };
  for_each_lane(meeting.arrived, [&](int lane) { std::memcpy(before[lane].bytes, argument(lane)->value, bytes); });
  for_each_lane(meeting.arrived, [&](int lane) {
    const int source = source_lane(lane, width, *argument(lane));
    if (meeting.arrived >> source & 1) {
      std::memcpy(argument(lane)->value, before[source].bytes, bytes);
      return;
    }
    std::memset(argument(lane)->value, 0xdb, bytes);
    worker.report("shuffle from inactive lane", {meeting.site},
                  [&] { return text("lane %d reads lane %d at {0}, which does not participate", lane, source); });
  });
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_sync_warp(std::uint64_t mask) {
  Worker& worker = current_worker();
  warp_collective(worker, mask, CollectiveKind::sync_warp, nullptr, TILE2CU_CALL_SITE, [&](const Meeting& meeting) {
    if (!worker.options.check) return;
    std::vector<int> threads;
    const int first = worker.current->warp * worker.launch.request.warp_size;
    for_each_lane(meeting.mask, [&](int lane) { threads.push_back(first + lane); });
    worker.clocks.exchange(threads);
  });
}

void tl_engine_shuffle(void* value, int bytes, int mode, int operand, int width, std::uint64_t mask) {
  Worker& worker = current_worker();
  ShuffleArgument argument{value, mode, operand};
  warp_collective(worker, mask, CollectiveKind::shuffle, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { shuffle(worker, meeting, bytes, width); });
}

std::uint64_t tl_engine_ballot(std::uint64_t mask, int predicate) {
  struct Vote {
    bool mine;
    std::uint64_t all;
  } vote{predicate != 0, 0};
  warp_collective(current_worker(), mask, CollectiveKind::ballot, &vote, TILE2CU_CALL_SITE, [](const Meeting& meeting) {
    std::uint64_t votes = 0;
    const auto of = [&](int lane) { return static_cast<Vote*>(meeting.arguments[lane]); };
    for_each_lane(meeting.arrived, [&](int lane) { votes |= std::uint64_t(of(lane)->mine) << lane; });
    for_each_lane(meeting.arrived, [&](int lane) { of(lane)->all = votes; });
  });
  return vote.all;
}

}  // extern "C"
