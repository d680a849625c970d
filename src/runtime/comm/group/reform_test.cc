// Groups that go on: ranks as processes that are killed, stopped and joined by others, over real
// sockets.
// Covers: join.cc, join_running.cc, runtime/comm/rendezvous/membership/generation.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "runtime/comm/forked_ranks.h"
#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;
using RankSet = std::set<int>;

std::vector<GroupOptions> ElasticOptions(int size, Transport transport = Transport::kAuto,
                                         int ranks_per_node = 1 << 16) {
  auto all = OptionsFor(size, transport, ranks_per_node);
  for (GroupOptions& one : all) {
    one.elastic = true;
    one.peer_timeout = base::PatientTimeout(absl::Seconds(2));
    one.connect_timeout = base::Patient(absl::Seconds(20));
  }
  return all;
}

// Every rank brings one bit: the sum says who took part.
absl::StatusOr<int64_t> WhoIsHere(Communicator& group, int bit) {
  std::vector<int64_t> data(20000, int64_t{1} << bit);
  const absl::Status status =
      group.AllReduce(data.data(), data.size(), DataType::kInt64, ReduceOp::kSum, Soon());
  if (!status.ok()) return status;
  return data.back();
}

std::string DescribeGroup(Communicator& group, int bit) {
  const auto here = WhoIsHere(group, bit);
  if (!here.ok()) return absl::StrCat("error ", std::string(here.status().message()));
  return absl::StrCat("rank ", group.rank(), " of ", group.size(), ", generation ",
                      group.generation(), ", with ", *here);
}

std::string ExpectedDescription(const RankSet& bits, int bit, int generation) {
  int64_t sum = 0;
  for (const int one : bits) sum += int64_t{1} << one;
  return absl::StrCat("rank ", std::distance(bits.begin(), bits.find(bit)), " of ", bits.size(),
                      ", generation ", generation, ", with ", sum);
}

// Works until the group has ended.
void WorkUntilTheEnd(Communicator& group) {
  std::vector<float> data(400000, 1.0f);
  while (
      group.AllReduce(data.data(), data.size(), DataType::kFloat32, ReduceOp::kMax, Soon()).ok()) {
  }
}

// Re-forms until a group of `size` works together.
std::string GoOnUntil(std::unique_ptr<Communicator> group, int size, int bit,
                      const ReformOptions& terms = {}) {
  while (true) {
    auto next = group->Reform(terms);
    if (!next.ok()) return absl::StrCat("error ", std::string(next.status().message()));
    group = *std::move(next);
    if (!WhoIsHere(*group, bit).ok() || group->size() > size) continue;
    const std::string text = DescribeGroup(*group, bit);
    if (group->Barrier(Soon()).ok()) return text;
  }
}

[[noreturn]] void DieAfter(absl::Duration delay) {
  ::poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(delay)));
  ::raise(SIGKILL);
  std::abort();
}

std::string WithoutGeneration(const std::string& text) {
  const size_t at = text.find(", generation");
  return at == std::string::npos ? text : text.substr(0, at) + text.substr(text.rfind(", with"));
}

// `victims` are killed in the middle of all-reduces; the others go on together.
void ExpectSurvivorsGoOn(int size, const RankSet& victims, Transport transport) {
  auto options = ElasticOptions(size, transport, transport == Transport::kTcp ? 1 : 1 << 16);
  ForkedRanks ranks;
  for (const GroupOptions& one : options) {
    ranks.Start([one, &victims]() -> std::string {
      auto group = JoinGroup(one);
      if (!group.ok()) return group.status().ToString();
      (*group)->Barrier(Soon()).IgnoreError();
      std::thread killer;
      if (victims.count(one.rank) > 0) killer = std::thread(DieAfter, absl::Milliseconds(30));
      WorkUntilTheEnd(**group);
      if (killer.joinable()) killer.join();
      return GoOnUntil(*std::move(group), one.size - static_cast<int>(victims.size()), one.rank);
    });
  }
  RankSet survivors;
  for (int rank = 0; rank < size; ++rank) {
    if (victims.count(rank) == 0) survivors.insert(rank);
  }
  for (const int rank : survivors) {
    EXPECT_EQ(WithoutGeneration(ranks.Report(rank)),
              WithoutGeneration(ExpectedDescription(survivors, rank, 1)))
        << "rank " << rank << " of " << size << " without " << absl::StrJoin(victims, ", ")
        << ", transport " << static_cast<int>(transport);
  }
}

