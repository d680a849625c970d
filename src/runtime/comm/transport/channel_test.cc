// The contract of transport.h, over every transport.
// Covers: transport.cc, tcp_channel.cc, shm_channel.cc, striped_channel.cc, staged_channel.cc,
// ucx_channel.cc, ucx_endpoint.cc, ucx_library.cc.
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

#include "base/status.h"
#include "base/test_patience.h"
#include "runtime/comm/rendezvous/patience_test_support.h"
#include "runtime/comm/rendezvous/wire/descriptors.h"
#include "runtime/comm/rendezvous/wire/stream_socket.h"
#include "runtime/comm/transport/shm_channel.h"
#include "runtime/comm/transport/striped_channel.h"
#include "runtime/comm/transport/tcp_channel.h"
#include "runtime/comm/transport/tls_channel.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

using ByteVector = std::vector<std::byte>;
using ChannelPointer = std::unique_ptr<Channel>;

ByteVector SeededBytes(size_t size, int seed) {
  ByteVector bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 251 + seed);
  return bytes;
}

// Connected sockets, of each pair the opener's first.
std::pair<base::UniqueFd, base::UniqueFd> Sockets(bool tcp) {
  const std::string name = "tutti-test-" + std::to_string(::getpid());
  base::UniqueFd listener = tcp ? *Listen({"127.0.0.1", 0}) : *ListenLocal(name);
  base::UniqueFd opener = tcp ? *Connect({"127.0.0.1", *PortOf(listener.get())}, "", Patient())
                              : *ConnectLocal(name, Patient());
  return {std::move(opener), *Accept(listener.get(), Patient())};
}

enum class ChannelKind { kTcp, kShm, kTls, kThreeStreams, kThreeTlsStreams, kUcxShm, kUcxTcp };

absl::StatusOr<ChannelPointer> MakeOne(ChannelKind kind, base::UniqueFd socket, Side side) {
  if (kind == ChannelKind::kShm) return ShmChannel::Make(std::move(socket), side, Patient());
  if (kind == ChannelKind::kTls || kind == ChannelKind::kThreeTlsStreams) {
    return TlsChannel::Make(std::move(socket), side, "a token", Patient());
  }
  if (kind == ChannelKind::kUcxShm)
    return MakeUcxChannel(std::move(socket), "posix,self", Patient());
  if (kind == ChannelKind::kUcxTcp) return MakeUcxChannel(std::move(socket), "tcp", Patient());
  return std::make_unique<TcpChannel>(std::move(socket));
}

absl::StatusOr<ChannelPointer> Make(ChannelKind kind, std::vector<base::UniqueFd> sockets,
                                    Side side) {
  std::vector<ChannelPointer> streams;
  for (base::UniqueFd& socket : sockets) {
    TUTTI_ASSIGN_OR_RETURN(auto stream, MakeOne(kind, std::move(socket), side));
    streams.push_back(std::move(stream));
  }
  if (streams.size() == 1) return std::move(streams[0]);
  TUTTI_ASSIGN_OR_RETURN(auto striped, StripedChannel::Make(std::move(streams)));
  return ChannelPointer(std::move(striped));
}

class ChannelTest : public testing::TestWithParam<ChannelKind> {
 protected:
  void SetUp() override {
    if (IsUcx() && !CheckUcx().ok()) GTEST_SKIP() << CheckUcx();
  }
  static bool IsUcx() {
    return GetParam() == ChannelKind::kUcxShm || GetParam() == ChannelKind::kUcxTcp;
  }

  // What one channel stands on: the opener's sockets and the listener's.
  std::pair<std::vector<base::UniqueFd>, std::vector<base::UniqueFd>> SocketsOfOne() {
    const bool several =
        GetParam() == ChannelKind::kThreeStreams || GetParam() == ChannelKind::kThreeTlsStreams;
    std::vector<base::UniqueFd> openers, listeners;
    for (int i = 0; i < (several ? 3 : 1); ++i) {
      auto [opener, listener] = Sockets(GetParam() != ChannelKind::kShm);
      openers.push_back(std::move(opener));
      listeners.push_back(std::move(listener));
    }
    return {std::move(openers), std::move(listeners)};
  }
  // The opener's end and the listener's.
  std::pair<ChannelPointer, ChannelPointer> Pair() {
    auto [openers, listeners] = SocketsOfOne();
    auto first = std::async(std::launch::async, [kind = GetParam(), &openers = openers] {
      return *Make(kind, std::move(openers), Side::kOpener);
    });
    auto second = *Make(GetParam(), std::move(listeners), Side::kListener);
    return {first.get(), std::move(second)};
  }
};

