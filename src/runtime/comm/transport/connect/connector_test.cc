// What a rank does with connections that are not those of the ranks it waits for.
// Covers: connection_acceptor.cc.
#include "runtime/comm/transport/connect/connector.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/rendezvous/authenticate.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

// Two ranks that have met, each with its connector.
class ConnectorTest : public testing::TestWithParam<Transport> {
 protected:
  void SetUp() override {
    auto options = OptionsFor(2, GetParam());
    Table table{.group = "a group", .ranks = std::vector<Hello>(2)};
    std::vector<Listeners> listeners;
    for (int rank = 0; rank < 2; ++rank) {
      options[rank].tcp_streams = GetParam() == Transport::kTcp ? 3 : 1;
      Hello& self = table.ranks[rank];
      self.rank = rank;
      self.size = 2;
      self.transport = options[rank].transport;
      auto opened = OpenListeners(options[rank], self);
      ASSERT_TRUE(opened.ok()) << opened.status();
      listeners.push_back(*std::move(opened));
    }
    for (int rank = 0; rank < 2; ++rank) {
      connectors_[rank] = *Connector::Make(table, rank, "token", std::move(listeners[rank]));
    }
    first_ = table.ranks[0];
  }
  static Patience Within(absl::Duration time) { return {base::Deadline::After(time)}; }
  base::UniqueFd ConnectToFirst(bool local) {
    auto socket =
        local ? ConnectLocal(first_.local_name, Within(base::Patient(absl::Seconds(5))))
              : Connect({first_.address, first_.port}, "", Within(base::Patient(absl::Seconds(5))));
    EXPECT_TRUE(socket.ok()) << socket.status();
    return *std::move(socket);
  }
  void ExpectTheTwoReachEachOther(absl::Duration time) {
    std::thread other([&] {
      const auto channel = connectors_[1]->Connect(0, Within(time));
      EXPECT_TRUE(channel.ok()) << channel.status();
    });
    const auto channel = connectors_[0]->Connect(1, Within(time));
    EXPECT_TRUE(channel.ok()) << channel.status();
    other.join();
  }

  std::unique_ptr<Connector> connectors_[2];
  Hello first_;
};

TEST_P(ConnectorTest, StrangersThatSayNothingHoldNobodyUp) {
  std::vector<base::UniqueFd> strangers;
  for (int i = 0; i < 24; ++i) strangers.push_back(ConnectToFirst(i % 2 == 0));
  ExpectTheTwoReachEachOther(ConnectionAcceptor::kHandshake);
}

TEST_P(ConnectorTest, StrangersThatTalkNonsenseGoAwayOrDoNotKnowTheTokenAreOverlooked) {
  for (const bool local : {false, true}) {
    const base::UniqueFd talker = ConnectToFirst(local), guesser = ConnectToFirst(local);
    ConnectToFirst(local).reset();
    EXPECT_TRUE(
        Send(talker.get(), std::string(4096, 'x'), Within(base::Patient(absl::Seconds(5)))).ok());
    std::thread guess([&] {
      EXPECT_FALSE(Authenticate(guesser.get(), Side::kOpener, "another token", kChannelPurpose,
                                Within(base::Patient(absl::Seconds(5))))
                       .ok());
    });
    if (local) ExpectTheTwoReachEachOther(base::Patient(absl::Seconds(20)));
    if (!local) {
      const auto nobody = connectors_[0]->Connect(1, Within(absl::Milliseconds(300)));
      EXPECT_TRUE(absl::IsDeadlineExceeded(nobody.status())) << nobody.status();
    }
    guess.join();
  }
}

TEST_P(ConnectorTest, OneThatWaitsIsInterruptedAndEndsItsHearings) {
  const base::UniqueFd stranger = ConnectToFirst(false);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const base::UniqueFd interrupt(ends[0]);
  base::UniqueFd(ends[1]).reset();  // readable from now on
  const auto channel = connectors_[0]->Connect(
      1, {base::Deadline::After(base::Patient(absl::Seconds(60))), interrupt.get()});
  EXPECT_TRUE(absl::IsCancelled(channel.status())) << channel.status();
  const auto begun = base::Deadline::After(base::Patient(absl::Seconds(2)));
  connectors_[0].reset();
  EXPECT_FALSE(begun.Expired());
}

INSTANTIATE_TEST_SUITE_P(, ConnectorTest,
                         testing::Values(Transport::kTcp, Transport::kSharedMemory));

}  // namespace
}  // namespace tutti::comm
