// Covers: client/client.cc, server/server.cc, url.cc, client/connect.cc, server/response_writer.cc,
// client/client_answer.cc, server/request_reader.cc, socket.cc, message.cc.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "platform/http/client/client.h"
#include "platform/http/server/server.h"
#include "platform/http/url.h"

namespace tutti::http {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<Server> StartServer(Handler handler, ServerOptions options = {}) {
  auto server = Server::Start(options, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::shared_ptr<const Identity> SomeIdentity() {
  static const auto* const identity = new std::shared_ptr<const Identity>(
      *Identity::FromPem(*Identity::MakeSelfSigned({"127.0.0.1"})));
  return *identity;
}

// Echoes what it understood of the request.
Response Echo(const Request& request, Connection& connection) {
  const auto body = connection.ReadBody();
  if (!body.ok()) return ErrorResponse(body.status());
  std::string text = absl::StrCat(request.method, " ", request.path, "\n");
  for (const auto& [key, value] : request.query) absl::StrAppend(&text, key, "=", value, "\n");
  return JsonResponse(absl::StrCat(text, "token=", request.BearerToken(), "\n", *body));
}

// `from`: the last byte of the client's address, 127.0.0.x.
base::UniqueFd ConnectTo(int port, uint32_t from = 1) {
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | from);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  name.sin_port = htons(static_cast<uint16_t>(port));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  return fd;
}

// What the server answers to these bytes until it closes the connection.
std::string Raw(int port, absl::string_view bytes) {
  const base::UniqueFd fd = ConnectTo(port);
  ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  std::string answer;
  char block[4096];
  for (ssize_t n; (n = ::recv(fd.get(), block, sizeof block, 0)) > 0;) answer.append(block, n);
  return answer;
}

// Those who wait for an answer or a line.
class Wakers {
 public:
  void Add(std::function<void()> waker) {
    absl::MutexLock lock(&mutex_);
    wakers_.push_back(std::move(waker));
  }
  void WakeAll() const {
    absl::MutexLock lock(&mutex_);
    for (const auto& wake : wakers_) wake();
  }
  size_t count() const {
    absl::MutexLock lock(&mutex_);
    return wakers_.size();
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::function<void()>> wakers_ ABSL_GUARDED_BY(mutex_);
};

Admission ByToken(const Request& request) {
  if (request.BearerToken() == "secret") return {.party = Party::kUser};
  if (request.BearerToken() == "node") return {.party = Party::kNode};
  return {.refusal = ErrorResponse(401, "unauthenticated", "who?")};
}

size_t Threads() {
  const auto all = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<size_t>(std::distance(all, std::filesystem::directory_iterator()));
}

// Over plain HTTP, and over TLS.
class Http : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Server> Start(Handler handler, ServerOptions options = {}) const {
    if (GetParam()) options.identity = SomeIdentity();
    return StartServer(std::move(handler), options);
  }
  static std::string certificate() { return GetParam() ? SomeIdentity()->certificate() : ""; }
};
INSTANTIATE_TEST_SUITE_P(, Http, testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Plain"; });

TEST_P(Http, CarriesMethodPathQueryTokenAndBodyOverOneKeptConnection) {
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

TEST_P(Http, LargeBodiesPassThroughFilesInPieces) {
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

TEST_P(Http, AnswersTooLargeABodyWithoutReadingIt) {
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

// More than a server reads of what it has refused: then it closes, and what is written meets a
// reset.
TEST_P(Http, ARefusalOfFarTooLargeABodyIsAnErrorAndNoSignal) {
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

TEST_P(Http, FollowersGetEachLineAtOnceAndDoNotHoldUpOthers) {
  constexpr int kFollowers = 200;
  std::atomic<int> round = 0;
  Wakers wakers;
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

TEST_P(Http, StreamNoticesAClientThatLeavesAndAServerThatStops) {
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

TEST_P(Http, ClientCanBeCancelledFromAnotherThread) {
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

TEST_P(Http, ClientEndsAtItsDeadlineAndSaysWhenNothingListens) {
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

TEST_P(Http, KeptConnectionThatTheServerClosedIsMadeAnew) {
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

TEST(HttpBytes, SaysWhichPortIsTakenAndWhatToDo) {
  auto server = StartServer(Echo);
  ServerOptions options;
  options.port = server->port();
  const auto second = Server::Start(options, Echo);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()),
              StartsWith(absl::StrCat("127.0.0.1:", server->port(), " is taken")));
}

TEST(HttpBytes, HostileRequestsGetFourHundredsAndNeverReachTheHandler) {
  std::atomic<int> handled = 0;
  ServerOptions options;
  options.header_timeout = absl::Milliseconds(100);
  auto server = StartServer(
      [&](const Request&, Connection&) {
        ++handled;
        return JsonResponse("{}");
      },
      options);
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
  EXPECT_THAT(Raw(port, "GET / HTTP/1.1\r\nHos"), StartsWith("HTTP/1.1 408"));
  EXPECT_EQ(handled, 0);
}

TEST(HttpBytes, BrokenChunksAndStalledBodiesAreErrorsOfTheBody) {
  ServerOptions options;
  options.stall_timeout = absl::Milliseconds(100);
  auto server = StartServer(Echo, options);
  EXPECT_THAT(
      Raw(server->port(), "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
      StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw(server->port(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"),
              StartsWith("HTTP/1.1 408"));
}

TEST(HttpBytes, RefusesConnectionsAboveItsLimitWith503) {
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

TEST_P(Http, StrangersWhoSayNothingKeepNobodyOut) {
  ServerOptions options;
  options.max_connections = 8;
  options.admit = ByToken;
  auto server = Start([](const Request&, Connection&) { return JsonResponse("{}"); }, options);
  Client friends(server->url(), "secret", certificate());
  ASSERT_TRUE(friends.Send({.target = "/"}).ok());
  std::vector<base::UniqueFd> untrusted;
  for (int i = 0; i < 200; ++i) untrusted.push_back(ConnectTo(server->port()));
  const auto response = friends.Send({.target = "/"});
  ASSERT_TRUE(response.ok()) << response.status();
  const auto another = Client(server->url(), "secret", certificate()).Send({.target = "/"});
  EXPECT_TRUE(another.ok()) << another.status();
}

// Sends it and waits for what is answered first; "" if nothing comes.
std::string FirstAnswer(const base::UniqueFd& fd, absl::string_view bytes) {
  const timeval limit = absl::ToTimeval(base::Patient(absl::Seconds(5)));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  char block[4096];
  const ssize_t n = ::recv(fd.get(), block, sizeof block, 0);
  return {block, static_cast<size_t>(std::max<ssize_t>(n, 0))};
}

TEST(HttpConnections, StrangersWhoseBodiesDoNotComeKeepNobodyOut) {
  ServerOptions options;
  options.max_connections = 8;
  options.admit = [](const Request& request) {
    return request.path == "/health" ? Admission{} : ByToken(request);
  };
  auto server =
      StartServer([](const Request&, Connection&) { return JsonResponse("{}"); }, options);
  std::vector<base::UniqueFd> strangers;
  for (uint32_t i = 0; i < 16; ++i) {
    strangers.push_back(ConnectTo(server->port(), 1 + i % 4));
    EXPECT_THAT(FirstAnswer(strangers.back(),
                            "GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\nx"),
                StartsWith("HTTP/1.1 200"));
  }
  for (const char* token : {"secret", "node"}) {
    const auto response = Client(server->url(), token).Send({.target = "/"});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->status, 200);
  }
}

TEST(HttpConnections, TheBodyOfAStrangerIsNotRead) {
  ServerOptions options;
  options.admit = [](const Request&) { return Admission{}; };
  auto server = StartServer(Echo, options);
  EXPECT_THAT(Raw(server->port(),
                  "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"),
              StartsWith("HTTP/1.1 401"));
}

// What they send is read for a while, so that they see the answer, but users' headers go first.
TEST(HttpConnections, StrangersWhoGoOnSendingKeepNobodyWaiting) {
  ServerOptions options;
  options.admit = ByToken;
  auto server =
      StartServer([](const Request&, Connection&) { return JsonResponse("{}"); }, options);
  std::atomic<bool> over = false;
  std::vector<std::thread> strangers;
  for (int i = 0; i < 16; ++i) {
    strangers.emplace_back([&] {
      const std::string header = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n";
      const std::string block(256 << 10, 'x');
      while (!over) {
        const base::UniqueFd fd = ConnectTo(server->port());
        ssize_t n = ::send(fd.get(), header.data(), header.size(), MSG_NOSIGNAL);
        while (n > 0 && !over) n = ::send(fd.get(), block.data(), block.size(), MSG_NOSIGNAL);
      }
    });
  }
  Client client(server->url(), "secret");
  const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(10)));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.Send({.target = "/"})->status, 200);
  EXPECT_FALSE(deadline.Expired());
  over = true;
  for (std::thread& stranger : strangers) stranger.join();
}

TEST(HttpConnections, TheRoomOfABodyIsGivenBackOnceItIsAnswered) {
  absl::Notification over;
  std::atomic<int> hanging = 0;
  ServerOptions options;
  options.prefetch_bytes = 20;
  auto server = StartServer(
      [&](const Request& request, Connection& connection) {
        if (request.path != "/hang") return Echo(request, connection);
        ++hanging;
        over.WaitForNotification();
        return JsonResponse("{}");
      },
      options);
  // Bodies that their handlers have to read have all threads of that lane.
  std::vector<base::UniqueFd> large;
  for (int i = 0; i < 20; ++i) {
    large.push_back(ConnectTo(server->port()));
    const std::string request =
        absl::StrCat("POST /hang HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
    ::send(large.back().get(), request.data(), request.size(), MSG_NOSIGNAL);
  }
  base::AwaitPatiently(absl::Seconds(30), [&] { return hanging == 16; });
  Client client(server->url(), "");
  for (int i = 0; i < 10; ++i) {
    const auto answer = client.Send({.method = "POST", .target = "/", .body = "fifteen letters"});
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_THAT(answer->body, HasSubstr("fifteen letters"));
  }
  over.Notify();
}

TEST(HttpConnections, ABodyForWhichThereIsNoRoomIsReadByItsHandler) {
  ServerOptions options;
  options.prefetch_bytes = 1;
  auto server = StartServer(Echo, options);
  const auto answer =
      Client(server->url(), "").Send({.method = "POST", .target = "/", .body = "hello"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->body, HasSubstr("hello"));
}

// The answer of each request is "go" once it is said.
class Polls {
 public:
  Response operator()(const Request&, Connection& connection) {
    wakers_.Add(connection.Waker());
    Response response;
    response.later = [this](base::Deadline&) -> std::optional<Response> {
      return go_ ? std::optional<Response>(JsonResponse("go")) : std::nullopt;
    };
    return response;
  }
  void Go() {
    go_ = true;
    wakers_.WakeAll();
  }
  void AwaitWaiting(size_t count) const {
    base::AwaitPatiently(absl::Seconds(30), [&] { return wakers_.count() >= count; });
    EXPECT_GE(wakers_.count(), count);
  }

 private:
  std::atomic<bool> go_ = false;
  Wakers wakers_;
};

// Connections that have sent a request and read nothing yet.
class Pollers {
 public:
  Pollers(int port, absl::string_view token)
      : port_(port),
        request_(absl::StrCat("GET /poll HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ", token,
                              "\r\nConnection: close\r\n\r\n")) {}
  void AddOne() {
    sockets_.push_back(ConnectTo(port_));
    ::send(sockets_.back().get(), request_.data(), request_.size(), MSG_NOSIGNAL);
  }
  // Each once the one before it waits: strangers who come at once push each other out.
  void Add(int count, const Polls& polls) {
    for (int i = 0; i < count; ++i) {
      AddOne();
      polls.AwaitWaiting(sockets_.size());
    }
  }
  std::vector<std::string> ReadAll() const {
    std::vector<std::string> answers;
    for (const base::UniqueFd& socket : sockets_) {
      char block[4096];
      const ssize_t n = ::recv(socket.get(), block, sizeof block, 0);
      answers.emplace_back(block, static_cast<size_t>(std::max<ssize_t>(n, 0)));
    }
    return answers;
  }

 private:
  const int port_;
  const std::string request_;
  std::vector<base::UniqueFd> sockets_;
};

TEST(HttpConnections, WhoWaitsCostsNoThread) {
  Polls polls;
  ServerOptions options;
  options.admit = ByToken;
  auto server = StartServer(std::ref(polls), options);
  const size_t before = Threads();
  std::vector<base::UniqueFd> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(ConnectTo(server->port()));
  Pollers nodes(server->port(), "node");
  nodes.Add(300, polls);
  EXPECT_LE(Threads(), before + 20);  // those that have taken the requests in, and end soon
  polls.Go();
  for (const std::string& answer : nodes.ReadAll()) EXPECT_THAT(answer, HasSubstr("go"));
}

TEST(HttpConnections, NodesThatWaitLeaveConnectionsToUsers) {
  Polls polls;
  ServerOptions options;
  options.max_connections = 16;
  options.admit = ByToken;
  auto server = StartServer(
      [&](const Request& request, Connection& connection) {
        return request.path == "/poll" ? polls(request, connection) : JsonResponse("{}");
      },
      options);
  Pollers nodes(server->port(), "node");
  nodes.Add(12, polls);
  const auto refused = Client(server->url(), "node").Send({.target = "/"});
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_EQ(refused->status, 503);
  EXPECT_EQ(refused->headers.at("retry-after"), "1");
  for (int i = 0; i < 20; ++i) {
    const auto taken = Client(server->url(), "secret").Send({.target = "/"});
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->status, 200);
  }
  polls.Go();
}

TEST(HttpConnections, NodesWhoseHandlersHangLeaveThreadsToUsers) {
  absl::Notification over;
  std::atomic<int> hanging = 0;
  ServerOptions options;
  options.admit = ByToken;
  auto server = StartServer(
      [&](const Request& request, Connection&) {
        if (request.path == "/poll") {
          ++hanging;
          over.WaitForNotification();
        }
        return JsonResponse("{}");
      },
      options);
  Pollers nodes(server->port(), "node");
  for (int i = 0; i < 200; ++i) nodes.AddOne();
  base::AwaitPatiently(absl::Seconds(30), [&] { return hanging >= 32; });
  const auto answer = Client(server->url(), "secret").Send({.target = "/"});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(hanging, 32);  // the lane's
  over.Notify();
  for (const std::string& one : nodes.ReadAll()) EXPECT_THAT(one, StartsWith("HTTP/1.1 200"));
}

// Its handlers of "/slow" and "/put" hang until it is released, and say how many have begun.
class Hanging {
 public:
  Hanging() {
    options_.admit = [](const Request& request) {
      Admission admission = ByToken(request);
      if (request.path == "/slow") admission.pace = Pace::kSlow;
      if (request.path == "/put") admission.pace = Pace::kReceives;
      if (request.path != "/") admission.group = std::string(request.Query("group"));
      return admission;
    };
  }
  ~Hanging() { Release(); }
  void Start() {
    server_ = StartServer(
        [this](const Request& request, Connection&) {
          if (request.path != "/") {
            ++begun_;
            over_.WaitForNotification();
          }
          return JsonResponse("{}");
        },
        options_);
  }
  void Release() {
    if (!over_.HasBeenNotified()) over_.Notify();
  }
  base::UniqueFd Ask(absl::string_view target) const {
    base::UniqueFd socket = ConnectTo(server_->port());
    const std::string request =
        absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\n",
                     "Connection: close\r\n\r\n");
    ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
    return socket;
  }
  static std::string AnswerOn(const base::UniqueFd& socket) {
    char block[4096];
    const ssize_t n = ::recv(socket.get(), block, sizeof block, 0);
    return std::string(block, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  }
  int QuickCall() const {
    const auto answer = Client(server_->url(), "secret").Send({.target = "/"});
    return answer.ok() ? answer->status : 0;
  }
  bool AwaitBegun(int count) const {
    base::AwaitPatiently(absl::Seconds(30), [&] { return begun_ >= count; });
    return begun_ == count;
  }

  ServerOptions options_;

 private:
  absl::Notification over_;
  std::atomic<int> begun_ = 0;
  std::unique_ptr<Server> server_;
};

TEST(HttpConnections, SlowHandlersLeaveThreadsToQuickOnesAndAGroupToOthers) {
  Hanging hanging;
  hanging.options_.room_timeout = absl::Hours(1);
  hanging.Start();
  std::vector<base::UniqueFd> asked;
  for (int i = 0; i < 40; ++i) asked.push_back(hanging.Ask("/slow?group=one"));
  EXPECT_TRUE(hanging.AwaitBegun(4));
  for (int i = 0; i < 60; ++i) asked.push_back(hanging.Ask("/slow"));
  EXPECT_TRUE(hanging.AwaitBegun(32)) << "the lane's";
  for (int i = 0; i < 40; ++i) asked.push_back(hanging.Ask("/put"));
  EXPECT_TRUE(hanging.AwaitBegun(48));
  EXPECT_EQ(hanging.QuickCall(), 200);
  hanging.Release();
  for (const base::UniqueFd& one : asked) {
    EXPECT_THAT(Hanging::AnswerOn(one), StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpConnections, WhoFindsNoThreadInTimeIsTold) {
  Hanging hanging;
  hanging.options_.room_timeout = absl::Milliseconds(50);
  hanging.Start();
  std::vector<base::UniqueFd> asked;
  for (int i = 0; i < 4; ++i) asked.push_back(hanging.Ask("/slow?group=one"));
  EXPECT_TRUE(hanging.AwaitBegun(4));
  for (int i = 0; i < 3; ++i) {  // the first waits, those after it need not
    const std::string refusal = Hanging::AnswerOn(hanging.Ask("/slow?group=one"));
    EXPECT_THAT(refusal, AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1")));
  }
  asked.push_back(hanging.Ask("/slow?group=another"));
  EXPECT_TRUE(hanging.AwaitBegun(5));
  hanging.Release();
  for (const base::UniqueFd& one : asked) {
    EXPECT_THAT(Hanging::AnswerOn(one), StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpConnections, AFileIsSentOnceThereIsAThreadForIt) {
  const base::TemporaryDirectory folder;
  const std::string bytes(1 << 20, 'f');
  ASSERT_TRUE(base::ReplaceFile(folder.path() / "file", bytes).ok());
  auto server = StartServer([&](const Request&, Connection&) {
    Response response;
    response.file = folder.path() / "file";
    return response;
  });
  std::vector<std::future<std::string>> read;
  for (int i = 0; i < 40; ++i) {
    read.push_back(std::async(
        std::launch::async, [&] { return Client(server->url(), "").Send({.target = "/"})->body; }));
  }
  for (auto& one : read) EXPECT_EQ(one.get(), bytes);
}

TEST(HttpConnections, RefusesAStrangerBeforeHisBodyComes) {
  ServerOptions options;
  options.admit = ByToken;
  options.header_timeout = base::Patient(absl::Milliseconds(200));
  auto server = StartServer(Echo, options);
  EXPECT_THAT(Raw(server->port(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\nx"),
              AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("Connection: close")));
  // A small one is passed over, under one deadline for all of it.
  EXPECT_THAT(Raw(server->port(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"),
              StartsWith("HTTP/1.1 401"));
}

TEST(HttpConnections, AnAnswerThatComesLaterIsLookedForAtItsTimeToo) {
  auto server = StartServer([](const Request&, Connection&) {
    Response response;
    const base::Deadline deadline = base::Deadline::After(absl::Milliseconds(20));
    response.later = [deadline](base::Deadline& again) -> std::optional<Response> {
      again = deadline;
      return deadline.Expired() ? std::optional<Response>(JsonResponse("late")) : std::nullopt;
    };
    return response;
  });
  Client client(server->url(), "");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Send({.target = "/"})->body, "late");
}

TEST(HttpConnections, AServerThatStopsAnswersThoseWhoWait) {
  Polls polls;
  auto server = StartServer(std::ref(polls));
  Pollers waiting(server->port(), "");
  waiting.Add(3, polls);
  server->Stop(base::Patient(absl::Seconds(10)));
  for (const std::string& answer : waiting.ReadAll()) {
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  }
}

TEST_P(Http, AHandlerThatThrowsIsAnsweredWith500AndAHeaderCannotBeSplit) {
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

TEST(HttpBytes, AnswersHeadWithTheLengthOnlyAndSends100ContinueWhenTheBodyIsWanted) {
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

TEST(Url, EncodesAndDecodesEveryByteButNul) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(*PercentDecode(PercentEncode(all)), all);
  EXPECT_EQ(PercentEncode("a/b c", true), "a/b%20c");
  for (const char* broken : {"%", "%1", "%zz", "a%0", "%00"}) {
    EXPECT_FALSE(PercentDecode(broken).ok()) << broken;
  }
}

TEST(Url, ReadsTheFormsOfABaseUrl) {
  EXPECT_EQ(ParseBaseUrl("http://127.0.0.1:6280/")->port, 6280);
  EXPECT_EQ(ParseBaseUrl("host:99")->host, "host");
  EXPECT_EQ(ParseBaseUrl("http://host")->port, 80);
  EXPECT_EQ(ParseBaseUrl("[::1]:5")->host, "::1");
  for (const char* wrong : {"", "http://", "host:0", "host:x", "host:70000", "https://", "a/b"}) {
    EXPECT_FALSE(ParseBaseUrl(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace tutti::http
