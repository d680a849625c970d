#include "platform/storage/direct/bearer_token.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/test_patience.h"
#include "base/threads/retry_after.h"
#include "http/server/server.h"
#include "platform/storage/storage_fault.h"

namespace tutti::storage {
namespace {

class BearerTokenTest : public ::testing::Test {
 protected:
  BearerTokenTest() {
    auto server =
        http::Server::Start({}, [this](const http::Request& request, http::Connection& connection) {
          ++asked_;
          absl::MutexLock lock(&mutex_);
          path_ = request.path;
          form_ = connection.ReadBody().value_or("");
          http::Response response{.status = status_.load(), .body = answer_};
          if (status_ == 429) response.headers = {{"Retry-After", "90"}};
          return response;
        });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    credentials_.kind = spec::CredentialKind::kServicePrincipal;
    credentials_.tenant = "acme.org";
    credentials_.client = "reader";
    credentials_.client_secret = "a&b";
    credentials_.authority = server_->url();
  }

  std::atomic<int> asked_ = 0, status_ = 200;
  absl::Mutex mutex_;
  std::string path_, form_, answer_ = R"({"access_token": "abc", "expires_in": 3600})";
  std::unique_ptr<http::Server> server_;
  Credentials credentials_;
};

TEST_F(BearerTokenTest, IsAskedForOnceAsLongAsItLasts) {
  BearerToken token(credentials_);
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  EXPECT_EQ(asked_, 1);
  absl::MutexLock lock(&mutex_);
  EXPECT_EQ(path_, "/acme.org/oauth2/v2.0/token");
  EXPECT_EQ(form_,
            "grant_type=client_credentials&client_id=reader&client_secret=a%26b&scope=https%3A%2F%"
            "2Fstorage.azure.com%2F.default");
}

TEST_F(BearerTokenTest, SaysWhatToCheckWhereThereIsNone) {
  status_ = 401;
  answer_ = R"({"error": "invalid_client"})";
  const absl::Status wrong = BearerToken(credentials_).Get().status();
  EXPECT_TRUE(absl::IsPermissionDenied(wrong)) << wrong;
  EXPECT_EQ(wrong.message(),
            "the service principal gets no token: check tenant, client and client_secret");
  EXPECT_EQ(SourceOf(wrong), FaultSource::kLogin);
  status_ = 200;
  for (const char* other : {"", "[]", "{}", R"({"access_token": 1})"}) {
    answer_ = other;
    EXPECT_TRUE(absl::IsPermissionDenied(BearerToken(credentials_).Get().status())) << other;
  }
}

TEST_F(BearerTokenTest, AnAuthorityThatIsAwayOrBusyIsToBeAskedAgain) {
  status_ = 503;
  BearerToken token(credentials_);
  EXPECT_TRUE(absl::IsUnavailable(token.Get().status()));
  status_ = 200;
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  server_->Stop(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(BearerToken(credentials_).Get().status()));
}

TEST_F(BearerTokenTest, WhenABusyAuthorityAsksToBeAskedAgainIsNoted) {
  status_ = 429;
  const absl::Status busy = BearerToken(credentials_).Get().status();
  EXPECT_TRUE(absl::IsUnavailable(busy)) << busy;
  EXPECT_EQ(base::RetryAfterOf(busy), absl::Seconds(90));
}

TEST_F(BearerTokenTest, OneThatLastsCountsWhileItCannotBeRenewed) {
  const absl::Time begin = absl::FromUnixSeconds(1795741200);
  absl::Time now = begin;
  BearerToken token(credentials_, [&] { return now; });
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  status_ = 503;
  now = begin + absl::Minutes(56);
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  EXPECT_EQ(asked_, 2) << "not with each call";
  now = begin + absl::Minutes(58);
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  EXPECT_EQ(asked_, 3);
  now = begin + absl::Minutes(60);
  EXPECT_TRUE(absl::IsUnavailable(token.Get().status()));
}

// While one thread asks for the next, others do not wait for it as long as theirs lasts.
TEST_F(BearerTokenTest, NobodyWaitsForARenewalWhileTheLastOneLasts) {
  const absl::Time begin = absl::FromUnixSeconds(1795741200);
  std::atomic<int> minutes = 0;
  BearerToken token(credentials_, [&] { return begin + absl::Minutes(minutes.load()); });
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  minutes = 56;
  mutex_.Lock();  // which the server waits for
  std::thread renews([&] { EXPECT_EQ(token.Get().value_or("?"), "abc"); });
  const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
  while (asked_ < 2 && deadline.Remaining() > absl::ZeroDuration()) std::this_thread::yield();
  EXPECT_EQ(token.Get().value_or("?"), "abc");
  EXPECT_EQ(asked_, 2);
  mutex_.Unlock();
  renews.join();
}

}  // namespace
}  // namespace tutti::storage
