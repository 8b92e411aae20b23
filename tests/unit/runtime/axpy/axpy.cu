// A launcher without a kernel: tests of building, binding and argument checks need no engine.
#include "axpy.h"

extern "C" tl_status axpy(const void* X, const void* Y, void* Z, float alpha, int M, int N, void*, size_t,
                          void* stream) {
  const float* x = static_cast<const float*>(X);
  const float* y = static_cast<const float*>(Y);
  float* z = static_cast<float*>(Z);
  if (stream != nullptr) return TL_LAUNCH_FAILED + 400;
  if (alpha == 99) return TL_NOT_SUPPORTED;
  for (long i = 0; i < static_cast<long>(M) * N; ++i) z[i] = alpha * x[i] + y[i];
  return TL_OK;
}
