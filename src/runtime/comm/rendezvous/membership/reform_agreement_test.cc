// The agreement by hand, and against random schedules of deaths, stops and lost connections.
#include "runtime/comm/rendezvous/membership/reform_agreement.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>

#include "absl/strings/str_cat.h"

namespace tutti::comm {
namespace {

constexpr absl::Duration kAgreeing = absl::Seconds(5);

absl::Duration AtSecond(double seconds) { return absl::Seconds(seconds); }

Hello HelloOf(int rank, int size) {
  Hello hello;
  hello.rank = rank;
  hello.size = size;
  hello.local_name = absl::StrCat("process-", rank);
  return hello;
}

Table TableOf(int size) {
  Table table{"first", {}, 0};
  for (int rank = 0; rank < size; ++rank) table.ranks.push_back(HelloOf(rank, size));
  return table;
}

Promise PromiseOf(int rank, int size) {
  Promise promise;
  promise.group = "first";
  promise.self = HelloOf(rank, size);
  return promise;
}

ReformAgreement Leading(int rank, int size, const ReformOptions& terms = {}) {
  ReformAgreement agreement(rank, TableOf(size));
  agreement.Start(terms, HelloOf(rank, size), absl::StrCat("by ", rank), kAgreeing, AtSecond(0));
  for (int lower = 0; lower < rank; ++lower) agreement.NotExpected(lower);
  EXPECT_EQ(agreement.Leader(), rank);
  return agreement;
}

std::vector<std::string> Processes(const Table& table) {
  std::vector<std::string> names;
  for (size_t i = 0; i < table.ranks.size(); ++i) {
    EXPECT_EQ(table.ranks[i].rank, static_cast<int>(i));
    EXPECT_EQ(table.ranks[i].size, static_cast<int>(table.ranks.size()));
    names.push_back(table.ranks[i].local_name);
  }
  return names;
}

template <typename Kind>
bool Is(const ReformAgreement::NextAction& action) {
  return std::holds_alternative<Kind>(action);
}

TEST(HasQuorumTest, MoreThanHalfOrHalfWithTheLowest) {
  EXPECT_TRUE(HasQuorum(3, {}, {1, 2}));
  EXPECT_FALSE(HasQuorum(3, {}, {0}));
  EXPECT_TRUE(HasQuorum(4, {}, {0, 3}));
  EXPECT_FALSE(HasQuorum(4, {}, {1, 2}));
  EXPECT_TRUE(HasQuorum(2, {}, {0}));
  EXPECT_FALSE(HasQuorum(2, {}, {1}));
}

TEST(HasQuorumTest, ThoseThatWereSeenToEndDoNotCount) {
  EXPECT_TRUE(HasQuorum(2, {0}, {1}));
  EXPECT_TRUE(HasQuorum(5, {1, 2, 3, 4}, {0}));
  EXPECT_TRUE(HasQuorum(4, {0, 3}, {1})) << "half of two, with the lowest of them";
  EXPECT_FALSE(HasQuorum(4, {0, 3}, {2}));
}

TEST(HasQuorumTest, AnyTwoSuchSetsHaveARankInCommonWhateverTheirViewsOfTheDead) {
  for (int size = 1; size <= 6; ++size) {
    const auto set_of = [&](unsigned mask) {
      std::set<int> set;
      for (int rank = 0; rank < size; ++rank) {
        if (mask >> rank & 1) set.insert(rank);
      }
      return set;
    };
    const unsigned all = 1u << size;
    for (unsigned dead = 0; dead + 1 < all; ++dead) {
      // Every view is a part of the truth, and who is dead has not voted.
      std::vector<unsigned> enough;
      for (unsigned present = 1; present < all; ++present) {
        if ((present & dead) != 0) continue;
        for (unsigned seen = 0; seen < all; ++seen) {
          if ((seen & ~dead) != 0 || !HasQuorum(size, set_of(seen), set_of(present))) continue;
          enough.push_back(present);
          break;
        }
      }
      for (const unsigned a : enough) {
        for (const unsigned b : enough) ASSERT_NE(a & b, 0u) << size << " " << dead;
      }
    }
  }
}

TEST(ReformAgreementTest, SurvivorsKeepTheirOrderAndNewcomersFollow) {
  ReformAgreement zero = Leading(0, 4);
  zero.NotExpected(1);
  zero.OnJoinRequest(17, HelloOf(90, 1));
  zero.OnJoinRequest(18, HelloOf(91, 1));
  zero.OnPromise(PromiseOf(3, 4));
  EXPECT_TRUE(Is<ReformAgreement::Wait>(zero.Next(AtSecond(1))));
  zero.OnPromise(PromiseOf(2, 4));
  const auto action = zero.Next(AtSecond(1));
  ASSERT_TRUE(Is<ReformAgreement::Proposal>(action));
  const Table table = std::get<ReformAgreement::Proposal>(action).table;
  EXPECT_EQ(Processes(table), (std::vector<std::string>{"process-0", "process-2", "process-3",
                                                        "process-90", "process-91"}));
  EXPECT_EQ(table.generation, 1);
  EXPECT_TRUE(Is<ReformAgreement::Wait>(zero.Next(AtSecond(1))));
  zero.OnAccepted(2);
  EXPECT_TRUE(Is<ReformAgreement::Decision>(zero.Next(AtSecond(1))));
}

TEST(ReformAgreementTest, NewcomersBeyondTheMostWaitOnAndSurvivorsNever) {
  ReformAgreement zero = Leading(0, 3, {.max_ranks = 2});
  zero.OnJoinRequest(17, HelloOf(90, 1));
  for (const int rank : {1, 2}) zero.OnPromise(PromiseOf(rank, 3));
  const auto action = zero.Next(AtSecond(1));
  ASSERT_TRUE(Is<ReformAgreement::Proposal>(action));
  EXPECT_EQ(std::get<ReformAgreement::Proposal>(action).table.ranks.size(), 3u);
}

TEST(ReformAgreementTest, ItWaitsForNewcomersAsLongAsItWasToldAndThenAsksForTheLeast) {
  const ReformOptions terms{.min_ranks = 3, .max_ranks = 3, .newcomer_timeout = absl::Seconds(10)};
  for (const bool somebody_comes : {true, false}) {
    ReformAgreement zero = Leading(0, 2, terms);
    zero.OnPromise(PromiseOf(1, 2));
    EXPECT_TRUE(Is<ReformAgreement::Wait>(zero.Next(AtSecond(9))));
    if (somebody_comes) zero.OnJoinRequest(5, HelloOf(90, 1));
    const auto action = zero.Next(AtSecond(somebody_comes ? 9 : 11));
    if (somebody_comes) {
      EXPECT_TRUE(Is<ReformAgreement::Proposal>(action));
    } else {
      ASSERT_TRUE(Is<absl::Status>(action));
      const auto& status = std::get<absl::Status>(action);
      EXPECT_TRUE(absl::IsFailedPrecondition(status));
      EXPECT_EQ(status.message(),
                "the group cannot go on: 2 of 2 ranks are left and 0 came in within 10s, but at "
                "least 3 are asked for");
    }
  }
}

TEST(ReformAgreementTest, AMemberThatMayStillComeIsWaitedForUntilTheEndOfThePatience) {
  ReformAgreement zero = Leading(0, 3, {.member_timeout = absl::Seconds(20)});
  zero.OnPromise(PromiseOf(1, 3));
  EXPECT_EQ(zero.Awaited(), std::vector<int>{2});
  EXPECT_TRUE(Is<ReformAgreement::Wait>(zero.Next(AtSecond(19))));
  EXPECT_TRUE(Is<ReformAgreement::Proposal>(zero.Next(AtSecond(20))));
}

TEST(ReformAgreementTest, AMinoritySaysWhoCouldHaveGoneOnWithoutIt) {
  ReformAgreement two = Leading(2, 3, {.member_timeout = absl::Seconds(20)});
  EXPECT_TRUE(Is<ReformAgreement::Wait>(two.Next(AtSecond(19))));
  const auto action = two.Next(AtSecond(20));
  ASSERT_TRUE(Is<absl::Status>(action));
  const auto& status = std::get<absl::Status>(action);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("ranks 0, 1 of 3 did not come within 20s"),
            absl::string_view::npos);
}

TEST(ReformAgreementTest, AProposalThatAFormerLeaderMayHaveDecidedIsProposedAgain) {
  // 0 proposed to 1 and died; 1 leads now and must not compose anything else.
  ReformAgreement zero = Leading(0, 3);
  zero.OnJoinRequest(17, HelloOf(90, 1));
  for (const int rank : {1, 2}) zero.OnPromise(PromiseOf(rank, 3));
  const Table table = std::get<ReformAgreement::Proposal>(zero.Next(AtSecond(0))).table;

  ReformAgreement two(2, TableOf(3));
  two.Start({}, HelloOf(2, 3), "by 2", kAgreeing, AtSecond(0));
  EXPECT_EQ(two.Leader(), 0);
  two.Accept(table);
  two.GiveUp();
  EXPECT_EQ(two.Leader(), 1);

  ReformAgreement one = Leading(1, 3);
  one.OnPromise(two.MakePromise());
  const auto action = one.Next(AtSecond(1));
  ASSERT_TRUE(Is<ReformAgreement::Proposal>(action));
  EXPECT_EQ(std::get<ReformAgreement::Proposal>(action).table.group, "by 0");
}

TEST(ReformAgreementTest, OfTwoFormerProposalsTheOneOfTheHighestLeaderCounts) {
  ReformAgreement two = Leading(2, 5);
  Promise three = PromiseOf(3, 5), four = PromiseOf(4, 5);
  three.agreed_at = 0;
  three.agreed.group = "by 0";
  four.agreed_at = 1;
  four.agreed.group = "by 1";
  two.OnPromise(three);
  two.OnPromise(four);
  const auto action = two.Next(AtSecond(1));
  ASSERT_TRUE(Is<ReformAgreement::Proposal>(action));
  EXPECT_EQ(std::get<ReformAgreement::Proposal>(action).table.group, "by 1");
}

TEST(ReformAgreementTest, ALeaderWhoseFollowersLeaveBeforeTheyAcceptFails) {
  ReformAgreement zero = Leading(0, 3);
  for (const int rank : {1, 2}) zero.OnPromise(PromiseOf(rank, 3));
  EXPECT_TRUE(Is<ReformAgreement::Proposal>(zero.Next(AtSecond(0))));
  for (const int rank : {1, 2}) zero.OnGone(rank);
  EXPECT_TRUE(Is<ReformAgreement::Wait>(zero.Next(AtSecond(4))));
  EXPECT_TRUE(Is<absl::Status>(zero.Next(AtSecond(6))));
}

// A group whose messages take random turns. Ranks call Reform at random moments; they die, are
// stopped and wake; connections break, and a broken one is noticed by either side at its own time.
class RandomGroup {
 public:
  RandomGroup(int size, uint32_t seed) : size_(size), random_(seed) {
    for (int rank = 0; rank < size; ++rank) nodes_.emplace_back(rank, TableOf(size));
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      now_ += absl::Milliseconds(Below(200));
      const int rank = Below(size_);
      Node& node = nodes_[rank];
      if (!node.alive) continue;
      if (Below(60) == 0) node.stopped = !node.stopped;
      if (Below(150) == 0 && deaths_ + 1 < size_) Die(rank);
      if (node.alive && !node.stopped) Act(rank);
    }
  }

