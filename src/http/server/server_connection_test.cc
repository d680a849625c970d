#include "http/server/server_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace tutti::http {
namespace {

using ::testing::StartsWith;

// RefusedConnectionTest has a connection of a client whom nobody knows, and who is refused.
class RefusedConnectionTest : public ::testing::Test {
 protected:
  RefusedConnectionTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_ = base::UniqueFd(ends[0]);
    server_ = ends[1];
    EXPECT_TRUE(open_.Add(server_, "a"));
    options_.admit = [](const Request&) {
      return Admission{.refusal = ErrorResponse(401, "unauthenticated", "who?")};
    };
  }
  ~RefusedConnectionTest() override { open_.Close(server_); }

  void Send(const std::string& bytes) const {
    ASSERT_EQ(::write(client_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string Answer() const {
    char block[4096];
    const ssize_t n = ::recv(client_.get(), block, sizeof block, MSG_DONTWAIT);
    return {block, static_cast<size_t>(std::max<ssize_t>(n, 0))};
  }
  // Turns until there is something to wait for.
  static Need TurnsOf(ServerConnection& connection) {
    Need need{.kind = Need::Kind::kLane, .place = {Lane::kProtocol}};
    for (int i = 0; i < 20 && need.kind == Need::Kind::kLane; ++i)
      need = connection.Turn(need.place.lane);
    return need;
  }

  base::UniqueFd client_;
  int server_ = -1;
  ServerOptions options_;
  const Handler handler_;
  OpenConnections open_{1, 1};
  PrefetchBudget prefetch_{0};
  const std::atomic<bool> stopping_ = false;
};

TEST_F(RefusedConnectionTest, WhatItGoesOnSendingIsReadInTheLaneOfStrangers) {
  ServerConnection connection(server_, "a", {options_, handler_, open_, prefetch_, stopping_},
                              [] {});
  for (const int length : {1000, 900'000'000}) {  // passed over; read until it closes
    Send(absl::StrCat("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ", length, "\r\n\r\nbegin"));
    Need need = TurnsOf(connection);
    EXPECT_THAT(Answer(), StartsWith("HTTP/1.1 401"));
    ASSERT_EQ(need.kind, Need::Kind::kWaiting);
    EXPECT_EQ(need.waiting.lane, Lane::kStranger);
    Send(std::string(995, 'x'));  // the rest of the first
  }
}

}  // namespace
}  // namespace tutti::http
