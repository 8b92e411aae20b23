#include "wgmma.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include <tl/host/numeric.h>

#include "matrix_product.h"
#include "symbolize.h"
#include "unwritten.h"
#include "wgmma_descriptor.h"
#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int rows = 64, k_bytes = 32, k_words = k_bytes / 2;  // of one instruction
// The contents of accumulators between issue and wait: a NaN, also as half.
constexpr std::uint32_t poison = 0x7fbafdad;

int first_thread(const Worker& worker) {
  return worker.current->linear / threads_per_warpgroup * threads_per_warpgroup;
}

// The joint clock of the warpgroup: the operation reads on behalf of all its threads. Components of the group's own
// threads are the first thread's, since issuing synchronises the four warps.
VectorClocks::Snapshot common_knowledge(Worker& worker) {
  const int first = first_thread(worker), end = first + threads_per_warpgroup;
  const Clock* base = worker.clocks.row(first);
  VectorClocks::Snapshot common(base, base + worker.clocks.columns());
  for (int thread = first + 1; thread < end; ++thread) VectorClocks::meet(common, worker.clocks.row(thread));
  std::copy(base + first, base + end, common.begin() + first);
  return common;
}

// The threads' clocks at their last proxy fence; empty if one has none.
VectorClocks::Snapshot common_fence(const Worker& worker) {
  const int first = first_thread(worker);
  VectorClocks::Snapshot common = worker.threads[first].knew_at_fence;
  for (int thread = first + 1; thread < first + threads_per_warpgroup && !common.empty(); ++thread) {
    const VectorClocks::Snapshot& knew = worker.threads[thread].knew_at_fence;
    if (knew.empty()) return {};
    VectorClocks::meet(common, knew.data());
  }
  return common;
}

int element_bytes(int type) {
  return type == TL_ENGINE_TF32 ? 4 : type == TL_ENGINE_HALF || type == TL_ENGINE_BFLOAT16 ? 2 : 1;
}

// An operand in shared memory: `count` rows of 32 bytes, or with `mn` an MN-major matrix of 16-bit elements.
struct SharedOperand {
  std::uint64_t descriptor;
  int count;
  bool mn;
};

// Visits the chunks of an operand: the offset in the block's shared memory, and the position of the first byte in a
// row-major matrix of count x 32 bytes. With `mn` the eight elements of a chunk are in one column of it.
template <class Visit> void for_each_chunk(Worker& worker, const SharedOperand& operand, Visit&& visit) {
  const auto own_memory = std::uint32_t(worker.own_memory());
  const Descriptor descriptor(operand.descriptor);
  const int outer = operand.mn ? k_bytes / 2 : operand.count;
  const int chunks = (operand.mn ? operand.count * 2 : k_bytes) / int(chunk_bytes);
  for (int row = 0; row < outer; ++row) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const std::uint32_t address =
          operand.mn ? mn_major_address(descriptor, row, chunk) : k_major_address(descriptor, row, chunk);
      const int first = operand.mn ? chunk * 8 * k_bytes + row * 2 : row * k_bytes + chunk * int(chunk_bytes);
      visit(own_memory + address - Worker::shared_window_base, first);
    }
  }
}

// Copies an operand to a row-major matrix of count x 32 bytes.
void gather(Worker& worker, const SharedOperand& operand, Words& words) {
  auto* const out = reinterpret_cast<std::uint8_t*>(words.data());
  for_each_chunk(worker, operand, [&](std::uint32_t offset, int first) {
    std::uint8_t chunk[chunk_bytes] = {};
    if (worker.is_shared(offset, chunk_bytes)) std::memcpy(chunk, worker.arena + offset, chunk_bytes);
    if (!operand.mn) std::memcpy(out + first, chunk, chunk_bytes);
    for (int i = 0; operand.mn && i < 8; ++i) std::memcpy(out + first + i * k_bytes, chunk + 2 * i, 2);
  });
}

void check_shared(Worker& worker, const SharedOperand& operand, int type, Site site,
                  const VectorClocks::Snapshot& common, const VectorClocks::Snapshot& fence) {
  const auto reader = ThreadNumber(first_thread(worker));
  MemoryAccess access{reader, common.data(), common[reader], site, true};
  access.fenced = fence.empty() ? nullptr : fence.data();
  access.by_warpgroup = true;
  access.is_operand = type == TL_ENGINE_HALF || type == TL_ENGINE_BFLOAT16 || type == TL_ENGINE_TF32;
  bool reported = false;
  for_each_chunk(worker, operand, [&](std::uint32_t offset, int) {
    if (worker.is_shared(offset, chunk_bytes)) {
      worker.shadow_at(offset).read(worker, offset, chunk_bytes, access);
    } else if (!std::exchange(reported, true)) {
      worker.report("wgmma operand out of bounds", {site},
                    [&] { return std::string("an operand of the wgmma at {0} is not within shared memory"); });
    }
  });
}

