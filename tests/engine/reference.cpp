#include "reference.h"
#include <algorithm>
#include <cmath>
#include "block.h"

namespace inference {
namespace {

Matrix normed(const Matrix& x, const std::vector<double>& weight) {
  Matrix y = x;
  for (auto& row : y) {
    double squares = 0;
    for (const double value : row) squares += value * value;
    const double factor = 1 / std::sqrt(squares / double(row.size()) + 1e-5);
    for (size_t j = 0; j < row.size(); ++j) row[j] *= factor * weight[j];
  }
  return y;
}

Matrix product(const Matrix& x, const Matrix& weight) {
  Matrix y(x.size(), std::vector<double>(weight.size(), 0.0));
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t j = 0; j < weight.size(); ++j)
      for (size_t k = 0; k < x[i].size(); ++k) y[i][j] += x[i][k] * weight[j][k];
  return y;
}

Matrix sum(const Matrix& a, const Matrix& b) {
  Matrix y = a;
  for (size_t i = 0; i < y.size(); ++i)
    for (size_t j = 0; j < y[i].size(); ++j) y[i][j] += b[i][j];
  return y;
}

// The head's part of a row of QKV, turned by its position. which: 0 for a query, 1 for a key.
std::vector<double> turned(const std::vector<double>& row, int which, int head, int position) {
  const int half = head_dim / 2;
  const double* const x = &row[size_t(which * dim + head * head_dim)];
  std::vector<double> y(head_dim);
  for (int i = 0; i < half; ++i) {
    const double angle = position * std::pow(10000.0, -double(i) / half);
    y[size_t(i)] = x[i] * std::cos(angle) - x[i + half] * std::sin(angle);
    y[size_t(i + half)] = x[i + half] * std::cos(angle) + x[i] * std::sin(angle);
  }
  return y;
}

Matrix attended(const Matrix& qkv, int batch, int seq_len) {
  Matrix y(qkv.size(), std::vector<double>(dim, 0.0));
  for (int b = 0; b < batch; ++b)
    for (int head = 0; head < heads; ++head)
      for (int s = 0; s < seq_len; ++s) {
        const size_t row = size_t(b * seq_len + s);
        const auto query = turned(qkv[row], 0, head, s);
        std::vector<double> weights;
        for (int t = 0; t <= s; ++t) {
          const auto key = turned(qkv[size_t(b * seq_len + t)], 1, head, t);
          double score = 0;
          for (int i = 0; i < head_dim; ++i) score += query[size_t(i)] * key[size_t(i)];
          weights.push_back(score / std::sqrt(double(head_dim)));
        }
        const double largest = *std::max_element(weights.begin(), weights.end());
        double total = 0;
        for (double& weight : weights) total += weight = std::exp(weight - largest);
        for (int t = 0; t <= s; ++t)
          for (int i = 0; i < head_dim; ++i)
            y[row][size_t(head * head_dim + i)] +=
                weights[size_t(t)] / total * qkv[size_t(b * seq_len + t)][size_t(2 * dim + head * head_dim + i)];
      }
  return y;
}

}  // namespace

Matrix reference_block(const ReferenceWeights& weights, const Matrix& x, int batch, int seq_len) {
  const Matrix qkv = product(normed(x, weights.attention_norm), weights.qkv);
  const Matrix x1 = sum(x, product(attended(qkv, batch, seq_len), weights.out));
  Matrix up = product(normed(x1, weights.mlp_norm), weights.up);
  for (auto& row : up)
    for (double& value : row) value = 0.5 * value * (1 + std::erf(value / std::sqrt(2.0)));
  return sum(x1, product(up, weights.down));
}

}  // namespace inference
