#include "runtime/comm/rendezvous/authenticate.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>

#include "runtime/comm/rendezvous/patience_test_support.h"

namespace tutti::comm {
namespace {

struct Ends {
  base::UniqueFd a, b;
};
Ends Connected() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  return {base::UniqueFd(fds[0]), base::UniqueFd(fds[1])};
}

// What the two sides come to.
std::pair<absl::Status, absl::Status> Both(absl::string_view opener_token,
                                           absl::string_view listener_token,
                                           absl::string_view opener_purpose = "p",
                                           absl::string_view listener_purpose = "p") {
  Ends ends = Connected();
  auto opener = std::async(std::launch::async, [&] {
    const absl::Status status =
        Authenticate(ends.a.get(), Side::kOpener, opener_token, opener_purpose, Patient());
    if (!status.ok()) ends.a.reset();
    return status;
  });
  const absl::Status listener =
      Authenticate(ends.b.get(), Side::kListener, listener_token, listener_purpose, Patient());
  return {opener.get(), listener};
}

std::string PreambleOf(uint32_t version) {
  std::string preamble = "tutti-comm\n";
  preamble += static_cast<char>(version);
  preamble.append(3, '\0');
  preamble.append(32, 'n');
  return preamble;
}

TEST(AuthenticateTest, BothSidesAgreeWhenTheyKnowTheSameToken) {
  const auto [opener, listener] = Both("secret", "secret");
  EXPECT_TRUE(opener.ok()) << opener;
  EXPECT_TRUE(listener.ok()) << listener;
}

TEST(AuthenticateTest, BothSidesAreToldThatTheTokenIsWrong) {
  const auto [opener, listener] = Both("secret", "Secret");
  EXPECT_TRUE(absl::IsPermissionDenied(opener)) << opener;
  EXPECT_TRUE(absl::IsPermissionDenied(listener)) << listener;
}

TEST(AuthenticateTest, AProofForOneUseIsNoneForAnother) {
  const auto [opener, listener] = Both("secret", "secret", "rendezvous", "channel");
  EXPECT_TRUE(absl::IsPermissionDenied(opener)) << opener;
  EXPECT_TRUE(absl::IsPermissionDenied(listener)) << listener;
}

TEST(AuthenticateTest, AListenersOwnProofSentBackToItIsRefused) {
  Ends ends = Connected();
  auto listener = std::async(std::launch::async, [&] {
    return Authenticate(ends.b.get(), Side::kListener, "secret", "p", Patient());
  });
  // An opener that knows no token answers with what it got: first the nonce, then the proof.
  const std::string preamble = PreambleOf(kProtocolVersion);
  ASSERT_TRUE(Send(ends.a.get(), preamble, Patient()).ok());
  const std::string answer = *Receive(ends.a.get(), preamble.size() + 32, Patient());
  ASSERT_TRUE(Send(ends.a.get(), answer.substr(preamble.size()), Patient()).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(listener.get()));
}

TEST(AuthenticateTest, AnotherVersionIsToldToBothSides) {
  Ends ends = Connected();
  auto listener = std::async(std::launch::async, [&] {
    return Authenticate(ends.b.get(), Side::kListener, "secret", "p", Patient());
  });
  const std::string preamble = PreambleOf(kProtocolVersion + 1);
  ASSERT_TRUE(Send(ends.a.get(), preamble, Patient()).ok());
  const absl::Status status = listener.get();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("version " + std::to_string(kProtocolVersion + 1)),
            absl::string_view::npos)
      << status;
  EXPECT_TRUE(Receive(ends.a.get(), preamble.size(), Patient()).ok());
}

TEST(AuthenticateTest, WhoSpeaksSomethingElseIsRefused) {
  Ends ends = Connected();
  ASSERT_TRUE(
      Send(ends.a.get(), "GET / HTTP/1.1\r\nHost: example.com\r\nUser-Agent: x\r\n\r\n", Patient())
          .ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      Authenticate(ends.b.get(), Side::kListener, "secret", "p", Patient())));
}

TEST(AuthenticateTest, WhoSaysNothingIsGivenUpAtTheDeadline) {
  Ends ends = Connected();
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(Authenticate(ends.b.get(), Side::kListener, "secret", "p",
                                            {base::Deadline::After(absl::Milliseconds(20))})));
}

}  // namespace
}  // namespace tutti::comm