SharedOperand operand_a(const WgmmaOperation& operation) { return {operation.a, rows, operation.a_mn != 0}; }
SharedOperand operand_b(const WgmmaOperation& operation) { return {operation.b, operation.n, operation.b_mn != 0}; }

// A in registers, as a matrix of 64 x 16 16-bit elements: register i of thread t holds row 16 * (t / 32) + t % 32 / 4 +
// 8 * (i % 2), columns 2 * (t % 4) + 8 * (i / 2) and the next.
// [PTX ISA, Register Fragments for wgmma.mma_async.m64nNk16, A]
Words values_in_registers(const std::array<const std::uint32_t*, threads_per_warpgroup>& places) {
  Words values(rows * k_words);
  for (int thread = 0; thread < threads_per_warpgroup; ++thread) {
    for (int i = 0; i < 4; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8, column = thread % 4 * 2 + i / 2 * 8;
      std::memcpy(&values[row * k_words + column], places[thread] + i, sizeof(std::uint32_t));
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

// Tensor cores read 10 mantissa bits of tf32 and ignore the others.
float read_as_tf32(float value) {
  return tl::host::bit_cast<float>(tl::host::bit_cast<std::uint32_t>(value) & 0xffffe000);
}

const std::uint8_t* bytes_of(const Words& words) { return reinterpret_cast<const std::uint8_t*>(words.data()); }

// Converts an operand's rows of 32 bytes to float.
std::vector<float> widened(const Words& words, int type) {
  std::vector<float> wide(words.size() * 2 / element_bytes(type));
  if (type == TL_ENGINE_TF32) {
    std::memcpy(wide.data(), words.data(), words.size() * 2);
    for (float& value : wide) value = read_as_tf32(value);
  } else if (element_bytes(type) == 2) {
    widen(wide.data(), words.data(), int(words.size()), type);
  } else {
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = float8_value(bytes_of(words)[i], type);
  }
  return wide;
}

// c += a b for 16 steps of K; b is K x n, with n a multiple of 8: common widths at once, others in strips.
void multiply_add_16(float* c, const float* a, const float* b, int n) {
  if (n == 256) return multiply_add<64, 256, 16>(c, a, b);
  if (n == 128) return multiply_add<64, 128, 16>(c, a, b);
  if (n == 64) return multiply_add<64, 64, 16>(c, a, b);
  float strip_c[rows * 8], strip_b[16 * 8];
  for (int first = 0; first < n; first += 8) {
    for (int row = 0; row < rows; ++row) std::memcpy(strip_c + row * 8, c + row * n + first, 8 * sizeof(float));
    for (int row = 0; row < 16; ++row) std::memcpy(strip_b + row * 8, b + row * n + first, 8 * sizeof(float));
    multiply_add<64, 8, 16>(strip_c, a, strip_b);
    for (int row = 0; row < rows; ++row) std::memcpy(c + row * n + first, strip_c + row * 8, 8 * sizeof(float));
  }
}

// c += a b^T; a has 64 rows and b n rows of `k` (8, 16 or 32) elements.
void multiply_add_rows(float* c, const std::vector<float>& a, const std::vector<float>& b, int n) {
  const int k = int(a.size()) / rows, depth = std::min(k, 16);
  static thread_local std::vector<float> left, right;  // for 16 steps of K; k = 8 is padded with zeros
  left.assign(rows * 16, 0.0f), right.assign(std::size_t(16) * n, 0.0f);
  for (int first = 0; first < k; first += depth) {
    for (int row = 0; row < rows; ++row) std::memcpy(&left[row * 16], &a[row * k + first], depth * sizeof(float));
    for (int column = 0; column < n; ++column) {
      for (int inner = 0; inner < depth; ++inner) right[inner * n + column] = b[column * k + first + inner];
    }
    multiply_add_16(c, left.data(), right.data(), n);
  }
  mark_computed(c, rows * n);
}

// The same for bytes, with int32 accumulators that wrap; `c` holds their bits.
template <class Byte> void multiply_add_bytes(float* c, const std::uint8_t* a, const std::uint8_t* b, int n) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < n; ++column) {
      std::uint32_t sum;
      std::memcpy(&sum, c + row * n + column, sizeof sum);
      for (int i = 0; i < k_bytes; ++i) {
        sum += std::uint32_t(int(Byte(a[row * k_bytes + i])) * int(Byte(b[column * k_bytes + i])));
      }
      std::memcpy(c + row * n + column, &sum, sizeof sum);
    }
  }
}

}  // namespace

