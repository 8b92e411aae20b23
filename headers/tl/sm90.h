// sm_90a: its primitives, and the code on top of them.
#pragma once
#include "sm90_primitives.h"

#include "common/sm90/boxes.h"
#include "common/sm90/prefetched_vector.h"
#include "common/sm90/tma_pipeline.h"
#include "common/sm90/tma_copy.h"
#include "common/sm90/cluster.h"
#include "common/sm90/wgmma_accumulator.h"
#include "common/sm90/wgmma_gemm.h"
#include "common/sm90/tma_slabs.h"
#include "common/sm90/exchange.h"
#include "common/sm90/tile_scheduler.h"
#ifndef __CUDACC_RTC__
#include "common/sm90/tensor_map.h"
#endif
