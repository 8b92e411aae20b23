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

// An operand of wgmma in shared memory: the descriptor that CuTe makes of it when it starts at address 0, and the byte in
// which each of its elements (mn, k) starts.
template <GMMA::Major major, class T, template <class> class Atom> void print_operand(const char* name) {
  constexpr int mn = 128, k = 32 / sizeof(T);
  // Two of them along each side: the distances between them are the descriptor's.
  const auto whole = tile_to_shape(Atom<T>{}, make_shape(Int<2 * mn>{}, Int<4 * k>{}));
  const auto tile = make_tensor(make_smem_ptr(static_cast<T*>(nullptr)), whole);
  const auto operand = local_tile(tile, make_shape(Int<mn>{}, Int<k>{}), make_coord(0, 0));
  const auto descriptor = GMMA::make_gmma_desc<major>(operand);
  const auto offsets = as_position_independent_swizzle_layout(whole);
  std::printf("\"%s\": {\"descriptor\": %llu, \"offsets\": [", name, (unsigned long long)descriptor.desc_);
  for (int row = 0; row < mn; ++row) {
    std::printf(row ? ", [" : "[");
    for (int column = 0; column < k; ++column)
      std::printf(column ? ", %d" : "%d", int(offsets(row, column)) * int(sizeof(T)));
    std::printf("]");
  }
  std::printf("]");
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
  constexpr auto K = GMMA::Major::K, MN = GMMA::Major::MN;
  std::printf("\"operands\": {");
  print_operand<K, half_t, GMMA::Layout_K_SW128_Atom>("K, 128, 16");
  print_operand<K, half_t, GMMA::Layout_K_SW64_Atom>("K, 64, 16");
  print_operand<K, half_t, GMMA::Layout_K_SW32_Atom>("K, 32, 16");
  print_operand<K, half_t, GMMA::Layout_K_INTER_Atom>("K, 16, 16");
  print_operand<K, int8_t, GMMA::Layout_K_SW128_Atom>("K, 128, 8");
  print_operand<K, int8_t, GMMA::Layout_K_INTER_Atom>("K, 16, 8");
  print_operand<K, float, GMMA::Layout_K_SW64_Atom>("K, 64, 32");
  print_operand<MN, half_t, GMMA::Layout_MN_SW128_Atom>("MN, 128, 16");
  print_operand<MN, half_t, GMMA::Layout_MN_SW64_Atom>("MN, 64, 16");
  print_operand<MN, half_t, GMMA::Layout_MN_SW32_Atom>("MN, 32, 16");
  print_operand<MN, half_t, GMMA::Layout_MN_INTER_Atom>("MN, 16, 16");
  std::printf("\"none\": 0}, ");
  const auto swizzled = as_position_independent_swizzle_layout(
      tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, make_shape(Int<64>{}, Int<64>{})));
  print("swizzle", swizzled, 64, 64);
  std::printf("}\n");
}