// Returns true in the last of the 128 threads; the others return after it has executed the operation.
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

void Warpgroup::issue(Worker& worker, const WgmmaOperation& operation, std::uint8_t* accumulators) {
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
                  [&] { return std::string("no wgmma.fence precedes the first wgmma of the group, at {0}"); });
  }
  check_operands(worker, operation);  // operands must be valid at the issue ...
  hold(operation);
  in_flight_.push_back(operation);
  if (worker.options.landing == TL_ENGINE_EARLY) execute(worker, in_flight_.back());
  uncommitted_++;
}

void Warpgroup::check_operands(Worker& worker, const WgmmaOperation& operation) const {
  if (!worker.options.check) return;
  const auto common = common_knowledge(worker), fence = common_fence(worker);
  if (operation.a_registers) {
    check_registers(worker, operation);
  } else {
    check_shared(worker, operand_a(operation), operation.type, operation.site, common, fence);
  }
  check_shared(worker, operand_b(operation), operation.type, operation.site, common, fence);
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
  held_.push_back({operation.accumulators, operation.n, 1, operation.half_sums != 0,
                   std::vector<float>(rows * operation.n), operation.site});
  HeldAccumulators& held = held_.back();
  for_each_register(held.n, [&](int thread, int i, int index) {
    std::uint8_t* const place = held.place(thread, i);
    if (held.half) {
      std::uint16_t bits;
      std::memcpy(&bits, place, sizeof bits);
      held.values[index] = tl::host::half_to_float(bits);
    } else {
      std::memcpy(&held.values[index], place, sizeof(float));
    }
    std::memcpy(place, &poison, held.bytes());
  });
}

void Warpgroup::execute(Worker& worker, WgmmaOperation& operation) {
  operation.executed = true;
  Words a(rows * k_words), b(std::size_t(operation.n) * k_words);
  if (operation.a_registers) {
    a = operation.a_values;
  } else {
    gather(worker, operand_a(operation), a);
  }
  gather(worker, operand_b(operation), b);
  const auto held = std::find_if(held_.begin(), held_.end(), [&](const HeldAccumulators& candidate) {
    return candidate.registers[0] == operation.accumulators[0];
  });
  if (!operation.accumulate) std::fill(held->values.begin(), held->values.end(), 0.0f);
  float* const sums = held->values.data();
  switch (operation.type) {
    case TL_ENGINE_INT8:
      return multiply_add_bytes<std::int8_t>(sums, bytes_of(a), bytes_of(b), operation.n);
    case TL_ENGINE_UINT8:
      return multiply_add_bytes<std::uint8_t>(sums, bytes_of(a), bytes_of(b), operation.n);
    default:
      multiply_add_rows(sums, widened(a, operation.type), widened(b, operation.type), operation.n);
  }
  if (held->half) {  // half accumulators are rounded by each instruction
    for (float& sum : held->values) sum = tl::host::half_to_float(tl::host::float_to_half(sum));
  }
}

void Warpgroup::give_back(Worker& worker, HeldAccumulators& held) {
  bool touched = false;
  for_each_register(held.n, [&](int thread, int i, int index) {
    std::uint8_t* const place = held.place(thread, i);
    touched |= std::memcmp(place, &poison, held.bytes()) != 0;
    const std::uint16_t bits = held.half ? tl::host::float_to_half(held.values[index]) : 0;
    std::memcpy(place, held.half ? static_cast<const void*>(&bits) : &held.values[index], held.bytes());
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
      check_operands(worker, operation);  // ... and unchanged until completion
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
                [&] { return std::string("the block exits while the wgmma issued at {0} is in flight"); });
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

namespace {
Warpgroup& own_warpgroup(Worker& worker) { return worker.warpgroups[worker.current->linear / threads_per_warpgroup]; }
}  // namespace

extern "C" {

void tl_engine_wgmma(void* accumulators, const tl_engine_wgmma_operation* operation) {
  Worker& worker = current_worker();
  if (operation->accumulate) {
    const bool is_integer = operation->type == TL_ENGINE_INT8 || operation->type == TL_ENGINE_UINT8;
    const Element element = operation->half_sums ? Element::half : is_integer ? Element::int32 : Element::float32;
    check_accumulators(worker, accumulators, operation->n / 2, element, TILE2CU_CALL_SITE);
  }
  own_warpgroup(worker).issue(worker, WgmmaOperation{*operation, TILE2CU_CALL_SITE},
                              static_cast<std::uint8_t*>(accumulators));
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
