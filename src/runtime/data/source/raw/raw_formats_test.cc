// Covers: cifar10.cc, idx.cc, raw_images.cc, synthetic.cc, runtime/data/source/classes.cc,
// runtime/data/source/open_dataset.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/pnm.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/raw/cifar10.h"
#include "runtime/data/source/raw/idx.h"
#include "runtime/data/source/tar/tar_fake.h"

namespace tutti::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RawFormats : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(base::MakeDirectories((directory_.path() / name).parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(directory_.path() / name, content).ok());
  }
  absl::StatusOr<std::shared_ptr<const Dataset>> Open(absl::string_view split = "train") {
    return OpenDataset(directory_.path(), split);
  }
  std::string Error(absl::string_view split = "train") {
    return std::string(Open(split).status().message());
  }
  base::TemporaryDirectory directory_;
  std::string scratch_;
};

// Red is the pixel's number, green and blue are constant.
std::string CifarRecord(char label, char green, char blue) {
  std::string record(1, label);
  for (int i = 0; i < 1024; ++i) record += static_cast<char>(i);
  return record + std::string(1024, green) + std::string(1024, blue);
}

TEST_F(RawFormats, ReadsCifar10) {
  Write("cifar-10-batches-bin/data_batch_1.bin",
        CifarRecord(3, 'g', 'b') + CifarRecord(9, 'G', 'B'));
  Write("cifar-10-batches-bin/data_batch_2.bin", CifarRecord(0, 1, 2));
  Write("cifar-10-batches-bin/test_batch.bin", CifarRecord(1, 1, 2));
  Write("cifar-10-batches-bin/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const auto train = Open();
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->size(), 3);
  EXPECT_EQ((*train)->label(1), 9);
  EXPECT_EQ((*train)->classes()[3], "d");
  EXPECT_EQ((*train)->Describe(2), "data_batch_2.bin:0");
  const absl::string_view pnm = *(*train)->Encoded(0, scratch_);
  const auto image = ParsePnm(pnm, 1024);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->size, (ImageSize{32, 32}));
  EXPECT_EQ(image->samples.substr(0, 6), absl::string_view("\0gb\1gb", 6));
  EXPECT_EQ((*Open("test"))->size(), 1);
}

TEST_F(RawFormats, Cifar10ThatIsCutShortOrHasAWrongLabelIsNamed) {
  Write("data_batch_1.bin", CifarRecord(3, 1, 1) + CifarRecord(10, 1, 1));
  EXPECT_THAT(Error(), AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("record 1"),
                             HasSubstr("label 10 is out of range")));
  Write("data_batch_1.bin", CifarRecord(3, 1, 1).substr(1));
  EXPECT_THAT(Error(), AllOf(HasSubstr("data_batch_1.bin"), HasSubstr("cut short")));
  Write("data_batch_1.bin", "");
  EXPECT_THAT(Error(), HasSubstr("cut short"));
  EXPECT_THAT(Error("test"), HasSubstr("test_batch.bin"));
}

std::string Idx(std::vector<uint32_t> sizes, const std::string& bytes) {
  std::string file = {0, 0, 8, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  }
  return file + bytes;
}

TEST_F(RawFormats, ReadsMnistPlainAndCompressed) {
  for (const bool gzip : {false, true}) {
    const auto write = [&](const std::string& name, const std::string& content) {
      Write(name + (gzip ? ".gz" : ""), gzip ? Deflate(content, Deflated::kGzip) : content);
    };
    std::error_code error;
    std::filesystem::remove_all(directory_.path() / "raw", error);
    write("raw/train-images-idx3-ubyte", Idx({2, 2, 3}, "abcdefABCDEF"));
    write("raw/train-labels-idx1-ubyte", Idx({2}, std::string("\7\0", 2)));
    const auto train = OpenIdx(directory_.path(), "train");
    ASSERT_TRUE(train.ok()) << train.status();
    EXPECT_EQ((*train)->size(), 2);
    EXPECT_EQ((*train)->label(0), 7);
    EXPECT_EQ((*train)->classes().size(), 10u);
    EXPECT_EQ(*(*train)->Encoded(1, scratch_), "P5\n3 2\n255\nABCDEF");
  }
}

