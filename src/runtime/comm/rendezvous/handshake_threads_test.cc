#include "runtime/comm/rendezvous/handshake_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <memory>

#include "runtime/comm/rendezvous/wire/stream_socket.h"

namespace tutti::comm {
namespace {

base::UniqueFd AnySocket() { return base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM, 0)); }

size_t AddressSpace() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(HandshakeThreadsTest, OneThatIsOverLeavesNothingBehind) {
  const base::UniqueFd over(::eventfd(0, EFD_CLOEXEC));
  HandshakeThreads handshakes(2, [&] { ::eventfd_write(over.get(), 1); });
  const size_t before = AddressSpace();
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(handshakes.Begin(AnySocket(), [](base::UniqueFd) {})) << i;
    eventfd_t count;
    ASSERT_EQ(::eventfd_read(over.get(), &count), 0);
  }
  // The stacks of 500 threads that nobody joined would be 4 GB.
  EXPECT_LT(AddressSpace(), before + (size_t{1} << 30));
}

TEST(HandshakeThreadsTest, ThereAreNoMoreAtOnceThanWereAllowed) {
  std::promise<void> end;
  const auto ended = end.get_future().share();
  std::atomic<int> heard = 0;
  HandshakeThreads handshakes(2, [&] { ++heard; });
  for (const bool begins : {true, true, false}) {
    EXPECT_EQ(handshakes.full(), !begins);
    EXPECT_EQ(handshakes.Begin(AnySocket(), [ended](base::UniqueFd) { ended.wait(); }), begins);
  }
  end.set_value();
  handshakes.AwaitAll();
  EXPECT_EQ(heard, 2);
}

TEST(HandshakeThreadsTest, WhereTheSystemGivesNoThreadTheConnectionIsClosed) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  base::UniqueFd own(ends[0]), stranger(ends[1]);
  pthread_attr_t usual, hopeless;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&hopeless), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&hopeless, size_t{1} << 50), 0);
  ASSERT_EQ(::pthread_setattr_default_np(&hopeless), 0);
  HandshakeThreads handshakes(2, [] {});
  EXPECT_FALSE(handshakes.Begin(std::move(own), [](base::UniqueFd) {}));
  EXPECT_TRUE(IsClosed(stranger.get()));
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  EXPECT_TRUE(handshakes.Begin(AnySocket(), [](base::UniqueFd) {}));
}

}  // namespace
}  // namespace tutti::comm
