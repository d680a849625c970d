// The contract of transport.h, over every transport.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/rendezvous/socket.h"
#include "runtime/comm/transport/shm_channel.h"
#include "runtime/comm/transport/tcp_channel.h"

namespace tutti::comm {
namespace {

using Bytes = std::vector<std::byte>;
using ChannelPointer = std::unique_ptr<Channel>;

Patience Patient() { return {base::Deadline::After(absl::Seconds(20))}; }

Bytes Pattern(size_t size, int seed) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251 + seed);
  return bytes;
}

// Two connected sockets.
std::pair<base::UniqueFd, base::UniqueFd> Sockets(bool tcp) {
  const std::string name = "tutti-test-" + std::to_string(::getpid());
  base::UniqueFd listener = tcp ? *Listen({"127.0.0.1", 0}) : *ListenLocal(name);
  base::UniqueFd opener = tcp ? *Connect({"127.0.0.1", *PortOf(listener.get())}, "", Patient())
                              : *ConnectLocal(name, Patient());
  return {std::move(opener), *Accept(listener.get(), Patient())};
}

class ChannelTest : public testing::TestWithParam<bool> {
 protected:
  bool tcp() const { return GetParam(); }

  absl::StatusOr<ChannelPointer> Make(base::UniqueFd socket, Side side) {
    if (tcp()) return std::make_unique<TcpChannel>(std::move(socket));
    return ShmChannel::Make(std::move(socket), side, Patient());
  }
  std::pair<ChannelPointer, ChannelPointer> Pair() {
    auto [opener, listener] = Sockets(tcp());
    auto first = Make(std::move(opener), Side::kOpener);
    return {*std::move(first), *Make(std::move(listener), Side::kListener)};
  }
};

// Sleeps until the channel can do what is wanted. False when the deadline ran out.
bool Sleep(Channel& channel, bool to_send, size_t to_receive,
           base::Deadline deadline = base::Deadline::After(absl::Seconds(20))) {
  const short events = channel.PrepareToSleep(to_send, to_receive);
  pollfd polled = {channel.fd(), events, 0};
  const bool woken = events == 0 || ::poll(&polled, 1, deadline.RemainingMillis()) > 0;
  channel.Wake();
  return woken;
}

// Both directions at once, as a collective does; the status of the side that failed.
absl::Status Exchange(Channel& channel, std::span<const std::byte> out, std::span<std::byte> in) {
  while (!out.empty() || !in.empty()) {
    auto sent = channel.TrySend(out.first(std::min<size_t>(out.size(), 70000)));
    if (!out.empty() && !sent.ok()) return sent.status();
    auto received = channel.TryReceive(in);
    if (!received.ok()) return received.status();
    const size_t n = out.empty() ? 0 : *sent;
    out = out.subspan(n);
    in = in.subspan(*received);
    if (n + *received == 0 && !Sleep(channel, !out.empty(), in.empty() ? 0 : 1)) {
      return absl::DeadlineExceededError("nothing moved");
    }
  }
  return absl::OkStatus();
}

TEST_P(ChannelTest, CarriesEverySizeBothWaysAtOnce) {
  auto [a, b] = Pair();
  for (const size_t size :
       {0, 1, 7, 4095, 65537, 3 * static_cast<int>(ShmChannel::kRingBytes) + 5}) {
    const Bytes from_a = Pattern(size, 1), from_b = Pattern(size, 2);
    Bytes at_a(size), at_b(size);
    std::thread other(
        [&, channel = b.get()] { EXPECT_TRUE(Exchange(*channel, from_b, at_b).ok()); });
    EXPECT_TRUE(Exchange(*a, from_a, at_a).ok());
    other.join();
    EXPECT_TRUE(at_a == from_b) << size;
    EXPECT_TRUE(at_b == from_a) << size;
  }
}

TEST_P(ChannelTest, TheBytesSentMayBeChangedAtOnce) {
  auto [a, b] = Pair();
  Bytes bytes = Pattern(100, 3), received(100);
  ASSERT_EQ(*a->TrySend(bytes), 100u);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  ASSERT_TRUE(Exchange(*b, {}, received).ok());
  EXPECT_TRUE(received == Pattern(100, 3));
}

TEST_P(ChannelTest, DoesNotBlockWhenNothingHasComeOrNothingFits) {
  auto [a, b] = Pair();
  Bytes bytes(1 << 20);
  EXPECT_EQ(*a->TryReceive(bytes), 0u);
  EXPECT_TRUE(a->Peek(1, 100)->empty());
  size_t sent = 0;
  while (true) {
    const size_t n = *a->TrySend(bytes);
    sent += n;
    if (n == 0 && !Sleep(*a, true, 0, base::Deadline::After(absl::Milliseconds(50)))) break;
  }
  EXPECT_GT(sent, 0u);
  Bytes received(sent);
  EXPECT_TRUE(Exchange(*b, {}, received).ok());
  EXPECT_TRUE(Sleep(*a, true, 0)) << "there is room again";
}

