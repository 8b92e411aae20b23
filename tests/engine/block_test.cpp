// The block on kernels against the block in double precision.
#include <tl/test.h>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>
#include "block.h"
#include "linear_dispatch.h"
#include "reference.h"

namespace {
using namespace inference;
using namespace tl::test;
using Half = Array<float16>;

constexpr int positions = 100;
// Seven tensors are rounded to float16 (11 bits) on the way from x to y: errors that add up like the steps of a random
// walk, counted relative to the largest value of y.
constexpr double tolerance = 1.5e-3;

// A float16 tensor with random values up to `scale`.
Half random(std::vector<int64_t> extents, unsigned seed, double scale) {
  Half array(std::move(extents));
  fill(array, seed);
  for (double& x : array.data()) x = float16::from(x * scale);
  return array;
}

Matrix matrix(const Half& array, int rows, int columns) {
  Matrix found;
  found.assign(size_t(rows), std::vector<double>(size_t(columns), 0.0));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) found[size_t(i)][size_t(j)] = array(i, j);
  return found;
}

// The block's weights, on the host as the kernels take them, and on the device.
struct Model {
  Half attention_norm = random({dim}, 1, 1.5), qkv = random({3 * dim, dim}, 2, 0.2), out = random({dim, dim}, 3, 0.15);
  Half mlp_norm = random({dim}, 4, 1.5), scales = random({hidden, dim / group}, 5, 0.03);
  Half down = random({dim, hidden}, 6, 0.1);
  Array<Native<uint8_t>> up{{hidden, dim / 2}};
  Array<Native<float>> cos{{positions, head_dim / 2}}, sin{{positions, head_dim / 2}};
  ReferenceWeights reference;

  Model() {
    fill(up, 7);
    for (int s = 0; s < positions; ++s)
      for (int i = 0; i < head_dim / 2; ++i) {
        const double angle = s * std::pow(10000.0, -double(i) / (head_dim / 2));
        cos.set(std::cos(angle), s, i), sin.set(std::sin(angle), s, i);
      }
    reference.attention_norm = attention_norm.data();
    reference.mlp_norm = mlp_norm.data();
    reference.qkv = matrix(qkv, 3 * dim, dim);
    reference.out = matrix(out, dim, dim);
    reference.down = matrix(down, dim, hidden);
    reference.up.assign(hidden, std::vector<double>(dim));
    for (int n = 0; n < hidden; ++n)
      for (int k = 0; k < dim; ++k) {
        const int nibble = up(n, k / 2) >> 4 * (k % 2) & 15;
        reference.up[size_t(n)][size_t(k)] = (nibble - 8) * scales(n, k / group);
      }
  }
};

struct ModelOnDevice {
  OnDevice<float16> attention_norm, qkv, out, mlp_norm, scales, down;
  OnDevice<Native<uint8_t>> up;
  OnDevice<Native<float>> cos, sin;
  explicit ModelOnDevice(const Model& m)
      : attention_norm(m.attention_norm),
        qkv(m.qkv),
        out(m.out),
        mlp_norm(m.mlp_norm),
        scales(m.scales),
        down(m.down),
        up(m.up),
        cos(m.cos),
        sin(m.sin) {}
  // Cos and Sin have seq_len rows for a kernel; their first rows are those of any shorter sequence.
  Weights weights() const {
    return {attention_norm.data(), qkv.data(),  out.data(), mlp_norm.data(), up.data(),
            scales.data(),         down.data(), cos.data(), sin.data()};
  }
};

bool run(const Model& model, const ModelOnDevice& on_device, int batch, int seq_len) {
  const int tokens = batch * seq_len;
  const Half x = random({tokens, dim}, 8, 2.0);
  Half y({tokens, dim}), expected({tokens, dim});
  const OnDevice<float16> x_device(x), y_device(y);
  const Workspace scratch(scratch_bytes(batch, seq_len));
  const tl_status status = forward(on_device.weights(), x_device.data(), y_device.data(), batch, seq_len,
                                   scratch.data(), scratch.bytes(), nullptr);
  if (!device_is_fine() || status != TL_OK) return std::printf("  %s\n", tl_status_string(status)), false;
  y_device.read(y);
  const Matrix found = reference_block(model.reference, matrix(x, tokens, dim), batch, seq_len);
  for (int i = 0; i < tokens; ++i)
    for (int j = 0; j < dim; ++j) expected.set(found[size_t(i)][size_t(j)], i, j);
  return same("y", y, expected, tolerance);
}

