// Rasterisation: which tile of the grid a block computes.
#pragma once
#include "base.h"

namespace tl {

enum class GroupOf { rows, columns };

// A block's tile: x counts along gridDim.x, y along gridDim.y.
struct BlockTile {
  int x, y;
};

// A block's coordinates in a grid of up to three dimensions.
struct BlockCoord {
  int x, y, z;
};

// A tile that the block computes in place of the one at its own index. The CPU engine notes which it is, for tests that
// run only some of the blocks.
TL_DEVICE BlockCoord taken(BlockCoord tile) {
  note_tile(tile.x, tile.y, tile.z);
  return tile;
}
TL_DEVICE BlockTile taken(BlockTile tile) {
  taken({tile.x, tile.y, static_cast<int>(blockIdx.z)});
  return tile;
}

// Whether 32 bits number the blocks of a grid, whose extents along y and z are at most 65,535.
template <class Grid> TL_DEVICE bool is_numbered_in_32_bits(const Grid& grid) {
  return static_cast<uint64_t>(grid.x) * grid.y * grid.z >> 32 == 0;
}

// The index of a block in an order of `blocks` in which each XCD has a contiguous range. The hardware assigns blocks to
// the XCDs round-robin: this one is number block / xcds of XCD block % xcds.
template <int xcds> TL_DEVICE unsigned index_by_xcd(unsigned block, unsigned blocks) {
  const unsigned xcd = block % xcds, least = blocks / xcds, longer = blocks % xcds;
  return xcd * least + (xcd < longer ? xcd : longer) + block / xcds;
}

// The coordinates of tile `number` if groups of `group` rows (or columns) cover `columns` x `rows` tiles. Tiles are
// ordered across the group first, then along it. Every other group runs backwards, from the end of the previous one.
template <GroupOf across>
TL_DEVICE BlockTile tile_in_groups(unsigned number, unsigned columns, unsigned rows, unsigned group) {
  const unsigned length = across == GroupOf::rows ? columns : rows;  // of a group, in tiles
  const unsigned breadth = across == GroupOf::rows ? rows : columns;
  const unsigned index = number / (group * length), within = number % (group * length);
  const unsigned left = breadth - index * group, width = left < group ? left : group;  // the last group may be narrower
  const unsigned step = within / width, along = index % 2 == 0 ? step : length - 1 - step;
  const int far = static_cast<int>(index * group + within % width), near = static_cast<int>(along);
  return across == GroupOf::rows ? BlockTile{near, far} : BlockTile{far, near};
}

// Grouped rasterisation (threadblock swizzle): blocks cover the grid in groups of up to `most` rows (or columns) of
// tiles, so that concurrent blocks share operands in L2. If rows have fewer than `most` tiles, groups have two rows:
// concurrent blocks then cover whole rows anyway, and share the other operand (benchmarks/RESULTS.md). On a GPU with
// several XCDs, each with its own L2, the blocks of one XCD form the groups, always `most` wide; a grid of 2^32 blocks
// or more keeps the order of the hardware. Each tile is computed by exactly one block. Any thread.
template <int most, GroupOf across = GroupOf::rows, int xcds = 1> TL_DEVICE BlockTile grouped_order() {
  static_assert(most > 0, "a group has at least one row of tiles");
  if (xcds > 1 && !is_numbered_in_32_bits(gridDim)) return {static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y)};
  const unsigned block = index_by_xcd<xcds>(blockIdx.x + blockIdx.y * gridDim.x, gridDim.x * gridDim.y);
  const unsigned length = across == GroupOf::rows ? gridDim.x : gridDim.y;
  return taken(tile_in_groups<across>(block, gridDim.x, gridDim.y, xcds == 1 && length < most && most > 2 ? 2 : most));
}

// The same for tile number `tile` of a persistent kernel's grid.
template <int most, GroupOf across, class Grid> TL_DEVICE BlockTile grouped_order(int tile, const Grid& tiles) {
  static_assert(most > 0, "a group has at least one row of tiles");
  const unsigned length = across == GroupOf::rows ? tiles.x : tiles.y;
  return taken(tile_in_groups<across>(unsigned(tile), tiles.x, tiles.y, length < most && most > 2 ? 2 : most));
}

