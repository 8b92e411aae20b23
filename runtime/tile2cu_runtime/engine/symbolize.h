// Source locations of return addresses, by binutils' addr2line.
#pragma once
#include <string>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

struct Frame {
  std::string function, file;
  int line = 0;
};

// Resolves all sites with one process per library, and caches the results.
void symbolize(const std::vector<Site>& sites);

// The source location of a site: the innermost inlined frame outside headers/tl, which is in the emitted source.
// Without addr2line or debug information: the library's name and line 0.
const Frame& place_of(Site site);
std::string name_of_place(Site site);  // "file:line"

// Whether two sites come from one call in the source. The compiler may duplicate a call (jump threading does not know
// about barriers), so inlined frames are compared, not addresses.
bool same_line(Site one, Site other);

}  // namespace tile2cu::engine
