#include "runtime/comm/rendezvous/wire/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>

#include "runtime/comm/forked_ranks.h"
#include "runtime/comm/rendezvous/patience_test_support.h"

namespace tutti::comm {
namespace {

using base::UniqueFd;

struct Pair {
  explicit Pair(int type = SOCK_STREAM) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    here.reset(ends[0]);
    there.reset(ends[1]);
  }
  UniqueFd here, there;
};

// The lowest that is free: it rises when a descriptor is left open.
int NextDescriptor() { return UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)).get(); }

void SendRaw(int socket, std::span<const int> descriptors, size_t bytes) {
  std::array<char, 16> text = {};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  iovec data = {text.data(), bytes};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  ASSERT_EQ(::sendmsg(socket, &message, 0), static_cast<ssize_t>(bytes));
}

TEST(DescriptorsTest, OneThatComesIsTheSameFile) {
  const Pair pair;
  const UniqueFd event(::eventfd(5, EFD_CLOEXEC));
  ASSERT_TRUE(SendDescriptor(pair.here.get(), event.get(), Patient()).ok());
  const auto came = ReceiveDescriptor(pair.there.get(), Patient());
  ASSERT_TRUE(came.ok()) << came.status();
  eventfd_t value = 0;
  ASSERT_EQ(::eventfd_read(came->get(), &value), 0);
  EXPECT_EQ(value, 5u);
}

TEST(DescriptorsTest, MoreThanTheOneThatIsAwaitedAreClosed) {
  const Pair pair(SOCK_SEQPACKET);
  const int descriptors[] = {0, 0, 0};
  const int before = NextDescriptor();
  for (const size_t many : {2, 3}) {
    SendRaw(pair.here.get(), {descriptors, many}, 16);
    std::array<char, 16> bytes;
    UniqueFd descriptor;
    EXPECT_EQ(ReceiveWithDescriptor(pair.there.get(), bytes.data(), 16, descriptor, 0), 16);
    EXPECT_FALSE(descriptor.valid());
    EXPECT_EQ(NextDescriptor(), before);
  }
}

TEST(DescriptorsTest, ThoseThatComeWithAnEmptyMessageAreClosedOrOwned) {
  const Pair pair(SOCK_SEQPACKET);
  const int descriptors[] = {0, 0};
  const int before = NextDescriptor();
  SendRaw(pair.here.get(), {descriptors, 1}, 0);
  {
    char byte;
    UniqueFd descriptor;
    EXPECT_EQ(ReceiveWithDescriptor(pair.there.get(), &byte, 1, descriptor, 0), 0);
  }
  EXPECT_EQ(NextDescriptor(), before);
}

TEST(DescriptorsTest, AnyNumberComesInOrder) {
  const Pair pair;
  std::vector<UniqueFd> events;
  std::vector<int> numbers;
  for (unsigned i = 0; i < 300; ++i) {
    numbers.push_back(events.emplace_back(::eventfd(i + 1, EFD_CLOEXEC)).get());
  }
  auto sent = std::async(std::launch::async,
                         [&] { return SendDescriptors(pair.here.get(), numbers, Patient()); });
  const auto came = ReceiveDescriptors(pair.there.get(), numbers.size(), Patient());
  EXPECT_TRUE(sent.get().ok());
  ASSERT_TRUE(came.ok()) << came.status();
  ASSERT_EQ(came->size(), numbers.size());
  for (size_t i = 0; i < came->size(); ++i) {
    eventfd_t value = 0;
    ASSERT_EQ(::eventfd_read((*came)[i].get(), &value), 0);
    EXPECT_EQ(value, i + 1);
  }
}

TEST(DescriptorsTest, AFullSocketIsWaitedForUntilTheDeadline) {
  const Pair pair;
  absl::Status status;
  for (int i = 0; i < 100000 && status.ok(); ++i) {
    status = SendDescriptor(pair.here.get(), STDIN_FILENO,
                            {base::Deadline::After(absl::Milliseconds(20))});
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

// The system refuses with ETOOMANYREFS what goes on as soon as others have taken theirs.
TEST(DescriptorsTest, ASenderWaitsWhileItsUserHasTooManyUnderWay) {
  ForkedRanks processes;
  processes.Start([]() -> std::string {
    const rlimit few = {64, 64};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return "no limit";
    if (::geteuid() == 0 && ::setresuid(61234, 61234, 61234) != 0) return "still root";
    const Pair pair;
    auto received = std::async(std::launch::async, [&] {
      for (int i = 0; i < 300; ++i) {
        const auto one = ReceiveDescriptor(pair.there.get(), Patient());
        if (!one.ok()) return one.status();
      }
      return absl::OkStatus();
    });
    for (int i = 0; i < 300; ++i) {
      const absl::Status status = SendDescriptor(pair.here.get(), STDIN_FILENO, Patient());
      if (!status.ok()) return std::string(status.message());
    }
    return received.get().ok() ? "all" : "not all";
  });
  EXPECT_EQ(processes.Report(0), "all");
}

}  // namespace
}  // namespace tutti::comm
