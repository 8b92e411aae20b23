// Memory requests of whole warps: bank conflicts in shared memory, sectors in global memory.
//
// Lanes run one after another here, so the n-th execution of an instruction by each lane of a warp is put together into
// one request. Model: 32 banks of 4 bytes, a request served in phases of 32, 16 or 8 lanes for accesses of up to 4, 8 or
// 16 bytes, lanes that read the same word served at once; global memory moves sectors of 32 bytes. AMD's waves of 64 are
// served alike but for reads of 16 bytes, whose phases are other lanes; with gfx950's 64 banks phases are twice as many.
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
  std::uint32_t worst = 0;  // lanes that one bank served one after another
  std::uint32_t bytes = 0;  // of one lane's access
};

// An instruction: its site, and whether it is a write and to shared memory.
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
  // Of a block, or of a cluster.
  void begin_block(int warps, int warp_size, int banks);
  void end_block();

  // One lane's access; counted when all living lanes of its warp have made theirs.
  void lane_access(Worker& worker, Site site, std::uint64_t address, std::uint32_t bytes, bool is_write,
                   bool is_shared);
  // A whole warp's access, for collectives such as ldmatrix. `lanes` is a mask.
  void warp_access(const RequestKey& key, std::uint32_t bytes, const LaneAddresses& addresses, std::uint64_t lanes);
  const RequestTable& counts() const { return counts_; }

 private:
  struct Request {
    std::uint64_t lanes = 0;
    std::uint32_t bytes = 0;
    LaneAddresses addresses{};
  };
  struct Instruction {
    std::uint32_t first_open = 0;  // number of the request at the front
    std::array<std::uint32_t, max_warp_size> executions{};
    std::deque<Request> open;
  };

  int warp_size_ = 32, banks_ = 32;
  std::vector<std::unordered_map<RequestKey, Instruction, RequestKeyHash>> warps_;
  RequestTable counts_;
};

}  // namespace tile2cu::engine