  // Every table that any rank holds to be decided; more than one is a split brain.
  std::set<std::string> Decided() const { return decided_; }

 private:
  enum class Mode { kWorking, kFollowing, kLeading, kDone, kFailed };
  struct Wire {  // from a follower to a leader
    int from, to;
    bool broken = false, heard_come = false;
    std::deque<Message> up, down;
  };
  struct Node {
    Node(int rank, Table table) : agreement(rank, std::move(table)) {}
    ReformAgreement agreement;
    Mode mode = Mode::kWorking;
    bool alive = true, stopped = false;
    std::optional<Table> outcome;
  };

  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  void Die(int rank) {
    Node& node = nodes_[rank];
    node.alive = false;
    ++deaths_;
    for (Wire& wire : wires_) wire.broken |= wire.from == rank || wire.to == rank;
    if (node.mode != Mode::kWorking) return;
    for (Node& other : nodes_) {  // it had not voted: whoever sees its end has a proof
      if (Below(2) == 0) other.agreement.SawEnd(rank);
    }
  }

  void Act(int rank) {
    Node& node = nodes_[rank];
    if (node.mode == Mode::kWorking) {
      if (Below(4) != 0) return;
      node.agreement.Start({.member_timeout = absl::Seconds(5)}, HelloOf(rank, size_),
                           absl::StrCat("by ", rank), kAgreeing, now_);
      return Turn(rank);
    }
    AnswerWires(rank);
    if (node.mode == Mode::kFollowing) Follow(rank);
    if (node.mode == Mode::kLeading) Lead(rank);
  }

