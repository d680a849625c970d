// The program as a user runs it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/process/child_process.h"
#include "base/test_patience.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/models/model.h"
#include "runtime/models/state.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code;
  std::string out, err;
};

class ScoreProgramTest : public testing::Test {
 protected:
  ScoreProgramTest() {
    const models::Model network = *models::MakeModel({"resnet20", 2}, /*seed=*/1);
    checkpoint::ModelFolder folder;
    folder.architecture = "resnet20";
    folder.classes = {"cat", "dog"};
    folder.tensors = models::StateOf(*network);
    EXPECT_TRUE(checkpoint::WriteModelFolder(directory_.path() / "model", folder).ok());
    Write("cat.jpg", data::EncodePattern({}, 1));
    Write("notes.txt", "no image");
  }

  void Write(const char* name, const std::string& content) {
    EXPECT_TRUE(base::WriteFileAtomic(directory_.path() / name, content).ok());
  }
  std::string Read(const char* name) { return *base::ReadFile(directory_.path() / name); }

  Outcome Run(std::vector<std::string> arguments,
              const std::map<std::string, std::string>& variables = {}) {
    arguments.insert(arguments.begin(), TUTTI_SCORE);
    auto environment = base::CurrentEnvironment();
    for (const auto& [name, value] : variables) environment[name] = value;
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    const auto out = base::Open(directory_.path() / "out", kFlags);
    const auto err = base::Open(directory_.path() / "err", kFlags);
    auto child = base::ChildProcess::Start({.arguments = arguments,
                                            .environment = std::move(environment),
                                            .directory = directory_.path(),
                                            .stdout_fd = out->get(),
                                            .stderr_fd = err->get()});
    EXPECT_TRUE(child.ok()) << child.status();
    const auto ended = child->Wait(base::Deadline::After(base::Patient(absl::Seconds(60))));
    EXPECT_TRUE(ended.ok()) << ended.status();
    return {ended->code, Read("out"), Read("err")};
  }

  base::TemporaryDirectory directory_;
};

TEST_F(ScoreProgramTest, PrintsTheClassesOfAnImage) {
  const Outcome outcome = Run({"cat.jpg", "--model", "model"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(absl::StartsWith(outcome.out, "FILE     CLASS  PROBABILITY\ncat.jpg  "))
      << outcome.out;
  EXPECT_TRUE(absl::StartsWith(outcome.err, "precision ") &&
              absl::StrContains(outcome.err, " (auto): this processor "))
      << outcome.err;
  EXPECT_EQ(Run({"cat.jpg", "--model", "model", "--precision", "fp32"}).err, "");
}

TEST_F(ScoreProgramTest, WarnsOfBf16ByNameWhereTheProcessorEmulatesIt) {
  const std::map<std::string, std::string> avx2 = {
      {"TUTTI_CPU_CAPABILITY", "avx2"},
      {"ATEN_CPU_CAPABILITY", "avx2"},
      {"ONEDNN_MAX_CPU_ISA", "AVX2"},
      {"MKL_ENABLE_INSTRUCTIONS", "AVX2"},
      {"XDG_CACHE_HOME", (directory_.path() / "cache").string()}};
  const Outcome named = Run({"cat.jpg", "--model", "model", "--precision", "bf16"}, avx2);
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_TRUE(absl::StartsWith(named.out, "FILE ")) << "for programs: " << named.out;
  for (const char* text : {"bf16 was asked for, and this processor emulates bf16 (",
                           "ONEDNN_MAX_CPU_ISA=AVX2): a layer takes ",
                           " times fp32's time; --precision auto takes what is fastest"}) {
    EXPECT_TRUE(absl::StrContains(named.err, text)) << text << "\n" << named.err;
  }
  const Outcome fastest = Run({"cat.jpg", "--model", "model"}, avx2);
  EXPECT_TRUE(absl::StrContains(fastest.err, "precision fp32 (auto): this processor emulates bf16"))
      << fastest.err;
  EXPECT_FALSE(absl::StrContains(fastest.err, "asked for")) << fastest.err;
}

TEST_F(ScoreProgramTest, ScoresTheImagesOfAFolderAndNamesItsOtherFiles) {
  const std::filesystem::path folder = directory_.path() / "photos/deep";
  ASSERT_TRUE(base::MakeDirectories(folder).ok());
  std::filesystem::copy(directory_.path() / "cat.jpg", folder / "b.jpg");
  std::filesystem::copy(directory_.path() / "cat.jpg", folder / "a.jpg");
  std::filesystem::copy(directory_.path() / "notes.txt", folder / "notes.txt");
  const Outcome outcome = Run({"photos", "cat.jpg", "--model", "model", "-o", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["file"], "photos/deep/a.jpg");
  EXPECT_EQ(json[1]["file"], "photos/deep/b.jpg");
  EXPECT_TRUE(absl::StrContains(outcome.err, "photos: 1 file gives no sample: 1 .txt"))
      << outcome.err;
  ASSERT_TRUE(base::MakeDirectories(directory_.path() / "empty").ok());
  const Outcome empty = Run({"empty", "--model", "model"});
  EXPECT_EQ(empty.code, 2);
  EXPECT_TRUE(absl::StrContains(empty.err, "empty has no images")) << empty.err;
}

TEST_F(ScoreProgramTest, ScoresTheOthersAndExitsWithOneWhenAFileIsNoImage) {
  const Outcome outcome =
      Run({"notes.txt", "cat.jpg", "none.jpg", "--model", "model", "--top", "1", "-o", "json"});
  EXPECT_EQ(outcome.code, 1);
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_TRUE(json[0].contains("error"));
  EXPECT_EQ(json[1]["predictions"].size(), 1u);
  EXPECT_TRUE(absl::StrContains(outcome.err, "tutti-score: notes.txt: ")) << outcome.err;
  EXPECT_TRUE(absl::StrContains(outcome.err, "none.jpg: No such file")) << outcome.err;
}

TEST_F(ScoreProgramTest, ExitsWithTwoWhenItCannotStart) {
  const Outcome model = Run({"cat.jpg", "--model", "."});
  EXPECT_EQ(model.code, 2);
  EXPECT_TRUE(absl::StrContains(model.err, "is no model folder")) << model.err;
  EXPECT_EQ(Run({"cat.jpg"}).code, 2);
  EXPECT_EQ(Run({"cat.jpg", "--model", "model", "-o", "xml"}).code, 2);
  EXPECT_EQ(Run({"cat.jpg", "--model", "model", "--top", "0"}).code, 2);
}

TEST_F(ScoreProgramTest, HelpNamesEveryOptionAndTheExitCodes) {
  const Outcome help = Run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* text :
       {"FILE", "--model DIR", "--top N", "--mirrored", "--output FORMAT", "Exit code"}) {
    EXPECT_TRUE(absl::StrContains(help.out, text)) << text << "\n" << help.out;
  }
}

}  // namespace
}  // namespace tutti