TEST_F(RawFormats, MnistThatIsDamagedIsNamed) {
  const auto write = [&](const std::string& images, const std::string& labels) {
    Write("train-images-idx3-ubyte", images);
    Write("train-labels-idx1-ubyte", labels);
  };
  write(Idx({2, 2, 2}, "abcdefg"), Idx({2}, "\1\2"));
  EXPECT_THAT(Error(), AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr("cut short: 7")));
  write(Idx({2, 2, 2}, "abcdefgh"), Idx({3}, "\1\2\3"));
  EXPECT_THAT(Error(), HasSubstr("2 images of 2x2 and 3 labels"));
  write(Idx({2, 2, 2}, "abcdefgh"), "\1\2\3\4");
  EXPECT_THAT(Error(), AllOf(HasSubstr("train-labels"), HasSubstr("not an IDX file")));
  write(Idx({2, 2, 2}, "abcdefgh"), Idx({2}, "\1\2"));
  Write("classes.txt", "zero\none\n");
  EXPECT_THAT(Error(), HasSubstr("label 2 is out of range: classes.txt names 2 classes"));
  EXPECT_THAT(Error("test"), HasSubstr("no t10k-images-idx3-ubyte"));
  Write("t10k-images-idx3-ubyte.gz",
        Deflate(Idx({1, 2, 2}, "abcd"), Deflated::kGzip).substr(0, 20));
  Write("t10k-labels-idx1-ubyte", Idx({1}, "\1"));
  EXPECT_THAT(Error("test"), AllOf(HasSubstr("t10k-images"), HasSubstr("cut short")));
}

TEST_F(RawFormats, AStrayLabelOfIdxIsNamedWhereNothingSaysHowManyClassesThereAre) {
  const auto write = [&](const std::string& split, const std::string& labels) {
    const auto count = static_cast<uint32_t>(labels.size());
    Write(split + "-images-idx3-ubyte", Idx({count, 1, 1}, labels));
    Write(split + "-labels-idx1-ubyte", Idx({count}, labels));
  };
  write("train", "\1\5\377\3");
  write("t10k", "\1\5\377\3");
  EXPECT_THAT(Error(), AllOf(HasSubstr("train-labels-idx1-ubyte: record 2: label 255"),
                             HasSubstr("classes.txt")));
  EXPECT_EQ((*Open("test"))->classes().size(), 256u);
  write("train", "\1\17");  // 10 to 14 are missing
  EXPECT_EQ((*Open())->classes().size(), 16u);
  write("train", "\1\20");
  EXPECT_THAT(Error(), HasSubstr("record 1: label 16"));
  std::string names;
  for (int i = 0; i < 17; ++i) names += absl::StrCat("class ", i, "\n");
  Write("classes.txt", names);
  EXPECT_EQ((*Open())->classes().size(), 17u);
}

TEST(StrayLabel, IsWhatLiesBehindMoreMissingOnesThanTheRestExplains) {
  const auto stray = [](const std::set<int64_t>& labels) { return StrayLabel(labels); };
  EXPECT_EQ(stray({}), std::nullopt);
  EXPECT_EQ(stray({3, 4, 8, 10}), std::nullopt) << "three in a row may be missing";
  EXPECT_EQ(stray({0, 5}), 5);
  EXPECT_EQ(stray({4}), 4);
  std::set<int64_t> labels;
  for (int64_t i = 0; i < 10; ++i) labels.insert(i);
  labels.insert({15, 21});
  EXPECT_EQ(stray(labels), std::nullopt) << "five, half of ten";
  labels.insert(28);
  EXPECT_EQ(stray(labels), std::nullopt) << "six, half of twelve";
  labels.insert(36);
  EXPECT_EQ(stray(labels), 36) << "seven, more than half of thirteen";
  labels.insert(4000000);
  EXPECT_EQ(stray(labels), 36) << "the lowest";
  labels.clear();
  for (int64_t i = 0; i < 1000; ++i) labels.insert(i);
  labels.insert(1016);
  EXPECT_EQ(stray(labels), std::nullopt);
  labels.insert(1034);
  EXPECT_EQ(stray(labels), 1034) << "seventeen are too many for any set";
}

