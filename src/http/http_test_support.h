// Provides what the tests of client and server share: a server, a client of bytes, and the fixture
// that runs each test over plain HTTP and over TLS.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "http/identity.h"
#include "http/server/server.h"

namespace tutti::http {

inline std::unique_ptr<Server> StartServer(Handler handler, ServerOptions options = {}) {
  auto server = Server::Start(options, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

inline std::shared_ptr<const Identity> SomeIdentity() {
  static const auto* const identity = new std::shared_ptr<const Identity>(
      *Identity::FromPem(*Identity::MakeSelfSigned({"127.0.0.1"})));
  return *identity;
}

// Echoes what it understood of the request.
inline Response Echo(const Request& request, Connection& connection) {
  const auto body = connection.ReadBody();
  if (!body.ok()) return ErrorResponse(body.status());
  std::string text = absl::StrCat(request.method, " ", request.path, "\n");
  for (const auto& [key, value] : request.query) absl::StrAppend(&text, key, "=", value, "\n");
  return JsonResponse(absl::StrCat(text, "token=", request.BearerToken(), "\n", *body));
}

// Connects; `from` is the last byte of the client's address, 127.0.0.x.
inline base::UniqueFd ConnectTo(int port, uint32_t from = 1) {
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

// Returns what the server answers to these bytes until it closes the connection.
inline std::string Raw(int port, absl::string_view bytes) {
  const base::UniqueFd fd = ConnectTo(port);
  ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  std::string answer;
  char block[4096];
  for (ssize_t n; (n = ::recv(fd.get(), block, sizeof block, 0)) > 0;) answer.append(block, n);
  return answer;
}

// Does the same with a server that gives its clients little time: one that the machine has held up
// before it sent anything is closed without an answer, and asks again.
inline std::string RawInTime(int port, absl::string_view bytes) {
  std::string answer;
  base::AwaitPatiently(absl::Seconds(30), [&] { return !(answer = Raw(port, bytes)).empty(); });
  return answer;
}

// WakerList holds the wakers of requests that wait for an answer or a line. Thread-safe.
class WakerList {
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

inline Admission ByToken(const Request& request) {
  if (request.BearerToken() == "secret") return {.role = Role::kUser};
  if (request.BearerToken() == "node") return {.role = Role::kNode};
  if (request.BearerToken() == "monitor") return {.role = Role::kMonitor};
  return {.refusal = ErrorResponse(401, "unauthenticated", "who?")};
}

// HttpTest runs a test over plain HTTP and over TLS.
class HttpTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Server> Start(Handler handler, ServerOptions options = {}) const {
    if (GetParam()) options.identity = SomeIdentity();
    return StartServer(std::move(handler), options);
  }
  static std::string certificate() { return GetParam() ? SomeIdentity()->certificate() : ""; }
};

inline std::string HttpOrTls(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Tls" : "Plain";
}

}  // namespace tutti::http
