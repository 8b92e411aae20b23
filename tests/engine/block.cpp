#include "block.h"
#include <algorithm>
#include "attention.h"
#include "linear_dispatch.h"
#include "linear_int4.h"
#include "linear_residual.h"
#include "rmsnorm.h"
#include "rope.h"

namespace inference {
namespace {

// Where the tensors between the kernels lie in the scratch memory, in bytes from its start.
struct Plan {
  size_t normed, qkv, q, k, v, attended, x1, up, workspace, end;
};

// Tensors start at multiples of 256 bytes, as memory from cudaMalloc does.
size_t place(size_t& next, size_t bytes) {
  const size_t start = next;
  next += (bytes + 255) / 256 * 256;
  return start;
}

size_t largest_workspace(int batch, int seq_len) {
  const int tokens = batch * seq_len;
  return std::max({rmsnorm_workspace_size(tokens), linear_workspace_size(tokens, 3 * dim, dim),
                   rope_workspace_size(batch, seq_len, heads), attention_workspace_size(batch, heads, seq_len),
                   linear_residual_workspace_size(tokens, dim, dim), linear_int4_workspace_size(tokens, hidden, dim),
                   linear_residual_workspace_size(tokens, dim, hidden)});
}

Plan plan_for(int batch, int seq_len) {
  const size_t tokens = size_t(batch) * size_t(seq_len), row = dim * 2;  // bytes of a row of dim
  size_t next = 0;
  Plan plan{};
  plan.normed = place(next, tokens * row);
  plan.qkv = place(next, tokens * row * 3);
  plan.q = place(next, tokens * row);
  plan.k = place(next, tokens * row);
  plan.v = place(next, tokens * row);
  plan.attended = place(next, tokens * row);
  plan.x1 = place(next, tokens * row);
  plan.up = place(next, tokens * hidden * 2);
  plan.workspace = place(next, largest_workspace(batch, seq_len));
  plan.end = next;
  return plan;
}

// The first refusal, if there is one.
tl_status first(std::initializer_list<tl_status> statuses) {
  for (const tl_status status : statuses)
    if (status != TL_OK) return status;
  return TL_OK;
}

}  // namespace

size_t scratch_bytes(int batch, int seq_len) { return plan_for(batch, seq_len).end; }

tl_status supports(int batch, int seq_len, int device) {
  if (batch < 0 || seq_len < 0) return TL_INVALID_SIZE;
  const int tokens = batch * seq_len;
  return first({rmsnorm_supports(tokens, device), linear_supports(tokens, 3 * dim, dim, device),
                rope_supports(batch, seq_len, heads, device), attention_supports(batch, heads, seq_len, device),
                linear_residual_supports(tokens, dim, dim, device), linear_int4_supports(tokens, hidden, dim, device),
                linear_residual_supports(tokens, dim, hidden, device)});
}

tl_status forward(const Weights& weights, const void* x, void* y, int batch, int seq_len, void* scratch, size_t bytes,
                  void* stream) {
  const tl_status refusal = supports(batch, seq_len, TL_CURRENT_DEVICE);
  if (refusal != TL_OK) return refusal;
  const Plan plan = plan_for(batch, seq_len);
  if (bytes < plan.end) return TL_WORKSPACE_TOO_SMALL;
  const auto at = [&](size_t offset) { return static_cast<void*>(static_cast<char*>(scratch) + offset); };
  const int tokens = batch * seq_len;
  void* const space = at(plan.workspace);
  const size_t space_bytes = plan.end - plan.workspace;

  tl_status status = rmsnorm(x, weights.attention_norm, at(plan.normed), tokens, space, space_bytes, stream);
  if (status != TL_OK) return status;
  status = linear(at(plan.normed), weights.qkv, at(plan.qkv), tokens, 3 * dim, dim, space, space_bytes, stream);
  if (status != TL_OK) return status;
  status = rope(at(plan.qkv), weights.cos, weights.sin, at(plan.q), at(plan.k), at(plan.v), batch, seq_len, heads,
                space, space_bytes, stream);
  if (status != TL_OK) return status;
  status = attention(at(plan.q), at(plan.k), at(plan.v), at(plan.attended), batch, heads, seq_len, space, space_bytes,
                     stream);
  if (status != TL_OK) return status;
  status =
      linear_residual(at(plan.attended), weights.out, x, at(plan.x1), tokens, dim, dim, space, space_bytes, stream);
  if (status != TL_OK) return status;
  status = rmsnorm(at(plan.x1), weights.mlp_norm, at(plan.normed), tokens, space, space_bytes, stream);
  if (status != TL_OK) return status;
  status = linear_int4(at(plan.normed), weights.up, weights.up_scales, at(plan.up), tokens, hidden, dim, space,
                       space_bytes, stream);
  if (status != TL_OK) return status;
  return linear_residual(at(plan.up), weights.down, at(plan.x1), y, tokens, dim, hidden, space, space_bytes, stream);
}

}  // namespace inference
