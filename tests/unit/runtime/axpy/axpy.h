#pragma once
#include <tl/status.h>
#ifdef __cplusplus
extern "C"
#endif
    tl_status axpy(const void* X, const void* Y, void* Z, float alpha, int M, int N, void* workspace,
                   size_t workspace_bytes, void* stream);
