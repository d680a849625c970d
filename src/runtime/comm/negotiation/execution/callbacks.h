// Calls what users gave to be called, one after the other, on a thread of its own: however long
// they take, no thread that has to answer others waits for them (a callback may want a lock that a
// long computation holds, such as Python's; a rank whose heartbeat waits is taken for lost).
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tutti::comm {

class Callbacks {
 public:
  Callbacks();
  ~Callbacks() { Close(); }

  // Adds a callback. They are called in order. Never waits.
  void Add(std::function<void()> callback);
  // Returns when all that were added have been called. No more may be added.
  void Close();

 private:
  void Serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tutti::comm
