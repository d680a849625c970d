// What TLS promises besides being a Channel (channel_test.cc).
// Covers: tls_key.cc.
#include "runtime/comm/transport/tls_channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "runtime/comm/rendezvous/patience_test_support.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"
#include "runtime/comm/transport/tcp_channel.h"

namespace tutti::comm {
namespace {

using Made = absl::StatusOr<std::unique_ptr<Channel>>;

std::pair<base::UniqueFd, base::UniqueFd> Sockets() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {base::UniqueFd(ends[0]), base::UniqueFd(ends[1])};
}

// Carries bytes between two sockets until either closes, and remembers them.
class Relay {
 public:
  Relay(base::UniqueFd a, base::UniqueFd b)
      : a_(std::move(a)), b_(std::move(b)), thread_([this] { Run(); }) {}
  std::string Finish() {
    thread_.join();
    return seen_;
  }

 private:
  bool Carry(int from, int to) {
    char block[65536];
    const ssize_t n = ::recv(from, block, sizeof(block), MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0) return true;
    seen_.append(block, static_cast<size_t>(n));
    return Send(to, absl::string_view(block, static_cast<size_t>(n)), Patient()).ok();
  }
  void Run() {
    bool open = true;
    while (open) {
      pollfd polled[2] = {{a_.get(), POLLIN, 0}, {b_.get(), POLLIN, 0}};
      if (::poll(polled, 2, Patient().deadline.RemainingMillis()) <= 0) break;
      open = Carry(a_.get(), b_.get()) && Carry(b_.get(), a_.get());
    }
    a_.reset();
    b_.reset();
  }

  base::UniqueFd a_, b_;
  std::string seen_;
  std::thread thread_;
};

std::pair<Made, Made> TlsPair(base::UniqueFd a, base::UniqueFd b, const char* token_a,
                              const char* token_b,
                              uint64_t bytes_per_key = TlsChannel::kBytesPerKey) {
  auto first = std::async(std::launch::async, [&] {
    return TlsChannel::Make(std::move(a), Side::kOpener, token_a, Patient(), bytes_per_key);
  });
  auto second = TlsChannel::Make(std::move(b), Side::kListener, token_b, Patient(), bytes_per_key);
  return {first.get(), std::move(second)};
}

absl::Status SendAll(Channel& channel, std::span<const std::byte> bytes) {
  while (true) {
    const auto sent = channel.TrySend(bytes);
    if (!sent.ok()) return sent.status();
    bytes = bytes.subspan(*sent);
    const auto flushed = channel.Flush();
    if (!flushed.ok()) return flushed.status();
    if (bytes.empty() && *flushed) return absl::OkStatus();
    std::this_thread::yield();
  }
}

absl::Status ReceiveAll(Channel& channel, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto received = channel.TryReceive(bytes);
    if (!received.ok()) return received.status();
    bytes = bytes.subspan(*received);
    if (*received > 0) continue;
    pollfd polled = {channel.fd(), channel.PrepareToSleep(false, 1), 0};
    if (polled.events != 0) ::poll(&polled, 1, Patient().deadline.RemainingMillis());
    channel.Wake();
  }
  return absl::OkStatus();
}

constexpr char kSecret[] = "the gradient of the forty-second layer, in the clear";
const std::span<const std::byte> kSecretBytes = std::as_bytes(std::span(kSecret));

// What is seen on the wire while `make` connects both ends and the secret crosses.
template <typename MakePair>
std::string SeenOnTheWire(const MakePair& make) {
  auto [a, relay_a] = Sockets();
  auto [b, relay_b] = Sockets();
  Relay relay(std::move(relay_a), std::move(relay_b));
  auto [first, second] = make(std::move(a), std::move(b));
  EXPECT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  std::byte received[sizeof(kSecret)];
  EXPECT_TRUE(SendAll(**first, kSecretBytes).ok());
  EXPECT_TRUE(ReceiveAll(**second, received).ok());
  EXPECT_TRUE(std::equal(kSecretBytes.begin(), kSecretBytes.end(), received));
  first->reset();
  second->reset();
  return relay.Finish();
}

TEST(TlsChannelTest, WhatTravelsCannotBeReadAndWithoutTlsItCan) {
  const std::string encrypted = SeenOnTheWire([](base::UniqueFd a, base::UniqueFd b) {
    return TlsPair(std::move(a), std::move(b), "token", "token");
  });
  const std::string plain = SeenOnTheWire([](base::UniqueFd a, base::UniqueFd b) {
    return std::pair<Made, Made>(std::make_unique<TcpChannel>(std::move(a)),
                                 std::make_unique<TcpChannel>(std::move(b)));
  });
  EXPECT_NE(plain.find(kSecret), std::string::npos);
  EXPECT_EQ(encrypted.find(kSecret), std::string::npos);
  EXPECT_EQ(encrypted.find("token"), std::string::npos);
  EXPECT_GT(encrypted.size(), sizeof(kSecret));
}

TEST(TlsChannelTest, AWrongTokenIsRefusedOnBothSides) {
  auto [a, b] = Sockets();
  const auto [opener, listener] = TlsPair(std::move(a), std::move(b), "one", "another");
  EXPECT_TRUE(absl::IsPermissionDenied(opener.status())) << opener.status();
  EXPECT_TRUE(absl::IsPermissionDenied(listener.status())) << listener.status();
}

TEST(TlsChannelTest, APeerThatSpeaksNoTlsIsRefused) {
  auto [a, b] = Sockets();
  ASSERT_TRUE(Send(b.get(), "GET / HTTP/1.1\r\n\r\n", Patient()).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(
      TlsChannel::Make(std::move(a), Side::kListener, "token", Patient()).status()));
}

TEST(TlsChannelTest, APeerThatSaysNothingIsWaitedForUntilTheDeadline) {
  auto [a, b] = Sockets();
  const Patience brief{base::Deadline::After(absl::Milliseconds(20))};
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      TlsChannel::Make(std::move(a), Side::kOpener, "token", brief).status()));
}

TEST(TlsChannelTest, ABitChangedOnTheWayEndsTheConnection) {
  auto [a, b] = Sockets();
  const int raw = b.get();
  auto [first, second] = TlsPair(std::move(a), std::move(b), "token", "token");
  ASSERT_TRUE(first.ok() && second.ok());
  const std::string forged("\x17\x03\x03\x00\x20", 5);
  ASSERT_TRUE(Send(raw, forged + std::string(32, 'x'), Patient()).ok());
  std::byte received[1];
  EXPECT_TRUE(absl::IsUnavailable(ReceiveAll(**first, received)));
}

TEST(TlsChannelTest, TheKeyChangesOnTheWayUnnoticed) {
  auto [a, b] = Sockets();
  auto [first, second] = TlsPair(std::move(a), std::move(b), "token", "token", 100000);
  ASSERT_TRUE(first.ok() && second.ok());
  std::vector<std::byte> sent(3000000), received(sent.size());
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 1000);
  std::thread sender([&, channel = first->get()] { EXPECT_TRUE(SendAll(*channel, sent).ok()); });
  EXPECT_TRUE(ReceiveAll(**second, received).ok());
  sender.join();
  EXPECT_TRUE(received == sent);
}

}  // namespace
}  // namespace tutti::comm
