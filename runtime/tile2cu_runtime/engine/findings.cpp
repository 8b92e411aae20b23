#include "findings.h"

#include <utility>

namespace tile2cu::engine {
namespace {

std::uint64_t key_of(const char* kind, const Whereabouts& where) {
  std::uint64_t key = reinterpret_cast<std::uint64_t>(kind) * 31;
  key ^= reinterpret_cast<std::uint64_t>(where.here) * 0x9E3779B97F4A7C15u;
  key ^= reinterpret_cast<std::uint64_t>(where.there) * 0xC2B2AE3D27D4EB4Fu;
  return key;
}

}  // namespace

// Returns null for a repetition. Entries do not move, so the worker that added one may fill it in without the lock.
Finding* Findings::first_time(const char* kind, const Whereabouts& where) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [entry, is_new] = position_.emplace(key_of(kind, where), findings_.size());
  if (!is_new) {
    if (entry->second < findings_.size()) ++findings_[entry->second].count;
    return nullptr;
  }
  if (findings_.size() >= most_kept) return nullptr;
  findings_.reserve(most_kept);
  findings_.emplace_back();
  findings_.back().kind = kind;
  findings_.back().count = 1;
  return &findings_.back();
}

void Findings::describe(Finding& finding, const Whereabouts& where, std::string message) {
  finding.message = std::move(message);
  finding.shared_offset = where.shared_offset;
  if (where.here) finding.sites.push_back(where.here);
  if (where.there) finding.sites.push_back(where.there);
}

void Findings::add_with_sites(const char* kind, std::string message, std::vector<Site> sites) {
  Whereabouts where;
  if (!sites.empty()) where.here = sites.front();
  if (Finding* finding = first_time(kind, where)) {
    finding->message = std::move(message);
    finding->sites = std::move(sites);
  }
}

std::vector<Finding> Findings::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  position_.clear();
  return std::exchange(findings_, {});
}

}  // namespace tile2cu::engine
