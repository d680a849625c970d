#include "http/server/connection_poller.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>

#include "base/test_patience.h"
#include "base/unique_fd.h"

namespace tutti::http {
namespace {

// Both ends of a connection, of which the poller waits for the first.
class ConnectionPollerTest : public testing::Test {
 protected:
  ConnectionPollerTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    server_ = base::UniqueFd(ends[0]);
    client_ = base::UniqueFd(ends[1]);
    EXPECT_TRUE(poller_.Start().ok());
    id_ = poller_.Add(server_.get(), [](ConnectionPoller::Id) { return nullptr; });
  }
  ~ConnectionPollerTest() override {
    poller_.Remove(id_);
    poller_.Stop();
  }
  void FillServersBuffer() const {
    const std::string block(4096, 'x');
    while (::write(server_.get(), block.data(), block.size()) > 0) {
    }
  }
  // Waits until it has been resumed `count` times.
  void AwaitResumed(int count) const {
    base::AwaitPatiently(absl::Seconds(20), [&] { return resumed_ >= count; });
    EXPECT_EQ(resumed_, count);
  }

  std::atomic<int> resumed_ = 0;
  base::UniqueFd server_, client_;
  ConnectionPoller poller_{
      [this](ConnectionPoller::Id, const std::shared_ptr<ServerConnection>&, Lane) { ++resumed_; }};
  ConnectionPoller::Id id_ = 0;
};

TEST_F(ConnectionPollerTest, AClientThatSendsNoMoreAndDoesNotReadIsWaitedFor) {
  AwaitResumed(1);  // at once, when it was added
  FillServersBuffer();
  ASSERT_EQ(::shutdown(client_.get(), SHUT_WR), 0);
  const base::Deadline until = base::Deadline::After(absl::Milliseconds(100));
  poller_.Await(id_, {.events = POLLOUT, .until = until, .lane = Lane::kUser});
  AwaitResumed(2);
  EXPECT_TRUE(until.Expired()) << "it went on with nothing to do";

  poller_.Await(id_, {.events = POLLOUT,
                      .until = base::Deadline::After(absl::InfiniteDuration()),
                      .lane = Lane::kUser});
  client_.reset();
  AwaitResumed(3);  // nobody is there to read
}

TEST_F(ConnectionPollerTest, TheEndOfAClientIsNewsForWhoWaitsForItsNextBytes) {
  AwaitResumed(1);
  poller_.Await(id_, {.events = POLLIN,
                      .until = base::Deadline::After(absl::InfiniteDuration()),
                      .lane = Lane::kProtocol});
  ASSERT_EQ(::shutdown(client_.get(), SHUT_WR), 0);
  AwaitResumed(2);
}

}  // namespace
}  // namespace tutti::http
