// Tests the server against a client, and against bytes that are no HTTP.
// Covers: response_writer.cc, request_reader.cc.
#include "http/server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <future>
#include <memory>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "http/client/client.h"
#include "http/http_test_support.h"

namespace tutti::http {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpServerTest : public HttpTest {};
INSTANTIATE_TEST_SUITE_P(, HttpServerTest, testing::Bool(), HttpOrTls);

TEST_P(HttpServerTest, AnswersTooLargeABodyWithoutReadingIt) {
  auto server = Start([](const Request&, Connection& connection) {
    const auto body = connection.ReadBody(1000);
    return body.ok() ? JsonResponse("{}") : ErrorResponse(body.status());
  });
  Client client(server->url(), "", certificate());
  ClientRequest request;
  request.method = "POST";
  request.target = "/";
  request.body = std::string(8 << 20, 'x');
  const auto response = client.Send(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 413);
  EXPECT_EQ(ToStatus(*response).code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(ToStatus(*response).message()), HasSubstr("at most 1000 are taken"));
  request.body = "small";
  EXPECT_EQ(client.Send(request)->status, 200);
}

TEST_P(HttpServerTest, FollowersGetEachLineAtOnceAndDoNotHoldUpOthers) {
  constexpr int kFollowers = 200;
  std::atomic<int> round = 0;
  WakerList wakers;
  auto server = Start([&](const Request& request, Connection& connection) {
    if (request.path != "/follow") return JsonResponse("{}");
    wakers.Add(connection.Waker());
    Response response;
    response.stream = [&, sent = 0](base::Deadline&) mutable -> absl::StatusOr<Piece> {
      if (sent == round) return Piece{};
      ++sent;
      return Piece{absl::StrCat("line ", sent, "\n"), sent == 2};
    };
    return response;
  });
  std::atomic<int> lines = 0;
  std::vector<std::thread> followers;
  for (int i = 0; i < kFollowers; ++i) {
    followers.emplace_back([&] {
      Client client(server->url(), "", certificate());
      ClientRequest request;
      request.target = "/follow";
      request.stall_timeout = base::Patient(absl::Seconds(30));
      request.on_chunk = ByLine([&](absl::string_view line) {
        EXPECT_THAT(std::string(line), StartsWith("line "));
        ++lines;
        return absl::OkStatus();
      });
      const auto response = client.Send(request);
      EXPECT_TRUE(response.ok()) << response.status();
    });
  }
  Client client(server->url(), "", certificate());
  const auto wait_for = [&](int count) {
    base::AwaitPatiently(absl::Seconds(30), [&] {
      EXPECT_EQ(client.Send({.target = "/"})->status, 200);
      return lines >= count;
    });
    EXPECT_EQ(lines, count);
  };
  round = 1;
  wakers.WakeAll();
  wait_for(kFollowers);
  round = 2;
  wakers.WakeAll();
  wait_for(2 * kFollowers);
  for (std::thread& follower : followers) follower.join();
}

TEST_P(HttpServerTest, StreamNoticesAClientThatLeavesAndAServerThatStops) {
  absl::Notification left, stopped;
  auto server = Start([&](const Request& request, Connection&) {
    const auto ended = std::shared_ptr<void>(
        nullptr, [over = request.path == "/left" ? &left : &stopped](void*) { over->Notify(); });
    Response response;
    response.stream = [ended, begun = false](base::Deadline&) mutable -> absl::StatusOr<Piece> {
      return Piece{std::exchange(begun, true) ? "" : "begun\n", false};
    };
    return response;
  });
  {
    Client client(server->url(), "", certificate());
    ClientRequest request{.target = "/left"};
    request.on_chunk = [](absl::string_view) { return absl::AbortedError("enough"); };
    EXPECT_EQ(client.Send(request).status().code(), absl::StatusCode::kAborted);
  }
  EXPECT_TRUE(left.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));

  absl::Notification begun;
  std::thread follower([&] {
    Client client(server->url(), "", certificate());
    ClientRequest request{.target = "/stopped"};
    request.on_chunk = [&](absl::string_view) {
      begun.Notify();
      return absl::OkStatus();
    };
    const auto response = client.Send(request);
    EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable) << response.status();
  });
  EXPECT_TRUE(begun.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(10))));
  server->Stop(base::Patient(absl::Seconds(10)));
  EXPECT_TRUE(stopped.HasBeenNotified());
  follower.join();
}

TEST_P(HttpServerTest, AHandlerThatThrowsIsAnsweredWith500AndAHeaderCannotBeSplit) {
  auto server = Start([](const Request& request, Connection&) -> Response {
    if (request.path == "/throw") throw std::runtime_error("secret detail");
    Response response = JsonResponse("{}");
    response.headers.emplace_back("X-Name", "a\r\nSet-Cookie: b");
    return response;
  });
  Client client(server->url(), "", certificate());
  const auto thrown = client.Send({.target = "/throw"});
  EXPECT_EQ(thrown->status, 500);
  EXPECT_THAT(thrown->body, testing::Not(HasSubstr("secret")));
  const auto split = client.Send({.target = "/"});
  EXPECT_EQ(split->headers.count("set-cookie"), 0u);
}

