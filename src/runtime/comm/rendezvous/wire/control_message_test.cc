// Covers: codec.h.
#include "runtime/comm/rendezvous/wire/control_message.h"

#include <gtest/gtest.h>

namespace tutti::comm {
namespace {

Hello SomeHello(int rank) {
  return {rank, 3, 1, GroupOptions::Transport::kTcp, "boot net", "127.77.0.2", 40000, "tutti-x"};
}

TEST(MessageTest, EveryKindComesBackAsItWas) {
  const Message messages[] = {
      SomeHello(2),
      Table{"group", {SomeHello(0), SomeHello(1), SomeHello(2)}},
      Refusal{absl::StatusCode::kInvalidArgument, "rank 1 came twice"},
      Link{"group", 2, 1},
      Progress{7, 6, true},
      Query{9},
      FailureReport{1, Reason::kLate},
      Departure{1, true, 12, absl::StatusCode::kUnavailable, "left"},
      LeaveNotice{12},
      LeaveNotice{12, true},
      Promise{"group", SomeHello(1), {0, 2}, 0, Table{"next", {SomeHello(1)}, 3}},
      Propose{Table{"next", {SomeHello(0)}, 1}},
      Accepted{},
      Decided{Table{"next", {SomeHello(0)}, 1}, true},
      SuccessorQuery{"group"},
      GroupStatus{4, 3, 1},
      JoinRequest{SomeHello(0)},
      Redirect{"127.77.0.2", 40001},
      LeaveAck{},
      ControlPayload{std::string("any\0bytes", 9)}};
  for (const Message& message : messages) {
    const std::string bytes = Write(message);
    const absl::StatusOr<Message> read = Read(bytes);
    ASSERT_TRUE(read.ok()) << message.index();
    EXPECT_EQ(read->index(), message.index());
    EXPECT_EQ(Write(*read), bytes);
  }
  Hello strict = SomeHello(2);
  strict.deterministic = true;
  EXPECT_TRUE(std::get<Hello>(*Read(Write(strict))).deterministic);
  EXPECT_FALSE(std::get<Hello>(*Read(Write(strict))).check_calls);
  strict.check_calls = true;
  EXPECT_TRUE(std::get<Hello>(*Read(Write(strict))).check_calls);
  const Message hello = *Read(Write(SomeHello(2)));
  EXPECT_EQ(std::get<Hello>(hello).address, "127.77.0.2");
  EXPECT_EQ(std::get<Hello>(hello).port, 40000);
  EXPECT_EQ(std::get<Hello>(hello).transport, GroupOptions::Transport::kTcp);
}

TEST(MessageTest, AMessageCutShortOrTooLongIsRefused) {
  const std::string bytes = Write(Table{"group", {SomeHello(0), SomeHello(1)}});
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_TRUE(absl::IsInvalidArgument(Read(absl::string_view(bytes).substr(0, length)).status()));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Read(bytes + "x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Read(std::string(kLongestMessage + 1, '\0')).status()));
}

TEST(MessageTest, ValuesOutOfRangeAreRefused) {
  Hello hello = SomeHello(2);
  hello.size = 0;
  EXPECT_FALSE(Read(Write(hello)).ok());
  hello = SomeHello(kMostRanks);
  EXPECT_FALSE(Read(Write(hello)).ok());
  hello = SomeHello(-1);
  EXPECT_FALSE(Read(Write(hello)).ok());
  hello = SomeHello(1);
  hello.port = 65536;
  EXPECT_FALSE(Read(Write(hello)).ok());
  hello = SomeHello(1);
  hello.streams = kMostTcpStreams + 1;
  EXPECT_FALSE(Read(Write(hello)).ok());
  EXPECT_FALSE(Read("\x7f").ok());
}

TEST(MessageTest, APromiseOutOfRangeIsRefused) {
  Promise promise{"group", SomeHello(1), {kMostRanks}, -1, {}};
  EXPECT_FALSE(Read(Write(promise)).ok());
  promise.ended = {0};
  EXPECT_TRUE(Read(Write(promise)).ok());
  promise.agreed_at = -2;
  EXPECT_FALSE(Read(Write(promise)).ok());
  EXPECT_FALSE(Read(Write(Redirect{"127.77.0.2", 0})).ok());
}

TEST(MessageTest, AListThatClaimsMoreThanItHoldsAllocatesNothingForIt) {
  std::string bytes = Write(Table{"", {}});
  for (size_t i = bytes.size() - 4; i < bytes.size(); ++i) bytes[i] = '\xff';
  EXPECT_TRUE(absl::IsInvalidArgument(Read(bytes).status()));
}

TEST(MessageTest, ATextThatIsTooLongIsCut) {
  const auto read = Read(Write(Refusal{absl::StatusCode::kUnknown, std::string(2000, 'a')}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<Refusal>(*read).text.size(), kLongestText);
}

}  // namespace
}  // namespace tutti::comm
