// A rank that is stopped in the middle of a collective on shared buffers, and goes on too late.
// Covers: segment.cc, shared_buffers.cc.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/test_patience.h"
#include "runtime/comm/forked_ranks.h"
#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

constexpr auto kTransport = GroupOptions::Transport::kSharedMemory;

void* closed_page = nullptr;
constexpr size_t kPage = 4096;

// The next access to the page at `place` stops this process; when it goes on, so does the access.
void StopAt(std::byte* place) {
  struct sigaction action = {};
  action.sa_handler = [](int) {
    ::mprotect(closed_page, kPage, PROT_READ | PROT_WRITE);
    ::raise(SIGSTOP);
  };
  ::sigaction(SIGSEGV, &action, nullptr);
  closed_page = place;
  ::mprotect(place, kPage, PROT_NONE);
}

std::string Await(int pipe) {
  char any = 0;
  return ::read(pipe, &any, 1) == 1 ? "" : "the test is gone";
}
void SignalOn(int pipe) { ASSERT_EQ(::write(pipe, "x", 1), 1); }

absl::Status Sum(Communicator& group, std::span<float> data) {
  return group.AllReduce(data.data(), data.size(), DataType::kFloat32, ReduceOp::kSum, Soon());
}

std::span<float> FloatsOf(SharedBuffer& buffer) {
  return {static_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

class LateWriterTest : public testing::Test {
 protected:
  static constexpr size_t kBytes = 8 << 20;

  void SetUp() override {
    ASSERT_EQ(::pipe(failed_), 0);
    ASSERT_EQ(::pipe(look_), 0);
    options_ = OptionsFor(2, kTransport);
    for (GroupOptions& one : options_) one.peer_timeout = base::PatientTimeout(absl::Seconds(1));
  }

  // Rank 0: gets the error, writes, and looks when the other has gone on.
  std::string Survive() {
    auto group = JoinGroup(options_[0]);
    if (!group.ok()) return group.status().ToString();
    const auto buffer = *(*group)->AllocateShared(kBytes);
    const auto idle = *(*group)->AllocateShared(kBytes);
    std::ranges::fill(FloatsOf(*idle), 7.0f);
    const std::span<float> data = FloatsOf(*buffer);
    if (const auto status = Sum(**group, data); !status.ok()) return status.ToString();
    const absl::Status status = Sum(**group, data);
    if (LostRank(status) != 1) return "no error about rank 1: " + status.ToString();
    if (std::ranges::count(FloatsOf(*idle), 7.0f) != std::ssize(FloatsOf(*idle))) {
      return "what lay in another buffer has changed";
    }
    std::ranges::fill(data, 5.0f);
    const auto fresh = (*group)->AllocateShared(kBytes);
    if (!fresh.ok()) return fresh.status().ToString();
    group->reset();
    SignalOn(failed_[1]);
    if (std::string gone = Await(look_[0]); !gone.empty()) return gone;
    return absl::StrCat(data.size() - std::ranges::count(data, 5.0f), " were written over");
  }

  // Rank 1: stops in the middle of its chunk.
  std::string StopMidway() {
    auto group = JoinGroup(options_[1]);
    if (!group.ok()) return group.status().ToString();
    const auto buffer = *(*group)->AllocateShared(kBytes);
    if (const auto status = Sum(**group, FloatsOf(*buffer)); !status.ok()) return status.ToString();
    std::ranges::fill(FloatsOf(*buffer), 1.0f);
    StopAt(static_cast<std::byte*>(buffer->data()) + kBytes / 4 * 3);
    const absl::Status status = Sum(**group, FloatsOf(*buffer));
    return "went on";
  }

  std::vector<GroupOptions> options_;
  int failed_[2], look_[2];
};

TEST_F(LateWriterTest, ARankThatGoesOnAfterItWasGivenUpWritesIntoNobodysMemory) {
  ForkedRanks ranks;
  ranks.Start([&] { return Survive(); });
  ranks.Start([&] { return StopMidway(); });
  ASSERT_TRUE(ranks.AwaitStopped(1));
  pollfd polled = {failed_[0], POLLIN, 0};
  ASSERT_EQ(
      ::poll(&polled, 1, base::Deadline::After(base::Patient(absl::Seconds(60))).RemainingMillis()),
      1);
  ranks.Signal(1, SIGCONT);
  EXPECT_EQ(ranks.Report(1), "went on");
  SignalOn(look_[1]);
  EXPECT_EQ(ranks.Report(0), "0 were written over");
}

}  // namespace
}  // namespace tutti::comm
