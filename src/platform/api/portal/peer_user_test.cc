#include "platform/api/portal/peer_user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "http/socket_name.h"

namespace tutti::api {
namespace {

using http::OwnName;
using http::TextOf;

// A client of this process that is connected to a listener at `address`.
class PeerUserTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!http::IsOfThisMachine(GetParam())) GTEST_SKIP() << "no " << GetParam();
    const auto name = http::SocketNameOf(GetParam(), 0);
    listener_.reset(::socket(name->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener_.get(), name->address(), name->size), 0);
    ASSERT_EQ(::listen(listener_.get(), 1), 0);
    const http::SocketName there = OwnName(listener_.get());
    client_.reset(::socket(name->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client_.get(), there.address(), there.size), 0);
    accepted_.reset(::accept(listener_.get(), nullptr, nullptr));
    request_ = {.peer = TextOf(OwnName(client_.get())), .local = TextOf(OwnName(accepted_.get()))};
  }

  base::UniqueFd listener_, client_, accepted_;
  http::Request request_;
};

INSTANTIATE_TEST_SUITE_P(Loopback, PeerUserTest, ::testing::Values("127.0.0.1", "::1"));

TEST_P(PeerUserTest, IsTheOneWhoseProcessHasTheOtherEnd) {
  const auto user = UserOfPeer(request_);
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ(*user, ::geteuid());
}

// The kernel answers user 0 for it.
TEST_P(PeerUserTest, OneThatHasClosedItsEndIsNobody) {
  client_.reset();
  EXPECT_EQ(UserOfPeer(request_).status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_P(PeerUserTest, AnEndOfThisMachineThatTheKernelDoesNotNameIsRefused) {
  http::Request none = request_;
  none.peer = absl::StrCat(none.peer.substr(0, none.peer.rfind(':')), ":1");
  EXPECT_EQ(UserOfPeer(none).status().code(), absl::StatusCode::kUnauthenticated);
  for (const char* odd : {"", "127.0.0.1", "::1:80", "127.0.0.1:x", "host:80"}) {
    none.peer = odd;
    EXPECT_EQ(UserOfPeer(none).status().code(), absl::StatusCode::kUnauthenticated) << odd;
  }
}

TEST_P(PeerUserTest, OneOfAnotherMachineIsNoUserOfThisOne) {
  const bool v6 = request_.peer.front() == '[';
  request_.peer = v6 ? "[2001:db8::7]:40000" : "203.0.113.7:40000";
  const auto user = UserOfPeer(request_);
  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ(*user, std::nullopt);
}

TEST(CheckPeersAreKnown, TheKernelAnswersHere) {
  const absl::Status status = CheckPeersAreKnown();
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace tutti::api
