#include "base/threads/time_slice.h"

#include <gtest/gtest.h>

#include <thread>

namespace tutti::base {
namespace {

TEST(TimeSlice, IsSetForTheCallingThread) {
  std::thread([] {
    EXPECT_EQ(SetTimeSlice(absl::Milliseconds(0.1)), absl::OkStatus());
    EXPECT_EQ(SetTimeSlice(absl::Milliseconds(10)), absl::OkStatus());
  }).join();
}

}  // namespace
}  // namespace tutti::base
