// The layouts of AMD's matrix cores, in waves of 64.
#define TL_WARP_SIZE 64
#include "print_layouts.h"

using tl::Interleave;
using tl::MfmaAccumulator;
using tl::MfmaOperandA;
using tl::Warps;

// Equal rows and equal waves: one type, whatever the columns. A result is the next product's operand.
static_assert(std::is_same<tl::Slice<1, MfmaAccumulator<64, 64, Warps<4, 1>>>,
                           tl::Slice<1, MfmaAccumulator<64, 128, Warps<4, 1>, Interleave<4>>>>::value);
static_assert(std::is_same<MfmaOperandA<64, 64, Warps<4, 1>>, MfmaAccumulator<64, 64, Warps<4, 1>>>::value);

// Where the items of the t-th of the instructions that share their columns are.
template <class Layout> void print_items(const char* name) {
  std::printf(",\n\"%s items\":[", name);
  for (int t = 0; t < Layout::Interleave::count; ++t) {
    std::printf("%s[", t ? "," : "");
    for (int item = 0; item < Layout::Shape::items; ++item)
      std::printf("%s%d", item ? "," : "", Layout::register_of(0, 0, t, item));
    std::printf("]");
  }
  std::printf("]");
}
template <class Layout> void print_with_items(const char* name, int threads) {
  print<Layout>(name, threads);
  print_items<Layout>(name);
}

// Where the elements of a tile with interleaved rows are, in bytes.
template <class Tile> void print_bytes(const char* name) {
  std::printf(",\n\"%s\":{\"bytes\":%d,\"offsets\":[", name, int(sizeof(Tile)));
  for (int row = 0; row < Tile::rows; ++row)
    for (int col = 0; col < Tile::cols; ++col)
      std::printf("%s%d", row + col ? "," : "", int(Tile::offset(row, col) * sizeof(typename Tile::type)));
  std::printf("]}");
}

int main() {
  print_with_items<MfmaAccumulator<16, 16, Warps<1, 1>>>("16x16", 64);
  print_with_items<MfmaAccumulator<16, 64, Warps<1, 1>, Interleave<4>>>("16x64 by 4", 64);
  print_with_items<MfmaAccumulator<16, 128, Warps<1, 1>, Interleave<8>>>("16x128 by 8", 64);
  print_with_items<MfmaAccumulator<16, 32, Warps<1, 1>, Interleave<2>, tl::Mfma16x16Double>>("double 16x32 by 2", 64);
  print_with_items<MfmaAccumulator<32, 32, Warps<1, 1>, Interleave<1>, tl::Mfma32x32>>("32x32", 64);
  print_with_items<MfmaAccumulator<32, 64, Warps<1, 1>, Interleave<2>, tl::Mfma32x32>>("32x64 by 2", 64);
  print<MfmaAccumulator<96, 128, Warps<3, 2>, Interleave<4>>>("96x128 3x2 by 4", 384);
  print<MfmaAccumulator<64, 96, Warps<2, 1>, Interleave<2>>>("64x96 2x1 of 4 waves by 2", 256);
  print<MfmaAccumulator<64, 128, Warps<2, 2>, Interleave<2>, tl::Mfma32x32>>("64x128 2x2 of 32 by 2", 256);
  print<MfmaOperandA<64, 32, Warps<2, 2>>>("operand 64x32 2x2", 256);
  print_bytes<tl::SharedTile<tl::half, 64, 128, tl::InterleavedRows<4>>>("interleaved 64x128");
  print_bytes<tl::SharedTile<tl::half, 32, 32, tl::InterleavedRows<4>>>("interleaved 32x32");
  std::printf("}\n");
}
