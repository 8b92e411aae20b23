// All primitives that sm_90a adds.
#pragma once
#include "cluster.h"
#include "mbarrier.h"
#include "stmatrix.h"
#include "tma.h"
#include "wgmma.h"
#ifndef __CUDACC_RTC__
#include "encode.h"
#endif
