#include "platform/client/storage/store_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "platform/client/storage/storage_side_fake.h"
#include "platform/storage/objects/object_manifest.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreCodeTest : public ::testing::Test {
 protected:
  std::string Text(const std::string& file) const {
    return base::ReadFile(folder_.path() / "code" / file).value_or("not there");
  }
  absl::StatusOr<fs::path> Fetch(FakeSide& side, const StoreCodeLimits& limits = {}) const {
    return FetchStoreCode(side, folder_.path() / "code", limits);
  }

  const base::TemporaryDirectory folder_;
};

TEST_F(StoreCodeTest, AFolderIsTheCodeWithAllBelowIt) {
  FakeSide side("box", "train", {{"train/a.py", "1"}, {"train/lib/b.py", "2"}, {"other", "3"}});
  const auto code = Fetch(side);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, folder_.path() / "code");
  EXPECT_EQ(Text("a.py"), "1");
  EXPECT_EQ(Text("lib/b.py"), "2");
  EXPECT_THAT(side.calls(), ElementsAre("fetch a.py lib/b.py"));
}

TEST_F(StoreCodeTest, AFileIsTheCodeItself) {
  FakeSide side("box", "train/a.py", {{"train/a.py", "1"}, {"train/b.py", "2"}});
  const auto code = Fetch(side);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, folder_.path() / "code/a.py");
  EXPECT_EQ(Text("a.py"), "1");
  EXPECT_EQ(Text("b.py"), "not there");
}

TEST_F(StoreCodeTest, WhatTheProgramNotesOfAFetchIsNoCode) {
  FakeSide side("box", "train", {{"train/a.py", "1"}});
  const fs::path notes = folder_.path() / "code" / storage::kManifestName;
  side.hook = [&](const std::string&) -> absl::Status {
    return base::WriteFileAtomic(notes, "{}");
  };
  ASSERT_TRUE(Fetch(side).ok());
  EXPECT_FALSE(fs::exists(notes));
}

TEST_F(StoreCodeTest, MoreThanTheLimitsIsRefusedBeforeItIsFetched) {
  FakeSide side("box", "train", {{"train/a.py", "1"}, {"train/b.py", "22"}});
  EXPECT_TRUE(Fetch(side, {.files = 2, .bytes = 3}).ok());
  FakeSide other("box", "train", side.files());
  for (const StoreCodeLimits limits : {StoreCodeLimits{1, 3}, StoreCodeLimits{2, 2}}) {
    const absl::Status refused = Fetch(other, limits).status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(refused.message(), AllOf(HasSubstr("s3://box/train: 2 files, 3 B"),
                                         HasSubstr("name the folder that has the scripts alone")));
  }
  EXPECT_THAT(other.calls(), IsEmpty());
}

TEST_F(StoreCodeTest, ErrorsOfTheStoreAreTold) {
  FakeSide nothing("box", "none", {});
  EXPECT_TRUE(absl::IsNotFound(Fetch(nothing).status())) << Fetch(nothing).status();
  FakeSide refuses("box", "train", {{"train/a.py", "1"}});
  refuses.hook = [](const std::string&) { return absl::PermissionDeniedError("a wrong key"); };
  EXPECT_TRUE(absl::IsPermissionDenied(Fetch(refuses).status()));
}

}  // namespace
}  // namespace tutti::client
