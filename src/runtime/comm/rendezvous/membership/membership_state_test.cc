// The judgements, with time and messages by hand.
#include "runtime/comm/rendezvous/membership/membership_state.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace tutti::comm {
namespace {

absl::Duration At(double seconds) { return absl::Seconds(seconds); }
constexpr absl::Duration kTimeout = absl::Seconds(4);

// A group whose messages are carried at once, save to and from ranks that are cut off.
class Star {
 public:
  explicit Star(int size) : size_(size) {
    for (int rank = 0; rank < size; ++rank) {
      rolls_.push_back(std::make_unique<MembershipState>(rank, size, kTimeout, At(0)));
    }
  }
  MembershipState& operator[](int rank) { return *rolls_[rank]; }
  void CutOff(int rank) { cut_[rank] = true; }

  // Until `until`, ticking everybody that is not cut off every tenth of a second.
  void Live(double until) {
    for (; now_ <= At(until); now_ += At(0.1)) {
      for (int rank = 0; rank < size_; ++rank) {
        if (!cut_[rank]) rolls_[rank]->OnTick(now_);
      }
      Carry();
    }
  }
  void Carry() {
    for (bool carried = true; carried;) {
      carried = false;
      for (int from = 0; from < size_; ++from) {
        for (auto& [to, message] : rolls_[from]->TakeOutgoing()) {
          if (cut_[from] || cut_[to]) continue;
          rolls_[to]->OnMessage(from, message, now_);
          carried = true;
        }
      }
    }
  }
  // What every rank that is not cut off holds to be the end.
  void ExpectAllNamed(int lost, absl::string_view text) {
    for (int rank = 0; rank < size_; ++rank) {
      if (cut_[rank]) continue;
      const auto ending = rolls_[rank]->Ending();
      ASSERT_TRUE(ending.has_value()) << "rank " << rank;
      EXPECT_EQ(ending->rank, lost) << "rank " << rank;
      EXPECT_NE(ending->text.find(std::string(text)), std::string::npos) << ending->text;
    }
  }
  absl::Duration now() const { return now_; }

