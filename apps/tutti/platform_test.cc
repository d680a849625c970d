#include "platform.h"

#include <gtest/gtest.h>

#include "platform/service/world_for_tests.h"

namespace tutti {
namespace {

using service::DiskEngine;

class PlatformTest : public ::testing::Test {
 protected:
  PlatformOptions Options(const std::string& name) {
    PlatformOptions options{.directory = folder_.path() / name, .port = 0};
    options.make_engine = [this, name]() -> absl::StatusOr<std::unique_ptr<engine::Engine>> {
      return std::make_unique<DiskEngine>(folder_.path() / (name + "-engine"));
    };
    return options;
  }
  base::TemporaryDirectory folder_;
};

TEST_F(PlatformTest, RefusesASecondServiceBeforeItMakesAnEngine) {
  const auto first = Platform::Start(Options("state"));
  ASSERT_TRUE(first.ok()) << first.status();
  PlatformOptions second = Options("state");
  second.make_engine = []() -> absl::StatusOr<std::unique_ptr<engine::Engine>> {
    ADD_FAILURE() << "an engine was made without holding the folder";
    return absl::InternalError("");
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(Platform::Start(second).status()));
}

TEST_F(PlatformTest, RefusesATakenPortAndDoesNotAnnounceItself) {
  const auto first = Platform::Start(Options("state"));
  ASSERT_TRUE(first.ok()) << first.status();
  PlatformOptions other = Options("other");
  const std::string& url = (*first)->url();
  other.port = std::stoi(url.substr(url.rfind(':') + 1));
  const auto taken = Platform::Start(other);
  EXPECT_TRUE(absl::IsAlreadyExists(taken.status())) << taken.status();
  EXPECT_FALSE(std::filesystem::exists(other.directory / "service.json"));
}

TEST_F(PlatformTest, LeavesWordThatItHasEnded) {
  const PlatformOptions options = Options("state");
  auto platform = Platform::Start(options);
  ASSERT_TRUE(platform.ok()) << platform.status();
  EXPECT_TRUE(std::filesystem::exists(options.directory / "service.json"));
  platform->reset();
  EXPECT_FALSE(std::filesystem::exists(options.directory / "service.json"));
}

}  // namespace
}  // namespace tutti
