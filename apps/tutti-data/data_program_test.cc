// The program as a user runs it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int code;
  std::string out, err;
};

class DataProgramTest : public testing::Test {
 protected:
  DataProgramTest() {
    for (const char* split : {"train", "test"}) {
      for (const char* name : {"cat", "dog"}) {
        for (int i = 0; i < 3; ++i) {
          Write(absl::StrCat("images/", split, "/", name, "/", i, ".jpg"),
                data::EncodePattern({.width = 48, .height = 40}, i));
        }
      }
    }
  }

  std::string Path(const std::string& name) { return directory_.path() / name; }
  void Write(const std::string& name, const std::string& content) {
    EXPECT_TRUE(base::MakeDirectories((directory_.path() / name).parent_path()).ok());
    EXPECT_TRUE(base::WriteFileAtomic(directory_.path() / name, content).ok());
  }

  Outcome Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TUTTI_DATA);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    const auto out = base::Open(Path("out"), kFlags), err = base::Open(Path("err"), kFlags);
    auto child = base::ChildProcess::Start({.arguments = arguments,
                                            .environment = base::CurrentEnvironment(),
                                            .stdout_fd = out->get(),
                                            .stderr_fd = err->get()});
    EXPECT_TRUE(child.ok()) << child.status();
    const auto status = child->Wait(base::Deadline::After(base::Patient(absl::Seconds(60))));
    EXPECT_TRUE(status.ok()) << status.status();
    return {status->code, *base::ReadFile(Path("out")), *base::ReadFile(Path("err"))};
  }

  base::TemporaryDirectory directory_;
};

TEST_F(DataProgramTest, PacksBothSplitsAndDescribesThem) {
  const Outcome packed = Run({"pack", Path("images"), Path("shards"), "--resize", "20"});
  EXPECT_EQ(packed.code, 0) << packed.err;
  EXPECT_THAT(packed.out, HasSubstr("train: 6 images in 1 shards"));
  EXPECT_THAT(packed.out, HasSubstr("test: 6 images in 1 shards"));
  EXPECT_EQ(Run({"verify", Path("shards")}).code, 0);

  const Outcome table = Run({"stats", Path("shards"), "--split", "train"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("split train: tar shards"));
  EXPECT_THAT(table.out, HasSubstr("6 images of 2 classes"));

  const Outcome json = Run({"stats", Path("shards"), "--json", "--pixels"});
  const auto documents = nlohmann::json::parse(json.out);
  ASSERT_EQ(documents.size(), 2u);
  EXPECT_EQ(documents[0]["width"]["median"], 24);
  EXPECT_EQ(documents[0]["height"]["max"], 20);
  EXPECT_EQ(documents[1]["classes"][1]["name"], "dog");
  EXPECT_EQ(documents[1]["classes"][1]["images"], 3);
  EXPECT_GT(documents[1]["mean"][0], 0.1);
}

TEST_F(DataProgramTest, VerifyNamesWhatIsDamaged) {
  const std::string name = Path("images/train/dog/1.jpg");
  const std::string jpeg = *base::ReadFile(name);
  Write("images/train/dog/1.jpg", jpeg.substr(0, jpeg.size() / 2));
  const Outcome verified = Run({"verify", Path("images")});
  EXPECT_EQ(verified.code, 2);
  EXPECT_THAT(verified.out, HasSubstr("dog/1.jpg: damaged JPEG"));
  EXPECT_EQ(Run({"stats", Path("images")}).code, 0) << "headers are whole";
}

TEST_F(DataProgramTest, WrongInputIsNamedAndEndsWithTwo) {
  EXPECT_EQ(Run({}).code, 2);
  EXPECT_EQ(Run({"pack"}).code, 2);
  const Outcome missing = Run({"stats", Path("none")});
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr(Path("none")));
  const Outcome split = Run({"stats", Path("images"), "--split", "trian"});
  EXPECT_EQ(split.code, 2);
  EXPECT_THAT(split.err, HasSubstr("no folder \"trian\""));
  EXPECT_THAT(Run({"--help"}).out, HasSubstr("verify"));
}

TEST_F(DataProgramTest, ShardsWithoutASampleAreNamedByEveryCommand) {
  ASSERT_EQ(Run({"pack", Path("images"), Path("shards"), "--split", "train"}).code, 0);
  Write("shards/train-000001.tar", std::string(1024, '\0'));
  const std::string remark = "1 file holds no sample: train-000001.tar";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"stats", Path("shards")},
                                                {"verify", Path("shards")},
                                                {"pack", Path("shards"), Path("again")},
                                                {"index", Path("shards")}}) {
    const Outcome said = Run(words);
    EXPECT_EQ(said.code, 0) << words[0] << said.err;
    EXPECT_EQ(said.err,
              absl::StrCat("tutti-data: ", Path("shards"), ", split train: ", remark, "\n"));
  }
  const Outcome json = Run({"stats", Path("shards"), "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)[0]["remarks"], nlohmann::json::array({remark}));
}

// A BMP of one pixel.
std::string Bitmap() {
  std::string bmp = "BM" + std::string(56, '\0');
  bmp[10] = 54, bmp[14] = 40, bmp[18] = bmp[22] = bmp[26] = 1, bmp[28] = 24;
  return bmp;
}

TEST_F(DataProgramTest, WhatIsNoImageIsCountedByItsEndingAndNamed) {
  Write("images/train/cat/3.bmp", Bitmap());
  Write("images/train/cat/x.gif", "GIF89a");
  Write("images/train/dog/y.GIF", "GIF89a");
  Write("images/train/dog/photo.heic", "…");
  Write("images/train/dog/README", "…");
  Write("images/train/stray.jpg", "…");
  for (const char* command : {"stats", "verify"}) {
    const Outcome said = Run({command, Path("images"), "--split", "train"});
    EXPECT_EQ(said.code, 0) << said.out;
    EXPECT_THAT(said.out, HasSubstr("7 images of 2 classes"));
    EXPECT_THAT(said.out, HasSubstr("6 JPEG, 1 BMP"));
    const std::string place = absl::StrCat("tutti-data: ", Path("images"), ", split train: ");
    EXPECT_EQ(said.err,
              place +
                  "4 files give no sample: 2 .gif (cat/x.gif, …), 1 .heic (dog/photo.heic), "
                  "1 without an ending (dog/README); images end in .jpg, .jpeg, .png, .ppm, "
                  ".pgm, .bmp, .tif, .tiff or .webp\n" +
                  place +
                  "1 file lies beside the folders of classes, and gives no sample: "
                  "stray.jpg\n");
  }
}

TEST_F(DataProgramTest, IndexSaysWhatShardsHoldAsPackDoes) {
  ASSERT_EQ(Run({"pack", Path("images"), Path("shards")}).code, 0);
  const auto packed = base::ReadFile(Path("shards/train-index.txt"));
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_THAT(*packed, HasSubstr("\nshard train-000000.tar "));
  ASSERT_TRUE(base::RemoveTree(Path("shards/train-index.txt")).ok());
  const Outcome done = Run({"index", Path("shards")});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("train-index.txt: 1 shards"));
  EXPECT_EQ(base::ReadFile(Path("shards/train-index.txt")).value_or(""), *packed);
  const Outcome none = Run({"index", Path("images")});
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("holds no shards"));
}

}  // namespace
}  // namespace tutti
