// Which tile of the grid a block takes.
#pragma once
#include "base.h"

namespace tl {

enum class Panels { rows, columns };

// A block's tile: x counts along gridDim.x, y along gridDim.y.
struct BlockTile {
  int x, y;
};

// Where a block is in an order of `blocks`, if each of so many dies takes a stretch of it. The hardware deals blocks to
// the dies in turn: this one is number block / dies of die block % dies.
template <int dies> TL_DEVICE unsigned place_on_its_die(unsigned block, unsigned blocks) {
  const unsigned die = block % dies, least = blocks / dies, longer = blocks % dies;
  return die * least + (die < longer ? die : longer) + block / dies;
}

// Where tile `number` is, if panels of `panel` rows (or columns) go through `columns` x `rows` tiles: down the panel
// first, then along it; every other panel runs backwards, where the last one ended.
template <Panels across>
TL_DEVICE BlockTile tile_in_panels(unsigned number, unsigned columns, unsigned rows, unsigned panel) {
  const unsigned length = across == Panels::rows ? columns : rows;  // of a panel, in tiles
  const unsigned breadth = across == Panels::rows ? rows : columns;
  const unsigned index = number / (panel * length), place = number % (panel * length);
  const unsigned left = breadth - index * panel, width = left < panel ? left : panel;  // the last panel may be narrower
  const unsigned step = place / width, along = index % 2 == 0 ? step : length - 1 - step;
  const int far = static_cast<int>(index * panel + place % width), near = static_cast<int>(along);
  return across == Panels::rows ? BlockTile{near, far} : BlockTile{far, near};
}

// Blocks that run at the same time should share operands in L2, so they go through the grid in panels of up to `most`
// rows (or columns) of tiles. Panels shorter than `most` are of two: blocks that run at once then have all tiles of
// their rows anyway, and what counts is what neighbours share (benchmarks/RESULTS.md). On a chip of several dies, each
// with an L2, panels are what the blocks of one die do, and as broad as asked for. Each tile is taken by one block,
// whatever the grid. Any thread.
template <int most, Panels across = Panels::rows, int dies = 1> TL_DEVICE BlockTile panel_order() {
  static_assert(most > 0, "a panel has at least one row of tiles");
  const unsigned block = place_on_its_die<dies>(blockIdx.x + blockIdx.y * gridDim.x, gridDim.x * gridDim.y);
  const unsigned length = across == Panels::rows ? gridDim.x : gridDim.y;
  return tile_in_panels<across>(block, gridDim.x, gridDim.y, dies == 1 && length < most && most > 2 ? 2 : most);
}

// The same where blocks run in clusters of `wide` x `high`, of which the grid is made: panels are of whole clusters,
// whose blocks lie as they do in the grid. Any thread.
template <int most, Panels across, int wide, int high> TL_DEVICE BlockTile panel_order_of_clusters() {
  static_assert(most > 0, "a panel has at least one row of tiles");
  constexpr unsigned thick = across == Panels::rows ? high : wide;  // a cluster, in tiles
  const unsigned columns = gridDim.x / wide, rows = gridDim.y / high;
  const unsigned length = across == Panels::rows ? gridDim.x : gridDim.y;
  const unsigned panel = (length < most && most > 2 ? 2 : most) / thick;
  const unsigned cluster = blockIdx.x / wide + blockIdx.y / high * columns;
  const BlockTile first = tile_in_panels<across>(cluster, columns, rows, panel > 0 ? panel : 1);
  return {first.x * wide + int(blockIdx.x % wide), first.y * high + int(blockIdx.y % high)};
}

// A block's place in a grid of up to three dimensions.
struct BlockPlace {
  int x, y, z;
};

// About as many blocks as a large GPU has multiprocessors.
constexpr unsigned wave_blocks = 128;

// Blocks with the largest x start first, and `least` blocks that differ in (y, z) only start side by side, or more
// where x has few values: as many as make a wave; then come the next smaller x, and at last the next group. So the long
// blocks of all groups are not left to the end. Each place is taken by one block, whatever the grid. Any thread.
template <int least, class Grid> TL_DEVICE BlockPlace longest_first(unsigned block, const Grid& grid) {
  static_assert(least > 0, "a group has at least one block");
  const unsigned others = grid.y * grid.z, group = grid.x * least < wave_blocks ? wave_blocks / grid.x : least;
  const unsigned first = block / (group * grid.x) * group, left = others - first, size = left < group ? left : group;
  const unsigned rest = block - first * grid.x, other = first + rest % size;
  return {static_cast<int>(grid.x - 1 - rest / size), static_cast<int>(other % grid.y),
          static_cast<int>(other / grid.y)};
}
template <int least> TL_DEVICE BlockPlace longest_first() {
  return longest_first<least>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z), gridDim);
}

// A place of a grid by its number, x counting first. Any thread.
template <class Grid> TL_DEVICE BlockPlace place_of(unsigned block, const Grid& grid) {
  return {static_cast<int>(block % grid.x), static_cast<int>(block / grid.x % grid.y),
          static_cast<int>(block / grid.x / grid.y)};
}

}  // namespace tl
