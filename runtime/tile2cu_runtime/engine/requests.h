// Memory requests of warps: bank conflicts in shared memory, sectors in global memory.
// Lanes execute one after another here, so the n-th executions of an instruction by the lanes of a warp form one
// request. Model: 32 banks of 4 bytes; a request is served in phases of 32, 16 or 8 lanes for accesses of up to 4, 8 or
// 16 bytes; lanes that read the same word are served together; global memory has sectors of 32 bytes. AMD's wavefronts
// are served the same way, except that the phases of 16-byte reads consist of other lanes; with gfx950's 64 banks
// phases are twice as large.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

struct Worker;

struct RequestCounts {
  std::uint64_t requests = 0;
  std::uint64_t served = 0;  // wavefronts in shared memory, sectors in global memory
  std::uint64_t ideal = 0;
  std::uint32_t worst = 0;  // the highest n of n-way bank conflicts
  std::uint32_t bytes = 0;  // bytes per lane
};

// An instruction: its site, direction and memory space.
struct RequestKey {
  Site site;
  bool is_write, is_shared;
  bool operator==(const RequestKey& other) const {
    return site == other.site && is_write == other.is_write && is_shared == other.is_shared;
  }
};
struct RequestKeyHash {
  std::size_t operator()(const RequestKey& key) const {
    return reinterpret_cast<std::size_t>(key.site) * 4 + key.is_shared * 2 + key.is_write;
  }
};
using RequestTable = std::unordered_map<RequestKey, RequestCounts, RequestKeyHash>;
using LaneAddresses = std::array<std::uint64_t, max_warp_size>;

class Requests {
 public:
  // The requests of a block or a cluster.
  void begin_block(int warps, int warp_size, int banks);
  void end_block();

  // Adds one lane's access; the request is counted when all non-exited lanes of its warp have executed it.
  void lane_access(Worker& worker, Site site, std::uint64_t address, std::uint32_t bytes, bool is_write,
                   bool is_shared);
  // Adds the access of a whole warp, for collectives such as ldmatrix. `lanes` is a mask.
  void warp_access(const RequestKey& key, std::uint32_t bytes, const LaneAddresses& addresses, std::uint64_t lanes);
  const RequestTable& counts() const { return counts_; }

 private:
  struct Request {
    std::uint64_t lanes = 0;
    std::uint32_t bytes = 0;
    LaneAddresses addresses{};
  };
  struct Instruction {
    std::uint32_t first_open = 0;  // index of the oldest incomplete request
    std::array<std::uint32_t, max_warp_size> executions{};
    std::deque<Request> open;
  };

  int warp_size_ = 32, banks_ = 32;
  std::vector<std::unordered_map<RequestKey, Instruction, RequestKeyHash>> warps_;
  RequestTable counts_;
};

}  // namespace tile2cu::engine
