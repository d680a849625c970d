// ReformAgreement is one rank's part in the agreement on what follows a generation of a group: who
// is in the next one, or that there is none. A pure state machine: time is a parameter;
// rejoin_listener.h and reform.cc carry what it says.
//
// Every survivor goes to a leader, the lowest member that it does not know to be lost, with a
// Promise that says what it has agreed to before. A leader that has heard enough members proposes a
// table; who follows it accepts; when enough have accepted, that table IS the next generation.
//
//   survivor                           leader k
//     Promise(agreed before, at whom) ---->      waits for all that may still come
//                                  <-------      Propose(table)
//     Accepted                     ------->      enough: decided
//                                  <-------      Decided(table)
//
// INVARIANT. At most one table is ever decided for a generation. It is single-decree Paxos
// (Lamport, "The Part-Time Parliament", 1998) whose ballots are the leaders' ranks:
//  1. A rank turns to leaders in ascending order only. Having come to k it answers no leader j < k
//     again: to come to k is the promise.
//  2. Any two sets that have a quorum have a rank in common. Let W be the members that nobody has
//  seen
//     to end. Who was seen to end has voted for nobody and never will, so every such set lies in W
//     and is more than half of W, or half of it with W's lowest: the voters that one rank counts
//     contain W, and their lowest lies in its set and so is W's lowest.
//  3. Let j be the first leader whose table T was accepted by enough. A later leader k has heard
//     enough, hence one that accepted T; that rank did so before it came to k (1), so its Promise
//     says it. A leader proposes what was accepted at the highest leader before it, and by
//     induction all leaders between j and k proposed T. So k proposes T.
// The dead do not come back under their number, so nothing needs to be kept on disk.
//
// It ends: every leader either decides, or is given up by its followers (closed or silent), or
// fails at the end of its patience and says so; and the leaders are finitely many.
#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "runtime/comm/elastic.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {

// Returns whether `present` may go on for a generation of `size`, of whom `ended` were seen to end.
bool HasQuorum(int size, const std::set<int>& ended, const std::set<int>& present);

class ReformAgreement {
 public:
  ReformAgreement(int rank, Table generation);

  // Begins, or begins again after a failure. `self` is this rank as it will be in the table.
  // `name`: of the next generation, should this rank come to name it. `agreeing`: how long
  // followers have to accept.
  void Start(const ReformOptions& terms, Hello self, std::string name, absl::Duration agreeing,
             absl::Duration now);

  // Note what this rank knows of the others.
  void SawEnd(int rank) { ended_.insert(rank); }              // proof that it has voted for nobody
  void NotExpected(int rank) { not_expected_.insert(rank); }  // no proof, but not worth waiting for

  // Returns whom this rank follows now: itself when it leads. NotExpected ranks are passed over for
  // good.
  int Leader();

  // Makes the promise of a follower to Leader().
  Promise MakePromise() const;
  void Accept(Table proposal);  // before Accepted is said
  void GiveUp() { lowest_leader_ = leader_ + 1; }

  // Takes a promise as the leader. Newcomers are known by the number of their connection.
  void OnPromise(const Promise& promise);
  void OnGone(int rank);
  void OnJoinRequest(int joiner, Hello newcomer) { newcomers_[joiner] = std::move(newcomer); }
  void OnNewcomerGone(int joiner) { newcomers_.erase(joiner); }
  void OnAccepted(int rank) { accepted_by_.insert(rank); }
  // Lists the members that could still come, whom it pays to ask.
  std::vector<int> Awaited() const;

  struct Wait {
    absl::Duration until;
  };
  struct Proposal {
    Table table;
  };
  struct Decision {
    Table table;
  };
  // What the leader is to do now: wait, send its proposal to all, send the decision to all, or give
  // up with an error.
  using NextAction = std::variant<Wait, Proposal, Decision, absl::Status>;
  // A Proposal is returned once.
  NextAction Next(absl::Duration now);

 private:
  std::set<int> Present() const;
  Table Compose() const;
  NextAction Gather(absl::Duration now);
  NextAction Agree(absl::Duration now);
  absl::Status TooFewVotes() const;
  absl::Status TooFewRanks() const;

  const int rank_;
  const Table generation_;
  ReformOptions terms_;
  Hello self_;
  std::string name_;
  absl::Duration agreeing_, gather_until_, newcomers_until_, agree_until_;
  std::set<int> ended_, not_expected_;
  int leader_ = -1;
  int lowest_leader_ = 0;
  int agreed_at_ = -1;  // the highest leader whose proposal this rank accepted, and that proposal
  Table agreed_;
  std::map<int, Promise> promises_;
  std::map<int, Hello> newcomers_;
  bool proposed_ = false;
  std::set<int> accepted_by_;
};

}  // namespace tutti::comm
