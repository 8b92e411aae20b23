// Prints which sizes fits_in_2gib takes, as JSON.
#include <tl/common/offsets.h>

#include <cstdio>

struct half_t {
  uint16_t bits;
};

int main() {
  const bool taken[] = {
      // Q of attention (batch, seq_len, heads, dim) by 64 queries: 256 MiB and 32 MiB, whose tiles overhang once
      tl::fits_in_2gib<half_t>({{1024}, {16, 64}, {64}, {128}}),
      tl::fits_in_2gib<half_t>({{1024}, {1, 64}, {128}, {128}}),
      // A of a GEMM by 128 x 32: 122 MiB; a row of 19 MiB; a whole tensor of 2 GiB; one with a tile that ends there
      tl::fits_in_2gib<half_t>({{8000000, 128}, {8, 32}}),
      tl::fits_in_2gib<half_t>({{1}, {10000000, 128}}),
      tl::fits_in_2gib<half_t>({{32768}, {32768}}),
      tl::fits_in_2gib<half_t>({{32768 - 127, 128}, {32768}}),
      tl::fits_in_2gib<half_t>({{32768 - 126, 128}, {32768}}),
      tl::fits_in_2gib<half_t>({{32769}, {32768}}),
      tl::fits_in_2gib<half_t>({{32768, 2}, {32768}}),
      // products that exceed 64 bits, and a tensor without elements
      tl::fits_in_2gib<half_t>({{2147483647, 128}, {2147483647, 128}, {2147483647, 128}}),
      tl::fits_in_2gib<half_t>({{2147483647, 128}, {0, 128}, {2147483647, 128}}),
  };
  const char* separator = "[";
  for (const bool each : taken) {
    std::printf("%s%s", separator, each ? "true" : "false");
    separator = ", ";
  }
  std::printf("]\n");
}
