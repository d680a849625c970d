// The rendezvous through JoinGroup: who comes late, twice, wrongly or not at all.
// Covers: rendezvous_server.cc.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

std::future<absl::Status> JoinInBackground(const GroupOptions& options) {
  return std::async(std::launch::async, [options] { return JoinGroup(options).status(); });
}

std::string PeerAddress(int socket) {
  sockaddr_in address = {};
  socklen_t length = sizeof(address);
  ::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return ::inet_ntoa(address.sin_addr);
}

TEST(RendezvousTest, RankZeroMayComeLast) {
  auto options = OptionsFor(3, Transport::kAuto);
  std::vector<std::future<absl::Status>> others;
  for (const int rank : {1, 2}) others.push_back(JoinInBackground(options[rank]));
  // The others have tried at least once when the port has been refused to them for a while.
  EXPECT_EQ(others[0].wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  const absl::Status zero = JoinInBackground(options[0]).get();
  EXPECT_TRUE(zero.ok()) << zero;
  for (auto& other : others) EXPECT_TRUE(other.get().ok());
}

TEST(RendezvousTest, RanksThatDoNotComeAreNamedToAllThatCame) {
  auto options = OptionsFor(4, Transport::kAuto);
  const absl::Duration limit = base::PatientTimeout(absl::Milliseconds(400));
  for (auto& one : options) one.connect_timeout = limit;
  auto zero = JoinInBackground(options[0]), two = JoinInBackground(options[2]);
  for (const absl::Status& status : {zero.get(), two.get()}) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_TRUE(Says(status, "ranks 1, 3 of 4 did not come to 127.77.0.1:")) << status;
    EXPECT_TRUE(Says(status, absl::StrCat("within ", absl::FormatDuration(limit)))) << status;
  }
}

TEST(RendezvousTest, ARankZeroThatDoesNotComeIsNamed) {
  auto options = OptionsFor(2, Transport::kAuto);
  options[1].connect_timeout = absl::Milliseconds(200);
  const absl::Status status = JoinInBackground(options[1]).get();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(Says(status, "rank 0 at 127.77.0.1:")) << status;
  EXPECT_TRUE(Says(status, "Connection refused")) << status;
}

TEST(RendezvousTest, AWrongTokenIsDeniedAtOnceAndDoesNotHarmTheGroup) {
  auto options = OptionsFor(2, Transport::kAuto);
  GroupOptions stranger = options[1];
  stranger.token = "another token";
  auto zero = JoinInBackground(options[0]);
  const absl::Status denied = JoinInBackground(stranger).get();
  EXPECT_TRUE(absl::IsPermissionDenied(denied)) << denied;
  EXPECT_TRUE(Says(denied, "token")) << denied;
  EXPECT_TRUE(JoinInBackground(options[1]).get().ok());
  EXPECT_TRUE(zero.get().ok());
}

TEST(RendezvousTest, RankZeroSaysThatItRefusedSomebody) {
  auto options = OptionsFor(2, Transport::kAuto);
  options[0].connect_timeout = base::PatientTimeout(absl::Milliseconds(500));
  options[1].token = "another token";
  auto zero = JoinInBackground(options[0]);
  EXPECT_TRUE(absl::IsPermissionDenied(JoinInBackground(options[1]).get()));
  const absl::Status status = zero.get();
  EXPECT_TRUE(Says(status, "rank 1 of 2 did not come")) << status;
  EXPECT_TRUE(Says(status, "1 connection(s) refused")) << status;
  EXPECT_TRUE(Says(status, "token")) << status;
}

TEST(RendezvousTest, TheSameRankTwiceIsAnErrorForAll) {
  auto options = OptionsFor(3, Transport::kAuto);
  auto zero = JoinInBackground(options[0]), first = JoinInBackground(options[1]),
       second = JoinInBackground(options[1]);
  for (const absl::Status& status : {zero.get(), first.get(), second.get()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Says(status, "rank 1 came twice, from 127.77.0.1")) << status;
  }
}

TEST(RendezvousTest, DifferentIdeasOfTheSizeAreAnErrorForAll) {
  auto options = OptionsFor(3, Transport::kAuto);
  options[2].size = 4;
  auto zero = JoinInBackground(options[0]), two = JoinInBackground(options[2]);
  for (const absl::Status& status : {zero.get(), two.get()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Says(status, "rank 2 was started with WORLD_SIZE 4, rank 0 with 3")) << status;
  }
}

TEST(RendezvousTest, APortThatIsTakenIsSaid) {
  auto options = OptionsFor(2, Transport::kAuto);
  const auto taken = Listen({options[0].master_address, options[0].master_port});
  ASSERT_TRUE(taken.ok());
  const absl::Status status = JoinInBackground(options[0]).get();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Says(status, "in use")) << status;
  EXPECT_TRUE(Says(status, "MASTER_PORT")) << status;
}

TEST(RendezvousTest, StrangersThatSayNothingOrNonsenseHoldNobodyUp) {
  auto options = OptionsFor(2, Transport::kAuto);
  auto zero = JoinInBackground(options[0]);
  const Patience patience{base::Deadline::After(base::Patient(absl::Seconds(10)))};
  const Endpoint master{options[0].master_address, options[0].master_port};
  std::vector<base::UniqueFd> strangers;
  while (strangers.size() < 20) {
    auto stranger = Connect(master, "", patience);
    if (!stranger.ok()) continue;  // rank 0 does not listen yet
    if (strangers.size() % 2 == 0) {
      Send(stranger->get(), "GET / HTTP/1.1\r\n\r\n", patience).IgnoreError();
    }
    strangers.push_back(*std::move(stranger));
  }
  const absl::Time start = absl::Now();
  EXPECT_TRUE(JoinInBackground(options[1]).get().ok());
  EXPECT_TRUE(zero.get().ok());
  EXPECT_LT(absl::Now() - start, base::Patient(absl::Seconds(3)));
}

TEST(RendezvousTest, EveryRankConnectsFromItsNodesOwnAddress) {
  auto options = OptionsFor(2, Transport::kAuto, 1);
  options[1].address = "127.77.0.250";
  const auto listener = Listen({options[0].master_address, options[0].master_port});
  ASSERT_TRUE(listener.ok());
  options[1].connect_timeout = absl::Milliseconds(300);
  auto one = JoinInBackground(options[1]);
  const auto socket =
      Accept(listener->get(), {base::Deadline::After(base::Patient(absl::Seconds(10)))});
  ASSERT_TRUE(socket.ok());
  EXPECT_EQ(PeerAddress(socket->get()), "127.77.0.250");
  EXPECT_FALSE(one.get().ok());
}

TEST(RendezvousTest, TheMasterMayBeANameAndTheOwnAddressFollowsFromIt) {
  auto options = OptionsFor(3, Transport::kTcp);
  for (auto& one : options) {
    one.master_address = "localhost";
    one.address = one.rank == 1 ? "127.0.0.1" : "";
  }
  // Where "localhost" is an IPv6 address, rank 0 keeps to IPv4 as well, since rank 1 insists on it.
  if (*AddressToward({"localhost", 1}) != "127.0.0.1") options[0].address = "127.0.0.1";
  OnEveryRank(options, [](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_TRUE((*group)->Barrier(Soon()).ok());
  });
}

TEST(RendezvousTest, AnAddressThatIsNotThisNodesIsSaid) {
  auto options = OptionsFor(2, Transport::kAuto);
  options[1].address = "192.0.2.1";
  const absl::Status status = JoinInBackground(options[1]).get();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(Says(status, "192.0.2.1")) << status;
}

}  // namespace
}  // namespace tutti::comm
