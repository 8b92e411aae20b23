// The layouts of warps of 32.
#include "print_layouts.h"

using tl::Blocked;
using tl::MmaAccumulator;
using tl::MmaOperandA;
using tl::Shape;
using tl::Warps;

// Equal rows and equal warps: one type, whatever the columns. A result is the next product's operand.
static_assert(std::is_same<tl::Slice<1, MmaAccumulator<64, 64, Warps<4, 1>>>,
                           tl::Slice<1, MmaAccumulator<64, 128, Warps<4, 1>>>>::value);
static_assert(std::is_same<MmaOperandA<64, 64, Warps<4, 1>>, MmaAccumulator<64, 64, Warps<4, 1>>>::value);
static_assert(std::is_same<tl::Slice<1, MmaOperandA<64, 32, Warps<2, 2>>>,
                           tl::Slice<1, MmaAccumulator<64, 128, Warps<2, 2>>>>::value);
static_assert(std::is_same<tl::Slice<1, Blocked<Shape<8, 64>, Shape<4, 32>, 2>>,
                           tl::Slice<1, Blocked<Shape<8, 256>, Shape<4, 32>, 4>>>::value);

static_assert(
    std::is_same<tl::Slice<1, tl::WgmmaAccumulator<128, 64, 2>>, tl::Slice<1, tl::WgmmaAccumulator<128, 256, 2>>>::value);

int main() {
  print<MmaAccumulator<16, 8, Warps<1, 1>>>("mma 16x8", 32);
  print<MmaAccumulator<16, 16, Warps<1, 1>>>("mma 16x16", 32);
  print<MmaAccumulator<128, 128, Warps<2, 2>>>("mma 128x128 2x2", 128);
  print<MmaAccumulator<64, 128, Warps<4, 1>>>("mma 64x128 4x1", 128);
  print<MmaAccumulator<96, 72, Warps<2, 3>>>("mma 96x72 2x3", 192);
  print<MmaAccumulator<32, 64, Warps<1, 2>>>("mma 32x64 1x2 of 4 warps", 128);
  print<MmaOperandA<64, 32, Warps<2, 2>>>("operand 64x32 2x2", 128);
  print<Blocked<Shape<1024>, Shape<256>, 4>>("blocked 1024", 256);
  print<Blocked<Shape<1000>, Shape<128>, 4>>("blocked 1000", 128);
  print<Blocked<Shape<4>, Shape<4>>>("blocked 4 of 64 threads", 64);
  print<Blocked<Shape<4, 1000>, Shape<4, 32>, 4>>("blocked 4x1000", 128);
  print<Blocked<Shape<30, 50>, Shape<8, 16>, 2>>("blocked 30x50", 128);
  print<Blocked<Shape<9, 40>, Shape<4, 5>, 8>>("blocked 9x40 of 20 threads of 64", 64);
  print<Blocked<Shape<3, 5, 20>, Shape<2, 4, 4>, 4>>("blocked 3x5x20", 32);
  print<tl::WgmmaAccumulator<64, 8, 1>>("wgmma 64x8", 128);
  print<tl::WgmmaAccumulator<64, 16, 1>>("wgmma 64x16", 128);
  print<tl::WgmmaAccumulator<64, 104, 1>>("wgmma 64x104", 128);
  print<tl::WgmmaAccumulator<128, 32, 2>>("wgmma 128x32 2", 256);
  print<tl::WgmmaAccumulator<256, 16, 2>>("wgmma 256x16 2", 256);
  print<tl::WgmmaAccumulator<64, 24, 1>>("wgmma 64x24 of 160 threads", 160);
  print<tl::Replicated<Shape<3, 4>>>("replicated 3x4", 64);
  std::printf("}\n");
}
