#include "platform/launch/delivery/upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/launch/service_double.h"

namespace tutti::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class UploadTest : public ::testing::Test {
 protected:
  Result Make(const std::string& name, const std::string& bytes) {
    EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / name, bytes).ok());
    return {folder_.path() / name, "outputs/" + name};
  }
  absl::Status Send(const std::vector<Result>& results) {
    ServiceLink link(plan_);
    return UploadResults(results, 0, &link,
                         base::Deadline::After(base::Patient(absl::Seconds(30))));
  }

  const base::TemporaryDirectory folder_;
  ServiceDouble service_{folder_.path() / "launcher.json"};
  const spec::LaunchPlan plan_ = [this] {
    spec::LaunchPlan plan;
    plan.allocation_id = AllocationOfTests();
    plan.directory = folder_.path();
    plan.service_file = folder_.path() / "launcher.json";
    plan.launcher_token = "launcher-token";
    return plan;
  }();
};

TEST_F(UploadTest, ManySmallFilesTakeFewCallsAndALargeOneItsOwn) {
  std::vector<Result> results;
  for (int i = 0; i < 2500; ++i) results.push_back(Make(absl::StrCat(i), absl::StrCat("of ", i)));
  const std::string large(300 << 10, 'x');
  results.push_back(Make("large", large));
  ASSERT_EQ(Send(results), absl::OkStatus());
  const auto files = service_.Files();
  EXPECT_EQ(files.size(), 2501u);
  EXPECT_EQ(files.at("outputs/7"), "of 7");
  EXPECT_EQ(files.at("outputs/2499"), "of 2499");
  EXPECT_EQ(files.at("outputs/large"), large);
  EXPECT_EQ(service_.requests(), 4) << "three batches and the large one";
}

TEST_F(UploadTest, WhatIsCutOffIsSentAgain) {
  service_.LoseEvery(2);
  std::vector<Result> results;
  for (int i = 0; i < 3000; ++i) results.push_back(Make(absl::StrCat(i), absl::StrCat("of ", i)));
  ASSERT_EQ(Send(results), absl::OkStatus());
  EXPECT_EQ(service_.Files().size(), 3000u);
}

TEST_F(UploadTest, OneThatIsRefusedOrGoneIsNamedAndHoldsUpNoOther) {
  const Result refused = Make("refused", "x"), kept = Make("kept", "y");
  const Result gone{folder_.path() / "none", "outputs/none"};
  const absl::Status status = Send({refused, gone, kept});
  EXPECT_THAT(std::string(status.message()), HasSubstr("outputs/none"));
  EXPECT_EQ(service_.Files().at("outputs/kept"), "y");
  EXPECT_THAT(std::string(Send({refused, kept}).message()),
              HasSubstr("sending outputs/refused: this name may not be"));
  EXPECT_FALSE(service_.Files().contains("outputs/refused"));
}

TEST_F(UploadTest, EachThatTheServiceHasIsTold) {
  const std::vector<Result> results = {Make("refused", "x"),
                                       Make("kept", "y"),
                                       Make("large", std::string(300 << 10, 'x')),
                                       {folder_.path() / "none", "outputs/none"}};
  std::vector<std::string> taken;
  ServiceLink link(plan_);
  const absl::Status status =
      UploadResults(results, 0, &link, base::Deadline::After(base::Patient(absl::Seconds(30))), "",
                    [&](const Result& result) { taken.push_back(result.path); });
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(taken, UnorderedElementsAre("outputs/large", "outputs/kept"));
}

TEST_F(UploadTest, AnAllocationThatIsNotKnownEndsIt) {
  service_.Forget();
  EXPECT_TRUE(absl::IsAborted(Send({Make("a", "x")})));
}

}  // namespace
}  // namespace tutti::launch
