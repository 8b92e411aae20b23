// All primitives that sm_90a adds; a kernel that uses them includes <tl/sm90.h>.
#pragma once
#include "mbarrier.h"
#include "tma.h"
#include "wgmma.h"
