#include "platform/client/submit/create_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <sstream>

#include "base/test_patience.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using ::testing::HasSubstr;

class CreateJobTest : public ::testing::Test {
 protected:
  using Answer = FakeService::Answer;

  absl::StatusOr<std::string> Create(
      absl::Duration give_up_after = base::Patient(absl::Seconds(30))) {
    ServiceClient service(fake_.connect()());
    return CreateJobOnce(service, fake_.connect(), R"({"nonce": "n"})", remarks_,
                         {.give_up_after = give_up_after, .first_pause = absl::Milliseconds(1)});
  }
  // Answers in their order; the last one goes on.
  Answer Next(const http::ClientRequest& request) {
    bodies_.push_back(request.body);
    Answer answer = answers_.front();
    if (answers_.size() > 1) answers_.pop_front();
    return answer;
  }
  static Answer Unavailable(bool reached) {
    return {.then = absl::UnavailableError("it is gone"), .reached = reached};
  }

  std::deque<Answer> answers_;
  std::vector<std::string> bodies_;
  FakeService fake_{[this](const http::ClientRequest& request) { return Next(request); }};
  std::ostringstream remarks_;
};

TEST_F(CreateJobTest, AsksAgainWithTheSameNonceWhereTheAnswerWasLost) {
  answers_ = {Unavailable(true),
              Unavailable(false),  // while it is started again
              {.then = absl::DeadlineExceededError("late")},
              {.status = 201, .chunks = {R"({"id": "brave_ant"})"}}};
  const auto created = Create();
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_THAT(*created, HasSubstr("brave_ant"));
  EXPECT_EQ(bodies_, std::vector<std::string>(4, R"({"nonce": "n"})"));
  EXPECT_EQ(remarks_.str(), "the service's answer was lost; asking again\n");
}

TEST_F(CreateJobTest, AServiceThatWasNeverReachedIsNotWaitedFor) {
  answers_ = {Unavailable(false)};
  EXPECT_TRUE(absl::IsUnavailable(Create().status()));
  EXPECT_EQ(bodies_.size(), 1u);
  EXPECT_EQ(remarks_.str(), "");
}

TEST_F(CreateJobTest, AnAnswerIsTheAnswerAlsoIfItRefuses) {
  answers_ = {Unavailable(true), {.status = 400}};
  EXPECT_TRUE(absl::IsInvalidArgument(Create().status()));
  EXPECT_EQ(bodies_.size(), 2u);
}

TEST_F(CreateJobTest, GivesUpWithWhatIsNotKnown) {
  answers_ = {Unavailable(true)};
  const absl::Status status = Create(absl::Milliseconds(20)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("may have been taken: tutti job list"));
}

}  // namespace
}  // namespace tutti::client
