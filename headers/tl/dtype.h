/* Element type codes, for entry points that accept tensors of several types. Plain C. */
#ifndef TL_DTYPE_H
#define TL_DTYPE_H

typedef int tl_dtype;

enum {
  TL_BOOL = 0,
  TL_INT8 = 1,
  TL_INT16 = 2,
  TL_INT32 = 3,
  TL_INT64 = 4,
  TL_UINT8 = 5,
  TL_UINT16 = 6,
  TL_UINT32 = 7,
  TL_UINT64 = 8,
  TL_FLOAT16 = 9,
  TL_BFLOAT16 = 10,
  TL_FLOAT32 = 11,
  TL_FLOAT64 = 12,
  TL_FLOAT8_E4M3FN = 13,
  TL_FLOAT8_E5M2 = 14,
  TL_FLOAT8_E4M3FNUZ = 15,
  TL_FLOAT8_E5M2FNUZ = 16,
  /* Two elements per byte, the first in bits 0..3. */
  TL_INT4 = 17,
  TL_UINT4 = 18,
  TL_FLOAT4_E2M1FN = 19,
  TL_PTR = 20, /* 64-bit addresses */
  TL_FLOAT8_E8M0FNU = 21
};

#endif
