#include "runtime/comm/collective/compression/compute_thread.h"

#include <utility>

namespace tutti::comm {
namespace {

// What it throws, if anything.
std::exception_ptr FaultOf(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

ComputeThread::~ComputeThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ComputeThread::Run(std::function<void()> beside, const std::function<void()>& here) {
  Begin(std::move(beside));
  const std::exception_ptr own = FaultOf(here);
  const std::exception_ptr other = Finish();  // it uses what the caller has
  if (own != nullptr) std::rethrow_exception(own);
  if (other != nullptr) std::rethrow_exception(other);
}

void ComputeThread::Begin(std::function<void()> work) {
  if (!thread_.joinable()) thread_ = std::thread([this] { Serve(); });
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

std::exception_ptr ComputeThread::Finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return work_ == nullptr; });
  return std::exchange(fault_, nullptr);
}

void ComputeThread::Serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return work_ != nullptr || closing_; });
    if (work_ == nullptr) return;
    lock.unlock();
    std::exception_ptr fault = FaultOf(work_);
    lock.lock();
    fault_ = std::move(fault);
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace tutti::comm
