// AMD matrix instructions and LDS copies on the CPU engine, for wave64 kernels (compile with -DTL_WARP_SIZE=64).
#pragma once
#include "../engine.h"
#include "../kernel.h"

namespace tl {

// v_mfma_f32_32x32x8_f16 / 16x16x16_f16: four halves of a and of b a lane. Who: every lane of the wave.
TL_DEVICE void mfma_32x32x8_f16(float* d, uint2 a, uint2 b) { tl_engine_mfma(d, &a, &b, 32, TL_ENGINE_HALF); }
TL_DEVICE void mfma_16x16x16_f16(float* d, uint2 a, uint2 b) { tl_engine_mfma(d, &a, &b, 16, TL_ENGINE_HALF); }
// Copies 4 bytes a lane to lds + 4 * lane; `lds` is the same in all lanes.
TL_DEVICE void global_load_lds_4(void* lds, const void* from) { tl_engine_global_load_lds(lds, from, 4); }
// s_waitcnt vmcnt(n).
template <int n> TL_DEVICE void wait_vector_memory() { tl_engine_wait_vector_memory(n); }

}  // namespace tl
