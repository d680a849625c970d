// Covers: tf_example.cc, tf_record.cc, masked_crc32c.h, runtime/data/source/split_names.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source/tar/tar_fake.h"
#include "runtime/data/source/tf_record/tf_example.h"
#include "runtime/data/source/tf_record/tf_record.h"
#include "runtime/data/source/tf_record/tf_record_fake.h"

namespace tutti::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TfRecord, GivesRecordsAndTheFilesEnd) {
  const std::string file = EncodeTfRecord("first") + EncodeTfRecord("") + EncodeTfRecord("third");
  TfRecordReader reader(file);
  for (const char* expected : {"first", "", "third"}) {
    const auto record = reader.Next();
    ASSERT_TRUE(record.ok() && record->has_value());
    EXPECT_EQ((*record)->data, expected);
    EXPECT_TRUE(CheckData(**record).ok());
  }
  EXPECT_FALSE(reader.Next()->has_value());
}

TEST(TfRecord, EveryCutAndEveryChangedBitIsAnError) {
  const std::string file = EncodeTfRecord("some data");
  for (size_t size = 1; size < file.size(); ++size) {
    EXPECT_EQ(TfRecordReader(file.substr(0, size)).Next().status().code(),
              absl::StatusCode::kDataLoss);
  }
  for (size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string changed = file;
    changed[bit / 8] ^= static_cast<char>(1 << bit % 8);
    TfRecordReader reader(changed);
    const auto record = reader.Next();
    EXPECT_FALSE(record.ok() && CheckData(**record).ok()) << bit;
  }
}

TEST(TfExample, ReadsWhatTheScriptsWrite) {
  for (const bool packed : {true, false}) {
    const std::string message =
        EncodeExample({"JPEG", 1000, "n01440764", "tench, Tinca tinca", "a.JPEG", packed});
    const auto example = ParseImageExample(message);
    ASSERT_TRUE(example.ok()) << example.status();
    EXPECT_EQ(example->image, "JPEG");
    EXPECT_EQ(example->label, 1000);
    EXPECT_EQ(example->class_name, "n01440764");
    EXPECT_EQ(example->file_name, "a.JPEG");
  }
  EXPECT_EQ(ParseImageExample(EncodeExample({"J", 1, "", "tench"}))->class_name, "tench");
  EXPECT_THAT(std::string(ParseImageExample(EncodeExample({""})).status().message()),
              HasSubstr("image/encoded"));
  EXPECT_FALSE(ParseImageExample("").ok());
  EXPECT_EQ(ParseImageExample("\x0a\xff").status().code(), absl::StatusCode::kDataLoss);
}

class TfRecordsTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(base::WriteFileAtomic(directory_.path() / name, content).ok());
  }
  static std::string Record(int64_t label, const std::string& image = "J") {
    return EncodeTfRecord(EncodeExample({image, label, "", "", image + ".JPEG"}));
  }
  std::string Error(absl::string_view split = "train", std::optional<int> first = {}) {
    return std::string(OpenTfRecords(directory_.path(), split, first).status().message());
  }
  base::TemporaryDirectory directory_;
  std::string scratch_;
};

TEST_F(TfRecordsTest, ReadsAllFilesInOrderWithLabelsFromOne) {
  Write("classes.txt", "tench\ngoldfish\nshark\n");
  Write("train-00000-of-00002", Record(1, "A") + Record(3, "B"));
  Write("train-00001-of-00002", Record(2, "C"));
  Write("validation-00000-of-00001", Record(3, "D"));
  const auto train = OpenDataset(directory_.path(), "train");
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->size(), 3);
  EXPECT_EQ((*train)->label(0), 0);
  EXPECT_EQ((*train)->label(1), 2);
  EXPECT_EQ(*(*train)->Encoded(2, scratch_), "C");
  EXPECT_EQ((*train)->Describe(2), "train-00001-of-00002:C.JPEG");
  (*train)->WillNeed(1);
  const auto test = OpenDataset(directory_.path(), "test");
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ((*test)->label(0), 2);
}

TEST_F(TfRecordsTest, FilesThatWereWrittenWithCompressionAreRead) {
  Write("classes.txt", "tench\ngoldfish\n");
  Write("train-00000-of-00004", Deflate(Record(1, "A") + Record(2, "B"), Deflated::kGzip));
  Write("train-00001-of-00004", Deflate(Record(2, "C"), Deflated::kZlib));
  Write("train-00002-of-00004.gz", Deflate(Record(1, "D"), Deflated::kGzip));
  std::string image(0x8B1F - 200, 'E');  // a plain record whose length begins as gzip's files do
  while (EncodeExample({image, 1}).size() < 0x8B1F) image += 'E';
  Write("train-00003-of-00004", EncodeTfRecord(EncodeExample({image, 1})));
  const auto train = OpenDataset(directory_.path(), "train");
  ASSERT_TRUE(train.ok()) << train.status();
  ASSERT_EQ((*train)->size(), 5);
  EXPECT_EQ(*(*train)->Encoded(1, scratch_), "B");
  EXPECT_EQ(*(*train)->Encoded(2, scratch_), "C");
  EXPECT_EQ((*train)->Describe(3), "train-00002-of-00004.gz:D.JPEG");
  const std::string cut = Deflate(Record(1, "A"), Deflated::kGzip).substr(0, 30);
  Write("train-00001-of-00004", cut);
  EXPECT_THAT(Error(), AllOf(HasSubstr("train-00001-of-00004: at compressed byte 30: cut short")));
}

