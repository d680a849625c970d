#include "platform/launch/outputs/manifest_place.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using spec::DataPlace;
using spec::StoreKind;

std::string PathOf(const DataPlace& place) {
  const auto found = ManifestBeside(place, "model", 2);
  return found ? found->folder + "|" + found->file : "nothing";
}

TEST(ManifestBeside, IsInTheFolderThatTheOutputIsIn) {
  EXPECT_EQ(PathOf({.kind = StoreKind::kS3, .path = "a/run"}), "a|run.stored.node-2.json");
  EXPECT_EQ(PathOf({.kind = StoreKind::kS3, .path = "run"}), "|run.stored.node-2.json");
  EXPECT_EQ(PathOf({.path = "/mnt/share/a/run", .root = "/mnt/share"}),
            "/mnt/share/a|run.stored.node-2.json");
}

TEST(ManifestBeside, IsNeverOutsideOfTheContainerOrTheDatastoresFolder) {
  EXPECT_EQ(PathOf({.kind = StoreKind::kS3, .path = ""}), "|model.stored.node-2.json");
  EXPECT_EQ(PathOf({.path = "/mnt/share", .root = "/mnt/share"}),
            "/mnt/share|model.stored.node-2.json");
}

TEST(ManifestBeside, IsNotBesideAFolderThatIsMountedThere) {
  const base::TemporaryDirectory folder;
  const fs::path plain = folder.path() / "plain";
  ASSERT_TRUE(base::MakeDirectories(plain).ok());
  EXPECT_EQ(PathOf({.path = plain}), folder.path().native() + "|plain.stored.node-2.json");
  EXPECT_EQ(PathOf({.path = "/proc"}), "nothing") << "which is mounted on every Linux";
}

}  // namespace
}  // namespace tutti::launch
