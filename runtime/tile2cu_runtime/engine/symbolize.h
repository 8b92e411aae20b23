// From return addresses to source lines, by binutils' addr2line.
#pragma once
#include <string>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

struct Frame {
  std::string function, file;
  int line = 0;
};

// Looks all sites up with one process a library, and remembers them.
void symbolize(const std::vector<Site>& sites);

// The source place that a site belongs to: the innermost inlined frame outside of headers/tl, which is the emitted
// text. Without addr2line or debug information: the library's name, line 0.
const Frame& place_of(Site site);
std::string name_of_place(Site site);  // "file:line"

// Whether two sites come from one call in the source. A compiler may copy a call (jump threading: it does not know that
// all threads of a block must meet in one place), so addresses do not decide it; the inlined frames do.
bool same_line(Site one, Site other);

}  // namespace tile2cu::engine
