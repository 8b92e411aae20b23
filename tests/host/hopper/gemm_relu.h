#pragma once
#include <tl/status.h>
#ifdef __cplusplus
extern "C"
#endif
tl_status gemm_relu(const void* A, const void* B, void* C, int M, int N, int K, void* stream);
