#include "requests.h"

#include <algorithm>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int most_banks = 64, bank_bytes = 4, sector_bytes = 32;

// The lanes per phase: as many as access each bank once.
int lanes_in_a_phase(std::uint32_t bytes, int banks) { return bytes <= 4 ? banks : bytes == 8 ? banks / 2 : banks / 4; }

// The order in which AMD serves ds_read_b128: the first lanes of groups of four lanes, two groups per phase, or four
// with 64 banks. [triton-lang/triton, pull request 11365: MI300 and MI350]
using Order = std::array<int, max_warp_size / 4>;
constexpr Order read_b128_order_32 = {0, 20, 32, 52, 4, 16, 36, 48, 8, 28, 40, 60, 12, 24, 44, 56};
constexpr Order read_b128_order_64 = {0, 12, 20, 24, 32, 44, 52, 56, 4, 8, 16, 28, 36, 40, 48, 60};

// The wavefronts for the lanes [first, last) of the order: the maximum over banks of the number of different words.
std::uint32_t wavefronts(const LaneAddresses& addresses, std::uint64_t lanes, int first, int last, std::uint32_t bytes,
                         int banks, bool is_read_b128) {
  const Order& order = banks == most_banks ? read_b128_order_64 : read_b128_order_32;
  std::array<std::uint64_t, max_warp_size * 4> words;
  std::size_t count = 0;
  for (int place = first; place < last; ++place) {
    const int lane = is_read_b128 ? order[place / 4] + place % 4 : place;
    if (!(lanes >> lane & 1)) continue;
    for (std::uint32_t byte = 0; byte < bytes; byte += bank_bytes)
      words[count++] = (addresses[lane] + byte) / bank_bytes;
  }
  std::sort(words.begin(), words.begin() + count);
  count = std::unique(words.begin(), words.begin() + count) - words.begin();
  std::array<std::uint32_t, most_banks> load{};
  for (std::size_t index = 0; index < count; ++index) load[words[index] % banks]++;
  return *std::max_element(load.begin(), load.end());
}

void count_shared(RequestCounts& counts, const LaneAddresses& addresses, std::uint64_t lanes, std::uint32_t bytes,
                  int warp_size, int banks, bool is_write) {
  const int phase = lanes_in_a_phase(bytes, banks);
  const bool is_read_b128 = warp_size == max_warp_size && bytes == 16 && !is_write;
  for (int first = 0; first < warp_size; first += phase) {
    const int last = std::min(first + phase, warp_size);
    const std::uint32_t ways = wavefronts(addresses, lanes, first, last, bytes, banks, is_read_b128);
    if (ways == 0) continue;
    counts.served += ways;
    counts.ideal += 1;
    counts.worst = std::max(counts.worst, ways);
  }
}

// Ideal: the sectors that the distinct addresses would occupy if they were contiguous.
void count_global(RequestCounts& counts, const LaneAddresses& addresses, std::uint64_t lanes, std::uint32_t bytes,
                  int warp_size) {
  std::vector<std::uint64_t> sectors, starts;
  for (int lane = 0; lane < warp_size; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    starts.push_back(addresses[lane]);
    const std::uint64_t last = (addresses[lane] + bytes - 1) / sector_bytes;
    for (std::uint64_t sector = addresses[lane] / sector_bytes; sector <= last; ++sector) sectors.push_back(sector);
  }
  const auto different = [](std::vector<std::uint64_t>& values) {
    std::sort(values.begin(), values.end());
    return std::uint64_t(std::unique(values.begin(), values.end()) - values.begin());
  };
  const std::uint64_t needed = different(sectors);
  counts.served += needed;
  counts.ideal += (different(starts) * bytes + sector_bytes - 1) / sector_bytes;
  counts.worst = std::max(counts.worst, std::uint32_t(needed));
}

}  // namespace

void Requests::begin_block(int warps, int warp_size, int banks) {
  warp_size_ = warp_size;
  banks_ = banks == most_banks ? most_banks : 32;
  warps_.assign(warps, {});
}

// Counts incomplete requests with the lanes that they have.
void Requests::end_block() {
  for (const auto& instructions : warps_) {
    for (const auto& [key, instruction] : instructions) {
      for (const Request& request : instruction.open) {
        if (request.lanes) warp_access(key, request.bytes, request.addresses, request.lanes);
      }
    }
  }
  warps_.clear();
}

void Requests::lane_access(Worker& worker, Site site, std::uint64_t address, std::uint32_t bytes, bool is_write,
                           bool is_shared) {
  const Thread& self = *worker.current;
  const RequestKey key{site, is_write, is_shared};
  Instruction& instruction = warps_[self.warp][key];
  const std::uint32_t position = instruction.executions[self.lane]++ - instruction.first_open;
  if (instruction.open.size() <= position) instruction.open.resize(position + 1);
  Request& request = instruction.open[position];
  request.addresses[self.lane] = address;
  request.lanes |= std::uint64_t(1) << self.lane;
  request.bytes = bytes;
  const std::uint64_t all = worker.warps[self.warp].living;
  while (!instruction.open.empty() && instruction.open.front().lanes == all) {
    const Request& complete = instruction.open.front();
    warp_access(key, complete.bytes, complete.addresses, complete.lanes);
    instruction.open.pop_front();
    ++instruction.first_open;
  }
}

void Requests::warp_access(const RequestKey& key, std::uint32_t bytes, const LaneAddresses& addresses,
                           std::uint64_t lanes) {
  RequestCounts& counts = counts_[key];
  counts.requests++;
  counts.bytes = bytes = std::min(bytes, 16u);
  if (key.is_shared)
    count_shared(counts, addresses, lanes, bytes, warp_size_, banks_, key.is_write);
  else
    count_global(counts, addresses, lanes, bytes, warp_size_);
}

}  // namespace tile2cu::engine