TEST(ReformTest, SurvivorsOfAKilledRankGoOnWhicheverItIs) {
  for (const Transport transport : {Transport::kAuto, Transport::kTcp}) {
    for (const int size : {2, 3, 5}) {
      for (const int victim : RankSet{0, 1, size - 1}) {
        ExpectSurvivorsGoOn(size, {victim}, transport);
      }
    }
  }
}

TEST(ReformTest, SurvivorsOfTwoThatAreKilledAtOnceGoOn) {
  ExpectSurvivorsGoOn(5, {0, 1}, Transport::kTcp);
  ExpectSurvivorsGoOn(5, {0, 3}, Transport::kAuto);
  ExpectSurvivorsGoOn(5, {2, 4}, Transport::kTcp);
  ExpectSurvivorsGoOn(4, {1, 2}, Transport::kAuto);
}

TEST(ReformTest, ARankThatIsKilledWhileTheOthersReFormIsDropped) {
  for (const int second : {0, 1, 4}) {
    for (const int milliseconds : {0, 1, 3, 8, 20, 50}) {
      auto options = ElasticOptions(5, Transport::kAuto);
      ForkedRanks ranks;
      for (const GroupOptions& one : options) {
        ranks.Start([one, second, milliseconds]() -> std::string {
          auto group = JoinGroup(one);
          if (!group.ok()) return group.status().ToString();
          (*group)->Barrier(Soon()).IgnoreError();
          if (one.rank == 2) DieAfter(absl::Milliseconds(20));
          WorkUntilTheEnd(**group);
          if (one.rank == second) std::thread(DieAfter, absl::Milliseconds(milliseconds)).detach();
          return GoOnUntil(*std::move(group), 3, one.rank,
                           {.member_timeout = base::Patient(absl::Seconds(8))});
        });
      }
      RankSet survivors = {0, 1, 3, 4};
      survivors.erase(second);
      for (const int rank : survivors) {
        EXPECT_EQ(WithoutGeneration(ranks.Report(rank)),
                  WithoutGeneration(ExpectedDescription(survivors, rank, 1)))
            << "rank " << rank << ", rank " << second << " killed after " << milliseconds << "ms";
      }
    }
  }
}

// Works until rank 0 has told all that somebody waits.
std::string LetOneIn(std::unique_ptr<Communicator> group, int bit) {
  const auto deadline = Soon();
  for (int waiting = 0; waiting == 0;) {
    waiting = group->WaitingNewcomers();
    const absl::Status told = group->Broadcast(&waiting, sizeof(waiting), 0, Soon());
    if (!told.ok()) return told.ToString();
    if (deadline.Expired()) return "nobody came";
  }
  auto next = group->Reform();
  if (!next.ok()) return absl::StrCat("error ", std::string(next.status().message()));
  return DescribeGroup(**next, bit);
}

std::string ComeIn(const GroupOptions& options, int bit) {
  auto group = JoinRunning(options, Soon());
  if (!group.ok()) return group.status().ToString();
  return DescribeGroup(**group, bit);
}

// Until the group has formed with so many and written its file.
void AwaitMembers(const std::string& path, int count) {
  const auto members = [&] {
    const auto file = base::ReadFile(path);
    return file.ok() ? std::count(file->begin(), file->end(), '\n') : 0;
  };
  base::AwaitPatiently(absl::Seconds(60), [&] { return members() == count; });
}

GroupOptions NewcomerTo(const GroupOptions& one) {
  GroupOptions newcomer = one;
  newcomer.rank = 0;
  newcomer.size = 1;
  return newcomer;
}

TEST(ReformTest, ANewcomerIsTakenInAfterTheOthers) {
  for (const int size : {1, 2, 3}) {
    auto options = ElasticOptions(size);
    ForkedRanks ranks;
    for (const GroupOptions& one : options) {
      ranks.Start([one]() -> std::string {
        auto group = JoinGroup(one);
        return group.ok() ? LetOneIn(*std::move(group), one.rank) : group.status().ToString();
      });
    }
    ranks.Start([&] { return ComeIn(NewcomerTo(options[0]), size); });
    RankSet all;
    for (int rank = 0; rank <= size; ++rank) all.insert(rank);
    for (const int rank : all) EXPECT_EQ(ranks.Report(rank), ExpectedDescription(all, rank, 1));
  }
}