 private:
  const int size_;
  absl::Duration now_;
  std::vector<std::unique_ptr<MembershipState>> rolls_;
  std::map<int, bool> cut_;
};

TEST(MembershipStateTest, RanksThatBeatAreInTheGroupHoweverLongTheyCompute) {
  Star star(4);
  star[1].Begin();
  star.Live(600);
  for (int rank = 0; rank < 4; ++rank) EXPECT_FALSE(star[rank].Ending().has_value());
}

TEST(MembershipStateTest, ASilentRankIsNamedByAllWithinTheTimeout) {
  Star star(4);
  star.Live(10);
  star.CutOff(2);
  star.Live(10 + 3.3);
  EXPECT_FALSE(star[0].Ending().has_value());
  star.Live(10 + 4.2);
  star.ExpectAllNamed(2, "silent for 4s");
}

TEST(MembershipStateTest, ASilentRankZeroIsNamedByAll) {
  Star star(3);
  star.Live(10);
  star.CutOff(0);
  star.Live(14.2);
  star.ExpectAllNamed(0, "silent");
}

TEST(MembershipStateTest, TheFirstLossIsTheCauseAndLaterOnesAreNotTold) {
  Star star(4);
  star[0].OnClosed(2);
  star[0].OnClosed(3);
  star[1].ReportFailure(3, Reason::kClosed, star.now());
  star.Carry();
  star.ExpectAllNamed(2, "connection closed");
}

TEST(MembershipStateTest, AReportOfAClosedConnectionIsJudgedForAll) {
  Star star(4);
  star[3].ReportFailure(2, Reason::kClosed, star.now());
  star.Carry();
  star.ExpectAllNamed(2, "connection closed");
}

TEST(MembershipStateTest, AtADeadlineTheRankThatDoesNotAnswerIsBlamedAndNotTheOneInBetween) {
  Star star(4);
  for (int rank = 0; rank < 4; ++rank) star[rank].Begin();
  star.Live(1);
  star.CutOff(1);
  star[3].ReportFailure(2, Reason::kLate, star.now());  // 3 waits for 2, which waits for 1
  star.Live(2);
  star.ExpectAllNamed(1, "does not answer at the deadline of rank 3");
}

TEST(MembershipStateTest, AtADeadlineTheRankThatHasNotBegunIsBlamed) {
  Star star(4);
  for (const int rank : {0, 2, 3}) star[rank].Begin();
  star[3].ReportFailure(2, Reason::kLate, star.now());
  star.Carry();
  star.ExpectAllNamed(1, "has not begun it");
}

TEST(MembershipStateTest, AtADeadlineThatIsTooShortTheSuspectIsBlamed) {
  Star star(3);
  for (int rank = 0; rank < 3; ++rank) star[rank].Begin();
  star[0].ReportFailure(2, Reason::kLate, star.now());
  star.Carry();
  star.ExpectAllNamed(2, "was too slow");
}

TEST(MembershipStateTest, ALeaveNoticeEndsOnlyTheCollectivesThatTheLeaverHasNotDone) {
  Star star(3);
  for (int rank = 0; rank < 3; ++rank) star[rank].Begin();
  for (const int rank : {1, 2}) star[rank].End();
  star[1].AnnounceLeaving(star.now());
  star.Carry();
  EXPECT_TRUE(star[1].MayLeave()) << "rank 0 has confirmed";
  EXPECT_FALSE(star[0].Ending().has_value()) << "it is still in the first, which 1 has done";
  star[0].End();
  star[0].Begin();
  const auto ending = star[0].Ending();
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(ending->rank, 1);
  EXPECT_TRUE(ending->clean);
}

TEST(MembershipStateTest, ARankThatLeftInGoodOrderIsNotSilentLater) {
  Star star(3);
  star[1].AnnounceLeaving(star.now());
  star.Carry();
  star[0].OnClosed(1);
  star.CutOff(1);
  star.Live(20);
  ASSERT_TRUE(star[2].Ending().has_value());
  EXPECT_TRUE(star[2].Ending()->clean);
}

TEST(MembershipStateTest, RankZeroLeavesOnlyWhenTheOthersHaveDoneWhatItHasDone) {
  Star star(3);
  for (int rank = 0; rank < 3; ++rank) star[rank].Begin();
  star[0].End();
  star[1].End();
  star[0].AnnounceLeaving(star.now());
  star.Carry();
  EXPECT_FALSE(star[0].MayLeave());
  star[2].End();
  star.Carry();
  EXPECT_TRUE(star[0].MayLeave());
}

TEST(MembershipStateTest, WhoWasStoppedItselfDoesNotBlameTheOthersForIt) {
  MembershipState judge(0, 3, kTimeout, At(0));
  judge.OnTick(At(0.5));
  judge.OnTick(At(60));  // nothing was heard, because nothing was listened to
  EXPECT_FALSE(judge.Ending().has_value());
  for (double now = 60.5; now < 64.5; now += 0.5) judge.OnTick(At(now));
  EXPECT_TRUE(judge.Ending().has_value());
}

TEST(MembershipStateTest, ARankThatLeavesToReFormEndsTheOthersNextCollective) {
  for (const int leaver : {0, 1}) {
    Star star(3);
    star[leaver].LeaveToReform();
    star.Carry();
    star.CutOff(leaver);
    star.ExpectAllNamed(leaver, "left");
    for (const int other : {1, 2}) {
      if (other == leaver) continue;
      EXPECT_TRUE(star[other].Ending()->reforming);
      EXPECT_TRUE(star[other].Lost().empty()) << "it is not lost";
    }
  }
}

TEST(MembershipStateTest, AllThatWereLostAreKnownWhenTheGroupReForms) {
  Star star(4);
  star[0].OnClosed(2);
  star[0].OnClosed(3);
  EXPECT_EQ(star[0].Lost(), (std::vector<int>{2, 3})) << "the first is told, both are gone";
}

TEST(MembershipStateTest, TheNewcomersThatWaitAreToldWithTheBeats) {
  Star star(3);
  star[0].SetWaiting(2);
  star.Live(1);
  EXPECT_EQ(star[1].waiting(), 2);
  EXPECT_EQ(star[2].waiting(), 2);
}

TEST(MembershipStateTest, NonsenseFromARankIsIgnored) {
  Star star(2);
  star[0].OnMessage(1, FailureReport{999, Reason::kClosed}, At(0));
  star[0].OnMessage(1, FailureReport{1, Reason::kClosed}, At(0));
  star[1].OnMessage(0, Departure{.rank = 77}, At(0));
  EXPECT_FALSE(star[0].Ending().has_value());
  EXPECT_FALSE(star[1].Ending().has_value());
}

TEST(MembershipStateTest, AnExchangeOfTwoIsNotCountedAndNotEndedByOthersThatLeave) {
  Star star(3);
  star[0].BeginPair(1, true);
  star[1].BeginPair(0, true);
  star[2].AnnounceLeaving(star.now());
  star.Carry();
  EXPECT_FALSE(star[0].Ending().has_value());
  EXPECT_FALSE(star[1].Ending().has_value());
  star[0].End();
  EXPECT_EQ(star[0].begun(), 0u);
  ASSERT_TRUE(star[0].Ending().has_value()) << "of the next collective";
  EXPECT_EQ(star[0].Ending()->rank, 2);
}

TEST(MembershipStateTest, APeerThatLeftInGoodOrderIsMissedOnlyWhenNothingMoreCanBeRead) {
  for (const int leaver : {0, 1}) {
    Star star(2);
    MembershipState& other = star[1 - leaver];
    if (leaver == 0) {
      star[0].Leave();
    } else {
      star[1].AnnounceLeaving(star.now());
    }
    star.Carry();
    other.BeginPair(leaver, true);
    EXPECT_FALSE(other.Ending().has_value());
    other.Miss();
    ASSERT_TRUE(other.Ending().has_value());
    EXPECT_TRUE(other.Ending()->clean);
    other.End();
    other.BeginPair(leaver, false);
    EXPECT_TRUE(other.Ending().has_value()) << "it cannot connect any more";
  }
}

TEST(MembershipStateTest, InAnExchangeOfTwoTheLatePeerIsBlamedAndNotAThirdRankThatIsBehind) {
  for (const int reporter : {0, 1}) {
    Star star(3);
    for (const int rank : {0, 1}) {
      star[rank].Begin();
      star[rank].End();
    }
    star[reporter].BeginPair(1 - reporter, true);
    star[reporter].ReportFailure(1 - reporter, Reason::kLate, star.now());
    star.Carry();
    star.ExpectAllNamed(1 - reporter, "was too slow");
  }
}

}  // namespace
}  // namespace tutti::comm