TEST(HttpServerBytes, SaysWhichPortIsTakenAndWhatToDo) {
  auto server = StartServer(Echo);
  ServerOptions options;
  options.port = server->port();
  const auto second = Server::Start(options, Echo);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              StartsWith(absl::StrCat("127.0.0.1:", server->port(), " is taken")));
}

TEST(HttpServerBytes, HostileRequestsGetFourHundredsAndNeverReachTheHandler) {
  std::atomic<int> handled = 0;
  const auto handle = [&](const Request&, Connection&) {
    ++handled;
    return JsonResponse("{}");
  };
  auto server = StartServer(handle);
  const int port = server->port();
  EXPECT_THAT(Raw(port, "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(port, "GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(port, "GET /../etc/passwd HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(port, "GET /%2e%2e/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(port, "GET /%00 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(port, "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(port, absl::StrCat("GET / HTTP/1.1\r\nX: ", std::string(40000, 'x'))),
              StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Raw(port,
                  "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(port, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  ServerOptions options;
  options.header_timeout = base::PatientTimeout(absl::Milliseconds(100));
  auto impatient = StartServer(handle, options);
  EXPECT_THAT(RawInTime(impatient->port(), "GET / HTTP/1.1\r\nHos"), StartsWith("HTTP/1.1 408"));
  EXPECT_EQ(handled, 0);
}

TEST(HttpServerBytes, WhoIsClosedWithoutAnAnswerHasTheReasonInTheDebugLog) {
  std::ostringstream log;
  const auto former = spdlog::default_logger();
  auto logger =
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
  logger->set_level(spdlog::level::debug);
  spdlog::set_default_logger(logger);
  ServerOptions options;
  options.header_timeout = base::PatientTimeout(absl::Milliseconds(100));
  auto server = StartServer(Echo, options);
  EXPECT_EQ(Raw(server->port(), ""), "");
  server.reset();  // with its threads
  spdlog::set_default_logger(former);
  EXPECT_THAT(log.str(), HasSubstr("is closed: no request came in time"));
}

TEST(HttpServerBytes, BrokenChunksAndStalledBodiesAreErrorsOfTheBody) {
  ServerOptions options;
  options.stall_timeout = base::PatientTimeout(absl::Milliseconds(100));
  auto server = StartServer(Echo, options);
  EXPECT_THAT(
      Raw(server->port(), "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
      StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(server->port(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"),
              StartsWith("HTTP/1.1 408"));
}

TEST(HttpServerBytes, RefusesConnectionsAboveItsLimitWith503) {
  ServerOptions options;
  options.max_connections = 1;
  absl::Notification begun, over;
  auto server = StartServer(
      [&](const Request&, Connection&) {
        begun.Notify();
        over.WaitForNotification();
        return JsonResponse("{}");
      },
      options);
  auto first = std::async(std::launch::async,
                          [&] { return Client(server->url(), "").Send({.target = "/"}); });
  begun.WaitForNotification();
  EXPECT_THAT(Raw(server->port(), ""), StartsWith("HTTP/1.1 503"));
  over.Notify();
  EXPECT_TRUE(first.get().ok());
}

TEST_P(HttpServerTest, TellsOfEachAnswerThatBegins) {
  absl::Mutex mutex;
  std::vector<std::pair<int, int>> told;  // kind and status
  ServerOptions options;
  options.admit = [](const Request& request) {
    Admission admission = ByToken(request);
    admission.kind = request.path == "/a" ? 7 : -1;
    return admission;
  };
  options.on_answered = [&](const AnsweredRequest& answered) {
    EXPECT_GE(answered.time, absl::ZeroDuration());
    EXPECT_LT(answered.time, base::Patient(absl::Seconds(30)));
    absl::MutexLock lock(&mutex);
    told.emplace_back(answered.kind, answered.status);
  };
  auto server = Start(
      [](const Request& request, Connection&) {
        Response response = JsonResponse("{}");
        if (request.path == "/a") {
          response.later = [](base::Deadline&) { return JsonResponse("{}", 201); };
        }
        return response;
      },
      options);
  Client user(server->url(), "secret", certificate());
  EXPECT_EQ(user.Send({.target = "/a"})->status, 201);
  EXPECT_EQ(user.Send({.target = "/b"})->status, 200);
  EXPECT_EQ(Client(server->url(), "", certificate()).Send({.target = "/a"})->status, 401);
  const ConnectionCounts open = server->connections();
  EXPECT_GE(open.users, 1);
  EXPECT_EQ(open.nodes, 0);
  EXPECT_GT(open.most, 1);
  absl::MutexLock lock(&mutex);
  EXPECT_THAT(told,
              ::testing::ElementsAre(std::pair(7, 201), std::pair(-1, 200), std::pair(7, 401)));
}

TEST(HttpServerBytes, AnswersHeadWithTheLengthOnlyAndSends100ContinueWhenTheBodyIsWanted) {
  auto server = StartServer(Echo);
  Client client(server->url(), "");
  const auto head = client.Send({.method = "HEAD", .target = "/"});
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->headers.at("content-length"), "14");
  EXPECT_TRUE(head->body.empty());
  EXPECT_EQ(client.Send({.target = "/"})->body, "GET /\ntoken=\n");
  EXPECT_THAT(Raw(server->port(),
                  "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n"
                  "Expect: 100-continue\r\n\r\nhi"),
              StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"));
}

}  // namespace
}  // namespace tutti::http
