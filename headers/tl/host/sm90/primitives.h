// All primitives of sm_90 on the CPU engine.
#pragma once
#include "cluster.h"
#include "mbarrier.h"
#include "stmatrix.h"
#include "tma.h"
#include "wgmma.h"