TEST(ReformTest, AGroupThatLostItsFirstRankIsFoundByItsFileAndGrowsAgain) {
  const base::TemporaryDirectory folder;
  auto options = ElasticOptions(3, Transport::kTcp, 1);
  for (GroupOptions& one : options) one.group_file = folder.path() / "members";
  ForkedRanks ranks;
  for (const GroupOptions& one : options) {
    ranks.Start([one]() -> std::string {
      auto group = JoinGroup(one);
      if (!group.ok()) return group.status().ToString();
      (*group)->Barrier(Soon()).IgnoreError();
      if (one.rank == 0) ::raise(SIGKILL);
      WorkUntilTheEnd(**group);
      auto next = (*group)->Reform();
      if (!next.ok()) return absl::StrCat("error ", std::string(next.status().message()));
      return LetOneIn(*std::move(next), one.rank);
    });
  }
  ranks.Start([&]() -> std::string {
    // Comes when the group has shrunk: only its file still leads there.
    AwaitMembers(options[0].group_file, 2);
    GroupOptions newcomer = NewcomerTo(options[2]);
    newcomer.master_port = 1;
    return ComeIn(newcomer, 3);
  });
  for (const int rank : {1, 2, 3})
    EXPECT_EQ(ranks.Report(rank), ExpectedDescription({1, 2, 3}, rank, 2));
}

TEST(ReformTest, ANewcomerAtAnyMembersListenerIsSentToTheOneThatReceives) {
  const base::TemporaryDirectory folder;
  auto options = ElasticOptions(3);
  options[0].group_file = folder.path() / "members";
  ForkedRanks ranks;
  for (const GroupOptions& one : options) {
    ranks.Start([one]() -> std::string {
      auto group = JoinGroup(one);
      return group.ok() ? LetOneIn(*std::move(group), one.rank) : group.status().ToString();
    });
  }
  ranks.Start([&]() -> std::string {
    AwaitMembers(options[0].group_file, 3);
    GroupOptions newcomer = NewcomerTo(options[0]);
    const std::string file = *base::ReadFile(options[0].group_file);
    newcomer.members = {std::vector<std::string>(absl::StrSplit(file, '\n'))[2]};
    newcomer.group_file.clear();
    newcomer.master_port = 1;
    return ComeIn(newcomer, 3);
  });
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_EQ(ranks.Report(rank), ExpectedDescription({0, 1, 2, 3}, rank, 1));
  }
}

TEST(ReformTest, FewerThanTheLeastIsAClearErrorOnAll) {
  auto options = ElasticOptions(3);
  ForkedRanks ranks;
  for (const GroupOptions& one : options) {
    ranks.Start([one]() -> std::string {
      auto group = JoinGroup(one);
      if (!group.ok()) return group.status().ToString();
      (*group)->Barrier(Soon()).IgnoreError();
      if (one.rank == 2) ::raise(SIGKILL);
      WorkUntilTheEnd(**group);
      const auto next =
          (*group)->Reform({.min_ranks = 3, .newcomer_timeout = absl::Milliseconds(300)});
      return next.status().ToString();
    });
  }
  for (const int rank : {0, 1}) {
    EXPECT_EQ(ranks.Report(rank),
              "FAILED_PRECONDITION: the group cannot go on: 2 of 3 ranks are left and 0 came in "
              "within 300ms, but at least 3 are asked for");
  }
}

// What a rank does that was stopped while the others went on: it is refused, and may come again.
std::string WakeUp(std::unique_ptr<Communicator> group, const GroupOptions& options) {
  WorkUntilTheEnd(*group);
  const auto refused = group->Reform();
  group.reset();
  const std::string word = refused.ok() ? "it went on alone" : refused.status().ToString();
  return absl::StrCat(word, "; ", ComeIn(NewcomerTo(options), options.rank));
}

