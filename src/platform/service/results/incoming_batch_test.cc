#include "platform/service/results/incoming_batch.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

class IncomingBatchTest : public ::testing::Test {
 protected:
  fs::path At(const char* path) const { return folder_.path() / path; }

  base::TemporaryDirectory folder_;
  const StagingFolder staging_{folder_.path()};
  std::unique_ptr<IncomingBatch> batch_ = IncomingBatch::Create(staging_).value();
};

TEST_F(IncomingBatchTest, FilesGetTheirNamesTogether) {
  ASSERT_TRUE(base::MakeDirectories(At("out")).ok());
  ASSERT_TRUE(base::WriteFileAtomic(At("out/a"), "old").ok());
  ASSERT_TRUE(batch_->Add(At("out/a"), "new").ok());
  ASSERT_TRUE(batch_->Add(At("out/deep/b"), "").ok());
  EXPECT_EQ(base::ReadFile(At("out/a")).value(), "old");
  const auto statuses = batch_->Commit();
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  EXPECT_EQ(*statuses, std::vector<absl::Status>(2));
  EXPECT_EQ(base::ReadFile(At("out/a")).value(), "new");
  EXPECT_EQ(base::ReadFile(At("out/deep/b")).value(), "");
  batch_.reset();
  EXPECT_TRUE(fs::is_empty(staging_.path()));
}

TEST_F(IncomingBatchTest, OneThatCannotBeKeptHoldsUpNoOther) {
  ASSERT_TRUE(base::MakeDirectories(At("out/folder/full")).ok());
  ASSERT_TRUE(batch_->Add(At("out/folder"), "x").ok());
  ASSERT_TRUE(batch_->Add(At("out/b"), "b").ok());
  const auto statuses = batch_->Commit();
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  EXPECT_FALSE(statuses->at(0).ok());
  EXPECT_TRUE(statuses->at(1).ok());
  EXPECT_EQ(base::ReadFile(At("out/b")).value(), "b");
}

TEST_F(IncomingBatchTest, ManyAreKeptAsFewAre) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(batch_->Add(At("out") / std::to_string(i), std::to_string(i)).ok());
  }
  const auto statuses = batch_->Commit();
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  EXPECT_EQ(*statuses, std::vector<absl::Status>(100));
  EXPECT_EQ(base::ReadFile(At("out/99")).value(), "99");
}

TEST_F(IncomingBatchTest, NothingIsLeftOfOneThatIsCutShort) {
  ASSERT_TRUE(batch_->Add(At("out/a"), "a").ok());
  batch_.reset();
  EXPECT_TRUE(fs::is_empty(staging_.path()));
  EXPECT_FALSE(fs::exists(At("out/a")));
}

}  // namespace
}  // namespace tutti::service
