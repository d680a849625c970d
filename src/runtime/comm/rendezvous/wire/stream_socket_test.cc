#include "runtime/comm/rendezvous/wire/stream_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "runtime/comm/rendezvous/patience_test_support.h"

namespace tutti::comm {
namespace {

// A listener of the abstract namespace whose queue holds next to nothing.
base::UniqueFd ListenBriefly(const std::string& name) {
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  EXPECT_EQ(::listen(fd.get(), 0), 0);
  return fd;
}

TEST(SocketTest, AFullQueueOfALocalListenerIsWaitedFor) {
  const std::string name = absl::StrCat("tutti-socket-test-", ::getpid());
  const base::UniqueFd listener = ListenBriefly(name);
  std::vector<base::UniqueFd> queued;
  absl::StatusOr<base::UniqueFd> next = absl::UnknownError("");
  do {
    next = ConnectLocal(name, Within(absl::Milliseconds(30)));
    if (next.ok()) queued.push_back(*std::move(next));
  } while (next.ok() && queued.size() < 100);
  EXPECT_TRUE(absl::IsDeadlineExceeded(next.status())) << next.status();
  auto patient = std::async(std::launch::async, [&] {
    return ConnectLocal(name, Within(base::Patient(absl::Seconds(20)))).ok();
  });
  EXPECT_TRUE(Accept(listener.get(), Within(base::Patient(absl::Seconds(20)))).ok());
  EXPECT_TRUE(patient.get());
}

TEST(SocketTest, ALocalNameWhereNobodyListensIsSaidAtOnce) {
  EXPECT_TRUE(absl::IsUnavailable(
      ConnectLocal("tutti-nobody", Within(base::Patient(absl::Seconds(20)))).status()));
}

TEST(SocketTest, APauseEndsWithThePatience) {
  EXPECT_TRUE(Pause(absl::Milliseconds(1), Within(base::Patient(absl::Seconds(20)))).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Pause(absl::Seconds(20), Within(absl::Milliseconds(1)))));
}

}  // namespace
}  // namespace tutti::comm
