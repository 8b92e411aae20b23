// The conversions of headers/tl/host/numeric.h by themselves: those the compiler chose, and the portable ones.
#include <tl/tl.h>

namespace {

template <class Narrow, class Widen>
int convert(int count, const float* in, uint16_t* out, const uint16_t* all, float* back, Narrow narrow, Widen widen) {
  for (int i = 0; i < count; ++i) out[i] = narrow(in[i]);
  for (int i = 0; i < 65536; ++i) back[i] = widen(all[i]);
  return 0;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) int
EXPORT default_conversions(int count, const float* in, uint16_t* out, const uint16_t* all, float* back) {
  return convert(count, in, out, all, back, tl::host::float_to_half, tl::host::half_to_float);
}
EXPORT portable_conversions(int count, const float* in, uint16_t* out, const uint16_t* all, float* back) {
  return convert(count, in, out, all, back, tl::host::float_to_half_portable, tl::host::half_to_float_portable);
}
