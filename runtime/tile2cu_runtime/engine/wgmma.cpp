#include "wgmma.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "matrix_product.h"
#include "symbolize.h"
#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int rows = 64, k = 16;
constexpr std::uint32_t chunk_bytes = 16, chunk_elements = 8;
constexpr std::uint32_t poison = 0x7fbadbad;  // a NaN: what accumulators hold between issue and wait

// The fields of a descriptor.  [PTX ISA, Matrix Descriptor Format]
struct Descriptor {
  explicit Descriptor(std::uint64_t bits)
      : start(std::uint32_t(bits & 0x3fff) << 4),
        leading(std::uint32_t(bits >> 16 & 0x3fff) << 4),
        stride(std::uint32_t(bits >> 32 & 0x3fff) << 4),
        span(bits >> 62 == 0 ? 16 : 256u >> (bits >> 62)) {}
  std::uint32_t start, leading, stride;
  std::uint32_t span;  // bytes of a row before the next one starts; 16 without a swizzle
};

// The swizzle works on addresses.
std::uint32_t swizzled(std::uint32_t address, std::uint32_t span) {
  return address ^ (address >> 7 & (span / 16 - 1)) << 4;
}

// Shared-window address of 16-byte chunk `chunk` of row `row` of an operand with K contiguous. A swizzled operand lies
// within a span; without a swizzle each chunk is a core matrix's row.
std::uint32_t k_major_address(const Descriptor& d, int row, int chunk) {
  const std::uint32_t linear = d.start + std::uint32_t(row / 8) * d.stride + std::uint32_t(row % 8) * d.span;
  if (d.span == chunk_bytes) return linear + std::uint32_t(chunk) * d.leading;
  return swizzled(linear + std::uint32_t(chunk) * chunk_bytes, d.span);
}

// The same of an operand with M or N contiguous: row `k` of K, and along M or N spans of which each starts `leading`
// bytes behind the one before.  [CUTLASS, "cute/arch/mma_sm90_desc.hpp": canonical layouts, MN major]
std::uint32_t mn_major_address(const Descriptor& d, int k, int chunk) {
  const int chunks = int(d.span / chunk_bytes);
  const std::uint32_t linear = d.start + std::uint32_t(chunk / chunks) * d.leading + std::uint32_t(k / 8) * d.stride +
                               std::uint32_t(k % 8) * d.span + std::uint32_t(chunk % chunks) * chunk_bytes;
  return swizzled(linear, d.span);
}

int first_thread(const Worker& worker) {
  return worker.current->linear / threads_per_warpgroup * threads_per_warpgroup;
}

// What all warps of the warpgroup know: the operation reads for all of them. Components inside the group come from its
// first thread, as issuing brings the four warps together.
VectorClocks::Snapshot common_knowledge(Worker& worker) {
  const int first = first_thread(worker), end = first + threads_per_warpgroup;
  const Clock* base = worker.clocks.row(first);
  VectorClocks::Snapshot common(base, base + worker.clocks.columns());
  for (int thread = first + 1; thread < end; ++thread) {
    const Clock* row = worker.clocks.row(thread);
    for (int column = 0; column < worker.clocks.columns(); ++column) {
      if (column < first || column >= end) common[column] = std::min(common[column], row[column]);
    }
  }
  return common;
}

// An operand in shared memory: `count` rows of 16 elements, or with `mn` the same matrix, K by K.
struct SharedOperand {
  std::uint64_t descriptor;
  int count;
  bool mn;
};

// Visits the chunks of an operand: its address in the block's shared memory, and the place of its elements in a
// row-major count x 16 matrix with the distance of neighbours.
template <class Visit> void for_each_chunk(const SharedOperand& operand, Visit&& visit) {
  const Descriptor descriptor(operand.descriptor);
  const int outer = operand.mn ? k : operand.count, chunks = (operand.mn ? operand.count : k) / int(chunk_elements);
  for (int row = 0; row < outer; ++row) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const std::uint32_t address =
          operand.mn ? mn_major_address(descriptor, row, chunk) : k_major_address(descriptor, row, chunk);
      const int first = operand.mn ? chunk * int(chunk_elements) * k + row : row * k + chunk * int(chunk_elements);
      visit(address - Worker::shared_window_base, first, operand.mn ? k : 1);
    }
  }
}

