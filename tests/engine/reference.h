// The block in double precision, written for reading: no kernel, no tile, no rounding between the steps.
#pragma once
#include <vector>

namespace inference {

using Matrix = std::vector<std::vector<double>>;  // rows of columns

struct ReferenceWeights {
  std::vector<double> attention_norm, mlp_norm;
  Matrix qkv, out, up, down;  // (outputs, inputs); `up` dequantised
};

// x has batch * seq_len rows of dim; so has what is returned.
Matrix reference_block(const ReferenceWeights& weights, const Matrix& x, int batch, int seq_len);

}  // namespace inference
