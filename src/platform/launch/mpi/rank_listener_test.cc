// Covers: platform/launch/node/line_socket.cc.
#include "platform/launch/mpi/rank_listener.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

using nlohmann::json;

class RankListenerTest : public ::testing::Test {
 protected:
  LineSocket Connect() {
    auto fd = ConnectToLauncher((folder_.path() / "socket").string());
    EXPECT_TRUE(fd.ok()) << fd.status();
    return LineSocket(*std::move(fd));
  }
  RankMessage Next() {
    const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(10)));
    while (!deadline.Expired()) {
      std::vector<pollfd> waiting;
      listener_.AddTo(waiting);
      ::poll(waiting.data(), waiting.size(), 100);
      if (const auto messages = listener_.Take(); !messages.empty()) return messages.front();
    }
    ADD_FAILURE() << "nobody came";
    return {};
  }

  const base::TemporaryDirectory folder_;
  RankListener listener_ = *RankListener::Open(folder_.path() / "socket");
};

TEST_F(RankListenerTest, ARankGetsItsOutputAndWhatItIsToRun) {
  LineSocket rank = Connect();
  ASSERT_TRUE(rank.Send({{"kind", "rank"}, {"rank", 3}, {"pid", 71}}).ok());
  const RankMessage came = Next();
  EXPECT_EQ(came.kind, RankMessage::Kind::kRank);
  EXPECT_EQ(came.rank, 3);
  EXPECT_EQ(came.pid, 71);
  const auto null = base::Open("/dev/null", O_WRONLY);
  ASSERT_TRUE(
      listener_.SendStart(came.client, null->get(), null->get(), {}, {{"rank", 3}, {"a", "b"}})
          .ok());
  const auto fds =
      ReceiveFds(rank.fd(), 3, base::Deadline::After(base::Patient(absl::Seconds(10))));
  ASSERT_TRUE(fds.ok()) << fds.status();
  const auto start = base::ReadFile("/proc/self/fd/" + std::to_string((*fds)[2].get()));
  EXPECT_EQ(json::parse(*start)["a"], "b");

  ASSERT_TRUE(rank.Send({{"kind", "stop-requested"}}).ok());
  EXPECT_EQ(Next().kind, RankMessage::Kind::kTerminating);
  ASSERT_TRUE(rank.Send({{"kind", "ended"}, {"code", 5}, {"signal", 0}}).ok());
  const RankMessage ended = Next();
  EXPECT_EQ(ended.kind, RankMessage::Kind::kEnded);
  EXPECT_EQ(ended.rank, 3);
  EXPECT_EQ(ended.status.code, 5);
}

TEST_F(RankListenerTest, ARankThatDisconnectsWithoutAMessageWasKilled) {
  {
    LineSocket rank = Connect();
    ASSERT_TRUE(rank.Send({{"kind", "rank"}, {"rank", 1}, {"pid", 71}}).ok());
    ASSERT_TRUE(listener_.SendStart(Next().client, 1, 2, {}, {{"rank", 1}}).ok());
    ASSERT_TRUE(rank.Send({{"kind", "begun"}}).ok());
  }
  const RankMessage ended = Next();
  EXPECT_EQ(ended.kind, RankMessage::Kind::kEnded);
  EXPECT_EQ(ended.rank, 1);
  EXPECT_EQ(ended.status.signal, SIGKILL);
}

TEST_F(RankListenerTest, OneThatGoesBeforeItsCommandHasBegunCouldNotStartIt) {
  {
    LineSocket rank = Connect();
    ASSERT_TRUE(rank.Send({{"kind", "rank"}, {"rank", 1}, {"pid", 71}}).ok());
    ASSERT_TRUE(listener_.SendStart(Next().client, 1, 2, {}, {{"rank", 1}}).ok());
  }
  const RankMessage gone = Next();
  EXPECT_EQ(gone.kind, RankMessage::Kind::kFailed);
  EXPECT_EQ(gone.rank, 1);
  EXPECT_EQ(gone.reason, "the process that was to start it ended first");
}

TEST_F(RankListenerTest, ARanksPmixTaskHearsOfItsEnd) {
  LineSocket task = Connect();
  ASSERT_TRUE(
      task.Send({{"kind", "pmix-task"}, {"rank", 2}, {"variables", {{"PMIX_RANK", "2"}}}}).ok());
  const RankMessage came = Next();
  EXPECT_EQ(came.kind, RankMessage::Kind::kPmixTask);
  EXPECT_EQ(came.rank, 2);
  EXPECT_THAT(came.variables, ::testing::ElementsAre(::testing::Pair("PMIX_RANK", "2")));
  listener_.SendEnd(1, {.code = 3});
  listener_.SendEnd(2, {.signal = SIGTERM});
  const auto end = task.Receive(base::Deadline::After(base::Patient(absl::Seconds(10))));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ((*end)["signal"], SIGTERM);
}

TEST_F(RankListenerTest, ARankWhosePmixTaskHasGoneIsToEnd) {
  {
    LineSocket task = Connect();
    ASSERT_TRUE(task.Send({{"kind", "pmix-task"}, {"rank", 2}}).ok());
    EXPECT_EQ(Next().kind, RankMessage::Kind::kPmixTask);
  }
  const RankMessage gone = Next();
  EXPECT_EQ(gone.kind, RankMessage::Kind::kTerminating);
  EXPECT_EQ(gone.rank, 2);
}

TEST_F(RankListenerTest, AnAgentIsAnswered) {
  LineSocket agent = Connect();
  ASSERT_TRUE(agent.Send({{"kind", "agent"}, {"host", "n2"}, {"command", "orted -mca x y"}}).ok());
  const RankMessage wish = Next();
  EXPECT_EQ(wish.kind, RankMessage::Kind::kAgent);
  EXPECT_EQ(wish.host, "n2");
  EXPECT_EQ(wish.command, "orted -mca x y");
  listener_.AnswerAgent(wish.client, "no such node");
  const auto answer = agent.Receive(base::Deadline::After(base::Patient(absl::Seconds(10))));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ((*answer)["error"], "no such node");
}

TEST_F(RankListenerTest, DisconnectsAClientThatSendsNoMessage) {
  LineSocket stranger = Connect();
  ASSERT_TRUE(stranger.Send({{"kind", 7}}).ok());
  LineSocket agent = Connect();
  ASSERT_TRUE(agent.Send({{"kind", "agent"}, {"host", 1}, {"command", {"x"}}}).ok());
  const RankMessage wish = Next();
  EXPECT_EQ(wish.host, "");
  EXPECT_FALSE(stranger.Receive(base::Deadline::After(base::Patient(absl::Seconds(10)))).ok());
}

}  // namespace
}  // namespace tutti::launch
