#include "platform/storage/transfer/activity.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "base/unique_fd.h"

namespace tutti::storage {
namespace {

TEST(SilenceWatch, CountsFromTheLastStepOrByte) {
  Activity activity;
  SilenceWatch watch(activity, absl::Seconds(100));
  EXPECT_EQ(watch.Look(0, absl::Seconds(160)), absl::Seconds(60));
  activity.Note();
  EXPECT_EQ(watch.Look(0, absl::Seconds(170)), absl::ZeroDuration());
  EXPECT_EQ(watch.Look(0, absl::Seconds(190)), absl::Seconds(20));
  EXPECT_EQ(watch.Look(1, absl::Seconds(200)), absl::ZeroDuration()) << "a page of a list";
  EXPECT_EQ(watch.Look(1, absl::Seconds(300)), absl::Seconds(100));
}

TEST(SilenceWatch, TakesASlowDiskForNoSilence) {
  Activity activity;
  SilenceWatch watch(activity, absl::ZeroDuration());
  {
    const Activity::OnDisk one(&activity), other(&activity);
    EXPECT_EQ(watch.Look(0, absl::Hours(1)), absl::ZeroDuration());
  }
  EXPECT_EQ(watch.Look(0, absl::Hours(2)), absl::Hours(1));
  const Activity::OnDisk of_nobody(nullptr);
}

// Two ends of a TCP connection on this machine.
struct Connection {
  base::UniqueFd client, server;
};

Connection Connect() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Connection connection{base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  EXPECT_EQ(::bind(listener.get(), at, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), at, &size), 0);
  EXPECT_EQ(::connect(connection.client.get(), at, size), 0);
  connection.server = base::UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return connection;
}

TEST(BytesOfConnections, ChangesWithWhatComes) {
  const Connection connection = Connect();
  const int64_t before = BytesOfConnections();
  EXPECT_EQ(BytesOfConnections(), before);
  std::string page(1000, 'x');
  ASSERT_EQ(::send(connection.server.get(), page.data(), page.size(), 0), 1000);
  ASSERT_EQ(::recv(connection.client.get(), page.data(), page.size(), MSG_WAITALL), 1000);
  EXPECT_GE(BytesOfConnections(), before + 1000);
}

}  // namespace
}  // namespace tutti::storage