bool refuses(const ModelOnDevice& on_device) {
  const OnDevice<float16> x(Half({8, dim}));
  const Workspace scratch(scratch_bytes(1, 8));
  const auto call = [&](int batch, int seq_len, size_t bytes) {
    return forward(on_device.weights(), x.data(), x.data(), batch, seq_len, scratch.data(), bytes, nullptr);
  };
  return call(-1, 8, scratch.bytes()) == TL_INVALID_SIZE && call(1, 8, 8) == TL_WORKSPACE_TOO_SMALL &&
         call(1, 0, scratch.bytes()) == TL_OK && supports(1, 8, 99) != TL_OK;
}

#if defined(TL_ON_GPU)
// A graph of the block, replayed on other values of x.
bool captured(const Model& model, const ModelOnDevice& on_device) {
  const int seq_len = 80;
  const Half x = random({seq_len, dim}, 9, 2.0);
  Half y({seq_len, dim}), expected({seq_len, dim});
  const OnDevice<float16> x_device(x), y_device(y), other(random({seq_len, dim}, 10, 2.0));
  const Workspace scratch(scratch_bytes(1, seq_len));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t program;
  cudaStreamCreate(&stream);
  cudaMemcpy(x_device.data(), other.data(), x.bytes(), cudaMemcpyDeviceToDevice);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  const tl_status status = forward(on_device.weights(), x_device.data(), y_device.data(), 1, seq_len, scratch.data(),
                                   scratch.bytes(), stream);
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess || status != TL_OK) return false;
  if (cudaGraphInstantiate(&program, graph, 0) != cudaSuccess) return false;
  const OnDevice<float16> again(x);
  cudaMemcpy(x_device.data(), again.data(), x.bytes(), cudaMemcpyDeviceToDevice);
  cudaGraphLaunch(program, stream);
  if (!device_is_fine()) return false;
  y_device.read(y);
  const Matrix found = reference_block(model.reference, matrix(x, seq_len, dim), 1, seq_len);
  for (int i = 0; i < seq_len; ++i)
    for (int j = 0; j < dim; ++j) expected.set(found[size_t(i)][size_t(j)], i, j);
  return same("y", y, expected, tolerance);
}

// Two threads for each GPU, all at once.
bool on_all_devices(const Model& model) {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 2 * devices; ++thread) {
    threads.emplace_back([&, thread] {
      cudaSetDevice(thread % devices);
      const ModelOnDevice on_device(model);
      for (int turn = 0; turn < 3; ++turn) wrong += !run(model, on_device, 1, 60 + 20 * turn);
    });
  }
  for (auto& thread : threads) thread.join();
  std::printf("%d GPUs, ", devices);
  return wrong == 0;
}
#endif

}  // namespace

int main() {
  start();
  if (supports(1, 1, TL_CURRENT_DEVICE) == TL_WRONG_DEVICE) return std::printf("not for this device\n"), 77;
  const Model model;
  const ModelOnDevice on_device(model);
  int wrong = 0;
  const auto report = [&](const char* what, bool is_fine) {
    std::printf("%s: %s\n", what, is_fine ? "ok" : "WRONG");
    wrong += !is_fine;
  };
  const int sizes[][2] = {{1, 1}, {2, 7}, {1, 40}, {3, 33}, {1, 100}};
  for (const auto& [batch, seq_len] : sizes) {
    std::printf("batch %d, %d tokens, linear by `%s`\n", batch, seq_len,
                linear_choice(batch * seq_len, dim, 3 * dim, TL_CURRENT_DEVICE));
    report("  block", run(model, on_device, batch, seq_len));
  }
  report("refusals", refuses(on_device));
#if defined(TL_ON_GPU)
  report("a captured graph", captured(model, on_device));
  report("two threads each", on_all_devices(model));
#endif
  return wrong ? 1 : 0;
}
