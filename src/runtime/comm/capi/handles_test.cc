#include "runtime/comm/capi/handles.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/test_patience.h"

namespace tutti::comm::capi {
namespace {

TEST(HandlesTest, AHandleIsOfOneKindAndIsGoneOnceItIsTaken) {
  Handles& handles = Handles::Global();
  const uint64_t handle = handles.Add(HandleKind::kGroup, std::make_shared<int>(7));
  EXPECT_TRUE(absl::IsInvalidArgument(handles.Get(HandleKind::kBuffer, handle).status()));
  ASSERT_TRUE(handles.Get(HandleKind::kGroup, handle).ok());
  EXPECT_TRUE(handles.Take(HandleKind::kGroup, handle).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(handles.Get(HandleKind::kGroup, handle).status()));
}

// What a child does; its exit status.
int AskInAChild(uint64_t handle) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(static_cast<unsigned>(5 * base::TestPatience()));
    const auto found = Handles::Global().Get(HandleKind::kGroup, handle);
    ::_exit(absl::IsFailedPrecondition(found.status()) ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(HandlesTest, AForkedChildIsToldSoWhateverOtherThreadsDoAtTheFork) {
  Handles& handles = Handles::Global();
  const uint64_t handle = handles.Add(HandleKind::kGroup, std::make_shared<int>(7));
  std::atomic<bool> done = false;
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i) {
    busy.emplace_back([&] {
      while (!done) {
        handles.Get(HandleKind::kGroup, handle).status().IgnoreError();
        handles.Get(HandleKind::kBuffer, handle).status().IgnoreError();
      }
    });
  }
  int status = 0;
  for (int child = 0; child < 100 && status == 0; ++child) status = AskInAChild(handle);
  done = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_EQ(status, 0) << "a child did not end by itself";
}

}  // namespace
}  // namespace tutti::comm::capi
