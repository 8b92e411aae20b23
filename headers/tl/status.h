/* The result of a kernel launcher. Plain C, so that any program can include the header of an emitted kernel. */
#ifndef TL_STATUS_H
#define TL_STATUS_H
#include <stddef.h> /* size_t, in which launchers count workspace */
#include <stdint.h> /* integers of 8 to 64 bits, as scalars may be */

typedef int tl_status;

enum {
  TL_OK = 0,
  TL_INVALID_SIZE = 1,        /* a size is negative, or larger than the kernel can address */
  TL_MISALIGNED = 2,          /* a pointer does not start at the multiple of bytes that the kernel needs */
  TL_NOT_SUPPORTED = 3,       /* a size is no multiple of what the kernel's text asks for */
  TL_WRONG_DEVICE = 4,        /* the device does not run the code that the kernel's text is for */
  TL_WORKSPACE_TOO_SMALL = 5, /* fewer bytes than NAME_workspace_size says */
  TL_LAUNCH_FAILED = 1000     /* 1000 + the error code of the platform's runtime */
};

/* In place of a device's ordinal: the device that is current in the calling thread. */
enum { TL_CURRENT_DEVICE = -1 };

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
      return "a size is no multiple of what the kernel's text asks for";
    case TL_WRONG_DEVICE:
      return "the device does not run the code that the kernel's text is for";
    case TL_WORKSPACE_TOO_SMALL:
      return "the workspace has fewer bytes than the kernel's workspace_size says";
  }
  return "unknown status";
}

#endif