// The same for clusters of `wide` x `high` blocks, which divide the grid: groups consist of whole clusters, and the
// arrangement of the blocks in a cluster is unchanged. Any thread.
template <int most, GroupOf across, int wide, int high> TL_DEVICE BlockTile grouped_order_of_clusters() {
  static_assert(most > 0, "a group has at least one row of tiles");
  constexpr unsigned thick = across == GroupOf::rows ? high : wide;  // a cluster, in tiles
  const unsigned columns = gridDim.x / wide, rows = gridDim.y / high;
  const unsigned length = across == GroupOf::rows ? gridDim.x : gridDim.y;
  const unsigned group = (length < most && most > 2 ? 2 : most) / thick;
  const unsigned cluster = blockIdx.x / wide + blockIdx.y / high * columns;
  const BlockTile first = tile_in_groups<across>(cluster, columns, rows, group > 0 ? group : 1);
  return taken(BlockTile{first.x * wide + int(blockIdx.x % wide), first.y * high + int(blockIdx.y % high)});
}

// About the number of SMs of a large GPU.
constexpr unsigned wave_blocks = 128;

// Longest-processing-time-first order for blocks whose work grows with x. Blocks with the largest x start first, for a
// group of `least` values of (y, z), or more if x has few values, so that the group fills a wave. The next smaller x
// follow, then the next group of (y, z). No group leaves its longest blocks to the end. Each tile is computed by
// exactly one block, for any grid. Any thread.
template <int least, class Grid> TL_DEVICE BlockCoord lpt_order(unsigned block, const Grid& grid) {
  static_assert(least > 0, "a group has at least one block");
  const unsigned others = grid.y * grid.z, group = grid.x * least < wave_blocks ? wave_blocks / grid.x : least;
  const unsigned first = block / (group * grid.x) * group, left = others - first, size = left < group ? left : group;
  const unsigned rest = block - first * grid.x, other = first + rest % size;
  return taken(BlockCoord{static_cast<int>(grid.x - 1 - rest / size), static_cast<int>(other % grid.y),
                          static_cast<int>(other / grid.y)});
}
template <int least, class Index, class Grid> TL_DEVICE BlockCoord lpt_order_of(const Index& index, const Grid& grid) {
  if (!is_numbered_in_32_bits(grid))
    return {static_cast<int>(grid.x - 1 - index.x), static_cast<int>(index.y), static_cast<int>(index.z)};
  return lpt_order<least>(index.x + grid.x * (index.y + grid.y * index.z), grid);
}
template <int least> TL_DEVICE BlockCoord lpt_order() { return lpt_order_of<least>(blockIdx, gridDim); }

// The coordinates of tile `block` of a grid, x fastest. Any thread.
template <class Grid> TL_DEVICE BlockCoord tile_coord(unsigned block, const Grid& grid) {
  return taken(BlockCoord{static_cast<int>(block % grid.x), static_cast<int>(block / grid.x % grid.y),
                          static_cast<int>(block / grid.x / grid.y)});
}

// The same for an order in which each of `xcds` XCDs has a contiguous range of the tiles, of fewer than 2^32 blocks.
template <int xcds, class Grid> TL_DEVICE BlockCoord contiguous_order(unsigned block, const Grid& grid) {
  return tile_coord(index_by_xcd<xcds>(block, grid.x * grid.y * grid.z), grid);
}

// The same of the block at `index`; a grid of 2^32 blocks or more keeps the order of the hardware. Each tile is
// computed by exactly one block, for any grid. Any thread.
template <int xcds, class Index, class Grid>
TL_DEVICE BlockCoord contiguous_order_of(const Index& index, const Grid& grid) {
  if (!is_numbered_in_32_bits(grid))
    return {static_cast<int>(index.x), static_cast<int>(index.y), static_cast<int>(index.z)};
  return contiguous_order<xcds>(index.x + grid.x * (index.y + grid.y * index.z), grid);
}
template <int xcds> TL_DEVICE BlockCoord contiguous_order() { return contiguous_order_of<xcds>(blockIdx, gridDim); }

}  // namespace tl
