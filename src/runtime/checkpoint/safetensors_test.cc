// Covers: folder_writer.cc, model_folder.cc.
#include "runtime/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/status.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace tutti::checkpoint {
namespace {

namespace fs = std::filesystem;

TEST(Safetensors, ReadsWhatItWritesOfEveryType) {
  TensorMap tensors;
  for (torch::Dtype type :
       {torch::kFloat64, torch::kFloat32, torch::kFloat16, torch::kBFloat16, torch::kInt64,
        torch::kInt32, torch::kInt16, torch::kInt8, torch::kUInt8, torch::kBool}) {
    tensors[c10::toString(type)] = torch::arange(7).to(type);
  }
  tensors["scalar"] = torch::full({}, 3, torch::kInt64);
  tensors["empty"] = torch::empty({0, 4});
  tensors["transposed"] = torch::arange(6).reshape({2, 3}).t();
  tensors["channels last"] =
      torch::randn({2, 3, 4, 5}).contiguous(torch::MemoryFormat::ChannelsLast);
  base::TemporaryDirectory directory;
  auto folder = FolderWriter::Create(directory.path() / "f");
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_TRUE(AddTensors(*folder, "t.safetensors", SourcesOf(tensors)).ok());
  ASSERT_TRUE(folder->Commit({}).ok());

  const auto read = ReadSafetensors(directory.path() / "f" / "t.safetensors");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(read->at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(read->at(name).equal(tensor)) << name;
    EXPECT_TRUE(read->at(name).is_contiguous()) << name;
  }
}

TEST(Safetensors, ReadsTensorsThatAreNotAligned) {
  // As the reference implementation may write them: one byte, then four floats.
  std::string file = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                     R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  file = std::string(1, static_cast<char>(file.size())) + std::string(7, '\0') + file;
  const float value = 1.5;
  file += '\7' + std::string(reinterpret_cast<const char*>(&value), sizeof value);
  const auto read = ParseSafetensors(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->at("a").item<int>(), 7);
  EXPECT_EQ(read->at("b").item<float>(), 1.5);
}

TEST(Safetensors, NamesFileAndTensorInErrors) {
  base::TemporaryDirectory directory;
  const fs::path path = directory.path() / "x.safetensors";
  const std::string head = R"({"fc.bias":{"dtype":"F8"}})";
  const std::string file = std::string(1, static_cast<char>(head.size())) + std::string(7, '\0');
  ASSERT_TRUE(base::WriteFileAtomic(path, file + head).ok());
  EXPECT_EQ(ReadSafetensors(path).status().message(),
            path.string() + ": tensor \"fc.bias\": unknown dtype \"F8\"");

  auto folder = FolderWriter::Create(directory.path() / "f");
  const absl::Status status = AddTensors(
      *folder, "t.safetensors", SourcesOf(TensorMap{{"z", torch::zeros(1, torch::kComplexFloat)}}));
  EXPECT_EQ(status.message(),
            "tensor \"z\" is of type ComplexFloat, which safetensors files do not have");
}

// Tensors of four kinds of elements, and sources of them as from another rank: each is made when it
// is asked for, and counted as long as somebody holds it.
class TensorsFromElsewhere : public testing::Test {
 protected:
  TensorsFromElsewhere() {
    here_ = {{"b.weight", torch::arange(6.0).to(torch::kFloat32).reshape({2, 3})},
             {"a.mask", torch::ones({5}, torch::kBool)},
             {"c.count", torch::full({}, 7, torch::kInt64)},
             {"a.weight", torch::arange(4.0).to(torch::kFloat32)},
             {"d.half", torch::ones({3}, torch::kBFloat16)}};
    sources_ = SourcesOf(here_);
    for (auto& [name, source] : sources_) {
      source.get = [this, name = name] {
        asked_.push_back(name);
        held_when_asked_.push_back(held_);
        ++held_;
        auto* const copy = new torch::Tensor(here_.at(name).clone());
        return torch::from_blob(
            copy->mutable_data_ptr(), copy->sizes(),
            [this, copy](void*) {
              --held_;
              delete copy;
            },
            copy->scalar_type());
      };
    }
  }
  fs::path folder() const { return directory_.path() / "f"; }
  absl::Status Write(const TensorSources& sources) {
    TUTTI_ASSIGN_OR_RETURN(FolderWriter writer, FolderWriter::Create(folder()));
    TUTTI_RETURN_IF_ERROR(writer.Add("before", "a file that is complete"));
    TUTTI_RETURN_IF_ERROR(AddTensors(writer, "t.safetensors", sources));
    return writer.Commit({}).status();
  }
  std::string File() const { return *base::ReadFile(folder() / "t.safetensors", UINT64_MAX); }
  void ExpectNothingStays() {
    EXPECT_TRUE(fs::is_empty(directory_.path()));
    EXPECT_EQ(held_, 0);
  }