// Copies an operand to a row-major count x 16 matrix.
void gather(Worker& worker, const SharedOperand& operand, std::uint16_t* out) {
  for_each_chunk(operand, [&](std::uint32_t offset, int first, int step) {
    std::uint16_t chunk[chunk_elements] = {};
    if (offset + chunk_bytes <= Worker::arena_bytes) std::memcpy(chunk, worker.arena + offset, chunk_bytes);
    for (int i = 0; i < int(chunk_elements); ++i) out[first + i * step] = chunk[i];
  });
}

void check_shared(Worker& worker, const SharedOperand& operand, Site site, const VectorClocks::Snapshot& common) {
  const auto reader = ThreadNumber(first_thread(worker));
  bool reported = false;
  for_each_chunk(operand, [&](std::uint32_t offset, int, int) {
    if (offset + chunk_bytes <= Worker::arena_bytes) {
      worker.shared_shadow.read(worker, offset, chunk_bytes, {reader, common.data(), common[reader], site, true, true});
    } else if (!std::exchange(reported, true)) {
      worker.report("wgmma descriptor out of shared memory", {site},
                    [&] { return std::string("an operand of the wgmma at {0}"); });
    }
  });
}

SharedOperand operand_a(const WgmmaOperation& operation) { return {operation.a, rows, operation.a_mn != 0}; }
SharedOperand operand_b(const WgmmaOperation& operation) { return {operation.b, operation.n, operation.b_mn != 0}; }

// A in registers, as a 64 x 16 matrix: register i of thread t holds row 16 * (t / 32) + t % 32 / 4 + 8 * (i % 2),
// columns 2 * (t % 4) + 8 * (i / 2) and the next.  [PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16, A]
std::vector<std::uint16_t> values_in_registers(const std::array<const std::uint32_t*, threads_per_warpgroup>& places) {
  std::vector<std::uint16_t> values(rows * k);
  for (int thread = 0; thread < threads_per_warpgroup; ++thread) {
    for (int i = 0; i < 4; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8, column = thread % 4 * 2 + i / 2 * 8;
      std::memcpy(&values[row * k + column], places[thread] + i, 2 * sizeof(std::uint16_t));
    }
  }
  return values;
}

// Register i of thread t of the warpgroup: row 16 * (t / 32) + t % 32 / 4 + 8 * (i / 2 % 2), column
// 8 * (i / 4) + 2 * (t % 4) + i % 2.  [PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16, D]
int accumulator_index(int thread, int i, int n) {
  const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
  return row * n + i / 4 * 8 + thread % 4 * 2 + i % 2;
}

template <class Visit> void for_each_register(int n, Visit&& visit) {
  for (int thread = 0; thread < threads_per_warpgroup; ++thread) {
    for (int i = 0; i < n / 2; ++i) visit(thread, i, accumulator_index(thread, i, n));
  }
}

// Any n that is a multiple of 8: the common widths at once, others in strips.
void multiply_add_n(float* c, const float* a, const float* b_rows, int n) {
  static thread_local std::vector<float> columns;
  columns.resize(std::size_t(k) * n);
  for (int column = 0; column < n; ++column) {
    for (int inner = 0; inner < k; ++inner) columns[inner * n + column] = b_rows[column * k + inner];
  }
  if (n == 256) return multiply_add<64, 256, 16>(c, a, columns.data());
  if (n == 128) return multiply_add<64, 128, 16>(c, a, columns.data());
  if (n == 64) return multiply_add<64, 64, 16>(c, a, columns.data());
  float strip_c[rows * 8], strip_b[k * 8];
  for (int first = 0; first < n; first += 8) {
    for (int row = 0; row < rows; ++row) std::memcpy(strip_c + row * 8, c + row * n + first, 8 * sizeof(float));
    for (int row = 0; row < k; ++row) std::memcpy(strip_b + row * 8, &columns[row * n + first], 8 * sizeof(float));
    multiply_add<64, 8, 16>(strip_c, a, strip_b);
    for (int row = 0; row < rows; ++row) std::memcpy(c + row * n + first, strip_c + row * 8, 8 * sizeof(float));
  }
}

}  // namespace