  void Turn(int rank) {
    Node& node = nodes_[rank];
    const int leader = node.agreement.Leader();
    node.mode = leader == rank ? Mode::kLeading : Mode::kFollowing;
    if (leader == rank) return;
    wires_.push_back({.from = rank, .to = leader, .up = {}, .down = {}});
    wires_.back().broken = !nodes_[leader].alive;
    wires_.back().up.push_back(node.agreement.MakePromise());
  }

  // The listener: who knows the outcome tells it.
  void AnswerWires(int rank) {
    Node& node = nodes_[rank];
    for (Wire& wire : wires_) {
      if (wire.to != rank) continue;
      if (node.outcome.has_value() && wire.down.empty()) {
        wire.down.push_back(comm::Decided{*node.outcome, false});
      }
      if (node.mode != Mode::kLeading) continue;
      if (wire.broken && wire.up.empty() && wire.heard_come) node.agreement.OnGone(wire.from);
      if (wire.up.empty()) continue;
      const Message message = wire.up.front();
      wire.up.pop_front();
      if (const Promise* promise = std::get_if<Promise>(&message))
        node.agreement.OnPromise(*promise);
      if (std::holds_alternative<Accepted>(message)) node.agreement.OnAccepted(wire.from);
      wire.heard_come = true;
    }
  }

