// Prints which coordinates each thread of each layout holds, as JSON. It needs no engine: layouts only ask which thread
// they run in.
#include <cstdio>
#include <tl/tl.h>

thread_local int tl_engine_thread;

namespace {

bool first_of_all = true;

// Layouts of two dimensions, but for what every thread holds whole, have rows and columns.
template <class Layout> constexpr bool has_rows = Layout::rank == 2 && !tl::IsReplicated<Layout>::value;

template <class Layout> void print_place(int reg) {
  if (!Layout::valid(reg)) {
    std::printf("null");
  } else if constexpr (Layout::rank == 1) {
    std::printf("[%d]", Layout::template coordinate<0>(reg));
  } else if constexpr (Layout::rank == 2) {
    std::printf("[%d,%d]", Layout::template coordinate<0>(reg), Layout::template coordinate<1>(reg));
  } else {
    std::printf("[%d,%d,%d]", Layout::template coordinate<0>(reg), Layout::template coordinate<1>(reg),
                Layout::template coordinate<2>(reg));
  }
}

// {"replica": [a number a thread], "places": [[a coordinate or null for each register] for each thread]
template <class Layout> void print_threads(int threads) {
  std::printf("{\"vector\":%d,\"replica\":[", Layout::vector);
  for (tl_engine_thread = 0; tl_engine_thread < threads; ++tl_engine_thread)
    std::printf("%s%d", tl_engine_thread ? "," : "", Layout::replica());
  std::printf("],\"places\":[");
  for (tl_engine_thread = 0; tl_engine_thread < threads; ++tl_engine_thread) {
    std::printf("%s[", tl_engine_thread ? ",\n" : "");
    for (int reg = 0; reg < Layout::registers; ++reg) {
      if (reg > 0) std::printf(",");
      print_place<Layout>(reg);
    }
    std::printf("]");
  }
  std::printf("]");
}

template <class Layout> void print(const char* name, int threads) {
  std::printf("%s\"%s\":", first_of_all ? "{" : ",\n", name);
  first_of_all = false;
  print_threads<Layout>(threads);
  if constexpr (has_rows<Layout>) {
    std::printf(",\"row_registers\":[");
    for (int reg = 0; reg < Layout::registers; ++reg) std::printf("%s%d", reg ? "," : "", Layout::row_register(reg));
    std::printf("],\"col_registers\":[");
    for (int reg = 0; reg < Layout::registers; ++reg) std::printf("%s%d", reg ? "," : "", Layout::col_register(reg));
    std::printf("],\"rows\":");
    print_threads<tl::RowsOf<Layout>>(threads);
    std::printf("},\"cols\":");
    print_threads<tl::ColsOf<Layout>>(threads);
    std::printf("}");
  }
  std::printf("}");
}

}  // namespace

using tl::Blocked;
using tl::MmaAccumulator;
using tl::MmaOperandA;
using tl::Shape;
using tl::Warps;

// Equal rows and equal warps: one type, whatever the columns. A result is the next product's operand.
static_assert(std::is_same<tl::RowsOf<MmaAccumulator<64, 64, Warps<4, 1>>>,
                           tl::RowsOf<MmaAccumulator<64, 128, Warps<4, 1>>>>::value);
static_assert(std::is_same<MmaOperandA<64, 64, Warps<4, 1>>, MmaAccumulator<64, 64, Warps<4, 1>>>::value);
static_assert(std::is_same<tl::RowsOf<MmaOperandA<64, 32, Warps<2, 2>>>,
                           tl::RowsOf<MmaAccumulator<64, 128, Warps<2, 2>>>>::value);
static_assert(std::is_same<tl::RowsOf<Blocked<Shape<8, 64>, Shape<4, 32>, 2>>,
                           tl::RowsOf<Blocked<Shape<8, 256>, Shape<4, 32>, 4>>>::value);

static_assert(
    std::is_same<tl::RowsOf<tl::WgmmaAccumulator<128, 64, 2>>, tl::RowsOf<tl::WgmmaAccumulator<128, 256, 2>>>::value);

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
