// Covers: packed_image.cc, survey.cc, runtime/data/decode/image_decoder.cc,
// runtime/data/decode/jpeg/jpeg_encoder.cc, runtime/data/source/tar/tar.cc, parallel_for.h,
// runtime/data/source/image_folder.cc, runtime/data/source/open_dataset.cc.
#include "runtime/data/pack/pack_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/data/decode/image_decoder.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/pack/survey.h"
#include "runtime/data/source/tf_record/tf_record_fake.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

class PackTest : public testing::Test {
 protected:
  const std::filesystem::path& folder() const { return directory_.path(); }
  base::TemporaryDirectory directory_;
  std::string scratch_;
};

TEST_F(PackTest, ShardsHoldTheSameImagesToTheByte) {
  const auto dataset = MakeFakeDataset(20, 3);
  for (const bool compress : {false, true}) {
    const auto to = folder() / (compress ? "zstd" : "plain");
    const auto packed =
        Pack(*dataset, to, "train", {.shard_bytes = 8000, .compress = compress, .threads = 3});
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(packed->samples, 20);
    EXPECT_GT(packed->shards, 2);
    const auto read = OpenDataset(to, "train");
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_EQ((*read)->size(), 20);
    EXPECT_EQ((*read)->classes(), dataset->classes());
    std::string other;
    for (int64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(*(*read)->Encoded(i, scratch_), *dataset->Encoded(i, other));
      EXPECT_EQ((*read)->label(i), dataset->label(i));
    }
  }
}

TEST_F(PackTest, EveryFormatGoesIntoShardsWithItsLabelsAndImages) {
  const auto write = [&](const std::string& name, const std::string& content) {
    ASSERT_TRUE(base::MakeDirectories((folder() / name).parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(folder() / name, content).ok());
  };
  const std::string first = EncodePattern({}, 1), second = EncodePattern({}, 2);
  write("folder/train/cat/a.jpg", first);
  write("folder/train/dog/b.jpg", second);
  write("records/train-00000-of-00001", EncodeTfRecord(EncodeExample({first, 2, "n02", "dog"})) +
                                            EncodeTfRecord(EncodeExample({second, 1, "n01"})));
  write("cifar/data_batch_1.bin", "\7" + std::string(3072, 'x') + "\1" + std::string(3072, 'y'));
  write("cifar/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  write("idx/train-images-idx3-ubyte",
        std::string("\0\0\10\3\0\0\0\2\0\0\0\2\0\0\0\3", 16) + "abcdefABCDEF");
  write("idx/train-labels-idx1-ubyte", std::string("\0\0\10\1\0\0\0\2\11\4", 10));
  for (const char* source : {"folder", "records", "cifar", "idx"}) {
    const auto set = OpenDataset(folder() / source, "train");
    ASSERT_TRUE(set.ok()) << set.status();
    const auto to = folder() / absl::StrCat(source, "-shards");
    ASSERT_TRUE(Pack(**set, to, "train", {}).ok()) << source;
    const auto packed = OpenDataset(to, "train");
    ASSERT_TRUE(packed.ok()) << packed.status();
    EXPECT_EQ(*FormatOf(to), DatasetFormat::kTarShards);
    EXPECT_EQ((*packed)->classes(), (*set)->classes()) << source;
    ASSERT_EQ((*packed)->size(), 2) << source;
    for (int64_t i = 0; i < 2; ++i) {
      std::string other;
      EXPECT_EQ((*packed)->label(i), (*set)->label(i)) << source;
      EXPECT_EQ(*(*packed)->Encoded(i, scratch_), *(*set)->Encoded(i, other)) << source;
    }
    const Survey survey = SurveyOf(**packed, {.decode = true, .threads = 1});
    EXPECT_TRUE(survey.unreadable.empty()) << source << survey.unreadable[0].status;
  }
}

TEST_F(PackTest, BarePixelsAndAShuffledOrderArePackedToo) {
  const auto dataset = OpenSynthetic({.count = 30, .side = 5, .classes = 30});
  ASSERT_TRUE(Pack(*dataset, folder(), "train", {.shuffle = 7}).ok());
  const auto read = *OpenDataset(folder(), "train");
  std::vector<int64_t> labels;
  std::string other;
  for (int64_t i = 0; i < 30; ++i) {
    labels.push_back(read->label(i));
    EXPECT_EQ(*read->Encoded(i, scratch_), *dataset->Encoded(labels.back(), other));
  }
  EXPECT_FALSE(std::is_sorted(labels.begin(), labels.end()));
}

TEST_F(PackTest, LargeImagesAreMadeSmallerAndSmallOnesStay) {
  const std::string large = EncodePattern({.width = 90, .height = 60}),
                    small = EncodePattern({.width = 20, .height = 99});
  const FakeDataset dataset({{large, 0}, {small, 0}}, 1);
  const auto packed = Pack(dataset, folder(), "train", {.resize = 30});
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->resized, 1);
  const auto read = *OpenDataset(folder(), "train");
  ImageDecoder decoder;
  EXPECT_EQ(*decoder.Open(*read->Encoded(0, scratch_)), (ImageSize{45, 30}));
  // A smooth image: the same place has nearly the same colour.
  const ImageView smaller = *decoder.Decode();
  const std::vector<uint8_t> pixel(smaller.row(15) + 4 * 22, smaller.row(15) + 4 * 22 + 3);
  ASSERT_TRUE(decoder.Open(large).ok());
  const ImageView whole = *decoder.Decode();
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(pixel[c], whole.row(30)[4 * 44 + c], 12);
  EXPECT_EQ(*read->Encoded(1, scratch_), small);
}

