#include "spec/site/kept_site.h"

#include <gmock/gmock.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;

class KeptSiteTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::WriteFileAtomic(home_.path() / name, text).ok());
  }
  // Reads until what was read is kept, which it is once its files have settled.
  std::shared_ptr<const Site> Settled() {
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    auto before = reader_.Read();
    for (auto next = reader_.Read(); before.ok() && next.ok(); next = reader_.Read()) {
      if (*before == *next) return *next;
      if (absl::Now() > deadline) break;
      before = next;
      absl::SleepFor(absl::Milliseconds(10));
    }
    ADD_FAILURE() << "it is never kept";
    return nullptr;
  }

  base::TemporaryDirectory home_;
  KeptSite reader_{home_.path()};
};

TEST_F(KeptSiteTest, ReadsAFileAgainWhereItHasChangedAndOnlyThen) {
  const auto none = Settled();
  EXPECT_EQ(none->computes, BuiltInSite().computes);
  Write("site.yml", "computes: {one: local}\n");
  const auto first = Settled();
  EXPECT_NE(first, none);
  EXPECT_EQ(*reader_.Read(), first);
  Write("site.yml", "computes: {two: local}\n");
  const auto second = reader_.Read();
  ASSERT_TRUE(second.ok());
  EXPECT_NE(*second, first);
  EXPECT_TRUE((*second)->computes.contains("two")) << "the file has as many bytes as before";
}

TEST_F(KeptSiteTest, EachFileOfTheSiteIsLookedAt) {
  for (const std::filesystem::path& file : SiteFiles(home_.path())) {
    const auto before = Settled();
    Write(file.filename().string(), file.extension() == ".json" ? "{\n" : "a: [\n");
    const absl::Status status = reader_.Read().status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(file.filename().string())) << status;
    ASSERT_TRUE(std::filesystem::remove(file));
    ASSERT_TRUE(reader_.Read().ok()) << file;
  }
}

TEST_F(KeptSiteTest, OpensWhatItLooksAtSoThatAServerOfFilesIsAskedAnew) {
  Write("site.yml", "computes: {one: local}\n");
  const auto kept = Settled();
  const base::UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_TRUE(watch.valid());
  const std::string file = (home_.path() / "site.yml").string();
  ASSERT_GE(::inotify_add_watch(watch.get(), file.c_str(), IN_OPEN | IN_ACCESS), 0);
  EXPECT_EQ(*reader_.Read(), kept);
  inotify_event event = {};
  ASSERT_EQ(::read(watch.get(), &event, sizeof(event)), static_cast<ssize_t>(sizeof(event)));
  EXPECT_EQ(event.mask, static_cast<uint32_t>(IN_OPEN));
  EXPECT_LT(::read(watch.get(), &event, sizeof(event)), 0) << "opened once, and not read";
}

TEST_F(KeptSiteTest, AFileThatComesAndCannotBeReadIsNotTakenForNone) {
  const auto none = Settled();
  std::filesystem::create_symlink("site.yml", home_.path() / "site.yml");  // of itself
  EXPECT_FALSE(reader_.Read().ok());
  ASSERT_TRUE(std::filesystem::remove(home_.path() / "site.yml"));
  EXPECT_EQ(*reader_.Read(), none);
}

TEST_F(KeptSiteTest, AFileThatWasJustChangedIsReadEachTime) {
  for (int i = 0; i < 50; ++i) {  // in place: the same file, and often the same size and time
    std::FILE* const file = std::fopen((home_.path() / "data-map.yml").c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs(absl::StrCat("data: {'https://e.org/sets': /data/", 10 + i, "}\n").c_str(), file);
    std::fclose(file);
    const auto site = reader_.Read();
    ASSERT_TRUE(site.ok()) << site.status();
    ASSERT_EQ((*site)->data.entries().size(), 1u);
    EXPECT_THAT((*site)->data.entries().begin()->second.folder, HasSubstr(absl::StrCat(10 + i)));
  }
}

}  // namespace
}  // namespace tutti::spec
