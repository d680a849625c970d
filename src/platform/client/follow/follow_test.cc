#include "platform/client/follow/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using testing::Contains;
using testing::Not;

constexpr char kLine[] =
    R"({"type": "output", "cursor": "c1", "rank": 0, "stream": "stdout", "text": "hello"})"
    "\n";

// After the first line was shown, as many interrupts as there are answers.
class ScriptedInterrupts final : public Interrupts {
 public:
  ScriptedInterrupts(std::ostringstream* shown, std::vector<Answer> answers)
      : shown_(*shown), answers_(std::move(answers)) {}
  bool Take() override {
    if (taken_ == answers_.size() || shown_.str().find("hello") == std::string::npos) return false;
    ++taken_;
    return true;
  }
  Answer Ask() override { return answers_.at(taken_ - 1); }

 private:
  std::ostringstream& shown_;
  std::vector<Answer> answers_;
  size_t taken_ = 0;
};

class FollowTest : public testing::Test {
 protected:
  absl::StatusOr<FollowEnd> Follow(FakeService& service, std::vector<Answer> answers = {},
                                   FollowOptions options = {}) {
    LiveText text(out_, {});
    JobDisplay display(&text, {});
    ScriptedInterrupts interrupts(&out_, std::move(answers));
    options.reader.first_pause = absl::Milliseconds(1);
    return FollowJob(service.connect(), "j", options, display, interrupts);
  }

  // Runs until it is cancelled; one line of output.
  FakeService::Answer LongJob(const http::ClientRequest& request) {
    if (request.target == "/v1/jobs/j/cancel") {
      cancelled_.Notify();
      return {.chunks = {"{}"}};
    }
    const char* state = cancelled_.HasBeenNotified() ? "Canceled" : "Running";
    if (request.target == "/v1/jobs/j") {
      return {.chunks = {absl::StrCat(R"({"id": "j", "state": ")", state, "\"}")}};
    }
    if (request.target.find("cursor") == std::string::npos) return {.chunks = {kLine}};
    return {};
  }

  std::ostringstream out_;
  absl::Notification cancelled_;
};

TEST_F(FollowTest, ShowsTheJobToItsEnd) {
  FakeService service([](const http::ClientRequest& request) -> FakeService::Answer {
    if (request.target == "/v1/jobs/j") return {.chunks = {R"({"state": "Failed"})"}};
    return {.chunks = {kLine}};
  });
  const auto end = Follow(service);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->kind, FollowEnd::Kind::kEnded);
  EXPECT_EQ(end->job->state, "Failed");
  EXPECT_EQ(end->cursor, "c1");
  EXPECT_EQ(out_.str(), "[0] hello\n");
}

TEST_F(FollowTest, AfterYesTheJobIsCancelledAndFollowedToItsEnd) {
  FakeService service([this](const auto& request) { return LongJob(request); });
  const auto end = Follow(service, {Answer::kCancel});
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->job->state, "Canceled");
  EXPECT_THAT(service.requests(), Contains("POST /v1/jobs/j/cancel"));
}

TEST_F(FollowTest, AfterDetachTheJobGoesOn) {
  FakeService service([this](const auto& request) { return LongJob(request); });
  const auto end = Follow(service, {Answer::kGoOn, Answer::kDetach});
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->kind, FollowEnd::Kind::kDetached);
  EXPECT_THAT(service.requests(), Not(Contains("POST /v1/jobs/j/cancel")));
}

TEST_F(FollowTest, WhereNobodyCanBeAskedTheJobGoesOn) {
  FakeService service([this](const auto& request) { return LongJob(request); });
  const auto end = Follow(service, {Answer::kLeave});
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->kind, FollowEnd::Kind::kInterrupted);
}

TEST_F(FollowTest, CancelsWithoutAQuestionWhenToldSo) {
  FakeService service([this](const auto& request) { return LongJob(request); });
  FollowOptions options;
  options.cancel_on_interrupt = true;
  const auto end = Follow(service, {Answer::kGoOn}, options);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(end->job->state, "Canceled");
  EXPECT_THAT(service.requests(), Contains("POST /v1/jobs/j/cancel"));
}

TEST_F(FollowTest, SaysOnceThatTheServiceWentAway) {
  int attempt = 0;
  FakeService service([&](const http::ClientRequest& request) -> FakeService::Answer {
    if (request.target == "/v1/jobs/j") return {.chunks = {R"({"state": "Completed"})"}};
    if (++attempt < 5) return {.then = absl::UnavailableError("refused")};
    return {.chunks = {kLine}};
  });
  ASSERT_TRUE(Follow(service).ok());
  EXPECT_EQ(out_.str(),
            "The service went away; the job goes on. Waiting for it to come back …\n"
            "The service is back.\n"
            "[0] hello\n");
}

}  // namespace
}  // namespace tutti::client
