// MembershipState is the state of a group's membership: who is in it, how far each rank is, who has
// left and who is lost. A pure state machine: time is a parameter, and what is to be said to others
// is returned.
//
// Rank 0 is the judge. Every rank keeps the connection of the rendezvous to it and says "I live"
// over it, and whoever misses a rank (its data connection closed, or a deadline ran out) reports it
// to rank 0 and waits for the judgement. The judge writes the FIRST loss that it learns of and
// tells it to all; a rank that fails as a consequence is heard of later, since it waits for the
// judgement before it closes anything. So every survivor names the same rank, the one that began
// it. When rank 0 itself is lost all see it: it is the star's centre.
//
// Silence, not slowness, makes a loss: a rank that computes for minutes keeps on beating, from a
// thread of its own. A stopped process and an unreachable host do not. Sockets alone would not do:
// a child that a killed rank has forked holds them open.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

class MembershipState {
 public:
  // Points in time are durations since any one moment.
  MembershipState(int rank, int size, absl::Duration peer_timeout, absl::Duration now);

  // Note what this rank's caller does: a collective, or an exchange with `peer` alone, which is not
  // counted since the other ranks do not take part. A peer that has left in good order is missed
  // at once if it is not `connected`, else when it is reported: what it sent before can be read.
  void Begin() { ++progress_[rank_].begun; }
  void BeginPair(int peer, bool connected) { pair_ = Pair{peer, !connected}; }
  void Miss();  // the peer of the exchange
  void End();
  void ReportFailure(int suspect, Reason reason, absl::Duration now);
  // Declares a loss that this rank declares by itself, because the judge cannot.
  void Declare(int lost, absl::StatusCode code, absl::string_view text);
  // Rank 0: asks how far the others are, before it leaves. Others: tells rank 0 that it leaves.
  void AnnounceLeaving(absl::Duration now);
  // Returns whether it may go: rank 0 when the others need nothing more of it, others when it is
  // confirmed.
  bool MayLeave() const;
  void Leave();  // rank 0's last word
  // Leaves to re-form the group, at once.
  void LeaveToReform();
  void SetWaiting(int newcomers) { progress_[rank_].waiting = newcomers; }

  // Takes what comes in.
  void OnMessage(int from, const Message& message, absl::Duration now);
  void OnClosed(int from);
  void OnTick(absl::Duration now);
  // Returns when OnTick wants to be called next at the latest.
  absl::Duration NextTick() const;

  // Returns what goes out, in order.
  std::vector<std::pair<int, Message>> TakeOutgoing() { return std::exchange(outgoing_, {}); }

  // Returns the departure that ends the collective in progress, or the next one if there is none.
  std::optional<Departure> Ending() const;
  bool Busy() const { return pair_.has_value() || InCollective(); }
  uint64_t begun() const { return progress_[rank_].begun; }
  bool gone(int rank) const { return gone_[rank]; }
  std::vector<int> Lost() const;  // all that did not leave in good order
  int waiting() const { return progress_[0].waiting; }
  absl::Duration heard(int rank) const { return heard_[rank]; }

 private:
  struct Inquiry {
    int reporter;
    int suspect;
    bool pair;
    absl::Duration until;
    std::set<int> silent;
  };
  struct Pair {
    int peer;
    bool missed;
  };

  bool judge() const { return rank_ == 0; }
  bool InCollective() const { return progress_[rank_].begun > progress_[rank_].finished; }
  bool AnyLost() const;
  void Record(Departure departure);
  void Say(int to, Message message) { outgoing_.emplace_back(to, std::move(message)); }
  void SayToAll(const Message& message);  // to rank 0, or from it to every rank
  void OnProgress(int from, const Progress& progress, absl::Duration now);
  void Inquire(int reporter, int suspect, Reason reason, absl::Duration now);
  void Conclude();
  void OnMessageToJudge(int from, const Message& message, absl::Duration now);
  void OnMessageFromJudge(const Message& message);
  void ForgiveOwnPause(absl::Duration now);

  const int rank_;
  const int size_;
  const absl::Duration peer_timeout_;
  const absl::Duration beat_;
  std::vector<Progress> progress_;
  std::vector<absl::Duration> heard_;
  std::vector<bool> gone_;  // has left or was lost: nothing more is expected from it
  std::vector<Departure> departures_;
  std::optional<Pair> pair_;
  std::optional<Inquiry> inquiry_;
  std::optional<uint64_t> queried_;  // rank 0 wants to know when this many are finished
  bool confirmed_ = false;
  absl::Duration next_beat_;
  absl::Duration last_tick_;
  std::vector<std::pair<int, Message>> outgoing_;
};

}  // namespace tutti::comm
