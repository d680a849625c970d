#include "http/server/open_connections.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <map>
#include <vector>

namespace tutti::http {
namespace {

class OpenConnectionsTest : public testing::Test {
 protected:
  ~OpenConnectionsTest() override {
    for (const auto& [fd, peer] : peers_) {
      connections_.Close(fd);
      ::close(peer);
    }
  }
  // Returns the descriptor of one that was taken, or -1.
  int Add(const char* address) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    if (connections_.Add(ends[0], address)) {
      peers_[ends[0]] = ends[1];
      return ends[0];
    }
    ::close(ends[0]);
    ::close(ends[1]);
    return -1;
  }
  bool IsShutDown(int fd) {
    pollfd end{peers_.at(fd), POLLIN, 0};
    return ::poll(&end, 1, 0) == 1;
  }
  OpenConnections connections_{4, 2};
  std::map<int, int> peers_;
};

TEST_F(OpenConnectionsTest, AStrangersNextTakesThePlaceOfHisFirst) {
  const int first = Add("a"), second = Add("a");
  EXPECT_GE(Add("a"), 0);
  EXPECT_TRUE(IsShutDown(first));
  EXPECT_FALSE(IsShutDown(second));
}

TEST_F(OpenConnectionsTest, WhoIsTrustedIsNotPushedOutByStrangers) {
  const int trusted = Add("a");
  EXPECT_TRUE(connections_.Trust(trusted, Role::kUser));
  for (const char* address : {"a", "b", "c", "d", "e", "f"}) EXPECT_GE(Add(address), 0);
  EXPECT_FALSE(IsShutDown(trusted));
}

TEST_F(OpenConnectionsTest, OneThatIsBeingAnsweredIsLeftAlone) {
  const int answered = Add("a"), other = Add("b");
  connections_.MarkAnswering(answered);
  for (const char* address : {"c", "d", "e"}) EXPECT_GE(Add(address), 0);
  EXPECT_FALSE(IsShutDown(answered));
  EXPECT_TRUE(IsShutDown(other));
}

TEST_F(OpenConnectionsTest, TrustedOnesThatWaitGoLast) {
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(connections_.Trust(Add("a"), i < 2 ? Role::kUser : Role::kNode));
  EXPECT_GE(Add("b"), 0);
}

TEST_F(OpenConnectionsTest, WhereAllAreBeingAnsweredThereIsNoRoom) {
  for (int i = 0; i < 4; ++i) {
    const int fd = Add("a");
    EXPECT_TRUE(connections_.Trust(fd, i < 2 ? Role::kUser : Role::kNode));
    connections_.MarkAnswering(fd);
  }
  EXPECT_EQ(Add("b"), -1);
  connections_.MarkWaiting(peers_.begin()->first);
  EXPECT_GE(Add("b"), 0);
}

TEST_F(OpenConnectionsTest, APartyLeavesAQuarterToOthers) {
  std::vector<int> nodes;
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(Add("a"));
    EXPECT_TRUE(connections_.Trust(nodes.back(), Role::kNode));
    connections_.MarkAnswering(nodes.back());
  }
  const int fourth = Add("a");
  EXPECT_FALSE(connections_.Trust(fourth, Role::kNode));
  EXPECT_TRUE(connections_.Trust(fourth, Role::kUser));
}

TEST_F(OpenConnectionsTest, MonitorsHaveAFewAndTakeNoneOfTheUsers) {
  const int first = Add("a"), second = Add("a");
  EXPECT_TRUE(connections_.Trust(first, Role::kMonitor));
  EXPECT_TRUE(connections_.Trust(second, Role::kMonitor)) << "in the place of the first";
  EXPECT_TRUE(IsShutDown(first));
  connections_.MarkAnswering(second);
  EXPECT_FALSE(connections_.Trust(Add("a"), Role::kMonitor));
  EXPECT_TRUE(connections_.Trust(Add("a"), Role::kUser));
  const ConnectionCounts counts = connections_.Count();
  EXPECT_EQ(counts.most, 4);
  EXPECT_EQ(counts.most_per_role, 3);
  EXPECT_EQ(counts.most_of_monitors, 1);
}

TEST_F(OpenConnectionsTest, OneOfAPartyThatWaitsMakesRoomForAnother) {
  std::vector<int> nodes;
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(Add("a"));
    EXPECT_TRUE(connections_.Trust(nodes.back(), Role::kNode));
  }
  EXPECT_TRUE(connections_.Trust(Add("a"), Role::kNode));
  EXPECT_TRUE(IsShutDown(nodes.front()));
}

TEST_F(OpenConnectionsTest, ANewcomerWaitsForOneThatLeaves) {
  const int first = Add("a");
  for (int i = 1; i < 8; ++i) EXPECT_GE(Add("a"), 0);  // two stay, six leave: twice `most` in all
  auto newcomer = std::async(std::launch::async, [this] { return Add("b"); });
  EXPECT_EQ(newcomer.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  connections_.Close(first);
  EXPECT_GE(newcomer.get(), 0);
  ::close(peers_.at(first));
  peers_.erase(first);
}

}  // namespace
}  // namespace tutti::http
