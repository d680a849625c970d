// Membership keeps a rank's MembershipState true: a thread of its own beats, listens to the other
// ranks over the connections of the rendezvous, and wakes this rank's caller when the group has
// ended for it.
//
// It carries payloads for a layer above too (control.h), on the same connections and with the same
// thread; they are handed over without the mutex, so that their listener may answer at once.
//
// Thread-safe. The caller's thread brackets every collective with Begin and End. The mutex is the
// standard library's and not Abseil's, because ThreadSanitizer does not see into Debian's build of
// Abseil and this is a room that must be run under it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/control.h"
#include "runtime/comm/rendezvous/membership/membership_state.h"
#include "runtime/comm/rendezvous/membership/shared_notifier.h"
#include "runtime/comm/rendezvous/wire/buffered_connection.h"

namespace tutti::comm {

class Membership final : public Control {
 public:
  // `controls[r]` is the connection to rank r: all of them on rank 0, the one to rank 0 elsewhere.
  Membership(int rank, int size, std::vector<base::UniqueFd> controls, absl::Duration peer_timeout);
  // Gives notice that this rank leaves. Rank 0 first lets the others finish what it has finished
  // (at most peer_timeout).
  ~Membership() override;

  // Starts the collective `what` ("all-reduce"). The error that has ended the group, if one has.
  absl::Status Begin(const char* what);
  // Does the same for an exchange with one other rank (see MembershipState).
  absl::Status BeginPair(const char* what, int peer, bool connected);
  void End();

  // Returns OK, or the error that ends the collective in progress; CheckWithin waits for one for a
  // while. `ended()` is the same without a lock; `ended_fd()` becomes readable with it, and after
  // it the notifier that was given last is notified (null: none is from now on).
  absl::Status CheckWithin(absl::Duration patience) override;
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  int ended_fd() const { return ended_fd_.get(); }
  void NotifyAtEnd(Notifier* notifier);

  // Notes that the caller has missed `suspect`. Waits for the judgement (about a quarter of
  // peer_timeout at most) and returns it: never OK, and not always about `suspect`.
  absl::Status ReportFailure(int suspect, Reason reason);

  // Re-forming (reform_agreement.h). LeaveToReform gives notice as one that will vote: first of
  // all, and only when it returns OK may this rank vote. `within_host[r]`: the end of the
  // connection between this rank and r counts there however it comes, so the notice has to lie
  // there before; FailedPrecondition names an r that has not taken it in within peer_timeout. May
  // be called again. Lost are the ranks that were judged lost. SeenToEnd[r] is how the connection
  // to rank r ended, kOpen unless r was in touch on it and did not leave before: whoever ended so
  // has not voted.
  absl::Status LeaveToReform(const std::vector<bool>& within_host);
  std::vector<int> Lost();
  std::vector<BufferedConnection::End> SeenToEnd();
  // Lets rank 0 tell the others, with its beats, how many newcomers wait.
  void ReportNewcomers(std::shared_ptr<const std::atomic<int>> waiting);
  int waiting();

  void Post(int to, std::string payload) override;
  void SetListener(Listener* listener) override;
  absl::Duration SilenceOf(int rank) override;
  absl::Duration peer_timeout() const override { return peer_timeout_; }

 private:
  struct Link;
  using Lock = std::unique_lock<std::mutex>;

  void Run();
  // Called, as all of these, with the mutex held.
  void Listen(Lock& lock);
  void ReadFrom(int from);
  void Flush();
  void Settle();
  void NoteEnd();
  void Deliver(Lock& lock);
  absl::Status Error(const Departure& departure) const;
  template <typename Condition>
  void Await(Lock& lock, absl::Duration patience, const Condition& condition);

  const int rank_;
  const absl::Duration peer_timeout_;
  base::UniqueFd ended_fd_;
  base::UniqueFd wake_fd_;
  std::atomic<bool> ended_ = false;

  std::mutex mutex_;  // guards all that follows, save the thread
  std::condition_variable changed_;
  MembershipState state_;
  std::vector<std::unique_ptr<Link>> links_;
  const char* what_ = "the first collective";
  Notifier* notifier_ = nullptr;
  bool stopping_ = false;
  bool parted_ = false;
  std::shared_ptr<const std::atomic<int>> newcomers_;
  std::vector<std::pair<int, std::string>> payloads_;  // came and not yet delivered
  size_t payloads_before_end_ = 0;                     // the first of them
  std::atomic<bool> listening_ = false;

  std::mutex
      listener_mutex_;  // held while the listener is called, never with mutex_ held before it
  Listener* listener_ = nullptr;
  std::atomic<bool> told_of_end_ = false;
  std::thread thread_;
};

}  // namespace tutti::comm
