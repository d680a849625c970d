// ComputeThread calculates while its owner communicates:
//
//   compute_thread.Run(calculation, [&] { communicate; });
//
// The thread starts with the first calculation. Thread-compatible.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace tutti::comm {

class ComputeThread {
 public:
  ComputeThread() = default;
  ~ComputeThread();

  // Runs `beside` on the thread, `here` on the caller's. When it returns, or throws, both are over,
  // and have happened before what follows. Throws what one of them has thrown (`here` first), and
  // std::system_error, having begun neither, if there is no thread to be had.
  void Run(std::function<void()> beside, const std::function<void()>& here);

 private:
  void Begin(std::function<void()> work);
  std::exception_ptr Finish();
  void Serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // empty: done
  std::exception_ptr fault_;    // of the work that is done
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tutti::comm