// True for the last of the 128 threads; the others return when it has done the work.
bool Warpgroup::last_to_arrive(Worker& worker, Step step, int detail, Site site) {
  static constexpr const char* names[] = {"wgmma", "wgmma.commit_group", "wgmma.wait_group"};
  const char* name = names[int(step)];
  if (arrived_ == 0) {
    step_ = step;
    detail_ = detail;
    site_ = site;
  } else if (step_ != step || detail_ != detail || (worker.options.check && !same_line(site_, site))) {
    worker.report("divergent warpgroup collective", {site, site_}, [&] {
      return text("%s executes %s at {0} while others of its warpgroup wait in %s at {1}",
                  worker.describe_current().c_str(), name, names[int(step_)]);
    });
  }
  if (++arrived_ == threads_per_warpgroup) {
    arrived_ = 0;
    worker.collectives++;
    return true;
  }
  waiting_.push_back(worker.current->linear);
  worker.block_current(name, site);
  return false;
}

void Warpgroup::release_others(Worker& worker) {
  for (ThreadNumber thread : waiting_) worker.make_ready(thread);
  waiting_.clear();
}

void Warpgroup::issue(Worker& worker, const WgmmaOperation& operation, float* accumulators) {
  if (arrived_ && (a_ != operation.a || b_ != operation.b)) {
    worker.report("wgmma descriptors differ inside the warpgroup", {operation.site},
                  [&] { return text("%s at {0}", worker.describe_current().c_str()); });
  }
  a_ = operation.a;
  b_ = operation.b;
  accumulators_[worker.current->linear % threads_per_warpgroup] = accumulators;
  a_places_[worker.current->linear % threads_per_warpgroup] = operation.a_registers;
  if (!last_to_arrive(worker, Step::issue, operation.n, operation.site)) return;
  start(worker, operation);
  release_others(worker);
}

void Warpgroup::start(Worker& worker, WgmmaOperation operation) {
  operation.accumulators = accumulators_;
  if (operation.a_registers) {
    operation.a_places = a_places_;
    operation.a_values = values_in_registers(a_places_);
  }
  if (!fenced_) {
    worker.report("missing wgmma.fence", {operation.site},
                  [&] { return std::string("the first wgmma of a group, at {0}, has no wgmma.fence before it"); });
  }
  check_operands(worker, operation);  // they must be ready now ...
  hold(operation);
  in_flight_.push_back(operation);
  if (worker.options.landing == TL_ENGINE_EARLY) execute(worker, in_flight_.back());
  uncommitted_++;
}

void Warpgroup::check_operands(Worker& worker, const WgmmaOperation& operation) const {
  if (!worker.options.check) return;
  const auto common = common_knowledge(worker);
  if (operation.a_registers) {
    check_registers(worker, operation);
  } else {
    check_shared(worker, operand_a(operation), operation.site, common);
  }
  check_shared(worker, operand_b(operation), operation.site, common);
}

void Warpgroup::check_registers(Worker& worker, const WgmmaOperation& operation) const {
  if (values_in_registers(operation.a_places) == operation.a_values) return;
  worker.report("wgmma operand modified in flight", {operation.site}, [&] {
    return std::string("the registers of operand A of the wgmma at {0} were written before wgmma.wait_group");
  });
}

void Warpgroup::hold(const WgmmaOperation& operation) {
  for (HeldAccumulators& held : held_) {
    if (held.registers[0] != operation.accumulators[0]) continue;
    held.pending++;
    return;
  }
  held_.push_back({operation.accumulators, operation.n, 1, std::vector<float>(rows * operation.n), operation.site});
  HeldAccumulators& held = held_.back();
  for_each_register(held.n, [&](int thread, int i, int index) {
    held.values[index] = held.registers[thread][i];
    std::memcpy(&held.registers[thread][i], &poison, sizeof poison);
  });
}

