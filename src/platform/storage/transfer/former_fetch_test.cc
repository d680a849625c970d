#include "platform/storage/transfer/former_fetch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/time/clock.h"
#include "base/file.h"
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
  FormerFetch Former() const { return FormerFetch(from_, from_ / kManifestName); }

  const base::TemporaryDirectory folder_;
  const fs::path from_ = folder_.path() / "from", to_ = folder_.path() / "to";
  const StoredObject object_{"a", 3, "e"};
};

TEST_F(FormerFetchTest, LinksWhatIsTheSame) {
  const FormerFetch former = Former();
  EXPECT_EQ(former.Find(object_, false)->sha256, "s");
  EXPECT_TRUE(former.HasLike({"a", 3, "other"}));
  EXPECT_FALSE(former.Find({"a", 3, "other"}, true).has_value());
  EXPECT_TRUE(*former.LinkTo(object_, to_, to_ / "a"));
  EXPECT_TRUE(fs::equivalent(from_ / "a", to_ / "a"));
  EXPECT_TRUE(*former.LinkTo(object_, to_, to_ / "a")) << "by a fetch that was killed before";
}

TEST_F(FormerFetchTest, ReplacesWhatIsThere) {
  ASSERT_TRUE(base::WriteFileAtomic(to_ / "a", "older").ok());
  EXPECT_TRUE(*Former().LinkTo(object_, to_, to_ / "a"));
  EXPECT_EQ(*base::ReadFile(to_ / "a"), "123");
}

TEST_F(FormerFetchTest, LeavesWhatWasWrittenToOrIsGone) {
  const FormerFetch former = Former();
  const timespec later = absl::ToTimespec(absl::Now() + absl::Seconds(5));
  const timespec times[2] = {later, later};
  ASSERT_EQ(::utimensat(AT_FDCWD, (from_ / "a").c_str(), times, 0), 0);
  EXPECT_FALSE(*former.LinkTo(object_, to_, to_ / "a"));
  fs::remove(from_ / "a");
  EXPECT_FALSE(*former.LinkTo(object_, to_, to_ / "a"));
  EXPECT_FALSE(fs::exists(to_ / "a"));
}

TEST_F(FormerFetchTest, OfNothingHasNothing) {
  EXPECT_FALSE(FormerFetch().HasLike(object_));
  EXPECT_FALSE(FormerFetch("/nowhere", "/nowhere/objects").Find(object_, true).has_value());
}

}  // namespace
}  // namespace tutti::storage
