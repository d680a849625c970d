#include "platform/storage/transfer/former_fetch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

class FormerFetchTest : public ::testing::Test {
 protected:
  FormerFetchTest() {
    EXPECT_TRUE(base::MakeDirectories(to_ / kPartsName).ok());
    EXPECT_TRUE(base::MakeDirectories(from_).ok());
    EXPECT_TRUE(base::WriteFileAtomic(from_ / "a", "123").ok());
    EXPECT_TRUE((*ObjectManifest::Open(from_))->Add("a", {3, "e", "s", 50}).ok());
  }
  // Returns what a fetch of the container's folder `base` has left, for a fetch of `now`.
  FormerFetches Former(const std::string& base = "train", const std::string& now = "train",
                       bool verify = false) const {
    return FormerFetches({{from_, from_ / kManifestName, base, verify}}, now);
  }
  bool Links(const FormerFetches& former, const StoredObject& object) const {
    const auto linked = former.LinkTo(object, false, to_, to_ / "a");
    EXPECT_TRUE(linked.ok()) << linked.status();
    return linked.ok() && linked->has_value();
  }

  const base::TemporaryDirectory folder_;
  const fs::path from_ = folder_.path() / "from", to_ = folder_.path() / "to";
  const StoredObject object_{"a", 3, "e"};
};

TEST_F(FormerFetchTest, LinksWhatIsTheSame) {
  const FormerFetches former = Former();
  EXPECT_TRUE(former.Has(object_, false));
  EXPECT_TRUE(former.HasLike({"a", 3, "other"}));
  EXPECT_FALSE(former.Has({"a", 3, "other"}, true));
  EXPECT_FALSE(Links(former, {"a", 3, "other"}));
  EXPECT_EQ((*former.LinkTo(object_, false, to_, to_ / "a"))->sha256, "s");
  EXPECT_TRUE(fs::equivalent(from_ / "a", to_ / "a"));
  EXPECT_TRUE(Links(former, object_)) << "by a fetch that was killed before";
}

TEST_F(FormerFetchTest, ReplacesWhatIsThere) {
  ASSERT_TRUE(base::WriteFileAtomic(to_ / "a", "older").ok());
  EXPECT_TRUE(Links(Former(), object_));
  EXPECT_EQ(*base::ReadFile(to_ / "a"), "123");
}

TEST_F(FormerFetchTest, KnowsAnObjectByItsPathInTheContainer) {
  EXPECT_TRUE(Links(Former("train/x", "train"), {"x/a", 3, "e"})) << "of a folder below this one";
  EXPECT_FALSE(Links(Former("", "train"), object_)) << "train/a is another object";
  EXPECT_TRUE(Links(Former("train", ""), {"train/a", 3, "e"}));
  EXPECT_FALSE(Former("train/x", "train").HasLike(object_));
  EXPECT_FALSE(Former("tra", "train").HasLike({"in/a", 3, "e"}));
  EXPECT_TRUE((*ObjectManifest::Open(from_))->Add("deep/a", {3, "d", "s", 50}).ok());
  ASSERT_TRUE(base::MakeDirectories(from_ / "deep").ok());
  ASSERT_TRUE(base::WriteFileAtomic(from_ / "deep/a", "456").ok());
  base::Touch(from_ / kManifestName);
  EXPECT_TRUE(Links(Former("train", "train/deep"), {"a", 3, "d"})) << "of a folder above this one";
  EXPECT_EQ(*base::ReadFile(to_ / "a"), "456");
}

TEST_F(FormerFetchTest, ComparesHashesWhereItIsTold) {
  EXPECT_FALSE(Links(Former("train", "train", /*verify=*/true), object_));
  const std::string hash = base::Hex(base::Sha256Of("123"));
  EXPECT_TRUE((*ObjectManifest::Open(from_))->Add("a", {3, "e", hash, 50}).ok());
  EXPECT_TRUE(Links(Former("train", "train", /*verify=*/true), object_));
}

TEST_F(FormerFetchTest, TakesTheNextFolderWhereAFileIsGone) {
  const fs::path other = folder_.path() / "other";
  ASSERT_TRUE(base::MakeDirectories(other).ok());
  ASSERT_TRUE((*ObjectManifest::Open(other))->Add("a", {3, "e", "s", 50}).ok());
  const FormerFetches both({{other, other / kManifestName, ""}, {from_, from_ / kManifestName, ""}},
                           "");
  EXPECT_TRUE(Links(both, object_));
  EXPECT_TRUE(fs::equivalent(from_ / "a", to_ / "a"));
}

TEST_F(FormerFetchTest, LeavesWhatWasWrittenToOrIsGone) {
  const FormerFetches former = Former();
  const timespec later = absl::ToTimespec(absl::Now() + absl::Seconds(5));
  const timespec times[2] = {later, later};
  ASSERT_EQ(::utimensat(AT_FDCWD, (from_ / "a").c_str(), times, 0), 0);
  EXPECT_FALSE(Links(former, object_));
  fs::remove(from_ / "a");
  EXPECT_FALSE(Links(former, object_));
  EXPECT_FALSE(fs::exists(to_ / "a"));
}

TEST_F(FormerFetchTest, OfNothingHasNothing) {
  EXPECT_FALSE(FormerFetches().HasLike(object_));
  EXPECT_FALSE(FormerFetches({{"/nowhere", "/nowhere/objects", ""}}, "").Has(object_, true));
}

}  // namespace
}  // namespace tutti::storage
