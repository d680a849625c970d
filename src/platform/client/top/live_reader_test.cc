#include "platform/client/top/live_reader.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

// LiveReaderTest has a service with one job, "a", which may be away.
class LiveReaderTest : public ::testing::Test {
 protected:
  FakeService::Answer AnswerTo(const std::string& target) {
    if (away_) return {.then = absl::UnavailableError("gone"), .reached = false};
    if (target == "/v1/nodes") return {.chunks = {R"({"nodes": [], "warnings": []})"}};
    if (target.find("usage") != std::string::npos) return {.chunks = {R"({"nodes": []})"}};
    if (target == "/v1/jobs/a") return {.chunks = {R"({"id": "a", "state": "Running"})"}};
    if (target.find("summaries") != std::string::npos) return {.chunks = {R"({"jobs": []})"}};
    return {.status = 404, .chunks = {"{}"}};
  }
  std::unique_ptr<LiveReader> Reader(const std::string& open) {
    return std::make_unique<LiveReader>(
        [this] {
          ++connections_;
          return fake_.connect()();
        },
        open, absl::Milliseconds(1), [this] { ++news_; });
  }
  // Waits for what is as `fits` says.
  template <class Fits>
  void WaitFor(LiveReader& reader, const Fits& fits) {
    base::AwaitPatiently(absl::Seconds(20), [&] {
      const auto news = reader.Take();
      return news.has_value() && fits(*news);
    });
  }

  std::atomic<bool> away_ = false;
  std::atomic<int> connections_ = 0, news_ = 0;
  FakeService fake_{
      [this](const http::ClientRequest& request) { return AnswerTo(request.target); }};
};

TEST_F(LiveReaderTest, AsksAgainAndAgainOnOneConnection) {
  const auto reader = Reader("");
  for (int i = 0; i < 3; ++i) {
    WaitFor(*reader, [](const auto& news) { return news.ok() && news->open.empty(); });
  }
  EXPECT_EQ(connections_, 1);
  EXPECT_GE(news_, 3);
}

TEST_F(LiveReaderTest, AsksForAnotherJobOnceThatIsOpened) {
  const auto reader = Reader("");
  WaitFor(*reader, [](const auto& news) { return news.ok() && news->open.empty(); });
  reader->Open("a");
  WaitFor(*reader, [](const auto& news) { return news.ok() && news->open == "a"; });
  reader->Open("other");
  WaitFor(*reader, [](const auto& news) { return absl::IsNotFound(news.status()); });
  reader->Open("");
  WaitFor(*reader, [](const auto& news) { return news.ok() && news->open.empty(); });
}

TEST_F(LiveReaderTest, OpensAtOnceThoughTheIntervalIsLong) {
  LiveReader reader(fake_.connect(), "", absl::Hours(1), [] {});
  WaitFor(reader, [](const auto& news) { return news.ok() && news->open.empty(); });
  reader.Open("a");
  WaitFor(reader, [](const auto& news) { return news.ok() && news->open == "a"; });
}

TEST_F(LiveReaderTest, SaysThatTheServiceIsAwayAndGoesOnByANewConnection) {
  const auto reader = Reader("a");
  WaitFor(*reader, [](const auto& news) { return news.ok(); });
  away_ = true;
  WaitFor(*reader, [](const auto& news) { return absl::IsUnavailable(news.status()); });
  away_ = false;
  WaitFor(*reader, [](const auto& news) { return news.ok(); });
  EXPECT_GE(connections_, 2);
}

// Never answers until it is broken off.
class SilentConnection final : public ServiceConnection {
 public:
  explicit SilentConnection(absl::Notification* asked) : asked_(*asked) {}
  absl::StatusOr<http::ClientResponse> Send(const http::ClientRequest&) override {
    asked_.Notify();
    cancelled_.WaitForNotification();
    return absl::CancelledError("cancelled");
  }
  void Cancel() override { cancelled_.Notify(); }

 private:
  absl::Notification& asked_;
  absl::Notification cancelled_;
};

TEST(LiveReaderEndTest, BreaksAQuestionOffThatIsNotAnswered) {
  absl::Notification asked;
  {
    LiveReader reader([&] { return std::make_unique<SilentConnection>(&asked); }, "",
                      absl::Hours(1), [] {});
    asked.WaitForNotification();
    EXPECT_FALSE(reader.Take().has_value());
  }
  SUCCEED();  // the reader has joined
}

}  // namespace
}  // namespace tutti::client
