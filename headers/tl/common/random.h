// Random numbers: the sequence of curandStatePhilox4_32_10_t for the same seed, sequence and offset. Each thread has
// its own generator. Any thread.
// [J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011: Philox-4x32-10; cuRAND, "Device API"]
#pragma once
#include "math.h"

namespace tl {

struct Philox {
  uint32_t counter[4], key[2], output[4];
  int used;         // numbers consumed of `output`
  bool has_second;  // the Box-Muller transform gives two numbers
  float second;

  // Starts at number `offset` of sequence `sequence`; each sequence has 2^66 numbers.
  TL_DEVICE void start(uint64_t seed, uint64_t sequence, uint64_t offset) {
    key[0] = static_cast<uint32_t>(seed), key[1] = static_cast<uint32_t>(seed >> 32);
    const uint64_t block = offset / 4;
    counter[0] = static_cast<uint32_t>(block), counter[1] = static_cast<uint32_t>(block >> 32);
    counter[2] = static_cast<uint32_t>(sequence), counter[3] = static_cast<uint32_t>(sequence >> 32);
    used = static_cast<int>(offset % 4);
    has_second = false;
    encrypt();
  }
  // The next 32-bit number, uniformly distributed.
  TL_DEVICE uint32_t next() {
    uint32_t number = output[3];
    TL_UNROLL
    for (int i = 0; i < 3; ++i)
      if (used == i) number = output[i];
    if (++used == 4) {
      used = 0;
      TL_UNROLL
      for (int i = 0; i < 4; ++i)
        if (++counter[i] != 0) break;
      encrypt();
    }
    return number;
  }
  // Uniformly distributed in (0, 1].
  TL_DEVICE float uniform() { return static_cast<float>(next()) * step + step / 2; }
  // Normally distributed, with mean 0 and variance 1. [G. E. P. Box, M. E. Muller, 1958]
  TL_DEVICE float normal() {
    if (has_second) {
      has_second = false;
      return second;
    }
    const float radius = sqrt(-2.0f * log(uniform()));
    const float angle = static_cast<float>(next()) * angle_step + angle_step / 2;
    has_second = true;
    second = cos(angle) * radius;
    return sin(angle) * radius;
  }

 private:
  static constexpr float step = 2.3283064e-10f;           // 2^-32
  static constexpr float angle_step = step * 6.2831855f;  // 2^-32 * 2 pi
  static TL_DEVICE uint32_t high(uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t(a) * b >> 32); }
  TL_DEVICE void encrypt() {
    uint32_t k0 = key[0], k1 = key[1];
    TL_UNROLL
    for (int i = 0; i < 4; ++i) output[i] = counter[i];
    TL_UNROLL
    for (int round = 0; round < 10; ++round) {
      const uint32_t x = high(0xCD9E8D57u, output[2]) ^ output[1] ^ k0, y = 0xCD9E8D57u * output[2];
      const uint32_t z = high(0xD2511F53u, output[0]) ^ output[3] ^ k1, w = 0xD2511F53u * output[0];
      output[0] = x, output[1] = y, output[2] = z, output[3] = w;
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
  }
};

}  // namespace tl