// COCO's 80 classes are numbered to 90, EMNIST's letters from 1.
TEST(StrayLabel, HonestSetsHaveNone) {
  std::set<int64_t> coco;
  for (int64_t i = 1; i <= 90; ++i) coco.insert(i);
  for (const int64_t gap : {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}) coco.erase(gap);
  EXPECT_EQ(coco.size(), 80u);
  EXPECT_EQ(StrayLabel(coco), std::nullopt);
  std::set<int64_t> letters;
  for (int64_t i = 1; i <= 26; ++i) letters.insert(i);
  EXPECT_EQ(StrayLabel(letters, 10), std::nullopt);
}

TEST(ParseIdx, SizesThatOverflowAreAnError) {
  EXPECT_FALSE(ParseIdx(Idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "")).ok());
  EXPECT_TRUE(ParseIdx(Idx({0, 5}, "")).ok());
  EXPECT_FALSE(ParseIdx(Idx({1}, "ab")).ok());
}

TEST_F(RawFormats, ReadsFoldersOfClasses) {
  Write("train/dog/b.JPG", "B");
  Write("train/dog/deep/a.png", "A");
  Write("train/cat/c.jpeg", "C");
  Write("train/cat/notes.txt", "passed over");
  Write("val/cat/d.jpg", "D");
  Write("val/dog/e.jpg", "E");
  const auto train = Open();
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->classes(), (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ((*train)->size(), 3);
  EXPECT_EQ((*train)->Describe(0), "cat/c.jpeg");
  EXPECT_EQ((*train)->Describe(1), "dog/b.JPG");
  EXPECT_EQ((*train)->Describe(2), "dog/deep/a.png");
  EXPECT_EQ((*train)->label(2), 1);
  EXPECT_EQ(*(*train)->Encoded(2, scratch_), "A");
  EXPECT_EQ(*(*Open("test"))->Encoded(1, scratch_), "E");
  std::filesystem::remove(directory_.path() / "train/cat/c.jpeg");
  EXPECT_EQ((*train)->Encoded(0, scratch_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RawFormats, FoldersWithoutImagesAreNamed) {
  EXPECT_THAT(Error(), AllOf(HasSubstr("is empty"), HasSubstr("train-000000.tar")));
  ASSERT_TRUE(base::MakeDirectories(directory_.path() / "train").ok());
  EXPECT_THAT(Error(), HasSubstr("holds no folder of a class"));
  Write("train/cat/a.jpg", "A");
  ASSERT_TRUE(base::MakeDirectories(directory_.path() / "train/dog").ok());
  EXPECT_THAT(Error(), AllOf(HasSubstr("train/dog"), HasSubstr("holds no image")));
  EXPECT_THAT(Error("tran"), HasSubstr("did you mean \"train\"?"));
  EXPECT_THAT(std::string(OpenDataset("/no/such/folder", "train").status().message()),
              HasSubstr("/no/such/folder"));
}

TEST(Synthetic, HasTheSizeThatItsNameSays) {
  std::string scratch;
  const auto dataset = OpenDataset("synthetic:50x24x7", "train");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 50);
  EXPECT_EQ((*dataset)->classes().size(), 7u);
  EXPECT_EQ((*dataset)->label(8), 1);
  EXPECT_EQ(ParsePnm(*(*dataset)->Encoded(3, scratch), 1000)->size, (ImageSize{24, 24}));
  EXPECT_TRUE(OpenDataset("synthetic", "test").ok());
  for (const char* wrong : {"synthetic:", "synthetic:5", "synthetic:0x3", "synthetic:1x2x3x4"}) {
    EXPECT_FALSE(OpenDataset(wrong, "train").ok()) << wrong;
  }
}

TEST(Pnm, HeadersMayHaveCommentsAndMustTellTheTruth) {
  EXPECT_EQ(ParsePnm("P6 # a comment\n1\t2 255\nabcdef", 9)->samples, "abcdef");
  EXPECT_EQ(ParsePnm("P5\n2 1\n255\nab", 9)->channels, 1);
  EXPECT_EQ(ParsePnm("P5\n2 1\n255\na", 9).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParsePnm("P5\n2 1\n255\nabc", 9).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParsePnm("P5\n20 1\n255\n", 9).status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* wrong : {"P5", "P5\n", "P5\n0 1\n255\n", "P6 1 1 65535\nabcdef", "P4 1 1 255\na",
                            "P5 1 1 #", "P5 99999999 1 255\n"}) {
    EXPECT_FALSE(ParsePnm(wrong, 9).ok()) << wrong;
  }
}

}  // namespace
}  // namespace tutti::data
