// A thread that calculates while its owner communicates:
//
//   calculator.Begin(work);  communicate;  calculator.Finish();
//
// The thread starts with the first work. Finish must follow every Begin before the next one; it
// returns when the work is done and has happened before what follows. Thread-compatible.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tutti::comm {

class Calculator {
 public:
  Calculator() = default;
  ~Calculator();

  void Begin(std::function<void()> work);
  void Finish();

 private:
  void Serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  // empty: done
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tutti::comm
