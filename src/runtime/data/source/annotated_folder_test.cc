// Covers: image_files.cc, runtime/data/pack/packed_annotation.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/data/annotation/mask.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/decode/pnm.h"
#include "runtime/data/pack/pack_dataset.h"
#include "runtime/data/pack/survey.h"
#include "runtime/data/source/tar/tar_fake.h"

namespace tutti::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AnnotatedSets : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) {
    const auto path = directory_.path() / name;
    ASSERT_TRUE(base::MakeDirectories(path.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(path, content).ok());
  }
  // Two images of 40 x 32: the mask's left half is class 0, the right half the other.
  void WriteMasks() {
    Write("classes.txt", "nothing\nthing\nother\n");
    for (int i = 0; i < 2; ++i) {
      Write(absl::StrCat("train/images/street/", i, ".jpg"),
            EncodePattern({.width = 40, .height = 32}, i));
      std::string mask = PnmHeader({40, 32}, 1);
      for (int p = 0; p < 40 * 32; ++p) mask.push_back(static_cast<char>(p % 40 < 20 ? 0 : i + 1));
      Write(absl::StrCat("train/masks/street/", i, ".pgm"), mask);
    }
  }
  void WriteBoxes() {
    Write("classes.txt", "cat\ndog\n");
    for (int i = 0; i < 3; ++i) {
      Write(absl::StrCat("train/images/", i, ".jpg"),
            EncodePattern({.width = 40, .height = 32}, i));
    }
    Write("train/boxes/0.txt", "");
    Write("train/boxes/1.txt", "1 0.5 0.5 0.25 0.25\n");
    Write("train/boxes/2.txt", "1 0.5 0.5 0.25 0.25\n0 0.25 0.25 0.5 0.5\n");
  }
  std::string Source() const { return directory_.path(); }
  std::string Refused() const {
    return std::string(OpenDataset(Source(), "train").status().message());
  }

  base::TemporaryDirectory directory_;
};

TEST_F(AnnotatedSets, MasksArePackedWithTheirImagesAndAsSmall) {
  WriteMasks();
  EXPECT_EQ(*FormatOf(Source()), DatasetFormat::kAnnotatedFolder);
  const auto set = OpenDataset(Source(), "train");
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ((*set)->annotations(), Annotations::kMasks);
  EXPECT_EQ((*set)->Describe(1), "images/street/1.jpg");
  for (const int resize : {0, 16}) {
    const auto to = directory_.path() / absl::StrCat("shards", resize);
    ASSERT_TRUE(Pack(**set, to, "train", {.resize = resize}).ok());
    const auto packed = OpenDataset(to, "train");
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ((*packed)->annotations(), Annotations::kMasks);
    std::string scratch;
    std::vector<uint8_t> memory;
    const auto mask = DecodeMask(*(*packed)->Annotation(1, scratch), memory);
    ASSERT_TRUE(mask.ok()) << mask.status();
    EXPECT_EQ(mask->size, (resize == 0 ? ImageSize{40, 32} : ImageSize{20, 16}));
    EXPECT_EQ(mask->classes[0], 0);
    EXPECT_EQ(mask->classes[mask->size.width - 1], 2);
    const Survey survey = SurveyOf(**packed, {.decode = false});
    EXPECT_THAT(survey.of_class, ElementsAre(2, 1, 1));
  }
}

TEST_F(AnnotatedSets, BoxesArePackedAsTheyLie) {
  WriteBoxes();
  const auto set = OpenDataset(Source(), "train");
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ((*set)->most_boxes(), 2);
  const auto to = directory_.path() / "shards";
  ASSERT_TRUE(Pack(**set, to, "train", {.resize = 16}).ok());
  const auto packed = OpenDataset(to, "train");
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ((*packed)->annotations(), Annotations::kBoxes);
  EXPECT_EQ((*packed)->most_boxes(), 2);
  std::string scratch;
  EXPECT_EQ(*(*packed)->Annotation(1, scratch), "1 0.5 0.5 0.25 0.25\n");
  EXPECT_THAT(SurveyOf(**packed, {}).of_class, ElementsAre(1, 2));
}

TEST_F(AnnotatedSets, WhatIsMissingOrWrongIsNamed) {
  WriteBoxes();
  Write("train/boxes/1.txt", "1 0.5 0.5 0.25 0.25\n7 0.5 0.5 0.25 0.25\n");
  EXPECT_THAT(Refused(), AllOf(HasSubstr("train/boxes/1.txt: line 2"), HasSubstr("out of range")));
  std::filesystem::remove(directory_.path() / "train/boxes/1.txt");
  EXPECT_THAT(Refused(), AllOf(HasSubstr("train/boxes/1.txt"), HasSubstr("missing")));
  ASSERT_TRUE(base::MakeDirectories(directory_.path() / "train/masks").ok());
  EXPECT_THAT(Refused(), HasSubstr("holds masks/ and boxes/"));
}

TEST_F(AnnotatedSets, VerifyNamesTheMaskThatDoesNotFit) {
  WriteMasks();
  Write("train/masks/street/1.pgm", PnmHeader({2, 1}, 1) + "ab");
  const auto set = OpenDataset(Source(), "train");
  ASSERT_TRUE(set.ok()) << set.status();
  const Survey survey = SurveyOf(**set, {});
  ASSERT_EQ(survey.unreadable.size(), 1u);
  EXPECT_THAT(std::string(survey.unreadable[0].status.message()),
              AllOf(HasSubstr("images/street/1.jpg"), HasSubstr("its mask"), HasSubstr("2x1")));
}

TEST_F(AnnotatedSets, AShardHasOneKindOfAnnotation) {
  Write("classes.txt", "cat\ndog\n");
  const std::string jpeg = EncodePattern({.width = 8, .height = 8}, 1);
  TarBuilder tar;
  tar.Add("a.jpg", jpeg).Add("a.cls", "0").Add("b.jpg", jpeg).Add("b.boxes.txt", "");
  Write("train-000000.tar", tar.Finish());
  EXPECT_THAT(Refused(), HasSubstr("b: has boxes, where the set has labels"));
}

}  // namespace
}  // namespace tutti::data
