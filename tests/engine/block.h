// One block of a decoder-only transformer, on kernels that were emitted by tile2cu.
#pragma once
#include <tl/status.h>
#include <cstddef>

namespace inference {

// Sizes in elements. Kernels are compiled for dim and head_dim.
constexpr int dim = 128, head_dim = 64, heads = dim / head_dim, hidden = 256, group = 32;

// Device memory; float16 unless it says otherwise. Weights of a linear layer are (outputs, inputs).
struct Weights {
  const void* attention_norm;  // (dim)
  const void* qkv;             // (3 * dim, dim)
  const void* out;             // (dim, dim)
  const void* mlp_norm;        // (dim)
  const void* up;              // (hidden, dim / 2), uint8: two weights of 4 bits in a byte
  const void* up_scales;       // (hidden, dim / group)
  const void* down;            // (dim, hidden)
  const void* cos;             // (positions, head_dim / 2), float32
  const void* sin;             // (positions, head_dim / 2), float32
};

// What a call needs of memory besides its arguments, in bytes.
size_t scratch_bytes(int batch, int seq_len);

// Whether a device runs the block for these sizes; asks each kernel.
tl_status supports(int batch, int seq_len, int device);

// y = block(x), both (batch, seq_len, dim). Queues all work on `stream` and returns; keeps no state, allocates nothing,
// so that it may be captured into a graph and called from several threads.
tl_status forward(const Weights& weights, const void* x, void* y, int batch, int seq_len, void* scratch, size_t bytes,
                  void* stream);

}  // namespace inference
