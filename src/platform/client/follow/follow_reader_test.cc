#include "platform/client/follow/follow_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using testing::ElementsAre;

constexpr char kCompletedJob[] = R"({"id": "j", "state": "Completed"})";

std::string Line(int number) {
  return absl::StrCat(R"({"type": "output", "cursor": "c)", number,
                      R"(", "rank": 0, "stream": "stdout", "text": "line )", number, "\"}\n");
}

bool IsStream(const http::ClientRequest& request) {
  return request.target.find("/stream") != std::string::npos;
}

FollowReaderOptions QuickReader() {
  FollowReaderOptions options;
  options.first_pause = absl::Milliseconds(1);
  return options;
}

// Everything up to the end, as words: a line's text, "lost", "back", "ended", "failed".
std::vector<std::string> ReadAll(FollowReader& reader) {
  std::vector<std::string> words;
  while (true) {
    const auto item = reader.Next(base::Deadline::After(base::Patient(absl::Seconds(10))));
    if (!item.has_value()) {
      words.push_back("silence");
      return words;
    }
    switch (item->kind) {
      case FollowItem::Kind::kLine:
        words.push_back(item->line.text);
        break;
      case FollowItem::Kind::kLost:
        words.push_back("lost");
        break;
      case FollowItem::Kind::kBack:
        words.push_back("back");
        break;
      case FollowItem::Kind::kEnded:
        words.push_back("ended");
        return words;
      case FollowItem::Kind::kFailed:
        words.push_back("failed");
        return words;
    }
  }
}

TEST(FollowReader, BringsEveryLineToTheEndOfTheJob) {
  FakeService service([](const http::ClientRequest& request) -> FakeService::Answer {
    if (!IsStream(request)) return {.chunks = {kCompletedJob}};
    const std::string one = Line(1);
    return {.chunks = {one.substr(0, 10), one.substr(10) + "\n" + Line(2)}};
  });
  FollowReader reader(service.connect(), "j", QuickReader());
  EXPECT_THAT(ReadAll(reader), ElementsAre("line 1", "line 2", "ended"));
}

TEST(FollowReader, GoesOnAfterTheLastLineWhenTheServiceComesBack) {
  std::atomic<int> attempt = 0;
  FakeService service([&](const http::ClientRequest& request) -> FakeService::Answer {
    if (!IsStream(request)) return {.chunks = {kCompletedJob}};
    switch (attempt++) {
      case 0:  // breaks off in the middle of a line
        return {.chunks = {Line(1), Line(2), Line(3).substr(0, 20)},
                .then = absl::UnavailableError("broken")};
      case 1:
        return {.then = absl::UnavailableError("refused")};
      case 2:
        return {.status = 503};
      default:
        return {.chunks = {Line(3)}};
    }
  });
  FollowReader reader(service.connect(), "j", QuickReader());
  EXPECT_THAT(ReadAll(reader), ElementsAre("line 1", "line 2", "lost", "back", "line 3", "ended"));
  const auto requests = service.requests();
  EXPECT_EQ(requests.at(0), "GET /v1/jobs/j/stream?follow=true");
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(requests.at(i), "GET /v1/jobs/j/stream?follow=true&cursor=c2");
  }
}

TEST(FollowReader, AStreamThatEndsBeforeTheJobIsTakenUpAgain) {
  std::atomic<int> attempt = 0;
  FakeService service([&](const http::ClientRequest& request) -> FakeService::Answer {
    if (!IsStream(request)) {
      return {.chunks = {attempt < 2 ? R"({"id": "j", "state": "Running"})" : kCompletedJob}};
    }
    return {.chunks = {Line(++attempt)}};
  });
  FollowReader reader(service.connect(), "j", QuickReader());
  EXPECT_THAT(ReadAll(reader), ElementsAre("line 1", "line 2", "ended"));
}

TEST(FollowReader, SilenceIsNoLoss) {
  std::atomic<int> attempt = 0;
  FakeService service([&](const http::ClientRequest& request) -> FakeService::Answer {
    if (!IsStream(request)) return {.chunks = {kCompletedJob}};
    if (attempt++ == 0) return {.then = absl::DeadlineExceededError("stalled")};
    return {.chunks = {Line(1)}};
  });
  FollowReader reader(service.connect(), "j", QuickReader());
  EXPECT_THAT(ReadAll(reader), ElementsAre("line 1", "ended"));
}

TEST(FollowReader, AnErrorThatStaysIsReportedAtOnce) {
  FakeService service(
      [](const http::ClientRequest&) -> FakeService::Answer { return {.status = 404}; });
  FollowReader reader(service.connect(), "j", QuickReader());
  const auto item = reader.Next(base::Deadline::After(base::Patient(absl::Seconds(10))));
  ASSERT_TRUE(item.has_value());
  EXPECT_EQ(item->kind, FollowItem::Kind::kFailed);
  EXPECT_TRUE(absl::IsNotFound(item->status));
}

TEST(FollowReader, GivesUpWhenTheServiceStaysAway) {
  FakeService service([](const http::ClientRequest&) -> FakeService::Answer {
    return {.then = absl::UnavailableError("refused")};
  });
  FollowReaderOptions options = QuickReader();
  options.give_up_after = absl::Milliseconds(20);
  FollowReader reader(service.connect(), "j", options);
  EXPECT_THAT(ReadAll(reader), ElementsAre("lost", "failed"));
}

TEST(FollowReader, CanBeLeftWhileAReaderIsFarBehind) {
  FakeService service([](const http::ClientRequest& request) -> FakeService::Answer {
    std::string lines;
    for (int i = 0; i < 20'000; ++i) lines += Line(i);
    return {.chunks = {lines}};
  });
  FollowReader reader(service.connect(), "j", QuickReader());
  EXPECT_TRUE(reader.Next(base::Deadline::After(base::Patient(absl::Seconds(10)))).has_value());
}

}  // namespace
}  // namespace tutti::client