TEST_F(TfRecordsTest, AFileWithoutARecordIsNamed) {
  Write("classes.txt", "a\nb\n");
  Write("train-00000-of-00003", Record(1) + Record(2));
  Write("train-00001-of-00003", "");
  Write("train-00002-of-00003", Deflate("", Deflated::kGzip));
  const auto train = OpenTfRecords(directory_.path(), "train");
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->Remarks(),
            (std::vector<std::string>{
                "2 files hold no sample: train-00001-of-00003, train-00002-of-00003"}));
}

TEST_F(TfRecordsTest, LabelsCountFromZeroWhereThatLabelOccurs) {
  Write("train-00000-of-00001", EncodeTfRecord(EncodeExample({"A", 0, "", "cat"})) +
                                    EncodeTfRecord(EncodeExample({"B", 2})));
  const auto train = OpenTfRecords(directory_.path(), "train");
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_EQ((*train)->classes(), (std::vector<std::string>{"cat", "class-1", "class-2"}));
  EXPECT_EQ((*train)->label(1), 2);
}

TEST_F(TfRecordsTest, LabelsThatMayCountFromEitherAreAQuestion) {
  Write("classes.txt", "a\nb\nc\n");
  Write("train-00000-of-00001", Record(1));
  EXPECT_THAT(Error(), HasSubstr("--first-label"));
  EXPECT_EQ((*OpenTfRecords(directory_.path(), "train", 0))->label(0), 1);
  EXPECT_EQ((*OpenTfRecords(directory_.path(), "train", 1))->label(0), 0);
}

TEST_F(TfRecordsTest, AStrayLabelOfTheTrainSplitIsNamedWhereNothingSaysHowManyClassesThereAre) {
  const std::string three = Record(1) + Record(2) + Record(3);
  Write("train-00000-of-00002", three);
  Write("train-00001-of-00002", Record(2) + Record(4000000, "stray") + Record(1));
  Write("test-00000-of-00001", three + Record(40));
  const std::string at = absl::StrCat(Record(2).size());
  EXPECT_THAT(Error(), AllOf(HasSubstr("train-00001-of-00002: record 1 at byte " + at),
                             HasSubstr("label 4000000"), HasSubstr("classes.txt")));
  EXPECT_EQ((*OpenTfRecords(directory_.path(), "test"))->classes().size(), 40u);
  Write("train-00001-of-00002", Record(7));
  EXPECT_EQ((*OpenTfRecords(directory_.path(), "train"))->classes().size(), 7u);
  Write("train-00001-of-00002", Record(8));
  EXPECT_THAT(Error(), HasSubstr("label 8"));
  Write("classes.txt", "a\nb\nc\nd\ne\nf\ng\nh\n");
  EXPECT_EQ((*OpenTfRecords(directory_.path(), "train"))->classes().size(), 8u);
}

TEST_F(TfRecordsTest, WrongFilesAreNamed) {
  Write("classes.txt", "a\nb\n");
  EXPECT_THAT(Error(), HasSubstr("train-00000-of-00001"));
  Write("train-00000-of-00003", Record(1));
  Write("train-00002-of-00003", Record(2));
  EXPECT_THAT(Error(), AllOf(HasSubstr("file 1 of split"), HasSubstr("train-00002-of-00003")));
  Write("test-00000-of-00002", Record(2));
  EXPECT_THAT(Error("test"), HasSubstr("1 of 2 files"));
  Write("cut-00000-of-00001", Record(2).substr(0, 40));
  EXPECT_THAT(Error("cut"), AllOf(HasSubstr("cut-00000-of-00001"), HasSubstr("cut short")));
  Write("range-00000-of-00001", Record(1) + Record(7));
  EXPECT_THAT(Error("range"), AllOf(HasSubstr("label 7 is out of range: 2 classes from 1"),
                                    HasSubstr("range-00000-of-00001: record 1 at byte")));
  Write("empty-00000-of-00001", "");
  EXPECT_THAT(Error("empty"), HasSubstr("no sample"));
}

TEST_F(TfRecordsTest, DamagedDataAreAnErrorWhenTheyAreRead) {
  std::string file = Record(1, "AAAA") + Record(2, "BBBB");
  file[file.find("BBBB")] = 'X';
  Write("classes.txt", "a\nb\n");
  Write("train-00000-of-00001", file);
  const auto train = OpenTfRecords(directory_.path(), "train");
  ASSERT_TRUE(train.ok()) << train.status();
  EXPECT_TRUE((*train)->Encoded(0, scratch_).ok());
  EXPECT_EQ((*train)->Encoded(1, scratch_).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tutti::data
