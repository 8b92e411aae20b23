// Whether offsets of 32 bits address a tensor. Host code.
#pragma once
#include <stdint.h>

#include <initializer_list>

namespace tl {

// A dimension of a tensor: its extent, and that of the largest tile that may start in it and end behind it.
struct Extent {
  int64_t extent, tile = 1;
};

// Whether ck_tile's offsets, which have 32 bits, address a tensor of these extents and the tiles that overhang it.
template <class T> bool fits_in_2gib(std::initializer_list<Extent> dimensions) {
  double last = 0;  // last: the offset of the last element of the last tile
  bool empty = false;
  for (const Extent& each : dimensions) {
    last = last * static_cast<double>(each.extent) + static_cast<double>(each.extent + each.tile - 2);
    empty = empty || each.extent == 0;
  }
  return empty || (last + 1) * sizeof(T) <= 2147483648.0;
}

}  // namespace tl
