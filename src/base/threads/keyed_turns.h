// KeyedTurns lets those who change the same thing do so one after another, and those who change
// different things at the same time, also where a change waits for a disk. Thread-safe.
//
//   const base::KeyedTurns::Turn turn(turns, "node n1");
//   …  // nobody else has a turn of "node n1" meanwhile
#pragma once

#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tutti::base {

class KeyedTurns {
 public:
  // A turn, until it goes; waits for the one before it as long as that lasts. Not to be taken twice
  // by one thread.
  class Turn {
   public:
    Turn(KeyedTurns& turns, std::string key) : turns_(turns), key_(std::move(key)) {
      turns_.Begin(key_);
    }
    ~Turn() { turns_.End(key_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    KeyedTurns& turns_;
    const std::string key_;
  };

 private:
  void Begin(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::set<std::string> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::base
