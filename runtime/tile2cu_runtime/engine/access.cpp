// Explicit loads, stores and atomics, queries of the current thread, and assertions.
#include <cstdlib>
#include <cstring>

#include <tl/host/numeric.h>

#include "worker.h"

namespace tile2cu::engine {
namespace {

void observe(const void* address, int bytes, bool is_write, Site site) {
  Worker& worker = current_worker();
  if (!worker.observes()) return;
  if (TILE2CU_UNLIKELY(reinterpret_cast<std::uintptr_t>(address) % std::uintptr_t(bytes))) {
    worker.report("misaligned vector access", {site}, [&] {
      return text("a %s of %d bytes by %s at {0} is not aligned to %d bytes", is_write ? "store" : "load", bytes,
                  worker.describe_current().c_str(), bytes);
    });
  }
  worker.access(address, std::uint32_t(bytes), is_write, site);
}

void observe_atomic(const void* address, std::uint32_t bytes, Site site) {
  Worker& worker = current_worker();
  if (worker.observes()) worker.access(address, bytes, true, site, true);
}

void index_outside(std::int64_t index, int extent, Site site) {
  Worker& worker = current_worker();
  if (!worker.options.check) return;
  worker.report("index out of bounds", {site}, [&] {
    return text("%s of block %u uses the index %lld of a dimension with %d elements at {0}",
                worker.describe_current().c_str(), worker.block().number, static_cast<long long>(index), extent);
  });
  worker.abandon();
}

// What g++ passes to the handler of -fsanitize=bounds. `info` of an integer type: log2 of its bits, times two, plus one
// where it is signed. [GCC, libsanitizer/ubsan/ubsan_handlers.h, ubsan_value.h]
struct TypeDescriptor {
  std::uint16_t kind, info;
  char name[1];  // as 'int [4]'
};
struct OutOfBounds {
  const char* file;
  std::uint32_t line, column;
  const TypeDescriptor *array, *index;
};

// Blocks may run on several OS threads, so these are real atomics. Return the previous bits.
template <class Bits, class Update> Bits exchange_updated(void* address, Update&& update) {
  auto* word = static_cast<Bits*>(address);
  Bits old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, update(old), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void* tl_engine_shared_memory() {
  Worker& worker = current_worker();
  return worker.arena + worker.own_memory();
}

std::uint32_t tl_engine_shared_address(const void* p) {
  return std::uint32_t(current_worker().own_offset(p)) + Worker::shared_window_base;
}

void tl_engine_yield() { current_worker().yield_current(); }

void tl_engine_load(void* value, const void* from, int bytes) {
  observe(from, bytes, false, TILE2CU_CALL_SITE);
  std::memcpy(value, from, std::size_t(bytes));
}

void tl_engine_store(void* to, const void* value, int bytes) {
  observe(to, bytes, true, TILE2CU_CALL_SITE);
  std::memcpy(to, value, std::size_t(bytes));
}

void tl_engine_replace_bits(std::uint8_t* byte, std::uint8_t mask, std::uint8_t bits) {
  Worker& worker = current_worker();
  if (worker.observes()) worker.access(byte, 1, true, TILE2CU_CALL_SITE, true, true);
  std::uint8_t seen = __atomic_load_n(byte, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(byte, &seen, std::uint8_t((seen & ~mask) | (bits & mask)), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

float tl_engine_atomic_add_float(float* to, float value) {
  observe_atomic(to, sizeof *to, TILE2CU_CALL_SITE);
  const auto old = exchange_updated<std::uint32_t>(to, [&](std::uint32_t bits) {
    return tl::host::bit_cast<std::uint32_t>(tl::host::bit_cast<float>(bits) + value);
  });
  return tl::host::bit_cast<float>(old);
}

std::int32_t tl_engine_atomic_add_int(std::int32_t* to, std::int32_t value) {
  observe_atomic(to, sizeof *to, TILE2CU_CALL_SITE);
  return __atomic_fetch_add(to, value, __ATOMIC_ACQ_REL);
}

std::uint16_t tl_engine_atomic_add_16bit(void* to, std::uint16_t bits, int type) {
  observe_atomic(to, sizeof bits, TILE2CU_CALL_SITE);
  return exchange_updated<std::uint16_t>(to, [&](std::uint16_t old) {
    if (type == TL_ENGINE_BFLOAT16) return (tl::bfloat16::from_bits(old) + tl::bfloat16::from_bits(bits)).bits;
    return (tl::half::from_bits(old) + tl::half::from_bits(bits)).bits;
  });
}

void tl_engine_assertion_failed(const char* message) {
  Worker& worker = current_worker();
  worker.report("assertion failed", {TILE2CU_CALL_SITE}, [&] {
    return text("%s of block %u at {0}: %s", worker.describe_current().c_str(), worker.block().number, message);
  });
  worker.abandon();
}

void tl_engine_index_outside(int index, int extent) { index_outside(index, extent, TILE2CU_CALL_SITE); }

// Called by code that g++ compiles with -fsanitize=bounds, for arrays in registers: T.alloc_local.
void __ubsan_handle_out_of_bounds(const OutOfBounds* where, std::uintptr_t index) {
  const char* extents = std::strchr(where->array->name, '[');
  const bool is_signed = where->index->info & 1;
  const int bits = 1 << (where->index->info >> 1);
  const int shift = 64 - (bits < 64 ? bits : 64);
  const std::uint64_t word = std::uint64_t(index) << shift;
  const std::int64_t value = is_signed ? std::int64_t(word) >> shift : std::int64_t(word >> shift);
  index_outside(value, extents ? std::atoi(extents + 1) : 0, TILE2CU_CALL_SITE);
}

}  // extern "C"
