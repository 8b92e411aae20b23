// The JSON report of a thread's launches.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "findings.h"
#include "requests.h"

namespace tile2cu::engine {

class Report {
 public:
  // Faults, what is none as long as no result depends on it, and which line's writes which line reads.
  void add(std::vector<Finding> findings, std::vector<Finding> warnings, std::vector<Finding> flows);
  void add(const RequestTable& requests);
  void add_switches(std::uint64_t switches, std::uint64_t collectives);
  std::string json() const;

 private:
  static constexpr std::size_t most_findings = 100;
  std::vector<Finding> findings_, warnings_, flows_;
  RequestTable requests_;
  std::uint64_t switches_ = 0, collectives_ = 0;
};

}  // namespace tile2cu::engine
