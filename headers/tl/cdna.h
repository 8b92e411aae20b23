// AMD CDNA: matrix-core (MFMA) and buffer-load primitives, and the code on top of them. Wavefronts have 64 lanes.
#pragma once
#if defined(__HIP__)
#include "hip/buffer.h"
#include "hip/mfma.h"
#else
#include "host/cdna/buffer.h"
#include "host/cdna/mfma.h"
#endif

#include "common/cdna/mfma_accumulator.h"
#include "common/cdna/mfma_gemm.h"
#include "common/cdna/rescale.h"
#include "common/cdna/staged.h"
#include "common/cdna/direct.h"
#include "common/cdna/interleaved_rows.h"
