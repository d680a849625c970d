#include "http/client/transfer.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "http/client/file_server_for_tests.h"

namespace tutti::http {
namespace {

constexpr char kNowhere4[] = "192.0.2.2";
constexpr char kNowhere6[] = "2001:db8::2";

bool Cover(const std::filesystem::path& file, const char* path, const std::string& text) {
  return base::ReplaceFile(file, text).ok() &&
         ::mount(file.c_str(), path, nullptr, MS_BIND, nullptr) == 0;
}

// Has the calling thread, and those that it starts, see a machine where twofold.test is at
// `nowhere`, first, and at 127.0.0.1. What goes to `nowhere` is lost without a word. False: this
// user may not, or the machine has not what it takes.
bool EnterMachineOf(const std::string& nowhere, const std::filesystem::path& folder) {
  if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
  const int made = std::system(
      "ip link set lo up && ip link add nowhere type veth peer name end && ip link set end up &&"
      " ip addr add 192.0.2.1/24 dev nowhere && ip link set nowhere up &&"
      " ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev nowhere nud permanent && {"
      " ip addr add 2001:db8::1/64 dev nowhere nodad &&"
      " ip neigh add 2001:db8::2 lladdr 02:00:00:00:00:02 dev nowhere nud permanent || true; }");
  if (made != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  // Otherwise the nearer address came first.
  const std::string order = absl::StrCat("precedence ::ffff:", kNowhere4, "/128 100\n",
                                         "precedence 2001:db8::/32 100\nprecedence ::/0 40\n",
                                         "precedence ::ffff:0:0/96 10\n");
  return Cover(folder / "hosts", "/etc/hosts",
               absl::StrCat(nowhere, " twofold.test\n127.0.0.1 twofold.test\n")) &&
         Cover(folder / "gai.conf", "/etc/gai.conf", order);
}

class TransferTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Families, TransferTest, testing::Values(kNowhere4, kNowhere6),
                         [](const auto& info) { return info.param == kNowhere4 ? "V4" : "V6"; });

TEST_P(TransferTest, AHostIsReachedAtTheAddressThatAnswersAlsoIfItIsTheSecondOne) {
  const base::TemporaryDirectory folder("tutti-transfer");
  bool is_there = false;
  std::thread([&] {
    is_there = EnterMachineOf(GetParam(), folder.path());
    if (!is_there) return;
    FileServer server;
    server.Put("/file", "content", "");
    const std::string port = server.url("").substr(server.url("").rfind(':'));
    const std::atomic<bool> never = false;
    std::string content;
    const TransferRequest request{
        .url = absl::StrCat("http://twofold.test", port, "/file"),
        .headers = {},
        .deadline = base::Deadline::After(base::PatientTimeout(absl::Seconds(8))),
        .on_header = nullptr,
        .on_chunk = [&](absl::string_view piece) {
          absl::StrAppend(&content, piece);
          return absl::OkStatus();
        }};
    const auto answer = Transfer(request, never);
    EXPECT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(content, "content");
  }).join();
  if (!is_there) GTEST_SKIP() << "no network namespace of this test's own: it needs root and ip(8)";
}

// Takes one connection and no second one, and answers each request with its first line and body.
class OneConnection {
 public:
  OneConnection() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port), "/file");
    thread_ = std::thread([this] { Serve(); });
  }
  ~OneConnection() { thread_.join(); }
  const std::string& url() const { return url_; }

 private:
  void Serve() const {
    const int client = ::accept(listener_, nullptr, nullptr);
    ::close(listener_);
    std::string text;
    char bytes[4096];
    for (ssize_t n = 0; (n = ::read(client, bytes, sizeof(bytes))) > 0;) {
      text.append(bytes, static_cast<size_t>(n));
      const size_t end = text.find("\r\n\r\n");
      const size_t length = text.find("Content-Length: ");
      const size_t body = length == std::string::npos ? 0 : std::stoul(text.substr(length + 16));
      if (end == std::string::npos || text.size() < end + 4 + body) continue;
      const std::string said =
          absl::StrCat(text.substr(0, text.find("\r\n")), "|", text.substr(end + 4));
      const std::string answer =
          absl::StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", said.size(), "\r\n\r\n", said);
      EXPECT_EQ(::write(client, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
      text.clear();
    }
    ::close(client);
  }

  const int listener_;
  std::string url_;
  std::thread thread_;
};

TEST(Transfer, PutsABodyAndGoesByAConnectionThatWasKept) {
  OneConnection server;
  const std::atomic<bool> never = false;
  KeptConnections kept;
  const auto said = [&](const std::string& method, absl::string_view body) {
    std::string content;
    const TransferRequest request{
        .method = method,
        .url = server.url(),
        .headers = {},
        .body = body,
        .deadline = base::Deadline::After(base::PatientTimeout(absl::Seconds(10))),
        .on_header = nullptr,
        .on_chunk = [&](absl::string_view piece) {
          absl::StrAppend(&content, piece);
          return absl::OkStatus();
        }};
    const auto answer = Transfer(request, never, &kept);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return content;
  };
  EXPECT_EQ(said("PUT", "hello"), "PUT /file HTTP/1.1|hello");
  EXPECT_EQ(said("PUT", ""), "PUT /file HTTP/1.1|");
  EXPECT_EQ(said("DELETE", ""), "DELETE /file HTTP/1.1|");
  EXPECT_EQ(said("GET", ""), "GET /file HTTP/1.1|");
}

}  // namespace
}  // namespace tutti::http
