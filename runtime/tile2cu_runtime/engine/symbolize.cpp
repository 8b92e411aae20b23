#include "symbolize.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace tile2cu::engine {
namespace {

// A site that stays valid after its library is unloaded: the library, and the address in its file.
struct Location {
  std::string library;
  std::uintptr_t address = 0;
  bool operator<(const Location& other) const {
    return std::tie(library, address) < std::tie(other.library, other.address);
  }
};

using InlineChain = std::vector<Frame>;  // innermost first

std::mutex mutex;
std::map<Location, InlineChain> known;

Location locate(Site site) {
  Dl_info info{};
  link_map* map = nullptr;
  if (!site || !dladdr1(site, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return {};
  // Minus one: a return address may belong to the next line.
  return {info.dli_fname, reinterpret_cast<std::uintptr_t>(site) - map->l_addr - 1};
}

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> output_lines(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return lines;
  char* line = nullptr;
  std::size_t capacity = 0;
  while (getline(&line, &capacity, pipe) > 0) {
    line[std::strcspn(line, "\n")] = '\0';
    lines.emplace_back(line);
  }
  std::free(line);
  pclose(pipe);
  return lines;
}

// "file:line", possibly followed by " (discriminator 3)".
Frame parse_frame(std::string function, std::string place) {
  place.resize(std::min(place.size(), place.find(" (discriminator")));
  const auto colon = place.rfind(':');
  Frame frame{std::move(function), place.substr(0, colon), 0};
  if (colon != std::string::npos) frame.line = std::atoi(place.c_str() + colon + 1);
  return frame;
}

// addr2line -a prints each address on a line "0x...", then two lines per frame: function and location.
void ask_addr2line(const std::string& library, const std::vector<std::uintptr_t>& addresses) {
  std::string command = "addr2line -a -i -f -C -e " + quoted(library);
  for (std::uintptr_t address : addresses) command += text(" 0x%zx", address);
  InlineChain* chain = nullptr;
  const auto lines = output_lines(command + " 2>/dev/null");
  for (std::size_t index = 0; index < lines.size(); ++index) {
    if (lines[index].compare(0, 2, "0x") == 0) {
      chain = &known[{library, std::uintptr_t(std::strtoull(lines[index].c_str(), nullptr, 16))}];
    } else if (chain && index + 1 < lines.size()) {
      Frame frame = parse_frame(lines[index], lines[index + 1]);
      if (frame.line > 0) chain->push_back(std::move(frame));
      ++index;
    }
  }
}

void look_up(const std::vector<Site>& sites) {
  constexpr std::size_t most_in_a_command = 2000;
  std::map<std::string, std::vector<std::uintptr_t>> wanted;
  for (Site site : sites) {
    Location location = locate(site);
    if (location.library.empty() || !known.emplace(location, InlineChain{}).second) continue;
    wanted[location.library].push_back(location.address);
  }
  for (const auto& [library, addresses] : wanted) {
    for (std::size_t first = 0; first < addresses.size(); first += most_in_a_command) {
      const std::size_t last = std::min(addresses.size(), first + most_in_a_command);
      ask_addr2line(library, {addresses.begin() + long(first), addresses.begin() + long(last)});
    }
  }
}

// The tl headers, and the standard library's.
bool is_header(const std::string& file) {
  for (const char* part : {"/tl/common/", "/tl/host/", "/tl/cuda/", "/tl/hip/", "/tl/tl.h", "/include/c++/"}) {
    if (file.find(part) != std::string::npos) return true;
  }
  return false;
}

Frame unknown_place(const Location& location) {
  if (location.library.empty()) return {"?", "?", 0};
  return {"?", text("%s+0x%zx", location.library.c_str(), location.address), 0};
}

const InlineChain& chain_of(Site site) {
  look_up({site});
  InlineChain& chain = known[locate(site)];
  if (chain.empty()) chain.push_back(unknown_place(locate(site)));
  return chain;
}

}  // namespace

void symbolize(const std::vector<Site>& sites) {
  const std::lock_guard<std::mutex> lock(mutex);
  look_up(sites);
}

const Frame& place_of(Site site) {
  const std::lock_guard<std::mutex> lock(mutex);
  const InlineChain& chain = chain_of(site);
  for (const Frame& frame : chain) {
    if (!is_header(frame.file)) return frame;
  }
  return chain.front();
}

std::string name_of_place(Site site) {
  const Frame& frame = place_of(site);
  const auto slash = frame.file.rfind('/');
  const std::string file = slash == std::string::npos ? frame.file : frame.file.substr(slash + 1);
  return frame.line ? file + text(":%d", frame.line) : file;
}

bool same_line(Site one, Site other) {
  if (one == other) return true;
  const std::lock_guard<std::mutex> lock(mutex);
  look_up({one, other});
  const InlineChain &a = chain_of(one), &b = chain_of(other);
  if (a.size() != b.size()) return false;
  for (std::size_t depth = 0; depth < a.size(); ++depth) {
    if (a[depth].line != b[depth].line || a[depth].file != b[depth].file) return false;
  }
  return true;
}

}  // namespace tile2cu::engine
