// Each function of tl:: on 64 numbers: line i of y is function i. Nothing here needs a device library.
#include <tl/tl.h>

__global__ void mathematics(float* y, const float* x, double* d) {
  const float a = x[threadIdx.x];
  int line = 0;
  const auto put = [&](float value) { y[64 * line++ + threadIdx.x] = value; };
  put(tl::exp(a));
  put(tl::exp2(a));
  put(tl::exp10(a));
  put(tl::log(a));
  put(tl::log2(a));
  put(tl::log10(a));
  put(tl::tanh(a));
  put(tl::sigmoid(a));
  put(tl::sin(a));
  put(tl::cos(a));
  put(tl::tan(a));
  put(tl::asin(a));
  put(tl::acos(a));
  put(tl::atan(a));
  put(tl::sinh(a));
  put(tl::cosh(a));
  put(tl::erf(a));
  put(tl::pow(a, 1.7f));
  put(tl::atan2(a, 0.3f));
  put(tl::fmod(a, 0.3f));
  d[threadIdx.x] = tl::exp(double(a));
  d[64 + threadIdx.x] = tl::log(double(a));
}