  base::TemporaryDirectory directory_;
  TensorMap here_;
  TensorSources sources_;
  std::vector<std::string> asked_;
  int held_ = 0;
  std::vector<int> held_when_asked_;
};

TEST_F(TensorsFromElsewhere, AreAskedForOneAfterTheOtherInTheOrderOfTheFile) {
  ASSERT_TRUE(Write(sources_).ok());
  EXPECT_EQ(asked_,
            (std::vector<std::string>{"c.count", "a.weight", "b.weight", "d.half", "a.mask"}));
  EXPECT_EQ(asked_, FileOrder(sources_));
  EXPECT_EQ(held_when_asked_, std::vector<int>(5, 0)) << "the one before was let go of";
  EXPECT_EQ(held_, 0);
  const std::string file = File();
  const auto header = ParseSafetensorsHeader(file);
  ASSERT_TRUE(header.ok()) << header.status();
  for (size_t i = 0; i < asked_.size(); ++i) EXPECT_EQ(header->tensors.at(i).name, asked_[i]);

  ASSERT_TRUE(Write(SourcesOf(here_)).ok());
  EXPECT_EQ(File(), file) << "the bytes are those of tensors that are here";
}

TEST_F(TensorsFromElsewhere, APartOfThemHasTheOrderOfAll) {
  const std::vector<std::string> all = FileOrder(sources_);
  for (unsigned chosen = 0; chosen < 1u << all.size(); ++chosen) {
    TensorSources part;
    std::vector<std::string> expected;
    for (size_t i = 0; i < all.size(); ++i) {
      if ((chosen >> i & 1) == 0) continue;
      part[all[i]] = sources_.at(all[i]);
      expected.push_back(all[i]);
    }
    EXPECT_EQ(FileOrder(part), expected);
  }
}

TEST_F(TensorsFromElsewhere, OneThatDoesNotComeLeavesNothing) {
  sources_["b.weight"].get = [] { return absl::UnavailableError("rank 1 left"); };
  EXPECT_EQ(Write(sources_), absl::UnavailableError("tensor \"b.weight\": rank 1 left"));
  EXPECT_EQ(asked_, (std::vector<std::string>{"c.count", "a.weight"})) << "and none after it";
  ExpectNothingStays();
}

TEST_F(TensorsFromElsewhere, OneOfAnotherTypeOrShapeLeavesNothing) {
  sources_["b.weight"].get = [] { return torch::zeros({3, 2}); };
  EXPECT_EQ(Write(sources_), absl::InternalError("tensor \"b.weight\" was to be Float [2, 3] and "
                                                 "is Float [3, 2]"));
  ExpectNothingStays();
  sources_["b.weight"].get = [] { return torch::zeros({2, 3}, torch::kInt32); };
  EXPECT_EQ(Write(sources_), absl::InternalError("tensor \"b.weight\" was to be Float [2, 3] and "
                                                 "is Int [2, 3]"));
  ExpectNothingStays();
}

TEST_F(TensorsFromElsewhere, NoneIsAskedForWhenATypeIsNotForTheFile) {
  sources_["e"] = {torch::kComplexFloat, {1}, sources_.at("c.count").get};
  EXPECT_TRUE(absl::IsInvalidArgument(Write(sources_)));
  EXPECT_TRUE(asked_.empty());
  ExpectNothingStays();
}

ModelFolder ExampleFolder() {
  ModelFolder model;
  model.architecture = "resnet20";
  model.classes = {"cat", "dog"};
  model.input = {.height = 32,
                 .width = 24,
                 .resize = 40,
                 .mean = {0.4914, 0.4822, 0.4465},
                 .stddev = {0.247, 0.2435, 0.2616}};
  model.tensors["fc.weight"] = torch::arange(4.0);
  return model;
}

class ModelFolderTest : public testing::Test {
 protected:
  ModelFolderTest() : path_(directory_.path() / "model") {
    EXPECT_TRUE(WriteModelFolder(path_, ExampleFolder()).ok());
  }
  // The error of reading after model.json has been replaced by a valid file of this content.
  std::string ErrorWith(absl::string_view description) {
    auto folder = FolderWriter::Create(path_);
    EXPECT_TRUE(folder->Add("model.json", description).ok());
    EXPECT_TRUE(folder->Commit({{"format", "tutti-model"}, {"version", 1}}).ok());
    return std::string(ReadModelFolder(path_).status().message());
  }
  base::TemporaryDirectory directory_;
  fs::path path_;
};

TEST_F(ModelFolderTest, ReadsWhatItWrote) {
  ASSERT_TRUE(WriteModelFolder(path_.string() + "/", ExampleFolder()).ok());  // again, in its place
  const auto model = ReadModelFolder(path_);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->architecture, "resnet20");
  EXPECT_EQ(model->classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(model->input.width, 24);
  EXPECT_EQ(model->input.resize, 40);
  EXPECT_EQ(model->input.mean, ExampleFolder().input.mean);
  EXPECT_EQ(model->input.stddev, ExampleFolder().input.stddev);
  EXPECT_TRUE(model->tensors.at("fc.weight").equal(torch::arange(4.0)));
}

TEST_F(ModelFolderTest, RemovesOnlyWhatItReplaces) {
  const fs::path others = path_.string() + ".old";
  fs::create_directory(others);
  std::ofstream(others / "notes.txt") << "the user's";
  ASSERT_TRUE(WriteModelFolder(path_, ExampleFolder()).ok());
  EXPECT_TRUE(fs::exists(others / "notes.txt"));
  EXPECT_FALSE(fs::exists(path_.string() + ".tmp"));
}

TEST_F(ModelFolderTest, SaysWhatIsWrongWithTheFolder) {
  const absl::Status none = ReadModelFolder(directory_.path()).status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_TRUE(absl::StrContains(none.message(), "is no model folder")) << none;

  EXPECT_EQ(ReadModelFolder("/no/such").status().message(),
            "/no/such does not exist; give the folder that tutti-train wrote");

  fs::resize_file(path_ / "model.safetensors", 5);
  EXPECT_TRUE(absl::IsDataLoss(ReadModelFolder(path_).status()));

  ASSERT_TRUE(base::WriteFileAtomic(path_ / "manifest.json",
                                    R"({"format": "tutti-model", "version": 2, "files": {}})")
                  .ok());
  EXPECT_EQ(ReadModelFolder(path_).status().message(),
            (path_ / "manifest.json").string() + " is of version 2; this tutti reads version 1");

  ASSERT_TRUE(base::WriteFileAtomic(path_ / "manifest.json",
                                    R"({"format": "tutti-model", "version": 1, "files":
                               {"../model.json": {"bytes": 1, "sha256": "00"}}})")
                  .ok());
  EXPECT_TRUE(absl::StrContains(ReadModelFolder(path_).status().message(),
                                "its entry of \"../model.json\" is not valid"));
}

TEST_F(ModelFolderTest, SaysWhatIsWrongWithTheDescription) {
  const std::string file = (path_ / "model.json").string();
  EXPECT_EQ(ErrorWith("{}"), file + ": \"architecture\" must be a name");
  EXPECT_EQ(ErrorWith("[1]"), file + ": \"architecture\" must be a name");
  EXPECT_EQ(ErrorWith(R"({"architecture": "r", "classes": []})"),
            file + ": \"classes\" must be a list of names");
  EXPECT_EQ(ErrorWith(R"({"architecture": "r", "classes": ["a"], "input": {"height": 1e9}})"),
            file + ": \"width\" must be a number of pixels from 1 to 16384");
  EXPECT_EQ(ErrorWith(R"({"architecture": "r", "classes": ["a"], "input": {"height": 1,
                          "width": 1, "resize": 0, "mean": [0, 0, 0], "stddev": [1, 0, 1]}})"),
            file + ": \"stddev\" must be three positive numbers");
  EXPECT_EQ(ErrorWith("{"), file + " is damaged: it is not JSON");
}

}  // namespace
}  // namespace tutti::checkpoint
