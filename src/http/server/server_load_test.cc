// Many connections: strangers, nodes and slow handlers leave connections, memory and threads to
// others. Covers: server.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "http/client/client.h"
#include "http/http_test_support.h"
#include "http/server/server.h"

namespace tutti::http {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

size_t Threads() {
  const auto all = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<size_t>(std::distance(all, std::filesystem::directory_iterator()));
}

class HttpLoadTest : public HttpTest {};
INSTANTIATE_TEST_SUITE_P(, HttpLoadTest, testing::Bool(), HttpOrTls);

TEST_P(HttpLoadTest, StrangersWhoSayNothingKeepNobodyOut) {
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

TEST(HttpLoad, StrangersWhoseBodiesDoNotComeKeepNobodyOut) {
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

TEST(HttpLoad, TheBodyOfAStrangerIsNotRead) {
  ServerOptions options;
  options.admit = [](const Request&) { return Admission{}; };
  auto server = StartServer(Echo, options);
  EXPECT_THAT(Raw(server->port(),
                  "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"),
              StartsWith("HTTP/1.1 401"));
}

// The bodies that strangers send are read for a while, so that they see the answer, but users'
// headers go first.
TEST(HttpLoad, StrangersWhoGoOnSendingKeepNobodyWaiting) {
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

TEST(HttpLoad, TheRoomOfABodyIsGivenBackOnceItIsAnswered) {
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

TEST(HttpLoad, ABodyForWhichThereIsNoRoomIsReadByItsHandler) {
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
  WakerList wakers_;
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

TEST(HttpLoad, WhoWaitsCostsNoThread) {
  Polls polls;
  ServerOptions options;
  options.admit = ByToken;
  auto server = StartServer(std::ref(polls), options);
  const size_t before = Threads();
  std::vector<base::UniqueFd> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(ConnectTo(server->port()));
  Pollers nodes(server->port(), "node");
  nodes.Add(300, polls);
  // The threads that have taken the requests end soon.
  base::AwaitPatiently(absl::Seconds(60), [&] { return Threads() <= before + 20; });
  polls.Go();
  for (const std::string& answer : nodes.ReadAll()) EXPECT_THAT(answer, HasSubstr("go"));
}

TEST(HttpLoad, NodesThatWaitLeaveConnectionsToUsers) {
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
    // The connection of the one before counts until the server has seen that it is closed.
    EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] {
      const auto taken = Client(server->url(), "secret").Send({.target = "/"});
      return taken.ok() && taken->status == 200;
    }));
  }
  polls.Go();
}

TEST(HttpLoad, NodesWhoseHandlersHangLeaveThreadsToUsers) {
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
  base::UniqueFd Ask(absl::string_view target, absl::string_view token = "secret") const {
    base::UniqueFd socket = ConnectTo(server_->port());
    const std::string request =
        absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ", token,
                     "\r\nConnection: close\r\n\r\n");
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

  // Asks again where a busy machine had no thread for it in time.
  base::UniqueFd AskUntilBegun(absl::string_view target, int count) const {
    base::UniqueFd socket;
    base::AwaitPatiently(absl::Seconds(30), [&] {
      if (begun_ >= count) return true;
      pollfd answer = {socket.get(), POLLIN, 0};
      if (!socket.valid() || ::poll(&answer, 1, 0) == 1) socket = Ask(target);
      return false;
    });
    EXPECT_EQ(begun_, count);
    return socket;
  }

  ServerOptions options_;

 private:
  absl::Notification over_;
  std::atomic<int> begun_ = 0;
  std::unique_ptr<Server> server_;
};

TEST(HttpLoad, SlowHandlersLeaveThreadsToQuickOnesAndAGroupToOthers) {
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

TEST(HttpLoad, MonitorsHaveTwoThreadsAndLeaveTheOthersToUsers) {
  Hanging hanging;
  hanging.Start();
  std::vector<base::UniqueFd> asked;
  for (int i = 0; i < 8; ++i) asked.push_back(hanging.Ask("/scrape", "monitor"));
  EXPECT_TRUE(hanging.AwaitBegun(2));
  EXPECT_EQ(hanging.QuickCall(), 200);
  EXPECT_TRUE(hanging.AwaitBegun(2));
  hanging.Release();
  for (const base::UniqueFd& one : asked) {
    EXPECT_THAT(Hanging::AnswerOn(one), StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpLoad, WhoFindsNoThreadInTimeIsTold) {
  Hanging hanging;
  hanging.options_.room_timeout = base::PatientTimeout(absl::Milliseconds(50));
  hanging.Start();
  std::vector<base::UniqueFd> asked;
  for (int i = 0; i < 4; ++i) asked.push_back(hanging.AskUntilBegun("/slow?group=one", i + 1));
  for (int i = 0; i < 3; ++i) {  // the first waits, those after it need not
    const std::string refusal = Hanging::AnswerOn(hanging.Ask("/slow?group=one"));
    EXPECT_THAT(refusal, AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1")));
  }
  asked.push_back(hanging.AskUntilBegun("/slow?group=another", 5));
  hanging.Release();
  for (const base::UniqueFd& one : asked) {
    EXPECT_THAT(Hanging::AnswerOn(one), StartsWith("HTTP/1.1 200"));
  }
}

TEST(HttpLoad, AFileIsSentOnceThereIsAThreadForIt) {
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

TEST(HttpLoad, RefusesAStrangerBeforeHisBodyComes) {
  ServerOptions options;
  options.admit = ByToken;
  options.header_timeout = base::Patient(absl::Milliseconds(200));
  auto server = StartServer(Echo, options);
  EXPECT_THAT(
      RawInTime(server->port(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\nx"),
      AllOf(StartsWith("HTTP/1.1 401"), HasSubstr("Connection: close")));
  // A small one is passed over, under one deadline for all of it.
  EXPECT_THAT(RawInTime(server->port(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"),
              StartsWith("HTTP/1.1 401"));
}

TEST(HttpLoad, AnAnswerThatComesLaterIsLookedForAtItsTimeToo) {
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

TEST(HttpLoad, AServerThatStopsAnswersThoseWhoWait) {
  Polls polls;
  auto server = StartServer(std::ref(polls));
  Pollers waiting(server->port(), "");
  waiting.Add(3, polls);
  server->Stop(base::Patient(absl::Seconds(10)));
  for (const std::string& answer : waiting.ReadAll()) {
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  }
}

}  // namespace
}  // namespace tutti::http
