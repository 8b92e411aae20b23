// Prints how wgmma is told where operands lie: descriptors, starts of an instruction's parts, and where each element of
// the tile is. It needs no engine.
#include <cstdio>
#include <tl/tl.h>
#include <tl/sm90/wgmma_half.h>

thread_local int tl_engine_thread;
extern "C" uint32_t tl_engine_shared_address(const void*) { return 0; }

namespace {

bool first_of_all = true;

// The operand that is a tile, or a part of one whose element (0, 0) is the tile's (first_row, first_col).
template <template <class> class Operand, class Tile, class Whole>
void print(const char* name, const Tile& tile, const Whole&, int first_row, int first_col) {
  using Lies = Operand<Tile>;
  std::printf("%s\"%s\":{\"rows\":%d,\"cols\":%d,\"mn_contiguous\":%d,\"descriptor\":%llu,", first_of_all ? "{" : ",\n",
              name, Tile::rows, Tile::cols, Lies::is_mn, static_cast<unsigned long long>(Lies::from(tile, 0)));
  first_of_all = false;
  std::printf("\"elements\":[");
  for (int row = 0; row < Tile::rows; ++row) {
    std::printf("%s[", row ? ",\n" : "");
    for (int col = 0; col < Tile::cols; ++col)
      std::printf("%s%u", col ? "," : "", Whole::offset(first_row + row, first_col + col));
    std::printf("]");
  }
  std::printf("],\"parts\":{");
  for (int mn = 0; mn < Lies::mn_extent; mn += 64)
    for (int k = 0; k < Lies::k_extent; k += 16)
      std::printf("%s\"%d %d\":%d", mn + k ? "," : "", mn, k, Lies::offset(mn, k));
  std::printf("}}");
}

template <template <class> class Operand, class Tile> void print(const char* name) {
  static Tile tile;
  print<Operand>(name, tile, tile, 0, 0);
}
template <template <class> class Operand, class Tile, int rows, int cols, int first_row, int first_col>
void print_part(const char* name) {
  static Tile tile;
  print<Operand>(name, tl::cols<cols>(tl::rows<rows>(tile, first_row), first_col), tile, first_row, first_col);
}

template <int rows, int cols, class Swizzle> using Tile = tl::SharedTile<tl::half, rows, cols, Swizzle>;

}  // namespace

int main() {
  print<tl::KContiguous, Tile<128, 128, tl::Swizzle128B>>("128x128 of K, 128 bytes");
  print<tl::KContiguous, Tile<64, 64, tl::Swizzle64B>>("64x64 of K, 64 bytes");
  print<tl::KContiguous, Tile<64, 32, tl::Swizzle32B>>("64x32 of K, 32 bytes");
  print<tl::MnContiguous, Tile<64, 256, tl::Swizzle128B>>("64x256 of N, 128 bytes");
  print<tl::MnContiguous, Tile<32, 128, tl::Swizzle64B>>("32x128 of N, 64 bytes");
  print<tl::MnContiguous, Tile<32, 64, tl::Swizzle32B>>("32x64 of N, 32 bytes");
  print_part<tl::KContiguous, Tile<128, 192, tl::Swizzle128B>, 64, 128, 24, 64>("64x128 of 128x192 of K, 128 bytes");
  print_part<tl::KContiguous, Tile<64, 64, tl::Swizzle128B>, 64, 32, 0, 32>("64x32 of 64x64 of K, 128 bytes");
  print_part<tl::MnContiguous, Tile<64, 256, tl::Swizzle128B>, 32, 128, 16, 64>("32x128 of 64x256 of N, 128 bytes");
  print_part<tl::MnContiguous, Tile<64, 96, tl::Swizzle64B>, 48, 64, 8, 32>("48x64 of 64x96 of N, 64 bytes");
  std::printf("}\n");
}
