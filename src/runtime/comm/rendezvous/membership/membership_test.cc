// What one rank's membership says on the wire, and what it makes of an end, when those that it
// talks to take in nothing, or late.
// Covers: runtime/comm/rendezvous/wire/buffered_connection.cc, shared_notifier.cc.
#include "runtime/comm/rendezvous/membership/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "base/test_patience.h"
#include "runtime/comm/rendezvous/patience_test_support.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {
namespace {

const absl::Duration kPeerTimeout = base::Patient(absl::Seconds(30));

// A connection of the rendezvous with small buffers: it is full soon.
struct NarrowWire {
  NarrowWire() {
    const auto listener = Listen({"127.0.0.1", 0});
    const int small = 4096;
    ::setsockopt(listener->get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    own = *Connect({"127.0.0.1", *PortOf(listener->get())}, "", Patient());
    ::setsockopt(own.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    peer = *Accept(listener->get(), Patient());
  }
  base::UniqueFd own, peer;
};

// Rank 0 of as many as there are wires, and one more.
std::unique_ptr<Membership> Judge(std::vector<NarrowWire>& wires, absl::Duration peer_timeout) {
  std::vector<base::UniqueFd> controls(1);
  for (NarrowWire& wire : wires) controls.push_back(std::move(wire.own));
  const int size = static_cast<int>(controls.size());
  return std::make_unique<Membership>(0, size, std::move(controls), peer_timeout);
}

// Far more than a small connection holds, and than beats are said after.
void PostMuch(Membership& membership, int to) {
  for (int i = 0; i < 8; ++i) membership.Post(to, std::string(kLongestPayload / 8, 'x'));
}

template <typename Kind>
absl::StatusOr<Kind> ReceiveA(int fd) {
  while (true) {
    auto message = ReceiveMessage(fd, kLongestMessage, Patient());
    if (!message.ok()) return message.status();
    if (Kind* const kind = std::get_if<Kind>(&*message)) return *kind;
  }
}

TEST(MembershipTest, AJudgementReachesARankThatHasNotReadForLong) {
  std::vector<NarrowWire> wires(2);
  const auto judge = Judge(wires, kPeerTimeout);
  PostMuch(*judge, 1);
  wires[1].peer.reset();
  ASSERT_FALSE(judge->CheckWithin(base::Patient(absl::Seconds(20))).ok());
  const auto judgement = ReceiveA<Departure>(wires[0].peer.get());
  ASSERT_TRUE(judgement.ok()) << judgement.status();
  EXPECT_EQ(judgement->rank, 2);
  wires[0].peer.reset();
}

TEST(MembershipTest, ARankThatIsLateIsAskedThoughMuchLiesBeforeTheQuestion) {
  std::vector<NarrowWire> wires(2);
  const auto judge = Judge(wires, kPeerTimeout);
  PostMuch(*judge, 1);
  ASSERT_TRUE(SendMessage(wires[1].peer.get(), FailureReport{1, Reason::kLate}, Patient()).ok());
  ASSERT_TRUE(ReceiveA<Query>(wires[1].peer.get()).ok());
  EXPECT_TRUE(ReceiveA<Query>(wires[0].peer.get()).ok());
  for (NarrowWire& wire : wires) wire.peer.reset();
}

TEST(MembershipTest, BeatsAreNotHeapedUpBeforeARankThatDoesNotRead) {
  std::vector<NarrowWire> wires(2);
  // A beat each 10 ms, or as many times as long as the machine is given.
  const auto judge = Judge(wires, base::PatientTimeout(absl::Milliseconds(80)));
  PostMuch(*judge, 1);
  // Rank 2 hears beats, and is heard, until rank 1 is lost for its silence.
  int beats = 0;
  while (true) {
    auto message = ReceiveMessage(wires[1].peer.get(), kLongestMessage, Patient());
    ASSERT_TRUE(message.ok());
    if (!std::holds_alternative<Progress>(*message)) break;
    ++beats;
    ASSERT_TRUE(SendMessage(wires[1].peer.get(), Progress{}, Patient()).ok());
  }
  EXPECT_GT(beats, 1);
  int heaped = 0;
  while (true) {
    auto message = ReceiveMessage(wires[0].peer.get(), kLongestMessage, Patient());
    ASSERT_TRUE(message.ok());
    if (std::holds_alternative<Departure>(*message)) break;
    heaped += std::holds_alternative<Progress>(*message);
  }
  EXPECT_LE(heaped, 1);
  for (NarrowWire& wire : wires) wire.peer.reset();
}

// A rank of the same host counts any end of the connection as proof that this one has not voted.
TEST(MembershipTest, NobodyVotesBeforeItsLeaveNoticeLiesAtTheRanksOfItsHost) {
  std::vector<NarrowWire> wires(1);
  const auto judge = Judge(wires, kPeerTimeout);
  PostMuch(*judge, 1);
  auto left = std::async(std::launch::async, [&] { return judge->LeaveToReform({true, true}); });
  EXPECT_EQ(left.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  const auto notice = ReceiveA<Departure>(wires[0].peer.get());
  ASSERT_TRUE(notice.ok()) << notice.status();
  EXPECT_TRUE(notice->reforming);
  EXPECT_TRUE(left.get().ok());
}

TEST(MembershipTest, ARankOfThisHostThatDoesNotTakeTheLeaveNoticeInIsNamed) {
  std::vector<NarrowWire> wires(1);
  const auto judge = Judge(wires, absl::Milliseconds(100));
  PostMuch(*judge, 1);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::Status left = judge->LeaveToReform({true, true});
    EXPECT_TRUE(absl::IsFailedPrecondition(left)) << left;
    EXPECT_NE(left.message().find("rank 1 does not take in"), absl::string_view::npos) << left;
  }
}

TEST(MembershipTest, AnEndOfOneWhoseLeaveNoticeIsUnsentIsAResetOnOtherHosts) {
  std::vector<NarrowWire> wires(1);
  auto judge = Judge(wires, kPeerTimeout);
  PostMuch(*judge, 1);
  EXPECT_TRUE(judge->LeaveToReform({true, false}).ok());
  judge.reset();
  BufferedConnection line(std::move(wires[0].peer));
  BufferedConnection::End end = BufferedConnection::End::kOpen;
  while (end == BufferedConnection::End::kOpen) {
    ASSERT_TRUE(WaitFor(line.fd(), POLLIN, Patient()).ok());
    end = line.Read();
  }
  EXPECT_EQ(end, BufferedConnection::End::kReset);
}

TEST(MembershipTest, TheEndNotifiesTheNotifierThatWasGivenLast) {
  std::vector<NarrowWire> wires(1);
  const auto judge = Judge(wires, kPeerTimeout);
  ASSERT_TRUE(judge->Begin("all-reduce").ok());
  Notifier notifier, later;
  judge->NotifyAtEnd(&notifier);
  auto woken = std::async(std::launch::async, [&] {
    notifier.Await(base::Deadline::After(base::Patient(absl::Seconds(20))));
    return base::SteadyNow();
  });
  const absl::Duration start = base::SteadyNow();
  wires[0].peer.reset();
  EXPECT_LT(woken.get() - start, base::Patient(absl::Seconds(10)));
  judge->NotifyAtEnd(&later);  // has ended already
  later.Await(base::Deadline::After(base::Patient(absl::Seconds(20))));
  EXPECT_LT(base::SteadyNow() - start, base::Patient(absl::Seconds(10)));
  judge->NotifyAtEnd(nullptr);
  judge->End();
}

// Writes down what it hears, in its order.
class Hearer final : public Control::Listener {
 public:
  void OnPayload(int, const std::string& payload) override { Record(payload); }
  void OnEnded(const absl::Status& error) override { Record(std::string(error.message())); }

  std::vector<std::string> FirstHeard(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoSeconds(base::Patient(absl::Seconds(20))),
                      [&] { return heard_.size() >= count; });
    return heard_;
  }

 private:
  void Record(std::string what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    heard_.push_back(std::move(what));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
};

TEST(MembershipTest, ALossIsHeardBeforeWhatRankZeroSaidAfterItAndAfterWhatItSaidBefore) {
  NarrowWire wire;
  std::vector<base::UniqueFd> controls;
  controls.push_back(std::move(wire.own));
  Membership membership(2, 3, std::move(controls), kPeerTimeout);
  const Departure lost{.rank = 1, .code = absl::StatusCode::kUnavailable, .text = "is gone"};
  for (const Message& message :
       {Message(ControlPayload{"all agree"}), Message(lost),
        Message(ControlPayload{"rank 0 has shut down"}), Message(Query{})}) {
    ASSERT_TRUE(SendMessage(wire.peer.get(), message, Patient()).ok());
  }
  while (true) {  // until all of it has come
    const auto progress = ReceiveA<Progress>(wire.peer.get());
    ASSERT_TRUE(progress.ok()) << progress.status();
    if (progress->answer) break;
  }
  Hearer hearer;
  membership.SetListener(&hearer);
  EXPECT_THAT(hearer.FirstHeard(3),
              testing::ElementsAre("all agree", testing::HasSubstr("rank 1 left the group"),
                                   "rank 0 has shut down"));
  membership.SetListener(nullptr);
  wire.peer.reset();
}

}  // namespace
}  // namespace tutti::comm