// Sleeps until the channel can do what is wanted. False when the deadline ran out.
bool Sleep(Channel& channel, bool to_send, size_t to_receive,
           base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(20)))) {
  const short events = channel.PrepareToSleep(to_send, to_receive);
  pollfd polled = {channel.fd(), events, 0};
  const bool woken = events == 0 || ::poll(&polled, 1, deadline.RemainingMillis()) > 0;
  channel.Wake();
  return woken;
}

// Both directions at once, as a collective does; the status of the side that failed.
absl::Status Exchange(Channel& channel, std::span<const std::byte> out, std::span<std::byte> in) {
  while (!out.empty() || !in.empty() || !channel.Flush().value_or(true)) {
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
    const ByteVector from_a = SeededBytes(size, 1), from_b = SeededBytes(size, 2);
    ByteVector at_a(size), at_b(size);
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
  ByteVector bytes = SeededBytes(100, 3), received(100);
  ASSERT_EQ(*a->TrySend(bytes), 100u);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  ASSERT_TRUE(Exchange(*b, {}, received).ok());
  EXPECT_TRUE(received == SeededBytes(100, 3));
}

TEST_P(ChannelTest, DoesNotBlockWhenNothingHasComeOrNothingFits) {
  auto [a, b] = Pair();
  ByteVector bytes(1 << 20);
  EXPECT_EQ(*a->TryReceive(bytes), 0u);
  EXPECT_TRUE(a->Peek(1, 100)->empty());
  size_t sent = 0;
  const auto full = [] { return base::Deadline::After(absl::Milliseconds(50)); };
  for (base::Deadline deadline = full(); !deadline.Expired();) {
    const size_t n = *a->TrySend(bytes);
    sent += n;
    if (n > 0) deadline = full();
    if (n == 0) Sleep(*a, true, 0, deadline);
  }
  EXPECT_GT(sent, 0u);
  ByteVector received(sent);
  std::thread other([&, channel = b.get()] { EXPECT_TRUE(Exchange(*channel, {}, received).ok()); });
  EXPECT_TRUE(Exchange(*a, {}, {}).ok()) << "what was taken leaves";
  other.join();
  EXPECT_TRUE(Sleep(*a, true, 0)) << "there is room again";
}

TEST_P(ChannelTest, PeekGivesAtLeastWhatWasAskedForOrNothing) {
  auto [a, b] = Pair();
  const ByteVector bytes = SeededBytes(10, 4);
  ASSERT_EQ(*a->TrySend(std::span(bytes).first(3)), 3u);
  ASSERT_TRUE(Sleep(*b, false, 1));
  EXPECT_TRUE(b->Peek(8, 100)->empty());
  const bool woken = Sleep(*b, false, 8, base::Deadline::After(absl::Milliseconds(20)));
  EXPECT_FALSE(woken && !IsUcx()) << "UCX, which has work of its own, may end a sleep for nothing";
  EXPECT_TRUE(b->Peek(8, 100)->empty());
  ASSERT_EQ(*a->TrySend(std::span(bytes).subspan(3)), 7u);
  ASSERT_TRUE(Sleep(*b, false, 8));
  const auto peeked = *b->Peek(8, 9);
  ASSERT_GE(peeked.size(), 8u);
  EXPECT_LE(peeked.size(), 9u);
  EXPECT_TRUE(std::equal(peeked.begin(), peeked.end(), bytes.begin()));
  const size_t taken = peeked.size();
  b->Release(taken);
  ByteVector rest(10 - taken);
  ASSERT_TRUE(Exchange(*b, {}, rest).ok());
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), bytes.begin() + taken));
}

