#include "runtime/scoring/foreign_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::scoring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kWhole[] = R"(task: segmentation
classes: [road, sky]
input: {height: 4, width: 6, layout: nhwc, resize: 8, mean: [0.1, 0.2, 0.3], stddev: [1, 2, 3]}
)";

class ModelFileTest : public testing::Test {
 protected:
  void Write(const char* name, const std::string& text) {
    ASSERT_TRUE(base::WriteFileAtomic(directory_.path() / name, text).ok());
  }
  std::string ErrorOf(const std::string& text) {
    Write("model.yml", text);
    return std::string(ReadForeignModel(directory_.path()).status().message());
  }
  base::TemporaryDirectory directory_;
};

TEST_F(ModelFileTest, SaysWhatAScriptDoesNot) {
  EXPECT_FALSE(IsForeignModel(directory_.path()));
  Write("net.pt", "");
  Write("model.yml", kWhole);
  for (const auto& path : {directory_.path(), directory_.path() / "model.yml"}) {
    ASSERT_TRUE(IsForeignModel(path));
    const auto model = ReadForeignModel(path);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->script, directory_.path() / "net.pt");
    EXPECT_TRUE(model->channels_last);
    EXPECT_EQ(model->folder.task, "segmentation");
    EXPECT_THAT(model->folder.classes, ElementsAre("road", "sky"));
    EXPECT_EQ(model->folder.input.width, 6);
    EXPECT_EQ(model->folder.input.resize, 8);
    EXPECT_THAT(model->folder.input.stddev, ElementsAre(1, 2, 3));
  }
}

TEST_F(ModelFileTest, ReadsClassesFromAFileBesideIt) {
  Write("a.pt", "");
  Write("b.pt", "");
  Write("labels.txt", "road\n\n sky \n");
  Write("model.yml", "classes: labels.txt\nfile: b.pt\ninput: {height: 4, width: 6}\n");
  const auto model = ReadForeignModel(directory_.path());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT(model->folder.classes, ElementsAre("road", "sky"));
  EXPECT_EQ(model->script.filename(), "b.pt");
  EXPECT_EQ(model->folder.task, "classification");
  EXPECT_FALSE(model->channels_last);
}

TEST_F(ModelFileTest, NamesTheKeyThatIsWrong) {
  EXPECT_THAT(ErrorOf("classes: [a]\n"), HasSubstr("model.yml: input must be a mapping"));
  EXPECT_THAT(ErrorOf("clases: [a]\n"), HasSubstr("line 1: clases is not one of classes, file"));
  EXPECT_THAT(ErrorOf("input: {height: x, width: 1}\n"),
              HasSubstr("input: height must be a number"));
  EXPECT_THAT(ErrorOf("input: {height: 1, width: 0}\n"), HasSubstr("width must be a number"));
  EXPECT_THAT(ErrorOf("input: {height: 1, width: 1, layout: chw}\n"), HasSubstr("nchw or nhwc"));
  EXPECT_THAT(ErrorOf("input: {height: 1, width: 1, mean: [1, 2]}\n"), HasSubstr("three numbers"));
  EXPECT_THAT(ErrorOf("input: {height: 1, width: 1, stddev: [1, 2, 0]}\n"),
              HasSubstr("three positive numbers"));
  EXPECT_THAT(ErrorOf("input: {height: 1, width: 1}\n"), HasSubstr("classes must be a list"));
  EXPECT_THAT(ErrorOf(kWhole), HasSubstr("no *.pt lies beside it"));
  EXPECT_THAT(ErrorOf("a: [b\n"), HasSubstr("model.yml: "));
}

}  // namespace
}  // namespace tutti::scoring
