#include "platform/storage/objects/object_manifest.h"

#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"

namespace tutti::storage {
namespace {

class ObjectManifestTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / path, content).ok());
  }
  static bool Has(const ObjectManifest& manifest, const std::string& path, int64_t bytes,
                  const std::string& etag) {
    return manifest.Find({path, bytes, etag}, false).has_value();
  }
  base::TemporaryDirectory folder_;
};

TEST_F(ObjectManifestTest, KnowsWhatAnEarlierProcessNoted) {
  Write("a", "123");
  ASSERT_TRUE((*ObjectManifest::Open(folder_.path()))->Add("a", {3, "e1", "s"}).ok());
  const auto manifest = *ObjectManifest::Open(folder_.path());
  EXPECT_TRUE(Has(*manifest, "a", 3, "e1"));
  EXPECT_FALSE(Has(*manifest, "a", 3, "e2"));
  EXPECT_FALSE(Has(*manifest, "a", 4, "e1"));
  EXPECT_FALSE(Has(*manifest, "b", 3, "e1"));
  EXPECT_EQ(manifest->entries().at("a").sha256, "s");
}

// An earlier start of the machine has noted a file that had not reached the disk.
TEST_F(ObjectManifestTest, TakesWhatAPowerFailureMayHaveLostByItsHash) {
  const std::string hash = base::Hex(base::Sha256Of("123"));
  const auto line = [&](const char* path) {
    return absl::StrCat("{\"path\":\"", path, "\",\"bytes\":3,\"etag\":\"e\",\"sha256\":\"", hash,
                        "\",\"boot\":\"another\"}\n");
  };
  Write("a", "123");
  Write("b", std::string(3, '\0'));
  Write(kManifestName, absl::StrCat(line("a"), line("b")));
  const auto manifest = *ObjectManifest::Open(folder_.path());
  EXPECT_TRUE(MayBeLost(manifest->entries().at("a")));
  EXPECT_TRUE(Has(*manifest, "a", 3, "e"));
  EXPECT_FALSE(Has(*manifest, "b", 3, "e")) << "a file of the right size without its bytes";
  EXPECT_TRUE(manifest->HasLike({"b", 3}));
  ASSERT_TRUE(manifest->Add("b", {3, "e", hash}).ok());
  EXPECT_TRUE(Has(*manifest, "b", 3, "e")) << "in this start of the machine by its size";
  ASSERT_TRUE(manifest->Keep(manifest->entries(), folder_.path()).ok());
  for (const auto& [path, entry] : (*ObjectManifest::Open(folder_.path()))->entries()) {
    EXPECT_EQ(entry.boot, "") << path << ": it has reached the disk";
  }
}

TEST_F(ObjectManifestTest, HasNoVersionWithoutAName) {
  Write("a", "123");
  const auto manifest = *ObjectManifest::Open(folder_.path());
  ASSERT_TRUE(manifest->Add("a", {3, "", "s"}).ok());
  EXPECT_FALSE(Has(*manifest, "a", 3, ""));
}

TEST_F(ObjectManifestTest, KnowsWhatIsSettledByItsTimeIfItWasThen) {
  Write("a", "123");
  Write("b", "123");
  ASSERT_TRUE((*ObjectManifest::Open(folder_.path()))->Add("a", {3, "e", "s", 1700000000.25}).ok());
  ASSERT_TRUE((*ObjectManifest::Open(folder_.path()))->Add("b", {3, "e", "s"}).ok());
  const auto manifest = *ObjectManifest::Open(folder_.path());
  StoredObject object{"a", 3};
  object.modified = 1700000000.25;
  EXPECT_TRUE(manifest->Find(object, true).has_value());
  EXPECT_FALSE(manifest->Find(object, false).has_value());
  object.modified += 1;
  EXPECT_FALSE(manifest->Find(object, true).has_value());
  object.path = "b";
  object.modified = 0;
  EXPECT_FALSE(manifest->Find(object, true).has_value());
  object.etag = "e";
  EXPECT_EQ(manifest->Find(object, true)->sha256, "s");
}

TEST_F(ObjectManifestTest, DoesNotHaveAFileThatIsGoneOrShorter) {
  Write("a", "12");
  const auto manifest = *ObjectManifest::Open(folder_.path());
  ASSERT_TRUE(manifest->Add("a", {3, "e", "s"}).ok());
  ASSERT_TRUE(manifest->Add("b", {3, "e", "s"}).ok());
  EXPECT_FALSE(Has(*manifest, "a", 3, "e"));
  EXPECT_FALSE(Has(*manifest, "b", 3, "e"));
}

TEST_F(ObjectManifestTest, GoesOnAfterHalfALine) {
  Write("a", "123");
  ASSERT_TRUE((*ObjectManifest::Open(folder_.path()))->Add("a", {3, "e1", "s"}).ok());
  std::ofstream(folder_.path() / kManifestName, std::ios::app) << "{\"path\": \"b\", \"by";
  ASSERT_TRUE((*ObjectManifest::Open(folder_.path()))->Add("a", {3, "e2", "s"}).ok());
  EXPECT_TRUE(Has(**ObjectManifest::Open(folder_.path()), "a", 3, "e2"));
}

TEST_F(ObjectManifestTest, KeepsOneLineForEachFile) {
  const auto manifest = *ObjectManifest::Open(folder_.path());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(manifest->Add("a", {3, "e", "s"}).ok());
  const std::filesystem::path scratch = folder_.path() / "scratch";
  std::filesystem::create_directory(scratch);
  ASSERT_TRUE(manifest->Keep({{"a", {3, "e", "s"}}, {"b", {1, "f", "t"}}}, scratch).ok());
  EXPECT_TRUE(std::filesystem::is_empty(scratch));
  EXPECT_EQ(*base::ReadFile(folder_.path() / kManifestName),
            "{\"bytes\":3,\"etag\":\"e\",\"path\":\"a\",\"sha256\":\"s\"}\n"
            "{\"bytes\":1,\"etag\":\"f\",\"path\":\"b\",\"sha256\":\"t\"}\n");
}

}  // namespace
}  // namespace tutti::storage
