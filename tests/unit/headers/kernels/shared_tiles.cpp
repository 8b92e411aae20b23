// Prints where the 16-byte chunks of shared tiles lie, in bytes, as JSON: a list of offsets for each row.
#include <cstdio>
#include <tl/tl.h>

thread_local int tl_engine_thread;

namespace {

bool first_of_all = true;

template <class Tile> void print(const char* name) {
  constexpr int size = sizeof(typename Tile::type), chunk = 16 / size;
  std::printf("%s\"%s\":{\"bytes\":%d,\"alignment\":%d,\"offsets\":[", first_of_all ? "{" : ",\n", name,
              int(sizeof(Tile)), int(alignof(Tile)));
  first_of_all = false;
  for (int row = 0; row < Tile::rows; ++row) {
    std::printf("%s[", row ? ",\n" : "");
    for (int col = 0; col < Tile::cols; col += chunk) {
      const int offset = Tile::offset(row, col) * size;
      for (int i = 1; i < chunk; ++i)  // a chunk lies in one piece
        if (int(Tile::offset(row, col + i)) * size != offset + i * size) std::printf("broken ");
      std::printf("%s%d", col ? "," : "", offset);
    }
    std::printf("]");
  }
  std::printf("]}");
}

}  // namespace

int main() {
  print<tl::SharedTile<tl::half, 32, 64, tl::Swizzle128B>>("128 half 32x64");
  print<tl::SharedTile<tl::half, 32, 192, tl::Swizzle128B>>("128 half 32x192");
  print<tl::SharedTile<float, 16, 64, tl::Swizzle128B>>("128 float 16x64");
  print<tl::SharedTile<int8_t, 24, 128, tl::Swizzle128B>>("128 byte 24x128");
  print<tl::SharedTile<tl::half, 32, 32, tl::Swizzle64B>>("64 half 32x32");
  print<tl::SharedTile<tl::half, 32, 96, tl::Swizzle64B>>("64 half 32x96");
  print<tl::SharedTile<tl::half, 32, 16, tl::Swizzle32B>>("32 half 32x16");
  print<tl::SharedTile<tl::half, 16, 48, tl::Swizzle32B>>("32 half 16x48");
  print<tl::SharedTile<tl::half, 32, 32, tl::Padded<16>>>("padded half 32x32");
  print<tl::SharedTile<tl::half, 32, 128, tl::Padded<16>>>("padded half 32x128");
  print<tl::SharedTile<tl::half, 8, 24, tl::NoSwizzle>>("none half 8x24");
  std::printf("}\n");
}
