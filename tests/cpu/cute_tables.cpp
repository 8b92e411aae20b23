// Prints, as JSON, the layouts that CuTe's traits give for the instructions of test_layouts.py: for each thread and
// value the linear index of its element, columns of the matrix one after another.
#include <cute/atom/copy_traits_sm75.hpp>
#include <cute/atom/mma_traits_sm80.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>

#include <cstdio>

using namespace cute;

template <class Layout> void print(const char* name, Layout layout, int rows, int columns) {
  std::printf("\"%s\": [", name);
  for (int row = 0; row < rows; ++row) {
    std::printf(row ? ", [" : "[");
    for (int column = 0; column < columns; ++column) std::printf(column ? ", %d" : "%d", int(layout(row, column)));
    std::printf("]");
  }
  std::printf("]");
}

template <class Traits> void print_mma(const char* name, int a_values, int b_values) {
  std::printf("\"%s\": {", name);
  print("a", typename Traits::ALayout{}, 32, a_values);
  std::printf(", ");
  print("b", typename Traits::BLayout{}, 32, b_values);
  std::printf(", ");
  print("c", typename Traits::CLayout{}, 32, 4);
  std::printf("}, ");
}

int main() {
  std::printf("{");
  print_mma<MMA_Traits<SM80_16x8x16_F32F16F16F32_TN>>("half", 8, 4);
  print_mma<MMA_Traits<SM80_16x8x8_F32TF32TF32F32_TN>>("tf32", 4, 2);
  print_mma<MMA_Traits<SM80_16x8x32_S32S8S8S32_TN>>("int8", 16, 8);
  print_mma<MMA_Traits<SM80_16x8x64_S32S4S4S32_TN>>("int4", 32, 16);
  print("wgmma d", GMMA::CLayout_64x128{}, 128, 64);
  std::printf(", ");
  const auto swizzled = as_position_independent_swizzle_layout(
      tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, make_shape(Int<64>{}, Int<64>{})));
  print("swizzle", swizzled, 64, 64);
  std::printf("}\n");
}
