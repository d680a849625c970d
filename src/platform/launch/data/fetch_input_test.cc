#include "platform/launch/data/fetch_input.h"

#include <gmock/gmock.h>
#include <sys/mount.h>

#include <string>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "http/client/file_server_for_tests.h"
#include "platform/cache/node_cache.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FetchInputTest : public ::testing::Test {
 protected:
  absl::StatusOr<fs::path> Fetch(const std::string& path) {
    auto fetched = FetchInput("data", {.path = server_.url(path)}, {folder_.path()}, cancelled_);
    if (!fetched.ok()) return fetched.status();
    return fetched->path;
  }
  std::string Content(const std::string& path) {
    const auto file = Fetch(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? base::ReadFile(*file, 1 << 20).value_or("?") : "?";
  }

  http::FileServer server_;
  const base::TemporaryDirectory folder_;
  std::atomic<bool> cancelled_ = false;
};

TEST_F(FetchInputTest, AFileIsFetchedOnceAsLongAsItIsTheSame) {
  server_.Put("/set.csv", "a,b\n", "\"1\"");
  EXPECT_EQ(Content("/set.csv"), "a,b\n");
  EXPECT_EQ(Content("/set.csv"), "a,b\n");
  EXPECT_EQ(server_.sent(), 1);
  server_.Put("/set.csv", "c,d\n", "\"2\"");
  EXPECT_EQ(Content("/set.csv"), "c,d\n");
  EXPECT_EQ(server_.sent(), 2);
}

TEST_F(FetchInputTest, WhatItsServerDoesNotTellApartIsFetchedEachTime) {
  server_.Put("/set.csv", "a,b\n", "");
  EXPECT_EQ(Content("/set.csv"), "a,b\n");
  server_.Put("/set.csv", "c,d\n", "");  // as long as before
  EXPECT_EQ(Content("/set.csv"), "c,d\n");
}

TEST_F(FetchInputTest, AnotherSignatureOfAnAddressIsTheSameFile) {
  server_.Put("/set.csv", "a,b\n", "\"1\"");
  EXPECT_EQ(*Fetch("/set.csv?sig=one"), *Fetch("/set.csv?sig=two"));
  EXPECT_NE(*Fetch("/set.csv?part=1"), *Fetch("/set.csv?part=2")) << "may be other files";
}

TEST_F(FetchInputTest, TheFileHasTheNameThatItsAddressEndsWith) {
  for (const auto& [path, name] : {std::pair("/a%20b.csv", "a b.csv"), {"/x.zip?sig=1", "x.zip"}}) {
    server_.Put(std::string(path).substr(0, std::string(path).find('?')), "1", "\"1\"");
    server_.Put("/a b.csv", "1", "\"1\"");
    const auto file = Fetch(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->filename(), name);
  }
  server_.Put("/folder/", "1", "\"1\"");
  EXPECT_EQ(Fetch("/folder/")->filename(), "data") << "the address ends with no name";
  server_.Put("/x/y", "1", "\"1\"");
  EXPECT_EQ(Fetch("/x%2fy")->filename(), "data") << "a name is of one part";
}

TEST_F(FetchInputTest, WhatCannotBeHadIsNamedWithTheRemedy) {
  const auto file = Fetch("/gone.csv?sig=secret");
  EXPECT_TRUE(absl::IsNotFound(file.status())) << file.status();
  EXPECT_THAT(std::string(file.status().message()),
              AllOf(HasSubstr("input \"data\": "), HasSubstr("cannot be had"),
                    HasSubstr("tutti data map "), Not(HasSubstr("secret"))));
}

TEST_F(FetchInputTest, TheCacheSaysWhatItIsOfWithoutTheSignature) {
  server_.Put("/set.csv", "a,b\n", "\"1\"");
  ASSERT_TRUE(Fetch("/set.csv?sig=secret").ok());
  const auto list = cache::NodeCache(folder_.path()).List();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].place, server_.url("/set.csv"));
  EXPECT_EQ(list[0].state, cache::DataState::kWhole);
  EXPECT_FALSE(list[0].is_pinned) << "nobody has it any more";
}

TEST_F(FetchInputTest, WhatADiskHasNoRoomForLeavesNothingThatFillsIt) {
  if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(folder_.path().c_str(), MNT_DETACH); };
  const uint64_t before = *base::FreeBytes(folder_.path());
  server_.Put("/set.csv", std::string(3 << 20, 'x'), "\"1\"");
  const auto file = Fetch("/set.csv");
  EXPECT_TRUE(absl::IsResourceExhausted(file.status())) << file.status();
  EXPECT_GE(*base::FreeBytes(folder_.path()), before - (1 << 16));
}

TEST_F(FetchInputTest, ACancelledFetchEnds) {
  server_.Put("/set.csv", "a,b\n", "\"1\"");
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(Fetch("/set.csv").status()));
}

}  // namespace
}  // namespace tutti::launch
