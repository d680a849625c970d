#include "platform/container/python/uv.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

// Stands for a python3 whose pip installs uv, and does not end.
constexpr char kPip[] = R"sh(#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/bin"
echo begun >"${0%/*}/begun"
exec sleep 600
)sh";

// And one whose pip has no network.
constexpr char kPipWithoutNetwork[] = R"sh(#!/bin/sh
for total in 4 3 2 1 0; do
  echo "WARNING: Retrying (Retry(total=$total, connect=None)) after connection broken by 'NewConnectionError(': Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/uv/" >&2
done
echo "ERROR: No matching distribution found for uv==0.9.*" >&2
exit 1
)sh";

class UvTest : public ::testing::Test {
 protected:
  UvTest() {
    EXPECT_TRUE(base::WriteFileAtomic(tools_.path() / "python3", kPip, 0755).ok());
    ::setenv("PATH", absl::StrCat(tools_.path().string(), ":/usr/bin:/bin").c_str(), 1);
  }
  ~UvTest() override { ::setenv("PATH", path_.c_str(), 1); }

  void AwaitPip() {
    base::AwaitPatiently(absl::Seconds(20), [&] { return fs::exists(tools_.path() / "begun"); });
  }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory tools_, home_;
};

TEST_F(UvTest, AnInstallationThatIsGivenUpLeavesNothing) {
  if (base::FindProgram("uv", base::CurrentEnvironment()).ok()) GTEST_SKIP() << "uv is in /usr/bin";
  std::atomic<bool> cancelled = false;
  std::thread gives_up([&] {
    AwaitPip();
    cancelled = true;
  });
  EXPECT_TRUE(absl::IsCancelled(FindUv(home_.path(), cancelled).status()));
  gives_up.join();
  for (const auto& left : fs::directory_iterator(home_.path())) {
    EXPECT_FALSE(left.is_directory()) << left.path();
  }
}

TEST_F(UvTest, WithoutANetworkTheReasonIsOneShortLine) {
  if (base::FindProgram("uv", base::CurrentEnvironment()).ok()) GTEST_SKIP() << "uv is in /usr/bin";
  ASSERT_TRUE(base::WriteFileAtomic(tools_.path() / "python3", kPipWithoutNetwork, 0755).ok());
  const absl::Status away = FindUv(home_.path(), false).status();
  EXPECT_TRUE(absl::IsUnavailable(away));
  EXPECT_EQ(away.message(),
            "no way to the package index, which has uv (Temporary failure in name resolution)");
}

}  // namespace
}  // namespace tutti::container
