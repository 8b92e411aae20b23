/* The result of a kernel launcher. Plain C, so that any program can include the header of an emitted kernel. */
#ifndef TL_STATUS_H
#define TL_STATUS_H

typedef int tl_status;

enum {
  TL_OK = 0,
  TL_INVALID_SIZE = 1,    /* a size is negative, or larger than the kernel can address */
  TL_MISALIGNED = 2,      /* a pointer does not start at the multiple of bytes that the kernel needs */
  TL_NOT_SUPPORTED = 3,   /* this device cannot run it, or a size is no multiple its text asks for */
  TL_LAUNCH_FAILED = 1000 /* 1000 + the error code of the platform's runtime */
};

/* A sentence for each status. The text is static. */
static inline const char* tl_status_string(tl_status status) {
  if (status >= TL_LAUNCH_FAILED) return "the launch failed (status - 1000 is the runtime's error code)";
  switch (status) {
    case TL_OK:
      return "ok";
    case TL_INVALID_SIZE:
      return "a size is negative or too large";
    case TL_MISALIGNED:
      return "a pointer is not aligned as the kernel needs";
    case TL_NOT_SUPPORTED:
      return "the device cannot run the kernel, or a size is no multiple that its text asks for";
  }
  return "unknown status";
}

#endif
