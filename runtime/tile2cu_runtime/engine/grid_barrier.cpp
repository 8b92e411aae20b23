#include "grid_barrier.h"

#include <algorithm>

#include "symbolize.h"
#include "worker.h"

namespace tile2cu::engine {

void GridBarrier::wait_for_turn(std::unique_lock<std::mutex>& lock, std::uint32_t block) {
  turns_.wait(lock, [&] { return given_up_ || turn_ == block; });
}

void GridBarrier::begin(std::uint32_t block) {
  std::unique_lock<std::mutex> lock(mutex_);
  wait_for_turn(lock, block);
}

void GridBarrier::arrive(Worker& worker, Site site) {
  bool given_up;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    states_[worker.block_number] = State::arrived;
    site_ = site;
    pass_on(worker);
    wait_for_turn(lock, worker.block_number);
    given_up = given_up_;
  }
  if (given_up) worker.abandon();
}

void GridBarrier::end(Worker& worker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  states_[worker.block_number] = State::ended;
  if (worker.launch.abandoned) given_up_ = true;
  pass_on(worker);
}

// Selects the next block that neither waits nor has exited; if there is none, all waiting blocks continue.
void GridBarrier::pass_on(Worker& worker) {
  const auto next = std::find(states_.begin(), states_.end(), State::ready);
  if (next == states_.end()) {
    release_all(worker);
  } else {
    turn_ = std::uint32_t(next - states_.begin());
  }
  turns_.notify_all();
}

void GridBarrier::release_all(Worker& worker) {
  const auto waiting = std::count(states_.begin(), states_.end(), State::arrived);
  if (waiting == 0 || given_up_) return;
  if (std::size_t(waiting) < states_.size()) {
    const auto gone = std::find(states_.begin(), states_.end(), State::ended) - states_.begin();
    worker.report("deadlock", {site_}, [&] {
      return text("%d blocks wait at the grid barrier at {0}, but block %d has exited", int(waiting), int(gone));
    });
    worker.launch.abandoned = given_up_ = true;
    return;
  }
  // Writes before the barrier are visible to all blocks after it, as between launches.
  if (worker.options.check) GlobalMemory::instance().begin_launch();
  std::fill(states_.begin(), states_.end(), State::ready);
  turn_ = 0;
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" void tl_engine_sync_grid() {
  Worker& worker = current_worker();
  if (worker.current->linear != 0) return;
  if (!worker.launch.grid_barrier) {
    worker.report("launch rejected", {TILE2CU_CALL_SITE},
                  [] { return text("grid barrier at {0} in a launch that is not cooperative"); });
    worker.abandon();
  }
  worker.launch.grid_barrier->arrive(worker, TILE2CU_CALL_SITE);
}
