#include "report.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "symbolize.h"

namespace tile2cu::engine {
namespace {

std::string json_string(const std::string& value) {
  std::string out = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += text("\\u%04x", c);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string json_place(Site site) {
  const Frame& frame = place_of(site);
  return "{\"file\": " + json_string(frame.file) + ", \"line\": " + text("%d", frame.line) +
         ", \"function\": " + json_string(frame.function) + "}";
}

template <class Items, class Print> std::string json_list(const Items& items, Print&& print) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) out += ", ";
    out += print(item);
  }
  return out + "]";
}

// Replaces {0}, {1}, ... by source locations.
std::string with_places(const Finding& finding) {
  std::string message = finding.message;
  for (std::size_t number = 0; number < finding.sites.size(); ++number) {
    const std::string mark = text("{%zu}", number), name = name_of_place(finding.sites[number]);
    for (auto at = message.find(mark); at != std::string::npos; at = message.find(mark, at + name.size())) {
      message.replace(at, mark.size(), name);
    }
  }
  return message;
}

std::string json_finding(const Finding& finding) {
  std::string out = "{\"kind\": " + json_string(finding.kind) + ", \"message\": " + json_string(with_places(finding));
  out += text(", \"count\": %llu", static_cast<unsigned long long>(finding.count));
  if (finding.shared_offset >= 0) {
    out += text(", \"shared_offset\": %lld", static_cast<long long>(finding.shared_offset));
  }
  return out + ", \"places\": " + json_list(finding.sites, json_place) + "}";
}

// Unrolling and inlining give one line several addresses: findings at the same lines are merged.
std::vector<Finding> merged(const std::vector<Finding>& findings) {
  std::vector<Finding> out;
  std::map<std::string, std::size_t> position;
  for (const Finding& finding : findings) {
    std::string key = finding.kind;
    for (Site site : finding.sites) key += "|" + place_of(site).file + text(":%d", place_of(site).line);
    if (finding.sites.empty()) key += finding.message;
    const auto [entry, is_new] = position.emplace(key, out.size());
    if (is_new) {
      out.push_back(finding);
    } else {
      out[entry->second].count += finding.count;
    }
  }
  return out;
}

// The requests of one source line, direction and width.
struct LineKey {
  std::string file;
  int line;
  bool is_write;
  std::uint32_t bytes;
  bool operator<(const LineKey& other) const {
    return std::tie(file, line, is_write, bytes) < std::tie(other.file, other.line, other.is_write, other.bytes);
  }
};
using LineTable = std::map<LineKey, std::pair<Site, RequestCounts>>;

LineTable by_line(const RequestTable& requests, bool is_shared) {
  LineTable lines;
  for (const auto& [key, counts] : requests) {
    if (key.is_shared != is_shared) continue;
    const Frame& frame = place_of(key.site);
    auto& [site, sum] = lines[{frame.file, frame.line, key.is_write, counts.bytes}];
    site = key.site;
    sum.requests += counts.requests;
    sum.served += counts.served;
    sum.ideal += counts.ideal;
    sum.worst = std::max(sum.worst, counts.worst);
  }
  return lines;
}

std::string json_requests(const RequestTable& requests, bool is_shared) {
  return json_list(by_line(requests, is_shared), [&](const LineTable::value_type& entry) {
    const auto& [key, value] = entry;
    const RequestCounts& counts = value.second;
    std::string out = "{\"place\": " + json_place(value.first);
    out += text(", \"access\": \"%s\", \"bytes\": %u, \"requests\": %llu, \"%s\": %llu, \"ideal\": %llu",
                key.is_write ? "write" : "read", key.bytes, static_cast<unsigned long long>(counts.requests),
                is_shared ? "wavefronts" : "sectors", static_cast<unsigned long long>(counts.served),
                static_cast<unsigned long long>(counts.ideal));
    if (is_shared) out += text(", \"worst_ways\": %u", counts.worst);
    return out + "}";
  });
}

}  // namespace

void Report::add(std::vector<Finding> findings, std::vector<Finding> warnings, std::vector<Finding> flows) {
  const auto append = [](std::vector<Finding>& to, std::vector<Finding>& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(findings_, findings), append(warnings_, warnings), append(flows_, flows);
}

void Report::add(const RequestTable& requests) {
  for (const auto& [key, counts] : requests) {
    RequestCounts& sum = requests_[key];
    sum.requests += counts.requests;
    sum.served += counts.served;
    sum.ideal += counts.ideal;
    sum.worst = std::max(sum.worst, counts.worst);
    sum.bytes = counts.bytes;
  }
}

void Report::add_switches(std::uint64_t switches, std::uint64_t collectives) {
  switches_ += switches;
  collectives_ += collectives;
}

std::string Report::json() const {
  std::vector<Site> sites;
  for (const Finding& finding : findings_) sites.insert(sites.end(), finding.sites.begin(), finding.sites.end());
  for (const Finding& finding : flows_) sites.insert(sites.end(), finding.sites.begin(), finding.sites.end());
  for (const Finding& finding : warnings_) sites.insert(sites.end(), finding.sites.begin(), finding.sites.end());
  for (const auto& entry : requests_) sites.push_back(entry.first.site);
  symbolize(sites);

  std::vector<Finding> findings = merged(findings_), warnings = merged(warnings_);
  if (warnings.size() > most_findings) warnings.resize(most_findings);
  const std::size_t omitted = findings.size() > most_findings ? findings.size() - most_findings : 0;
  findings.resize(findings.size() - omitted);
  std::string out = "{\"findings\": " + json_list(findings, json_finding);
  out += ", \"warnings\": " + json_list(warnings, json_finding);
  if (!flows_.empty()) out += ", \"flows\": " + json_list(merged(flows_), json_finding);
  out += text(", \"findings_omitted\": %zu, \"statistics\": {\"switches\": %llu, \"collectives\": %llu", omitted,
              static_cast<unsigned long long>(switches_), static_cast<unsigned long long>(collectives_));
  out += ", \"shared\": " + json_requests(requests_, true);
  out += ", \"global\": " + json_requests(requests_, false);
  return out + "}}\n";
}

}  // namespace tile2cu::engine
