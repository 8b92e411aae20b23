// The findings of a launch.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

// The places of a finding: this access, the other access of a conflict, and the shared-memory offset in bytes.
struct Whereabouts {
  Site here = nullptr;
  Site there = nullptr;
  std::int64_t shared_offset = -1;
};

// {0}, {1}, ... in `message` stand for the source locations of `sites`, which are resolved after the launch.
struct Finding {
  const char* kind = "";
  std::string message;
  std::vector<Site> sites;
  std::int64_t shared_offset = -1;
  std::uint64_t count = 0;
};

// One entry per kind and pair of sites; repetitions are counted, without formatting their message.
class Findings {
 public:
  template <class Message> void add(const char* kind, const Whereabouts& where, Message&& message) {
    if (Finding* finding = first_time(kind, where)) describe(*finding, where, message());
  }
  void add_with_sites(const char* kind, std::string message, std::vector<Site> sites);
  std::vector<Finding> take();

 private:
  // Unrolling gives one source line many addresses; beyond this number findings are only counted.
  static constexpr std::size_t most_kept = 4000;
  Finding* first_time(const char* kind, const Whereabouts& where);
  void describe(Finding& finding, const Whereabouts& where, std::string message);

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::size_t> position_;
  std::vector<Finding> findings_;
};

}  // namespace tile2cu::engine
