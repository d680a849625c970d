// Control carries payloads for a layer above, beside the collectives: between any rank and rank 0,
// in order, over the connections of the rendezvous. Membership is one; it carries payloads beside
// its own messages, so that whoever hears from rank 0 hears of a lost rank at the same place.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tutti::comm {

class Control {
 public:
  // Called by a thread of the control, one call at a time; may call Post.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnPayload(int from, const std::string& payload) = 0;
    // Called once: no further collective can succeed. The error names the rank (LostRank).
    virtual void OnEnded(const absl::Status& error) = 0;
  };

  virtual ~Control() = default;

  // Thread-safe, never waits. `to` is 0, or any other rank on rank 0; at most kLongestPayload
  // bytes. To a rank that is gone it is lost.
  virtual void Post(int to, std::string payload) = 0;

  // Sets who hears from now on, also what came while nobody listened. When it returns, the former
  // listener is not being called any more. Not to be called by a listener.
  virtual void SetListener(Listener* listener) = 0;

  // Returns how long nothing has been heard of `rank` (on other ranks than 0: of rank 0 alone).
  // Every rank says something each peer_timeout / 8.
  virtual absl::Duration SilenceOf(int rank) = 0;
  virtual absl::Duration peer_timeout() const = 0;

  // Returns OK, or the error that ends the collective in progress or the next one; waits for one
  // for a while.
  virtual absl::Status CheckWithin(absl::Duration patience) = 0;
  absl::Status Check() { return CheckWithin(absl::ZeroDuration()); }
};

}  // namespace tutti::comm
