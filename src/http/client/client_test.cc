// Tests the client against a server, over plain HTTP and TLS.
// Covers: connect.cc, client_answer.cc, http/socket.cc, http/message.cc.
#include "http/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <set>
#include <thread>

#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "http/http_test_support.h"
#include "http/server/server.h"

namespace tutti::http {
namespace {

using ::testing::HasSubstr;

class HttpClientTest : public HttpTest {};
INSTANTIATE_TEST_SUITE_P(, HttpClientTest, testing::Bool(), HttpOrTls);

TEST_P(HttpClientTest, CarriesMethodPathQueryTokenAndBodyOverOneKeptConnection) {
  std::set<std::string> peers;
  auto server = Start([&](const Request& request, Connection& connection) {
    peers.insert(request.peer);
    return Echo(request, connection);
  });
  Client client(server->url(), "secret", certificate());
  for (int i = 0; i < 3; ++i) {
    ClientRequest request;
    request.method = "POST";
    request.target = "/v1/a%20b?x=1%26&y=a+b";
    request.body = "hello";
    const auto response = client.Send(request);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "POST /v1/a b\nx=1&\ny=a b\ntoken=secret\nhello");
    EXPECT_EQ(response->headers.at("content-type"), "application/json");
  }
  EXPECT_EQ(peers.size(), 1u);
}

TEST_P(HttpClientTest, LargeBodiesPassThroughFilesInPieces) {
  const base::TemporaryDirectory folder;
  std::string content(20 << 20, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 2654435761u >> 13);
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "in", content).ok());
  size_t largest = 0;
  auto server = Start([&](const Request& request, Connection& connection) {
    if (request.method == "PUT") {
      std::string got;
      const auto status = connection.ReadBodyTo(
          [&](absl::string_view piece) {
            largest = std::max(largest, piece.size());
            got.append(piece.data(), piece.size());
            return absl::OkStatus();
          },
          uint64_t{1} << 40);
      if (!status.ok()) return ErrorResponse(status);
      EXPECT_TRUE(base::WriteFileAtomic(folder.path() / "stored", got).ok());
      return JsonResponse("{}");
    }
    Response response;
    response.file = folder.path() / "stored";
    return response;
  });
  Client client(server->url(), "", certificate());
  ClientRequest put;
  put.method = "PUT";
  put.target = "/file";
  put.body_file = folder.path() / "in";
  const auto answer = client.Send(put);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "{}");
  EXPECT_LE(largest, size_t{64} << 10);
  ASSERT_TRUE(client.Download("/file", folder.path() / "out").ok());
  EXPECT_TRUE(*base::ReadFile(folder.path() / "out") == content);
}

// More than a server reads of what it has refused: then it closes, and what is written meets a
// reset.
TEST_P(HttpClientTest, ARefusalOfFarTooLargeABodyIsAnErrorAndNoSignal) {
  struct sigaction before {};
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  ASSERT_EQ(::sigaction(SIGPIPE, &plain, &before), 0);
  auto server =
      Start([](const Request&, Connection&) { return ErrorResponse(413, "large", "no"); });
  Client client(server->url(), "", certificate());
  ClientRequest request;
  request.method = "POST";
  request.target = "/";
  request.body = std::string(size_t{200} << 20, 'x');
  const auto response = client.Send(request);
  if (response.ok()) {
    EXPECT_EQ(response->status, 413);
  } else {
    EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable) << response.status();
  }
  ::sigaction(SIGPIPE, &before, nullptr);
}

TEST_P(HttpClientTest, ClientCanBeCancelledFromAnotherThread) {
  absl::Notification begun;
  auto server = Start([&](const Request&, Connection& connection) {
    begun.Notify();
    while (!connection.Closed()) absl::SleepFor(absl::Milliseconds(1));
    return JsonResponse("{}");
  });
  Client client(server->url(), "", certificate());
  std::thread canceller([&] {
    begun.WaitForNotification();
    client.Cancel();
  });
  EXPECT_EQ(client.Send({.target = "/"}).status().code(), absl::StatusCode::kCancelled);
  canceller.join();
}

TEST_P(HttpClientTest, ClientEndsAtItsDeadlineAndSaysWhenNothingListens) {
  auto server = Start([&](const Request&, Connection& connection) {
    while (!connection.Closed()) absl::SleepFor(absl::Milliseconds(1));
    return JsonResponse("{}");
  });
  Client client(server->url(), "", certificate());
  const auto late = client.Send({.target = "/", .timeout = absl::Milliseconds(30)});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  const std::string url = server->url();
  server.reset();
  Client lonely(url, "", certificate());
  const auto refused = lonely.Send({.target = "/"});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("Connection refused"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("tutti serve"));
}

TEST_P(HttpClientTest, KeptConnectionThatTheServerClosedIsMadeAnew) {
  ServerOptions options;
  options.idle_timeout = absl::Milliseconds(1);
  auto server = Start(Echo, options);
  Client client(server->url(), "", certificate());
  for (int i = 0; i < 20; ++i) {
    const auto response = client.Send({.target = "/"});
    ASSERT_TRUE(response.ok()) << response.status();
    absl::SleepFor(absl::Milliseconds(i % 3));  // around the idle limit, to hit both sides of it
  }
}

}  // namespace
}  // namespace tutti::http
