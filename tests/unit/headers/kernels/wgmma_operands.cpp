// Prints how wgmma is told where operands lie: descriptors, starts of an instruction's parts, and where each element of
// the tile is. It needs no engine.
#include <cstdio>
#include <tl/tl.h>

thread_local int tl_engine_thread;
extern "C" uint32_t tl_engine_shared_address(const void*) { return 0; }

namespace {

bool first_of_all = true;

template <template <class> class Operand, class Tile> void print(const char* name) {
  using Lies = Operand<Tile>;
  static Tile tile;
  std::printf("%s\"%s\":{\"rows\":%d,\"cols\":%d,\"mn_contiguous\":%d,\"descriptor\":%llu,", first_of_all ? "{" : ",\n",
              name, Tile::rows, Tile::cols, Lies::is_mn, static_cast<unsigned long long>(Lies::descriptor(tile)));
  first_of_all = false;
  std::printf("\"elements\":[");
  for (int row = 0; row < Tile::rows; ++row) {
    std::printf("%s[", row ? ",\n" : "");
    for (int col = 0; col < Tile::cols; ++col) std::printf("%s%u", col ? "," : "", Tile::offset(row, col));
    std::printf("]");
  }
  std::printf("],\"parts\":{");
  for (int mn = 0; mn < Lies::mn_extent; mn += 64)
    for (int k = 0; k < Lies::k_extent; k += 16)
      std::printf("%s\"%d %d\":%d", mn + k ? "," : "", mn, k, Lies::offset(mn, k));
  std::printf("}}");
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
  std::printf("}\n");
}
