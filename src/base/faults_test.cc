#include "base/faults.h"

#include <gtest/gtest.h>

namespace tutti::base {
namespace {

TEST(Faults, AreToldOnceEachInTheOrderInWhichTheyCame) {
  Faults faults;
  EXPECT_TRUE(faults.status().ok());
  faults.Add(absl::OkStatus());
  EXPECT_TRUE(faults.empty());
  faults.Add(absl::NotFoundError("b: gone\na: gone"));
  faults.Add(absl::InvalidArgumentError("a: gone\nc: odd"));
  EXPECT_EQ(faults.status(), absl::InvalidArgumentError("b: gone\na: gone\nc: odd"));
}

TEST(Faults, SayThatTheDiskIsFullIfThatIsAll) {
  Faults faults;
  faults.Add(absl::ResourceExhaustedError("full"));
  EXPECT_EQ(faults.status(), absl::ResourceExhaustedError("full"));
  faults.Add(absl::InvalidArgumentError("odd"));
  EXPECT_EQ(faults.status(), absl::InvalidArgumentError("full\nodd"));
}

}  // namespace
}  // namespace tutti::base