TEST_P(ChannelTest, ElementsNeverTearHoweverTheBytesAreCut) {
  auto [a, b] = Pair();
  const ByteVector bytes = SeededBytes(300000, 5);
  std::thread sender([&, channel = a.get()] {
    std::span<const std::byte> rest = bytes;
    for (size_t cut = 1; !rest.empty(); cut = cut % 8191 + 13) {
      const auto sent = channel->TrySend(rest.first(std::min(cut, rest.size())));
      ASSERT_TRUE(sent.ok());
      rest = rest.subspan(*sent);
      ASSERT_TRUE(*sent > 0 || Sleep(*channel, true, 0));
    }
    EXPECT_TRUE(Exchange(*channel, {}, {}).ok()) << "what was taken leaves";
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
  const ByteVector bytes = SeededBytes(1000, 6);
  ASSERT_EQ(*a->TrySend(bytes), 1000u);
  std::thread closer([&] { a.reset(); });
  if (!IsUcx()) closer.join();  // UCX wants the other side to listen at that time
  ByteVector received(1000);
  EXPECT_TRUE(Exchange(*b, {}, received).ok());
  EXPECT_TRUE(received == bytes);
  if (closer.joinable()) closer.join();
  EXPECT_TRUE(absl::IsUnavailable(Exchange(*b, {}, received)));
  const ByteVector large(8 << 20);
  EXPECT_TRUE(absl::IsUnavailable(Exchange(*b, large, {})));
}

TEST_P(ChannelTest, AKilledPeerWakesASleeperWithAnError) {
  auto [openers, listeners] = SocketsOfOne();
  const pid_t pid = ::fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    listeners.clear();
    const auto channel = Make(GetParam(), std::move(openers), Side::kOpener);
    ByteVector one(1);
    Exchange(**channel, one, one).IgnoreError();
    while (true) ::pause();
  }
  openers.clear();
  auto channel = *Make(GetParam(), std::move(listeners), Side::kListener);
  ByteVector one(1);
  ASSERT_TRUE(Exchange(*channel, one, one).ok());
  auto waiting = std::async(std::launch::async, [&] { return Exchange(*channel, {}, one); });
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(absl::IsUnavailable(waiting.get()));
  ::waitpid(pid, nullptr, 0);
}

TEST_P(ChannelTest, PartsAreSentInTheirOrderAsIfTheyWereOne) {
  auto [a, b] = Pair();
  const ByteVector bytes = SeededBytes(40000, 7);
  std::vector<std::span<const std::byte>> parts;
  for (size_t at = 0, size = 1; at < bytes.size(); at += parts.back().size(), size = 3 * size + 1) {
    parts.push_back(std::span(bytes).subspan(at, std::min(size, bytes.size() - at)));
  }
  ASSERT_EQ(*a->TrySendParts(parts), bytes.size());
  ASSERT_TRUE(*a->Flush());
  ByteVector received(bytes.size());
  ASSERT_TRUE(Exchange(*b, {}, received).ok());
  EXPECT_TRUE(received == bytes);
}

std::string ChannelName(const testing::TestParamInfo<ChannelKind>& info) {
  switch (info.param) {
    case ChannelKind::kTcp:
      return "Tcp";
    case ChannelKind::kShm:
      return "Shm";
    case ChannelKind::kTls:
      return "Tls";
    case ChannelKind::kThreeStreams:
      return "ThreeStreams";
    case ChannelKind::kThreeTlsStreams:
      return "ThreeTlsStreams";
    case ChannelKind::kUcxShm:
      return "UcxShm";
    case ChannelKind::kUcxTcp:
      return "UcxTcp";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Transports, ChannelTest,
                         testing::Values(ChannelKind::kTcp, ChannelKind::kShm, ChannelKind::kTls,
                                         ChannelKind::kThreeStreams, ChannelKind::kThreeTlsStreams,
                                         ChannelKind::kUcxShm, ChannelKind::kUcxTcp),
                         ChannelName);

TEST(ShmChannelTest, RefusesMemoryThatIsNotAChannels) {
  auto [opener, listener] = Sockets(false);
  const base::UniqueFd file(::memfd_create("small", 0));
  ASSERT_TRUE(SendDescriptor(opener.get(), file.get(), Patient()).ok());
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
