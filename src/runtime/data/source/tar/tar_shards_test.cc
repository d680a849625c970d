// Covers: runtime/data/source/shard_files.cc, runtime/data/source/left_out.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/source/tar/tar_fake.h"

namespace tutti::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A folder with shards of the test's choice.
class TarShards : public testing::Test {
 protected:
  void Write(absl::string_view name, absl::string_view content) {
    ASSERT_TRUE(base::WriteFileAtomic(folder() / std::string(name), content).ok());
  }
  void WriteClasses() { Write("classes.txt", "cat\ndog\n"); }
  absl::StatusOr<std::shared_ptr<const Dataset>> Open(absl::string_view split = "train") {
    return OpenTarShards(folder(), split);
  }
  // The error of opening a split of one shard.
  absl::Status ErrorOf(absl::string_view shard) {
    WriteClasses();
    Write("train-000000.tar", shard);
    return Open().status();
  }
  const std::filesystem::path& folder() const { return directory_.path(); }

 private:
  base::TemporaryDirectory directory_;
};

std::string Shard(absl::string_view image) {
  return TarBuilder().Add("cat/0.jpg", image).Add("cat/0.cls", "0").Finish();
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

TEST_F(TarShards, ReadsImagesAndLabelsOfAllShardsInOrder) {
  WriteClasses();
  Write("train-000000.tar", TarBuilder()
                                .Add("cat/0.jpg", "A")
                                .Add("cat/0.cls", "0")
                                .Add("dog/0.cls", "1\n")  // the label may come first
                                .Add("dog/0.json", "{}")
                                .Add("dog/0.JPEG", "B")
                                .Add("README", "passed over")
                                .Finish());
  Write("train-000001.tar.zst",
        Compress(TarBuilder().Add("1.jpg", "C").Add("1.cls", "1").Finish()));
  Write("test-000000.tar", Shard("D"));
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const Dataset& d = **dataset;
  std::string scratch;
  ASSERT_EQ(d.size(), 3);
  EXPECT_EQ(d.classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(*d.Encoded(0, scratch), "A");
  EXPECT_EQ(*d.Encoded(1, scratch), "B");
  EXPECT_EQ(*d.Encoded(2, scratch), "C");
  EXPECT_EQ(d.label(0), 0);
  EXPECT_EQ(d.label(1), 1);
  EXPECT_EQ(d.label(2), 1);
  EXPECT_EQ(d.Describe(1), "train-000000.tar:dog/0.JPEG");
  EXPECT_EQ(d.Describe(2), "train-000001.tar.zst:1.jpg");
  for (int64_t i = 0; i < 3; ++i) d.WillNeed(i);
  EXPECT_EQ((*Open("test"))->size(), 1);
}

TEST_F(TarShards, CompressedShardsAreUnpacked) {
  WriteClasses();
  Write("train-000000.tar.gz", Deflate(Shard("A"), Deflated::kGzip));
  Write("train-000001.tgz", Deflate(Shard("B"), Deflated::kGzip));
  Write("train-000002.tar.zst", Compress(Shard("C")));
  const auto dataset = OpenDataset(folder(), "train");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::string scratch;
  ASSERT_EQ((*dataset)->size(), 3);
  EXPECT_EQ(*(*dataset)->Encoded(0, scratch), "A");
  EXPECT_EQ(*(*dataset)->Encoded(1, scratch), "B");
  EXPECT_EQ((*dataset)->Remarks(), std::vector<std::string>{});
}

TEST_F(TarShards, MembersOfNoSampleAreCountedByTheirEndings) {
  WriteClasses();
  TarBuilder tar;
  tar.Add("0.jpg", "A").Add("0.cls", "0").Add("0.json", "of a sample: passed over");
  tar.Add("1.heic", "B").Add("1.json", "{}").Add("README", "…").Add("2.heic", "C");
  Write("train-000000.tar", tar.Finish());
  const auto dataset = Open();
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 1);
  ASSERT_EQ((*dataset)->Remarks().size(), 1u);
  EXPECT_THAT((*dataset)->Remarks()[0],
              HasSubstr("4 files give no sample: 2 .heic (1.heic, …), 1 .json (1.json), 1 without "
                        "an ending (README); images end in .jpg, "));
}

TEST_F(TarShards, ShardsWithoutASampleAreNamed) {
  WriteClasses();
  Write("train-000000.tar", Shard("A"));
  for (const char* name : {"train-000001.tar", "train-000002.tar", "train-000003.tar"}) {
    Write(name, TarBuilder().Finish());
  }
  const auto one = Open();
  Write("train-000004.tar", TarBuilder().Finish());
  const auto many = Open();
  ASSERT_TRUE(one.ok() && many.ok()) << one.status() << many.status();
  const std::string three = "train-000001.tar, train-000002.tar, train-000003.tar";
  EXPECT_EQ((*one)->Remarks(), (std::vector<std::string>{"3 files hold no sample: " + three}));
  EXPECT_EQ((*many)->Remarks(),
            (std::vector<std::string>{"4 files hold no sample: " + three + ", …"}));
}

TEST_F(TarShards, AnArchiveThatIsNoShardIsToBeUnpacked) {
  Write("images.tar.gz", "…");
  EXPECT_THAT(Text(OpenDataset(folder(), "train").status()),
              HasSubstr("holds no images that are known; unpack images.tar.gz first; wanted are"));
}

TEST_F(TarShards, ASampleWithoutLabelOrImageIsNamed) {
  const absl::Status no_label =
      ErrorOf(TarBuilder().Add("cat/0.jpg", "A").Add("cat/1.jpg", "B").Finish());
  EXPECT_EQ(no_label.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Text(no_label),
            "train-000000.tar: cat/0: the sample has no label (.cls), "
            "mask (.mask.png) or boxes (.boxes.txt) beside its image");
  EXPECT_EQ(
      Text(ErrorOf(TarBuilder().Add("cat/7.cls", "0").Add("cat/7.gif", "A").Finish())),
      "train-000000.tar: cat/7: the sample has no image (.jpg, .jpeg, .png, .ppm, .pgm, .bmp, "
      ".tif, .tiff or .webp) beside its label, only cat/7.gif");
  EXPECT_EQ(Text(ErrorOf(TarBuilder().Add("a.jpg", "A").Add("a.jpeg", "A").Finish())),
            "train-000000.tar: a.jpeg: a second image of the same sample");
}

TEST_F(TarShards, ALabelThatIsNoClassIsNamed) {
  const auto labelled = [](absl::string_view label) {
    return TarBuilder().Add("a.jpg", "A").Add("a.cls", label).Finish();
  };
  EXPECT_EQ(Text(ErrorOf(labelled("2"))),
            "train-000000.tar: a.cls: label 2 is out of range: classes.txt names 2 classes");
  EXPECT_EQ(ErrorOf(labelled("-1")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Text(ErrorOf(labelled("cat"))),
            "train-000000.tar: a.cls: the label \"cat\" is no number");
  EXPECT_FALSE(ErrorOf(labelled("")).ok());
  EXPECT_FALSE(ErrorOf(labelled("99999999999999999999")).ok());
}

TEST_F(TarShards, AShardCutShortAtAnyByteIsNamedWithItsOffset) {
  const std::string shard = Shard(std::string(600, 'x'));
  for (size_t length = 0; length + 512 < shard.size(); length += 37) {
    const absl::Status status = ErrorOf(shard.substr(0, length));
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << "cut to " << length;
    ASSERT_THAT(Text(status),
                AllOf(HasSubstr("train-000000.tar: at byte "), HasSubstr("cut short")));
  }
}

TEST_F(TarShards, ADamagedHeaderIsNamedWithItsOffset) {
  std::string shard = Shard("A");
  shard[1024] ^= 1;
  EXPECT_THAT(Text(ErrorOf(shard)),
              HasSubstr("train-000000.tar: at byte 1024 of 3072: the header's checksum is wrong"));
}

TEST_F(TarShards, ACompressedShardCutShortAtAnyByteIsDataLoss) {
  WriteClasses();
  const std::string packed = Compress(Shard(EncodePattern({})));
  for (size_t length = 0; length < packed.size(); length += 7) {
    Write("train-000000.tar.zst", absl::string_view(packed).substr(0, length));
    const absl::Status status = Open().status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << "cut to " << length;
    ASSERT_THAT(Text(status), HasSubstr("train-000000.tar.zst: at compressed byte "));
  }
  Write("train-000000.tar.zst", "no zstd at all");
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(TarShards, AnEmptyFolderAndAMissingOneAreErrors) {
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(Open().status()), HasSubstr("holds no shards (train-000000.tar"));
  EXPECT_EQ(OpenTarShards("/nowhere", "train").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(OpenTarShards("/nowhere", "train").status()), HasSubstr("/nowhere"));
}

TEST_F(TarShards, AMistypedSplitNamesThoseThatThereAre) {
  WriteClasses();
  Write("train-000000.tar", Shard("A"));
  EXPECT_THAT(Text(Open("tran").status()),
              HasSubstr("no split \"tran\"; there is train (did you mean \"train\"?)"));
}

TEST_F(TarShards, AMissingOrDoubleShardIsAnError) {
  WriteClasses();
  Write("train-000001.tar", Shard("A"));
  EXPECT_THAT(Text(Open().status()), HasSubstr("shard 0 of split \"train\" is missing"));
  Write("train-000000.tar", Shard("A"));
  EXPECT_TRUE(Open().ok());
  Write("train-000001.tar.zst", Compress(Shard("A")));
  EXPECT_THAT(Text(Open().status()), HasSubstr("has the same number"));
}

TEST_F(TarShards, ClassesMustBeNamedOnce) {
  Write("train-000000.tar", Shard("A"));
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Text(Open().status()), HasSubstr("classes.txt: missing; it names the classes"));
  Write("classes.txt", " \n");
  EXPECT_THAT(Text(Open().status()), HasSubstr("names no class"));
  Write("classes.txt", "cat\r\ndog\r\ncat\r\n");
  EXPECT_THAT(Text(Open().status()),
              HasSubstr("classes.txt:3: class \"cat\" stands in line 1 too"));
  Write("classes.txt", "cat\n\ndog\n");
  EXPECT_THAT(Text(Open().status()), HasSubstr("classes.txt:2: empty line"));
}

TEST_F(TarShards, ShardsWithoutSamplesAreAnError) {
  EXPECT_THAT(Text(ErrorOf(TarBuilder().Add("README", "x").Finish())), HasSubstr("hold no sample"));
  EXPECT_THAT(Text(ErrorOf(TarBuilder().Finish())), HasSubstr("hold no sample"));
}

}  // namespace
}  // namespace tutti::data