TEST(ReformTest, AStoppedRankThatWakesIsRefusedAndMayComeAsANewcomer) {
  for (const int victim : {1, 0}) {
    const base::TemporaryDirectory folder;
    auto options = ElasticOptions(3);
    for (GroupOptions& one : options) {
      one.peer_timeout = base::PatientTimeout(absl::Seconds(1));
      one.group_file = folder.path() / "members";
    }
    const std::string woken = folder.path() / "woken";
    ForkedRanks ranks;
    for (const GroupOptions& one : options) {
      ranks.Start([one, victim]() -> std::string {
        auto group = JoinGroup(one);
        if (!group.ok()) return group.status().ToString();
        (*group)->Barrier(Soon()).IgnoreError();
        if (one.rank == victim) {
          ::raise(SIGSTOP);
          return WakeUp(*std::move(group), one);
        }
        WorkUntilTheEnd(**group);
        auto next = (*group)->Reform();
        if (!next.ok()) return absl::StrCat("error ", std::string(next.status().message()));
        const std::string without = DescribeGroup(**next, one.rank);
        return absl::StrCat(without, "; ", LetOneIn(*std::move(next), one.rank));
      });
    }
    ASSERT_TRUE(ranks.AwaitStopped(victim));
    AwaitMembers(options[0].group_file, 2);  // the others have gone on
    ranks.Signal(victim, SIGCONT);
    RankSet others = {0, 1, 2};
    others.erase(victim);
    int place = 0;
    for (const int rank : others) {
      EXPECT_EQ(ranks.Report(rank), absl::StrCat(ExpectedDescription(others, rank, 1), "; rank ",
                                                 place++, " of 3, generation 2, with 7"));
    }
    EXPECT_EQ(ranks.Report(victim),
              "FAILED_PRECONDITION: the group has gone on without this rank, as generation 1 of 2 "
              "rank(s): it was taken for lost, and may come again as a newcomer; rank 2 of 3, "
              "generation 2, with 7");
  }
}

TEST(ReformTest, AMinorityDoesNotGoOnWhenTheOthersCouldBeAlive) {
  auto options = ElasticOptions(3);
  for (GroupOptions& one : options) one.peer_timeout = base::PatientTimeout(absl::Seconds(1));
  ForkedRanks ranks;
  for (const GroupOptions& one : options) {
    ranks.Start([one]() -> std::string {
      auto group = JoinGroup(one);
      if (!group.ok()) return group.status().ToString();
      (*group)->Barrier(Soon()).IgnoreError();
      if (one.rank != 2) ::raise(SIGSTOP);
      WorkUntilTheEnd(**group);
      return (*group)->Reform({.member_timeout = absl::Seconds(2)}).status().ToString();
    });
  }
  EXPECT_EQ(ranks.Report(2),
            "UNAVAILABLE: the group cannot go on: ranks 0, 1 of 3 did not come within 2s and could "
            "have gone on elsewhere; start the job again from its last checkpoint");
}

TEST(ReformTest, ARankThatLeavesInGoodOrderDoesNotHinderTheOthers) {
  auto options = ElasticOptions(3);
  ForkedRanks ranks;
  for (const GroupOptions& one : options) {
    ranks.Start([one]() -> std::string {
      auto group = JoinGroup(one);
      if (!group.ok()) return group.status().ToString();
      (*group)->Barrier(Soon()).IgnoreError();
      if (one.rank != 1) return "";
      WorkUntilTheEnd(**group);
      return GoOnUntil(*std::move(group), 1, one.rank);
    });
  }
  EXPECT_EQ(WithoutGeneration(ranks.Report(1)), WithoutGeneration(ExpectedDescription({1}, 1, 1)));
}

TEST(ReformTest, AStrangerIsDeniedByTheRejoinListener) {
  auto options = ElasticOptions(1);
  const auto group = JoinGroup(options[0]);
  ASSERT_TRUE(group.ok()) << group.status();
  GroupOptions stranger = NewcomerTo(options[0]);
  stranger.token = "another token";
  const auto denied = JoinRunning(stranger, Soon());
  EXPECT_TRUE(absl::IsPermissionDenied(denied.status())) << denied.status();
  EXPECT_EQ((*group)->WaitingNewcomers(), 0);
}

TEST(ReformTest, ANewcomerThatIsNotLetInHearsHowFarItCame) {
  auto options = ElasticOptions(1);
  const auto group = JoinGroup(options[0]);
  ASSERT_TRUE(group.ok()) << group.status();
  const auto waited =
      JoinRunning(NewcomerTo(options[0]), base::Deadline::After(absl::Milliseconds(300)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(waited.status()));
  EXPECT_NE(waited.status().message().find("did not re-form"), absl::string_view::npos)
      << waited.status();
}

TEST(ReformTest, AGroupThatIsNotElasticSaysSo) {
  auto options = OptionsFor(1, Transport::kAuto);
  const auto group = JoinGroup(options[0]);
  const absl::Status status = (*group)->Reform().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_NE(status.message().find("TUTTI_ELASTIC=1"), absl::string_view::npos);
}

TEST(ReformTest, AGenerationReFormsOnce) {
  auto options = ElasticOptions(1);
  const auto first = JoinGroup(options[0]);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = (*first)->Reform();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*second)->generation(), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition((*first)->Reform().status()));
}

}  // namespace
}  // namespace tutti::comm