void Warpgroup::execute(Worker& worker, WgmmaOperation& operation) {
  operation.executed = true;
  std::vector<std::uint16_t> a(rows * k), b(std::size_t(operation.n) * k);
  if (operation.a_registers) {
    a = operation.a_values;
  } else {
    gather(worker, operand_a(operation), a.data());
  }
  gather(worker, operand_b(operation), b.data());
  std::vector<float> wide_a(a.size()), wide_b(b.size());
  widen(wide_a.data(), a.data(), int(a.size()), operation.type);
  widen(wide_b.data(), b.data(), int(b.size()), operation.type);
  const auto held = std::find_if(held_.begin(), held_.end(), [&](const HeldAccumulators& candidate) {
    return candidate.registers[0] == operation.accumulators[0];
  });
  if (!operation.accumulate) std::fill(held->values.begin(), held->values.end(), 0.0f);
  multiply_add_n(held->values.data(), wide_a.data(), wide_b.data(), operation.n);
}

void Warpgroup::give_back(Worker& worker, HeldAccumulators& held) {
  bool touched = false;
  for_each_register(held.n, [&](int thread, int i, int index) {
    std::uint32_t word;
    std::memcpy(&word, &held.registers[thread][i], sizeof word);
    touched |= word != poison;
    held.registers[thread][i] = held.values[index];
  });
  if (touched) {
    worker.report("wgmma accumulator modified in flight", {held.site}, [&] {
      return std::string("the accumulator of the wgmma at {0} was written before wgmma.wait_group");
    });
  }
}

void Warpgroup::commit(Worker& worker, Site site) {
  if (!last_to_arrive(worker, Step::commit, 0, site)) return;
  groups_.push_back(uncommitted_);
  uncommitted_ = 0;
  fenced_ = false;
  release_others(worker);
}

void Warpgroup::wait(Worker& worker, int groups_left, Site site) {
  if (!last_to_arrive(worker, Step::wait, groups_left, site)) return;
  while (int(groups_.size()) > groups_left) {
    for (std::size_t count = groups_.front(); count > 0; --count) {
      WgmmaOperation& operation = in_flight_.front();
      check_operands(worker, operation);  // ... and stay unchanged until here
      if (!operation.executed) execute(worker, operation);
      const auto held = std::find_if(held_.begin(), held_.end(), [&](const HeldAccumulators& candidate) {
        return candidate.registers[0] == operation.accumulators[0];
      });
      if (--held->pending == 0) {
        give_back(worker, *held);
        held_.erase(held);
      }
      in_flight_.pop_front();
    }
    groups_.erase(groups_.begin());
  }
  release_others(worker);
}

void Warpgroup::report_unfinished(Worker& worker) const {
  if (in_flight_.empty()) return;
  worker.report("wgmma never waited", {in_flight_.front().site},
                [&] { return std::string("the block ends while the wgmma issued at {0} is in flight"); });
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

namespace {
Warpgroup& own_warpgroup(Worker& worker) { return worker.warpgroups[worker.current->linear / threads_per_warpgroup]; }
}  // namespace

extern "C" {

void tl_engine_wgmma(float* accumulators, const tl_engine_wgmma_operation* operation) {
  Worker& worker = current_worker();
  own_warpgroup(worker).issue(worker, WgmmaOperation{*operation, TILE2CU_CALL_SITE}, accumulators);
}

void tl_engine_wgmma_fence() { own_warpgroup(current_worker()).fence(); }

void tl_engine_wgmma_commit() {
  Worker& worker = current_worker();
  own_warpgroup(worker).commit(worker, TILE2CU_CALL_SITE);
}

void tl_engine_wgmma_wait(int groups_left) {
  Worker& worker = current_worker();
  own_warpgroup(worker).wait(worker, groups_left, TILE2CU_CALL_SITE);
}

}  // extern "C"
