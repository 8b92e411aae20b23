// Calls of gemm_relu whose first launch a graph captures, from several threads, on all devices, and after a reset.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>
#include "gemm_relu.h"

constexpr int M = 256, K = 64, N = 256, most = 256 * 256;

// Matrices of ones: every element of the product is K.
struct Matrices {
  half *A, *B, *C;
  Matrices() {
    const std::vector<half> ones(most, __float2half(1));
    for (half** each : {&A, &B, &C}) {
      cudaMalloc(each, most * sizeof(half));
      cudaMemcpy(*each, ones.data(), most * sizeof(half), cudaMemcpyHostToDevice);
    }
    cudaMemset(C, 0, most * sizeof(half));
  }
  tl_status start(int k, cudaStream_t stream) const { return gemm_relu(A, B, C, M, N, k, nullptr, 0, stream); }
  int wrong(int k) const {
    std::vector<half> found(M * N);
    cudaMemcpy(found.data(), C, found.size() * sizeof(half), cudaMemcpyDeviceToHost);
    int count = 0;
    for (const half each : found) count += __half2float(each) != static_cast<float>(k);
    return count;
  }
};

int main() {
  int devices = 0;
  cudaGetDeviceCount(&devices);

  // The launcher's first call ever: what it asks of the device must be allowed while a stream is captured.
  const Matrices matrices;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  const tl_status captured = matrices.start(K, stream);
  cudaStreamEndCapture(stream, &graph);
  const bool ran_early = matrices.wrong(K) != M * N;
  const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  std::printf("captured: status %d, graph %d, ran early %d, wrong %d\n", captured, made, ran_early, matrices.wrong(K));

  std::vector<Matrices> each;
  for (int device = 0; device < devices; ++device) {
    cudaSetDevice(device);
    each.emplace_back();
  }
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      cudaSetDevice(t % devices);
      cudaStream_t own;
      cudaStreamCreate(&own);
      for (int i = 0; i < 100; ++i) refused += each[t % devices].start(K - 1, own) != TL_OK;
      refused += cudaStreamSynchronize(own) != cudaSuccess;
    });
  for (auto& thread : threads) thread.join();
  for (int device = 0; device < devices; ++device) {
    cudaSetDevice(device);
    std::printf("threads, device %d: refused %d, wrong %d\n", device, refused.load(), each[device].wrong(K - 1));
  }

  cudaSetDevice(0);
  cudaDeviceReset();
  const Matrices anew;
  const tl_status again = anew.start(K, nullptr);
  std::printf("after a reset: status %d, error %d, wrong %d\n", again, cudaGetLastError(), anew.wrong(K));
}
