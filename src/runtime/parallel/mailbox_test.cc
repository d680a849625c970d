#include "runtime/parallel/mailbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "base/test_patience.h"
#include "runtime/comm/communicator.h"
#include "runtime/parallel/thread_group_fake.h"

namespace tutti::parallel {
namespace {

using testing::HasSubstr;

base::Deadline Shortly() { return base::Deadline::After(base::Patient(absl::Seconds(60))); }

std::unique_ptr<Mailbox> Open(comm::Communicator& ranks, const MailboxOptions& options) {
  auto opened = Mailbox::Open(ranks, options, Shortly());
  EXPECT_TRUE(opened.ok()) << opened.status();
  return *std::move(opened);
}

void CloseOne(std::unique_ptr<Mailbox> mailbox, bool sends = true) {
  std::vector<std::unique_ptr<Mailbox>> all;
  all.push_back(std::move(mailbox));
  Mailbox::CloseAll(std::move(all), sends);
}

// One tensor that says a number; `elements` of it, so that a few fill what lies between the ranks.
Message Saying(int64_t number, int64_t elements = 1) {
  return {torch::full({elements}, number, torch::kInt64)};
}

int64_t SaidBy(const Message& message) { return message.at(0)[0].item<int64_t>(); }

TEST(Mailbox, MessagesKeepOrderShapesTypesAndMemoryOrder) {
  OnEveryRank(2, [](int rank, std::unique_ptr<comm::Communicator> ranks) {
    auto mailbox = Open(*ranks, {.from = 1, .to = 0});
    const auto images = torch::arange(2 * 3 * 4 * 5)
                            .view({2, 3, 4, 5})
                            .to(torch::kBFloat16)
                            .contiguous(torch::MemoryFormat::ChannelsLast);
    const std::vector<Message> messages = {
        {images, torch::arange(2), torch::zeros({0, 7})}, Saying(5), {torch::tensor(2.5)}};
    if (rank == 1) {
      for (const Message& message : messages) {
        EXPECT_EQ(mailbox->Send(message, Shortly()), absl::OkStatus());
      }
      EXPECT_EQ(mailbox->Flush(), absl::OkStatus());
    } else {
      mailbox->Expect(3, Shortly());
      for (const Message& message : messages) {
        const auto received = mailbox->Receive();
        ASSERT_TRUE(received.ok()) << received.status();
        ASSERT_EQ(received->size(), message.size());
        for (size_t i = 0; i < message.size(); ++i) {
          EXPECT_EQ((*received)[i].scalar_type(), message[i].scalar_type());
          EXPECT_EQ((*received)[i].strides(), message[i].strides());
          EXPECT_TRUE(torch::equal((*received)[i], message[i]));
        }
      }
    }
    CloseOne(std::move(mailbox));
  });
}

TEST(Mailbox, WhatComesIsThereForWhoDoesNotWait) {
  OnEveryRank(2, [](int rank, std::unique_ptr<comm::Communicator> ranks) {
    auto mailbox = Open(*ranks, {.from = 0, .to = 1, .ahead = 4});
    if (rank == 1) {
      mailbox->Listen(base::Patient(absl::Seconds(60)));
      const auto nothing = mailbox->TryReceive();
      ASSERT_TRUE(nothing.ok()) << nothing.status();
      EXPECT_FALSE(nothing->has_value());
    }
    ASSERT_TRUE(ranks->Barrier(Shortly()).ok());
    if (rank == 0) {
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(mailbox->Send(Saying(i), Shortly()).ok());
      CloseOne(std::move(mailbox));
      return;
    }
    std::vector<int64_t> numbers;
    absl::Status end;
    for (const base::Deadline until = Shortly(); end.ok() && !until.Expired();) {
      auto next = mailbox->TryReceive();
      end = next.status();
      if (next.ok() && next->has_value()) numbers.push_back(SaidBy(**next));
    }
    EXPECT_EQ(numbers, (std::vector<int64_t>{0, 1, 2}));
    EXPECT_EQ(end.code(), absl::StatusCode::kCancelled) << end;
    EXPECT_THAT(std::string(end.message()), HasSubstr("rank 0 sends no more messages"));
    CloseOne(std::move(mailbox));
  });
}

// Of one that nobody empties the other takes no notice.
TEST(Mailbox, WhoLetsGoOfTheOldestNeverWaitsAndCounts) {
  OnEveryRank(2, [](int rank, std::unique_ptr<comm::Communicator> ranks) {
    constexpr int64_t kMessages = 40, kLarge = 1 << 19;  // more than lies between two ranks
    std::vector<int64_t> let_go;
    auto full = Open(
        *ranks, {.from = 0,
                 .to = 1,
                 .waiting = 3,
                 .when_full = MailboxOptions::WhenFull::kDropOldest,
                 .on_drop = [&](const Message& message) { let_go.push_back(SaidBy(message)); }});
    auto other = Open(*ranks, {.from = 0, .to = 1});
    if (rank == 0) {
      for (int64_t i = 0; i < kMessages; ++i) {
        ASSERT_TRUE(full->Send(Saying(i, kLarge), Shortly()).ok());
      }
      EXPECT_GT(full->dropped(), 0);
      EXPECT_EQ(static_cast<int64_t>(let_go.size()), full->dropped());
      EXPECT_TRUE(std::is_sorted(let_go.begin(), let_go.end()));
      ASSERT_TRUE(other->Send(Saying(full->dropped()), Shortly()).ok());
      CloseOne(std::move(other));
      CloseOne(std::move(full));
      return;
    }
    other->Expect(1, Shortly());
    const auto dropped = other->Receive();
    ASSERT_TRUE(dropped.ok()) << dropped.status();
    full->Listen(base::Patient(absl::Seconds(60)));
    std::vector<int64_t> numbers;
    for (auto next = full->Receive(); next.ok(); next = full->Receive()) {
      numbers.push_back(SaidBy(*next));
    }
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    ASSERT_FALSE(numbers.empty());
    EXPECT_EQ(numbers.back(), kMessages - 1) << "the newest stays";
    EXPECT_EQ(static_cast<int64_t>(numbers.size()) + SaidBy(*dropped), kMessages);
    CloseOne(std::move(full));
    CloseOne(std::move(other));
  });
}

TEST(Mailbox, WhoWaitsForRoomIsToldWhoIsLate) {
  constexpr int64_t kHuge = int64_t{8} << 20;  // elements: more than fits between two ranks
  std::latch told(1);
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> ranks) {
    auto full = Open(*ranks, {.from = 1, .to = 0, .waiting = 1});
    if (rank == 0) return told.wait();
    // One is on its way and stays there, one waits, and both have time enough.
    ASSERT_TRUE(full->Send(Saying(0, kHuge), Shortly()).ok());
    ASSERT_TRUE(full->Send(Saying(1), Shortly()).ok());
    const absl::Status status =
        full->Send(Saying(2), base::Deadline::After(base::PatientTimeout(absl::Milliseconds(300))));
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_EQ(comm::LostRank(status), 0) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 0 is late to take one of 1"));
    told.count_down();
    CloseOne(std::move(full), /*sends=*/false);
  });
}

