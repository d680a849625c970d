// Connections to no server; tests/storage/test_nfs_stores.py has one.
#include "platform/storage/nfs/nfs_connections.h"

#include <gtest/gtest.h>
#include <nfsc/libnfs.h>

#include <map>

namespace tutti::storage {
namespace {

class NfsConnectionsTest : public ::testing::Test {
 protected:
  absl::StatusOr<NfsContext> Mount() {
    if (is_away_) return absl::UnavailableError("does not answer");
    NfsContext context(::nfs_init_context());
    numbers_[context.get()] = ++mounted_;
    return context;
  }
  // Uses `left` connections at a time, each within the one before.
  absl::Status UseAtATime(int left) {
    return connections_.Run(
        [&](nfs_context*) { return left > 1 ? UseAtATime(left - 1) : absl::OkStatus(); });
  }
  // A call, which the server takes from none of the connections of before its last start.
  absl::Status Call() {
    return connections_.Run([&](nfs_context* context) {
      ++calls_;
      return numbers_[context] <= dead_ ? absl::UnavailableError("lost") : absl::OkStatus();
    });
  }
  void Restart() { dead_ = mounted_; }

  bool is_away_ = false;
  absl::Duration now_ = absl::Hours(1);
  int mounted_ = 0, calls_ = 0;
  int dead_ = 0;                               // the first so many of those mounted
  std::map<const nfs_context*, int> numbers_;  // in the order in which they were mounted, from 1
  NfsConnections connections_{[this] { return Mount(); }, [this] { return now_; }};
};

TEST_F(NfsConnectionsTest, KeepsWhatIsUsed) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(UseAtATime(2), absl::OkStatus());
  EXPECT_EQ(mounted_, 2);
}

TEST_F(NfsConnectionsTest, AfterARestartOfTheServerOneFailureDropsAllAndTheCallGoesOn) {
  ASSERT_EQ(UseAtATime(4), absl::OkStatus());
  ASSERT_EQ(mounted_, 4);
  Restart();
  EXPECT_EQ(Call(), absl::OkStatus());
  ASSERT_EQ(calls_, 2) << "a kept one and a new one";
  EXPECT_EQ(mounted_, 5);
  EXPECT_EQ(UseAtATime(2), absl::OkStatus());
  EXPECT_EQ(mounted_, 6) << "the other three are gone";
}

TEST_F(NfsConnectionsTest, AServerThatStaysAwayIsNoReasonToCallForEver) {
  ASSERT_EQ(Call(), absl::OkStatus());
  Restart();
  is_away_ = true;
  EXPECT_EQ(Call().message(), "does not answer");
  EXPECT_EQ(calls_, 2);
  is_away_ = false;
  const auto fails = [&] {
    return connections_.Run([&](nfs_context*) { return absl::UnavailableError("lost"); });
  };
  EXPECT_EQ(fails().message(), "lost");
  EXPECT_EQ(mounted_, 2) << "a new one that fails is not tried again";
}

TEST_F(NfsConnectionsTest, OtherErrorsAreOfNoConnection) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(absl::IsNotFound(
        connections_.Run([](nfs_context*) { return absl::NotFoundError("no such file"); })));
  }
  EXPECT_EQ(mounted_, 1);
}

TEST_F(NfsConnectionsTest, DropsThoseThatLayIdleForLong) {
  ASSERT_EQ(UseAtATime(3), absl::OkStatus());
  now_ += NfsConnections::kLongestIdle - absl::Seconds(1);
  ASSERT_EQ(UseAtATime(1), absl::OkStatus());
  ASSERT_EQ(mounted_, 3);
  now_ += absl::Seconds(2);
  EXPECT_EQ(UseAtATime(3), absl::OkStatus());
  EXPECT_EQ(mounted_, 5) << "one alone was used meanwhile";
}

}  // namespace
}  // namespace tutti::storage
