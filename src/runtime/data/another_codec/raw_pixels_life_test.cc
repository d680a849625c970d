// Covers: raw_pixels.cc. What one more codec needs is its file and the list: a set of its images is
// found, surveyed, packed, loaded, and its errors are told.
#include <gmock/gmock.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "runtime/data/loader.h"
#include "runtime/data/pack/pack_dataset.h"
#include "runtime/data/pack/survey.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

// Two by one pixels of these levels.
std::string Raw(const std::string& levels) { return "RAW\x02\x01" + levels; }

class RawPixelsTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    int number = 0;
    for (const char* const name : {"cats/a.raw", "dogs/b.raw", "dogs/c.raw"}) {
      const fs::path path = folder_ / "set/train" / name;
      fs::create_directories(path.parent_path());
      ASSERT_TRUE(base::ReplaceFile(path, Raw(std::string(6, static_cast<char>(++number)))).ok());
    }
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::shared_ptr<const Dataset> Open(const std::string& name) {
    auto dataset = OpenDataset((folder_ / name).string(), "train");
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return *std::move(dataset);
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / absl::StrCat("raw-pixels.", getpid());
};

TEST_F(RawPixelsTest, AreFoundSurveyedPackedAndLoaded) {
  const Survey survey = SurveyOf(*Open("set"), {});
  EXPECT_EQ(survey.of_kind, (std::map<absl::string_view, int64_t>{{"RAW", 3}}));
  EXPECT_NEAR(survey.mean[0], 2 / 255.0, 1e-12);

  const auto packed = Pack(*Open("set"), folder_ / "shards", "train", {});
  ASSERT_TRUE(packed.ok()) << packed.status();
  const auto shards = Open("shards");
  ASSERT_EQ(shards->size(), 3);
  EXPECT_THAT(shards->Describe(0), testing::HasSubstr(".raw"));

  LoaderOptions options;
  options.global_batch = 3;
  options.shuffle = false;
  options.augmentation.height = 1;
  options.augmentation.width = 2;
  for (float& stddev : options.augmentation.stddev) stddev = 1 / 255.0f;
  auto loader = MakeLoader(shards, options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  const auto batch = (*loader)->Next(base::Deadline::After(base::Patient(absl::Seconds(30))));
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto* const levels = static_cast<const float*>(batch->pixels);
  EXPECT_THAT(std::vector<float>(levels, levels + 18),
              testing::ElementsAre(1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3));
}

TEST_F(RawPixelsTest, SpeakForThemselvesInErrors) {
  EXPECT_EQ(ImageKinds(), "PNG or RAW");
  EXPECT_EQ(ImageEndings(), ".png or .raw");
  ASSERT_TRUE(base::ReplaceFile(folder_ / "set/train/cats/a.raw", "RAW!").ok());
  ASSERT_TRUE(base::ReplaceFile(folder_ / "set/train/dogs/b.raw", "P6").ok());
  const Survey survey = SurveyOf(*Open("set"), {});
  ASSERT_EQ(survey.unreadable.size(), 2u);
  EXPECT_THAT(std::string(survey.unreadable[0].status.message()),
              testing::HasSubstr("damaged RAW: 4 bytes"));
  EXPECT_THAT(std::string(survey.unreadable[1].status.message()),
              testing::HasSubstr("not PNG or RAW (starts with 50 36)"));
}

}  // namespace
}  // namespace tutti::data
