// Covers: gang_proof.h.
#include "platform/launch/mpi/gang_link.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/test_patience.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;

int FreePort() {
  const base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  ::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), size);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.sin_port);
}

class GangLinkTest : public ::testing::Test {
 protected:
  spec::LaunchPlan Plan(int node, std::string token = "beef") const {
    spec::LaunchPlan plan;
    plan.node_index = node;
    plan.start_port = port_;
    plan.job_token = std::move(token);
    for (int i = 0; i < 3; ++i)
      plan.nodes.push_back({"n" + std::to_string(i + 1), "127.0.0.1", i, 1});
    return plan;
  }
  absl::StatusOr<std::unique_ptr<GangLink>> Meet(int node, MpiWay own, absl::Duration wait) {
    return GangLink::Meet(Plan(node), own, 0, cancelled_, base::Deadline::After(wait));
  }
  // All three, the first on this thread.
  std::vector<absl::StatusOr<std::unique_ptr<GangLink>>> MeetAll(MpiWay first, MpiWay last) {
    std::vector<absl::StatusOr<std::unique_ptr<GangLink>>> links;
    for (int i = 0; i < 3; ++i) links.emplace_back(absl::UnknownError(""));
    std::thread second(
        [&] { links[1] = Meet(1, MpiWay::kMpirun, base::Patient(absl::Seconds(20))); });
    std::thread third([&] { links[2] = Meet(2, last, base::Patient(absl::Seconds(20))); });
    links[0] = Meet(0, first, base::Patient(absl::Seconds(20)));
    second.join();
    third.join();
    return links;
  }

  const int port_ = FreePort();
  std::atomic<bool> cancelled_ = false;
};

TEST_F(GangLinkTest, AllMeetAndAgreeOnMpirunIfAllCanAndOnPmixIfTheFirstCan) {
  const struct {
    MpiWay first, last, all;
  } examples[] = {{MpiWay::kMpirun, MpiWay::kMpirun, MpiWay::kMpirun},
                  {MpiWay::kMpirun, MpiWay::kNone, MpiWay::kNone},
                  {MpiWay::kNone, MpiWay::kMpirun, MpiWay::kNone},
                  {MpiWay::kPmix, MpiWay::kNone, MpiWay::kPmix}};
  for (const auto& example : examples) {
    const auto links = MeetAll(example.first, example.last);
    for (const auto& link : links) {
      ASSERT_TRUE(link.ok()) << link.status();
      EXPECT_EQ((*link)->way(), example.all);
    }
    EXPECT_EQ((*links[0])->peers().size(), 2u);
    EXPECT_EQ((*links[1])->peers().size(), 1u);
  }
}

TEST_F(GangLinkTest, WishesGoFromTheFirstToTheOthers) {
  auto links = MeetAll(MpiWay::kMpirun, MpiWay::kMpirun);
  for (const auto& link : links) ASSERT_TRUE(link.ok()) << link.status();
  ASSERT_TRUE((*links[0])->peers().at(2).Send({{"run", "orted"}}).ok());
  const auto wish =
      (*links[2])->peers().at(0).Receive(base::Deadline::After(base::Patient(absl::Seconds(10))));
  ASSERT_TRUE(wish.ok());
  EXPECT_EQ((*wish)["run"], "orted");
}

TEST_F(GangLinkTest, ANodeThatDoesNotComeIsNamed) {
  std::thread second([&] { Meet(1, MpiWay::kMpirun, absl::Milliseconds(300)).IgnoreError(); });
  const auto link = Meet(0, MpiWay::kMpirun, absl::Milliseconds(300));
  second.join();
  EXPECT_EQ(link.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(link.status().message()), HasSubstr("waiting for n"));
}

TEST_F(GangLinkTest, ANodeWhoseLauncherHasGoneIsNamed) {
  std::thread first([&] {
    const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<uint16_t>(port_));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    const base::UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
  });
  const auto link = Meet(1, MpiWay::kMpirun, base::Patient(absl::Seconds(20)));
  first.join();
  EXPECT_EQ(link.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(link.status().message()),
              HasSubstr("lost connection to the launcher of node n1"));
}

TEST_F(GangLinkTest, AConnectionThatFailsAtOnceIsTriedAgainAndItsErrorTold) {
  spec::LaunchPlan plan = Plan(1);
  plan.nodes[0].address = "255.255.255.255";  // connect fails without a packet
  const auto link = GangLink::Meet(plan, MpiWay::kMpirun, 0, cancelled_,
                                   base::Deadline::After(absl::Milliseconds(100)));
  EXPECT_EQ(link.status().code(), absl::StatusCode::kDeadlineExceeded) << link.status();
  EXPECT_THAT(std::string(link.status().message()),
              HasSubstr("waiting for n1 (Network is unreachable)"));
}

TEST_F(GangLinkTest, WhoDoesNotHoldTheTokenIsNeitherLetInNorBelieved) {
  absl::Status strangers;
  std::thread stranger([&] {
    strangers = GangLink::Meet(Plan(1, "cafe"), MpiWay::kMpirun, 0, cancelled_,
                               base::Deadline::After(base::PatientTimeout(absl::Milliseconds(500))))
                    .status();
  });
  const auto link = Meet(0, MpiWay::kMpirun, base::PatientTimeout(absl::Milliseconds(500)));
  stranger.join();
  EXPECT_EQ(link.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(strangers.code(), absl::StatusCode::kPermissionDenied) << strangers;
}

TEST_F(GangLinkTest, ThoseWhoConnectAndSayNothingHoldNobodyUp) {
  std::thread silent([&] {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<uint16_t>(port_));
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::vector<base::UniqueFd> sockets;
    const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    while (sockets.size() < 20 && !deadline.Expired()) {
      base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const auto* const address = reinterpret_cast<const sockaddr*>(&name);
      if (::connect(fd.get(), address, sizeof name) != 0) continue;  // it does not listen yet
      ::send(fd.get(), "{", sockets.size() % 2, MSG_NOSIGNAL);
      sockets.push_back(std::move(fd));
    }
    const auto begin = absl::Now();
    std::thread second(
        [&] { EXPECT_TRUE(Meet(1, MpiWay::kMpirun, base::Patient(absl::Seconds(20))).ok()); });
    EXPECT_TRUE(Meet(2, MpiWay::kMpirun, base::Patient(absl::Seconds(20))).ok());
    second.join();
    EXPECT_LT(absl::Now() - begin, base::Patient(absl::Seconds(4)));  // less than one may take
  });
  const auto link = Meet(0, MpiWay::kMpirun, base::Patient(absl::Seconds(40)));
  silent.join();
  EXPECT_TRUE(link.ok()) << link.status();
}

TEST_F(GangLinkTest, AWaitCanBeCancelled) {
  cancelled_ = true;
  EXPECT_EQ(Meet(0, MpiWay::kMpirun, base::Patient(absl::Seconds(20))).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(Meet(1, MpiWay::kMpirun, base::Patient(absl::Seconds(20))).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tutti::launch
