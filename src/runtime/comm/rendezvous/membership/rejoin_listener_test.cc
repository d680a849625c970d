#include "runtime/comm/rendezvous/membership/rejoin_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ctime>

#include "base/test_patience.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/rendezvous/patience_test_support.h"
#include "runtime/comm/rendezvous/rendezvous_server.h"

namespace tutti::comm {
namespace {

constexpr char kToken[] = "secret";

base::UniqueFd EnterAt(const RejoinListener& listener) {
  auto fd = Connect({"127.0.0.1", listener.port()}, "", Patient());
  EXPECT_TRUE(fd.ok()) << fd.status();
  const absl::Status known =
      Authenticate(fd->get(), Side::kOpener, kToken, kRendezvousPurpose, Patient());
  EXPECT_TRUE(known.ok()) << known;
  return *std::move(fd);
}

// The next message that is no heartbeat.
absl::StatusOr<Message> ReceiveAfterHeartbeats(int fd) {
  while (true) {
    auto message = ReceiveMessage(fd, kLongestMessage, Patient());
    if (!message.ok() || !std::holds_alternative<Progress>(*message)) return message;
  }
}

// A leader that gives up and ends must not be taken for one that was killed.
TEST(RejoinListenerTest, WhoCameHearsWhyThereIsNoNextGenerationThoughTheLeaderEndsAtOnce) {
  for (int turn = 0; turn < 50; ++turn) {
    auto listener =
        RejoinListener::Open("127.0.0.1", kToken, base::PatientTimeout(absl::Seconds(1)));
    ASSERT_TRUE(listener.ok()) << listener.status();
    const base::UniqueFd member = EnterAt(**listener);
    Promise promise{.group = "g", .self = {}, .ended = {}, .agreed = {}};
    promise.self.rank = 1;
    promise.self.size = 2;
    ASSERT_TRUE(SendMessage(member.get(), promise, Patient()).ok());
    const base::Deadline deadline = Patient().deadline;
    while ((*listener)->Joiners().empty() && !deadline.Expired())
      (*listener)->AwaitChange(deadline);
    ASSERT_FALSE((*listener)->Joiners().empty());
    (*listener)->Dismiss(absl::FailedPreconditionError("too few"));
    listener->reset();
    const auto word = ReceiveAfterHeartbeats(member.get());
    ASSERT_TRUE(word.ok()) << word.status();
    const Refusal* const refusal = std::get_if<Refusal>(&*word);
    ASSERT_NE(refusal, nullptr);
    EXPECT_EQ(refusal->text, "too few");
  }
}

// Until a descriptor is free who comes waits in the system's queue, and the listener sleeps.
TEST(RejoinListenerTest, WithoutDescriptorsItRestsAndGoesOnOnceThereAreSome) {
  auto listener = RejoinListener::Open("127.0.0.1", kToken, base::PatientTimeout(absl::Seconds(1)));
  ASSERT_TRUE(listener.ok()) << listener.status();
  const base::UniqueFd asking(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit usual = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const int next = base::UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)).get();
  const rlimit none = {static_cast<rlim_t>(next), usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<uint16_t>((*listener)->port()));
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected =
      ::connect(asking.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place));
  const std::clock_t before = std::clock();
  pollfd silent = {asking.get(), POLLIN, 0};
  const int answers = ::poll(&silent, 1, 500);
  const double busy = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(connected, 0);
  EXPECT_EQ(answers, 0);
  EXPECT_LT(busy, 0.1) << "of 0.5 s";
  EXPECT_TRUE(
      Authenticate(asking.get(), Side::kOpener, kToken, kRendezvousPurpose, Patient()).ok());
}

}  // namespace
}  // namespace tutti::comm
