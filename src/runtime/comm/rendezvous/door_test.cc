#include "runtime/comm/rendezvous/door.h"

#include <gtest/gtest.h>

#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/rendezvous/reception.h"

namespace tutti::comm {
namespace {

constexpr char kToken[] = "secret";

Patience Patient() { return {base::Deadline::After(absl::Seconds(10))}; }

base::UniqueFd EnterAt(const Door& door) {
  auto fd = Connect({"127.0.0.1", door.port()}, "", Patient());
  EXPECT_TRUE(fd.ok()) << fd.status();
  const absl::Status known =
      Authenticate(fd->get(), Side::kOpener, kToken, kRendezvousPurpose, Patient());
  EXPECT_TRUE(known.ok()) << known;
  return *std::move(fd);
}

// The next message that is no heartbeat.
absl::StatusOr<Message> Hear(int fd) {
  while (true) {
    auto message = ReceiveMessage(fd, kLongestMessage, Patient());
    if (!message.ok() || !std::holds_alternative<Progress>(*message)) return message;
  }
}

// A leader that gives up and ends must not be taken for one that was killed.
TEST(DoorTest, WhoCameHearsWhyThereIsNoNextGenerationThoughTheLeaderEndsAtOnce) {
  for (int turn = 0; turn < 50; ++turn) {
    auto door = Door::Open("127.0.0.1", kToken, absl::Seconds(1));
    ASSERT_TRUE(door.ok()) << door.status();
    const base::UniqueFd member = EnterAt(**door);
    Come come{.group = "g", .self = {}, .ended = {}, .agreed = {}};
    come.self.rank = 1;
    come.self.size = 2;
    ASSERT_TRUE(SendMessage(member.get(), come, Patient()).ok());
    const base::Deadline deadline = Patient().deadline;
    while ((*door)->Guests().empty() && !deadline.Expired()) (*door)->AwaitChange(deadline);
    ASSERT_FALSE((*door)->Guests().empty());
    (*door)->Dismiss(absl::FailedPreconditionError("too few"));
    door->reset();
    const auto word = Hear(member.get());
    ASSERT_TRUE(word.ok()) << word.status();
    const Refusal* const refusal = std::get_if<Refusal>(&*word);
    ASSERT_NE(refusal, nullptr);
    EXPECT_EQ(refusal->text, "too few");
  }
}

}  // namespace
}  // namespace tutti::comm