  void Follow(int rank) {
    Node& node = nodes_[rank];
    for (Wire& wire : wires_) {
      if (wire.from != rank || wire.to != node.agreement.Leader()) continue;
      if (Below(40) == 0) wire.broken = true;
      if (!wire.down.empty() && Below(10) != 0) {
        const Message message = wire.down.front();
        wire.down.pop_front();
        if (const auto* propose = std::get_if<Propose>(&message)) {
          node.agreement.Accept(propose->table);
          if (Below(10) != 0) wire.up.push_back(Accepted{});
        } else if (const auto* decided = std::get_if<comm::Decided>(&message)) {
          Conclude(rank, decided->table);
        }
        return;
      }
      if (!wire.broken) return;
      node.agreement.GiveUp();
      return Turn(rank);
    }
  }

  void Lead(int rank) {
    Node& node = nodes_[rank];
    const auto action = node.agreement.Next(now_);
    if (const auto* proposal = std::get_if<ReformAgreement::Proposal>(&action)) {
      for (Wire& wire : wires_) {
        if (wire.to == rank && wire.heard_come) wire.down.push_back(Propose{proposal->table});
      }
    } else if (const auto* decision = std::get_if<ReformAgreement::Decision>(&action)) {
      Conclude(rank, decision->table);
    } else if (Is<absl::Status>(action)) {
      node.mode = Mode::kFailed;
    }
  }

  void Conclude(int rank, const Table& table) {
    nodes_[rank].mode = Mode::kDone;
    nodes_[rank].outcome = table;
    decided_.insert(table.group);
  }

  const int size_;
  std::mt19937 random_;
  absl::Duration now_;
  int deaths_ = 0;
  std::vector<Node> nodes_;
  std::deque<Wire> wires_;
  std::set<std::string> decided_;
};

TEST(ReformAgreementTest, NoScheduleMakesTwoGroupsThatBothGoOn) {
  int went_on = 0, by_others_than_rank_zero = 0;
  for (uint32_t seed = 0; seed < 20000; ++seed) {
    const int size = 2 + static_cast<int>(seed % 5);
    RandomGroup group(size, seed);
    group.Run(100 * size);
    ASSERT_LE(group.Decided().size(), 1u) << "seed " << seed;
    went_on += static_cast<int>(group.Decided().size());
    by_others_than_rank_zero += group.Decided().size() == 1 && group.Decided().count("by 0") == 0;
  }
  // The schedules are neither hopeless nor harmless.
  EXPECT_GT(went_on, 5000);
  EXPECT_LT(went_on, 20000);
  EXPECT_GT(by_others_than_rank_zero, 200);
}

}  // namespace
}  // namespace tutti::comm
