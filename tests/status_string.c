/* The text of a status for tests whose kernels have no Python binding. */
#include <tl/status.h>

const char* status_string(int status) { return tl_status_string(status); }
