#include "platform/service/results/file_digests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "base/file.h"
#include "base/hash.h"

namespace tutti::service {
namespace {

class FileDigestsTest : public ::testing::Test {
 protected:
  void Put(const std::string& text) { std::ofstream(file_) << text; }
  base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "input";
  std::atomic<bool> stop_ = false;
  FileDigests digests_{&stop_};
};

TEST_F(FileDigestsTest, IsTheFilesHashAlsoOnceItHasChanged) {
  for (const char* text : {"one", "two"}) {
    Put(text);
    EXPECT_EQ(*digests_.Of(file_), base::Hex(base::Sha256Of(text)));
    EXPECT_EQ(*digests_.Of(file_), base::Hex(base::Sha256Of(text)));
  }
}

TEST_F(FileDigestsTest, FailsWithoutAFile) { EXPECT_FALSE(digests_.Of(file_).ok()); }

// Returns how many bytes this process has read by now, from files and from what is cached of them.
uint64_t BytesRead() {
  std::ifstream counts("/proc/self/io");
  std::string name;
  uint64_t bytes = 0;
  counts >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

TEST_F(FileDigestsTest, ReadsAFileOnceForAllThatAskMeanwhile) {
  constexpr int kThreads = 8;
  // This program, as it has been there for more than a moment: who comes late finds it known.
  const std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe");
  const uint64_t size = std::filesystem::file_size(file), before = BytesRead();
  absl::Barrier* const all = new absl::Barrier(kThreads);
  std::vector<std::thread> threads;
  std::vector<std::string> digests(kThreads);
  for (std::string& digest : digests) {
    threads.emplace_back([&digest, &file, all, this] {
      if (all->Block()) delete all;
      digest = digests_.Of(file).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(digests, ::testing::Each(digests.front()));
  EXPECT_LT(BytesRead() - before, 2 * size);
}

TEST_F(FileDigestsTest, EndsWhenItIsToldToHoweverLargeTheFileIs) {
  Put("");
  std::filesystem::resize_file(file_, uint64_t{50} << 30);  // sparse
  stop_ = true;
  EXPECT_TRUE(absl::IsCancelled(digests_.Of(file_).status()));
}

}  // namespace
}  // namespace tutti::service
