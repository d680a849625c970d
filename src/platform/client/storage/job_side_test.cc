#include "platform/client/storage/job_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "base/file.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobSideTest : public ::testing::Test {
 protected:
  std::unique_ptr<StorageSide> Open(const std::string& text) {
    auto side = JobSideOf(ParseStorageAddress(text, {}).value(), fake_.connect());
    EXPECT_TRUE(side.ok()) << side.status();
    return side.ok() ? *std::move(side) : nullptr;
  }
  static std::vector<std::string> Paths(const absl::StatusOr<Listing>& listing) {
    std::vector<std::string> paths;
    if (!listing.ok()) return {std::string(listing.status().message())};
    for (const auto& object : listing->objects) paths.push_back(object.path);
    return paths;
  }

  FakeService fake_{[](const http::ClientRequest& request) {
    if (absl::EndsWith(request.target, "/files")) {
      return FakeService::Answer{
          .chunks = {
              R"({"files": [{"path": "logs/0.txt", "bytes": 2},)"
              R"({"path": "outputs/m/a.pt", "bytes": 3}, {"path": "outputs/x", "bytes": 1}]})"}};
    }
    if (absl::StrContains(request.target, "/files/")) return FakeService::Answer{.chunks = {"abc"}};
    return FakeService::Answer{.chunks = {R"({"id": "brave_ant", "jobs": []})"}};
  }};
};

TEST_F(JobSideTest, ListsFoldersAndFiles) {
  EXPECT_THAT(Paths(Open("job:brave_ant")->List(false)), ElementsAre("logs/", "outputs/"));
  EXPECT_THAT(Paths(Open("job:brave_ant/outputs")->List(false)), ElementsAre("m/", "x"));
  EXPECT_THAT(Paths(Open("job:brave_ant/outputs")->List(true)), ElementsAre("m/a.pt", "x"));
  const auto one = Open("job:brave_ant/outputs/x")->List(true);
  ASSERT_TRUE(one.ok());
  EXPECT_TRUE(one->is_file);
  EXPECT_EQ(one->base, "outputs");
  EXPECT_THAT(Paths(Open("job:brave_ant/nothing")->List(true)),
              ElementsAre(HasSubstr("tutti storage ls job:brave_ant")));
}

TEST_F(JobSideTest, FetchesFilesWholeAndChangesNone) {
  const base::TemporaryDirectory folder;
  const auto side = Open("job:brave_ant/outputs");
  int64_t bytes = 0;
  ASSERT_TRUE(
      side->Fetch("outputs", {"m/a.pt"}, folder.path(), [&](int64_t now) { bytes = now; }).ok());
  EXPECT_EQ(base::ReadFile(folder.path() / "m/a.pt").value(), "abc");
  EXPECT_EQ(bytes, 3);
  EXPECT_FALSE(side->Fetch("outputs", {"x"}, folder.path(), {}).ok()) << "3 bytes for 1";
  EXPECT_TRUE(absl::IsInvalidArgument(side->Remove("outputs", {"x"})));
  EXPECT_TRUE(absl::IsInvalidArgument(side->Put("outputs", {"x"}, folder.path(), {})));
}

}  // namespace
}  // namespace tutti::client
