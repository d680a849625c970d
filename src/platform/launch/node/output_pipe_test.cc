#include "platform/launch/node/output_pipe.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/file.h"

namespace tutti::launch {
namespace {

// No file of this process grows meanwhile, as on a full disk.
class FullDisk {
 public:
  FullDisk() {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

class OutputPipeTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / absl::StrCat("pipe-", ::getpid());
    ASSERT_TRUE(base::MakeDirectories(folder_).ok());
    auto spool = SpoolFile::Open(folder_ / "out", /*rank=*/0, "stdout");
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    auto pipe = OutputPipe::Open(spool_.get());
    ASSERT_TRUE(pipe.ok()) << pipe.status();
    pipe_.emplace(*std::move(pipe));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(absl::string_view words) {
    ASSERT_EQ(::write(pipe_->write_fd(), words.data(), words.size()),
              static_cast<ssize_t>(words.size()));
  }
  std::string Kept() { return spool_->Read(0, 1 << 20).value(); }

  std::filesystem::path folder_;
  std::unique_ptr<SpoolFile> spool_;
  std::optional<OutputPipe> pipe_;
};

TEST_F(OutputPipeTest, KeepsNoSecretWhereverItIsCut) {
  const base::TextMask mask({"hunter22"});
  spool_->set_mask(&mask);
  pipe_.emplace(*OutputPipe::Open(spool_.get()));
  Write("it is hunt");
  EXPECT_TRUE(pipe_->Pump(1 << 20).ok());
  EXPECT_EQ(Kept(), "it is ");
  Write("er22\nand hunter2");
  pipe_->CloseWriteEnd();
  EXPECT_TRUE(pipe_->Pump(1 << 20).ok());
  EXPECT_EQ(Kept(), "it is ***\nand hunter2");
  EXPECT_EQ(pipe_->tail(), Kept());
  EXPECT_FALSE(pipe_->open());
}

TEST_F(OutputPipeTest, KeepsTheLastBytesThatWereHeldBackOnceTheDiskHasRoom) {
  const base::TextMask mask({"hunter22"});
  spool_->set_mask(&mask);
  pipe_.emplace(*OutputPipe::Open(spool_.get()));
  Write("hunter");
  EXPECT_TRUE(pipe_->Pump(1 << 20).ok());
  EXPECT_EQ(Kept(), "");
  pipe_->CloseWriteEnd();
  {
    const FullDisk full;
    EXPECT_FALSE(pipe_->Pump(1 << 20).ok());
    EXPECT_TRUE(pipe_->open());
  }
  EXPECT_TRUE(pipe_->Pump(1 << 20).ok());
  EXPECT_EQ(Kept(), "hunter");
  EXPECT_FALSE(pipe_->open());
}

TEST_F(OutputPipeTest, MovesWhatIsThereAndClosesAtTheEnd) {
  Write("one\n");
  EXPECT_EQ(pipe_->Pump(100).value(), 4u);
  EXPECT_TRUE(pipe_->open());
  Write("two\n");
  pipe_->CloseWriteEnd();
  EXPECT_EQ(pipe_->Pump(100).value(), 4u);
  EXPECT_FALSE(pipe_->open());
  EXPECT_EQ(Kept(), "one\ntwo\n");
  EXPECT_EQ(pipe_->tail(), "one\ntwo\n");
}

TEST_F(OutputPipeTest, OnAFullDiskARunningProcessWaitsWithItsNextWords) {
  const FullDisk full;
  Write("one\n");
  EXPECT_FALSE(pipe_->Pump(100).ok());
  Write("two\n");
  EXPECT_FALSE(pipe_->Pump(100).ok());
  EXPECT_EQ(pipe_->tail(), "one\n");
}

TEST_F(OutputPipeTest, TheLastWordsAreReadOnAFullDiskAndKeptOnceThereIsRoom) {
  {
    const FullDisk full;
    Write("Traceback\n");
    EXPECT_FALSE(pipe_->Pump(100).ok());
    Write("OSError: No space left on device\n");
    pipe_->CloseWriteEnd();
    pipe_->ReadLast(1 << 20);
    EXPECT_EQ(pipe_->tail(), "Traceback\nOSError: No space left on device\n");
    EXPECT_TRUE(pipe_->open()) << "there is something to be kept";
    EXPECT_FALSE(pipe_->Pump(100).ok());
  }
  EXPECT_TRUE(pipe_->Pump(100).ok());
  EXPECT_FALSE(pipe_->open());
  EXPECT_EQ(Kept(), "Traceback\nOSError: No space left on device\n");
}

TEST_F(OutputPipeTest, OfWhatIsNoLongerWantedTheTailAloneHasIt) {
  Write("wanted,");
  pipe_->KeepNoMore();
  Write("not wanted");
  pipe_->CloseWriteEnd();
  EXPECT_TRUE(pipe_->Pump(1 << 20).ok());
  EXPECT_FALSE(pipe_->open());
  EXPECT_EQ(Kept(), "wanted,");
  EXPECT_EQ(pipe_->tail(), "wanted,not wanted");
}

TEST_F(OutputPipeTest, ReadsNoMoreLastWordsThanAskedFor) {
  const std::string block(64 << 10, 'x');
  const FullDisk full;
  Write(block);  // as much as a pipe holds
  EXPECT_FALSE(pipe_->Pump(1).ok());
  Write(block);
  pipe_->ReadLast(0);
  EXPECT_EQ(pipe_->tail().size(), block.size() / 4);
}

}  // namespace
}  // namespace tutti::launch