TEST_F(PackTest, UnreadableImagesAreLeftOutUpToALimit) {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < 5; ++i) samples.push_back({EncodePattern({}, i), i});
  samples[3].encoded = "no image";
  const FakeDataset dataset(std::move(samples), 5);
  const absl::Status refused = Pack(dataset, folder() / "none", "train", {}).status();
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("fake:3: not JPEG, PNG, PNM, BMP, TIFF or WebP"));
  EXPECT_FALSE(OpenDataset(folder() / "none", "train").ok());
  const auto packed = Pack(dataset, folder() / "some", "train", {.max_unreadable = 1});
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->left_out.size(), 1u);
  EXPECT_EQ((*OpenDataset(folder() / "some", "train"))->size(), 4);
}

TEST_F(PackTest, NothingThatIsThereIsOverwritten) {
  const auto dataset = MakeFakeDataset(3, 2), other = MakeFakeDataset(3, 3);
  ASSERT_TRUE(Pack(*dataset, folder(), "train", {}).ok());
  EXPECT_EQ(Pack(*dataset, folder(), "train", {}).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Pack(*other, folder(), "test", {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Pack(*dataset, folder(), "test", {}).ok());
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_NE(entry.path().filename().string()[0], '.') << entry.path();
  }
}

TEST(Survey, CountsSizesClassesAndWhatIsDamaged) {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < 6; ++i) samples.push_back({EncodePattern({.width = 10 + i}, i), i % 2});
  samples.push_back({"P6\n2 1\n255\n\xff\xff\xff" + std::string(3, '\0'), 1});
  samples[2].encoded.resize(samples[2].encoded.size() - 30);  // its header is whole
  samples[4].encoded = "nothing";
  const FakeDataset dataset(std::move(samples), 2);
  const Survey headers = SurveyOf(dataset, {.decode = false, .threads = 3});
  EXPECT_EQ(headers.images, 7);
  EXPECT_EQ(headers.of_class, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(headers.widths, (std::vector<int64_t>{2, 10, 11, 12, 13, 15}));
  EXPECT_EQ(headers.of_kind, (std::map<absl::string_view, int64_t>{{"JPEG", 5}, {"PNM", 1}}));
  ASSERT_EQ(headers.unreadable.size(), 1u);
  EXPECT_EQ(headers.unreadable[0].index, 4);
  const Survey decoded = SurveyOf(dataset, {.decode = true, .threads = 2});
  ASSERT_EQ(decoded.unreadable.size(), 2u);
  EXPECT_EQ(decoded.unreadable[0].index, 2);
  EXPECT_THAT(std::string(decoded.unreadable[0].status.message()), HasSubstr("fake:2: damaged"));
}

TEST(Survey, MeasuresThePixels) {
  const FakeDataset dataset({{"P6\n2 1\n255\n\xff\x80\x10" + std::string("\0\x80\x30", 3), 0}}, 1);
  const Survey survey = SurveyOf(dataset, {.decode = true, .threads = 1});
  EXPECT_NEAR(survey.mean[0], 0.5, 1e-9);
  EXPECT_NEAR(survey.stddev[0], 0.5, 1e-9);
  EXPECT_NEAR(survey.mean[1], 128 / 255.0, 1e-9);
  EXPECT_NEAR(survey.stddev[1], 0, 1e-9);
  EXPECT_NEAR(survey.mean[2], 32 / 255.0, 1e-9);
}

}  // namespace
}  // namespace tutti::data
