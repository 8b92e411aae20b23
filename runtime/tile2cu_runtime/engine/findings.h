// What the checker has found in a launch.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

// Where something happened: this access, the other end of a conflict, and the shared-memory offset in bytes.
struct Whereabouts {
  Site here = nullptr;
  Site there = nullptr;
  std::int64_t shared_offset = -1;
};

// `message` holds {0}, {1}, ... where the source places of `sites` belong; they are looked up after the launch.
struct Finding {
  const char* kind = "";
  std::string message;
  std::vector<Site> sites;
  std::int64_t shared_offset = -1;
  std::uint64_t count = 0;
};

// One entry for each kind and pair of sites; a repeat only counts, its message is never formatted.
class Findings {
 public:
  template <class Message> void add(const char* kind, const Whereabouts& where, Message&& message) {
    if (Finding* finding = first_time(kind, where)) describe(*finding, where, message());
  }
  void add_with_sites(const char* kind, std::string message, std::vector<Site> sites);
  std::vector<Finding> take();

 private:
  // Unrolled loops give a line hundreds of addresses; beyond this many the rest is only counted.
  static constexpr std::size_t most_kept = 4000;
  Finding* first_time(const char* kind, const Whereabouts& where);
  void describe(Finding& finding, const Whereabouts& where, std::string message);

  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::size_t> position_;
  std::vector<Finding> findings_;
};

}  // namespace tile2cu::engine