TEST_P(ChannelTest, PeekGivesAtLeastWhatWasAskedForOrNothing) {
  auto [a, b] = Pair();
  const Bytes bytes = Pattern(10, 4);
  ASSERT_EQ(*a->TrySend(std::span(bytes).first(3)), 3u);
  ASSERT_TRUE(Sleep(*b, false, 1));
  EXPECT_TRUE(b->Peek(8, 100)->empty());
  EXPECT_FALSE(Sleep(*b, false, 8, base::Deadline::After(absl::Milliseconds(20))));
  ASSERT_EQ(*a->TrySend(std::span(bytes).subspan(3)), 7u);
  ASSERT_TRUE(Sleep(*b, false, 8));
  const auto peeked = *b->Peek(8, 9);
  ASSERT_GE(peeked.size(), 8u);
  EXPECT_LE(peeked.size(), 9u);
  EXPECT_TRUE(std::equal(peeked.begin(), peeked.end(), bytes.begin()));
  const size_t taken = peeked.size();
  b->Release(taken);
  Bytes rest(10 - taken);
  ASSERT_TRUE(Exchange(*b, {}, rest).ok());
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), bytes.begin() + taken));
}

TEST_P(ChannelTest, ElementsNeverTearHoweverTheBytesAreCut) {
  auto [a, b] = Pair();
  const Bytes bytes = Pattern(300000, 5);
  std::thread sender([&, channel = a.get()] {
    std::span<const std::byte> rest = bytes;
    for (size_t cut = 1; !rest.empty(); cut = cut % 8191 + 13) {
      const auto sent = channel->TrySend(rest.first(std::min(cut, rest.size())));
      ASSERT_TRUE(sent.ok());
      rest = rest.subspan(*sent);
      ASSERT_TRUE(*sent > 0 || Sleep(*channel, true, 0));
    }
  });
  for (size_t at = 0; at < bytes.size();) {
    const auto come = *b->Peek(8, 4096);
    const size_t whole = come.size() / 8 * 8;
    ASSERT_TRUE(std::equal(come.begin(), come.begin() + whole, bytes.begin() + at));
    b->Release(whole);
    at += whole;
    ASSERT_TRUE(whole > 0 || Sleep(*b, false, 8));
  }
  sender.join();
}

TEST_P(ChannelTest, ASleeperSleepsUntilItsDeadlineWhenNothingComes) {
  auto [a, b] = Pair();
  const absl::Time start = absl::Now();
  EXPECT_FALSE(Sleep(*a, false, 1, base::Deadline::After(absl::Milliseconds(30))));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(29));
}

TEST_P(ChannelTest, WhatWasSentBeforeTheCloseIsReceivedAndThenTheCloseIsAnError) {
  auto [a, b] = Pair();
  const Bytes bytes = Pattern(1000, 6);
  ASSERT_EQ(*a->TrySend(bytes), 1000u);
  a.reset();
  Bytes received(1000);
  ASSERT_TRUE(Exchange(*b, {}, received).ok());
  EXPECT_TRUE(received == bytes);
  EXPECT_TRUE(absl::IsUnavailable(Exchange(*b, {}, received)));
  const Bytes large(8 << 20);
  EXPECT_TRUE(absl::IsUnavailable(Exchange(*b, large, {})));
}

TEST_P(ChannelTest, AKilledPeerWakesASleeperWithAnError) {
  auto [opener, listener] = Sockets(tcp());
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    listener.reset();
    const auto channel = Make(std::move(opener), Side::kOpener);
    Bytes one(1);
    Exchange(**channel, one, one).IgnoreError();
    while (true) ::pause();
  }
  opener.reset();
  auto channel = *Make(std::move(listener), Side::kListener);
  Bytes one(1);
  ASSERT_TRUE(Exchange(*channel, one, one).ok());
  auto waiting = std::async(std::launch::async, [&] { return Exchange(*channel, {}, one); });
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(absl::IsUnavailable(waiting.get()));
  ::waitpid(pid, nullptr, 0);
}

INSTANTIATE_TEST_SUITE_P(Transports, ChannelTest, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Tcp" : "Shm"; });

TEST(ShmChannelTest, RefusesMemoryThatIsNotAChannels) {
  auto [opener, listener] = Sockets(false);
  const base::UniqueFd file(::memfd_create("small", 0));
  ASSERT_TRUE(SendDescriptor(opener.get(), file.get()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      ShmChannel::Make(std::move(listener), Side::kListener, Patient()).status()));
}

TEST(ShmChannelTest, RefusesAPeerThatSendsNoDescriptor) {
  auto [opener, listener] = Sockets(false);
  ASSERT_TRUE(Send(opener.get(), "x", Patient()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      ShmChannel::Make(std::move(listener), Side::kListener, Patient()).status()));
}

}  // namespace
}  // namespace tutti::comm
