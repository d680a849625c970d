// Covers: connect.cc, transfer.cc, curl_library.cc.
#include "http/client/fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "base/threads/no_threads_for_tests.h"
#include "base/threads/retry_after.h"
#include "http/client/curl_library.h"
#include "http/client/file_server_for_tests.h"
#include "http/server/server.h"

namespace tutti::http {
namespace {

namespace fs = std::filesystem;

const absl::Duration kFar = base::Patient(absl::Minutes(5));  // what no call may take
const absl::Duration kGenerous =
    base::Patient(absl::Seconds(20));  // on a machine that has much to do

// ScopedVariable is a variable of this process while it lives.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

// Says nothing, ever, but to /redirects/N, which leads to the next.
class SilentServer {
 public:
  SilentServer() {
    auto server = Server::Start({}, [this](const Request& request, Connection& connection) {
      if (absl::StartsWith(request.path, "/redirect")) {
        absl::SleepFor(absl::Milliseconds(100));
        return Response{.status = 302, .headers = {{"Location", "/redirect"}}};
      }
      if (!begun.HasBeenNotified()) begun.Notify();
      while (!connection.Closed()) absl::SleepFor(absl::Milliseconds(1));
      return Response{};
    });
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string url(const std::string& path) const { return server_->url() + path; }

  absl::Notification begun;

 private:
  std::unique_ptr<Server> server_;
};

TEST(Fetch, ACallThatWaitsForASilentServerEndsWhenItIsCancelled) {
  SilentServer server;
  const base::TemporaryDirectory folder("tutti-fetch");
  std::atomic<bool> cancelled = false;
  std::thread canceller([&] {
    server.begun.WaitForNotification();
    cancelled = true;
  });
  const absl::Time begin = absl::Now();
  const absl::Status status = FetchFile(server.url("/file"), folder.path() / "file",
                                        {.timeout = kFar, .stall = kFar}, cancelled);
  canceller.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_LT(absl::Now() - begin, kGenerous);
  EXPECT_EQ(Examine(server.url("/file"), base::Deadline::After(kFar), cancelled).status().code(),
            absl::StatusCode::kCancelled);
}

TEST(Fetch, TheTimeLimitIsOfTheWholeAndNotOfEachPart) {
  SilentServer server;
  const base::TemporaryDirectory folder("tutti-fetch");
  const std::atomic<bool> never = false;
  const absl::Status stalled =
      FetchFile(server.url("/file"), folder.path() / "file",
                {.timeout = absl::Milliseconds(200), .stall = kFar}, never);
  EXPECT_EQ(stalled.code(), absl::StatusCode::kDeadlineExceeded) << stalled;
  // Six answers of 100 ms each would be in time one by one.
  const auto led =
      Examine(server.url("/redirect"), base::Deadline::After(absl::Milliseconds(250)), never);
  EXPECT_EQ(led.status().code(), absl::StatusCode::kDeadlineExceeded) << led.status();
}

// The server sends a body without an end with a status that is no success.
TEST(Fetch, AServersEndlessErrorIsCutOff) {
  std::atomic<int64_t> sent = 0;
  auto server = Server::Start({}, [&](const Request&, Connection&) {
    Response response{.status = 404};
    response.stream = [&](base::Deadline&) -> absl::StatusOr<Piece> {
      sent += 64 << 10;
      return Piece{std::string(64 << 10, 'x'), /*last=*/sent > (256 << 20)};
    };
    return response;
  });
  ASSERT_TRUE(server.ok()) << server.status();
  const base::TemporaryDirectory folder("tutti-fetch");
  const std::atomic<bool> never = false;
  const absl::Status status =
      FetchFile((*server)->url() + "/file", folder.path() / "file", {}, never);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_LT(sent, 64 << 20);  // no more than what lies in buffers on its way
}

TEST(Fetch, GoesOnWhereThereIsNoRoomForAThread) {
  FileServer server;
  server.Put("/file", "content", "");
  const base::TemporaryDirectory folder("tutti-fetch");
  const std::atomic<bool> never = false;
  const auto fetch = [&](const char* name) {
    return FetchFile(server.url("/file"), folder.path() / name, {}, never);
  };
  ASSERT_TRUE(fetch("first").ok());  // the server has its threads from here on
  const base::NoThreads none;
  EXPECT_TRUE(fetch("second").ok());
  EXPECT_EQ(base::ReadFile(folder.path() / "second").value_or(""), "content");
}

// tests/jobs/test_remote_data.py has one that is there.
TEST(Fetch, AProxyThatIsNotThereIsNamedAsOne) {
  const std::atomic<bool> never = false;
  const ScopedVariable variable("http_proxy", "http://no-such-proxy.invalid:1");
  const auto answer = Examine("http://far.invalid/file", base::Deadline::After(kFar), never);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()),
              testing::HasSubstr("cannot find the proxy that http_proxy or https_proxy names"));
}

TEST(Fetch, TheRestIsAskedForWhereATransferWasCut) {
  FileServer server;
  server.Put("/file", "whole", "\"one\"");
  const base::TemporaryDirectory folder("tutti-fetch");
  const fs::path file = folder.path() / "file";
  ASSERT_TRUE(base::ReplaceFile(file.string() + ".part", "wh").ok());
  ASSERT_TRUE(base::ReplaceFile(file.string() + ".validator", "\"old\"").ok());
  const std::atomic<bool> never = false;
  int64_t told = 0;
  const FetchOptions options{.progress = [&](int64_t bytes) { told = bytes; }};
  const absl::Status status = FetchFile(server.url("/file"), file, options, never);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(base::ReadFile(file).value_or(""), "whole") << "of another content than the part";
  EXPECT_EQ(told, 5) << "bytes that are there";
}

// It would have been asked at once; what it asks for is longer than there is time.
TEST(Fetch, ABusyServerIsLeftAloneAsLongAsItAsks) {
  std::atomic<int> asked = 0;
  auto server = Server::Start({}, [&](const Request&, Connection&) {
    ++asked;
    return Response{.status = 429, .headers = {{"Retry-After", "100"}}};
  });
  ASSERT_TRUE(server.ok()) << server.status();
  const base::TemporaryDirectory folder("tutti-fetch");
  const std::atomic<bool> never = false;
  const absl::Status busy =
      FetchFile((*server)->url() + "/file", folder.path() / "file",
                {.timeout = absl::Seconds(60), .pause = absl::Milliseconds(1)}, never);
  EXPECT_EQ(busy.code(), absl::StatusCode::kUnavailable) << busy;
  EXPECT_EQ(base::RetryAfterOf(busy), absl::Seconds(100)) << "for who waits longer";
  EXPECT_EQ(asked, 1);
}

TEST(Fetch, IssuersAreWhereTheVariableOrTheDistributionSays) {
  const base::TemporaryDirectory folder("tutti-fetch");
  const fs::path own = folder.path() / "own.pem";
  ASSERT_TRUE(base::ReplaceFile(own, "").ok());
  const ScopedVariable variable("SSL_CERT_FILE", "");
  EXPECT_EQ(IssuersFile(own), own);
  EXPECT_NE(IssuersFile("/nowhere/at/all.pem"), "/nowhere/at/all.pem");
  const ScopedVariable chosen("SSL_CERT_FILE", "/chosen.pem");
  EXPECT_EQ(IssuersFile(own), "/chosen.pem");
}

TEST(Fetch, AHostThatHasNoAddressIsNamed) {
  const std::atomic<bool> never = false;
  const auto answer = Examine("http://no-such-host.invalid/x", base::Deadline::After(kFar), never);
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable) << answer.status();
  EXPECT_THAT(std::string(answer.status().message()),
              testing::HasSubstr("cannot find host no-such-host.invalid"));
}

}  // namespace
}  // namespace tutti::http
