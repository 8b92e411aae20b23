#pragma once
#include <tl/status.h>
#ifdef __cplusplus
extern "C"
#endif
tl_status attention(const void* Q, const void* K, const void* V, void* Output, int batch, int seq_len, int heads,
                    void* stream);