// A message that was let go of takes its deadline with it.
TEST(Mailbox, AMessageIsSentWithinItsOwnDeadline) {
  OnEveryRank(2, [](int rank, std::unique_ptr<comm::Communicator> ranks) {
    auto full =
        Open(*ranks, {.from = 0, .to = 1, .when_full = MailboxOptions::WhenFull::kDropOldest});
    if (rank == 0) {
      int64_t dropped = 0;
      do {  // until the large one is on its way, where it stays, and not let go of
        ASSERT_TRUE(full->Send(Saying(0, int64_t{8} << 20), Shortly()).ok());
        dropped = full->dropped();
        ASSERT_TRUE(full->Send(Saying(1), Shortly()).ok());
      } while (full->dropped() > dropped);
      ASSERT_TRUE(full->Send(Saying(2), base::Deadline::After(absl::ZeroDuration())).ok());
      ASSERT_TRUE(full->Send(Saying(3), Shortly()).ok());
      EXPECT_EQ(full->dropped(), dropped + 2);
      ASSERT_TRUE(ranks->Barrier(Shortly()).ok());
      EXPECT_EQ(full->Flush(), absl::OkStatus());
      CloseOne(std::move(full));
      return;
    }
    ASSERT_TRUE(ranks->Barrier(Shortly()).ok());
    full->Listen(base::Patient(absl::Seconds(60)));
    std::vector<int64_t> numbers;
    for (auto next = full->Receive(); next.ok(); next = full->Receive()) {
      numbers.push_back(SaidBy(*next));
    }
    ASSERT_GE(numbers.size(), 2u);
    EXPECT_EQ(numbers[numbers.size() - 2], 0);
    EXPECT_EQ(numbers.back(), 3);
    CloseOne(std::move(full));
  });
}

TEST(Mailbox, RefusesWhatIsNoMessageAndABoxWithoutRoom) {
  OnEveryRank(2, [](int rank, std::unique_ptr<comm::Communicator> ranks) {
    EXPECT_TRUE(absl::IsInvalidArgument(Mailbox::Open(*ranks, {.waiting = 0}, Shortly()).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(Mailbox::Open(*ranks, {.ahead = 0}, Shortly()).status()));
    auto mailbox = Open(*ranks, {});
    if (rank == 0) {
      EXPECT_TRUE(absl::IsInvalidArgument(mailbox->Send({}, Shortly())));
      const auto many = torch::zeros({1, 1, 1, 1, 1, 1, 1, 1, 1});
      EXPECT_TRUE(absl::IsInvalidArgument(mailbox->Send({many}, Shortly())));
    }
    CloseOne(std::move(mailbox));
  });
}

// The error is that pair's alone.
TEST(Mailbox, ALostRankIsNamedAsTheWholeGroupKnowsItAndOthersGoOn) {
  OnEveryRank(3, [](int rank, std::unique_ptr<comm::Communicator> ranks) {
    std::unique_ptr<Mailbox> from_two, to_one;
    if (rank != 1) from_two = Open(*ranks, {.from = 2, .to = 0});
    if (rank != 2) to_one = Open(*ranks, {.from = 0, .to = 1});
    if (rank == 2) return CloseOne(std::move(from_two), /*sends=*/false);
    if (rank == 0) {
      from_two->Listen(base::Patient(absl::Seconds(60)));
      const auto lost = from_two->Receive();
      EXPECT_EQ(comm::LostRank(lost.status()), 2) << lost.status();
      EXPECT_EQ(to_one->Send(Saying(7), Shortly()), absl::OkStatus());
      CloseOne(std::move(to_one));
      CloseOne(std::move(from_two));
      return;
    }
    to_one->Expect(1, Shortly());
    const auto received = to_one->Receive();
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(SaidBy(*received), 7);
    CloseOne(std::move(to_one));
  });
}

}  // namespace
}  // namespace tutti::parallel
