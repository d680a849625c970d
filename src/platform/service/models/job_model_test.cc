#include "platform/service/models/job_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace tutti::service {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class JobModelTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes) {
    const auto file = files_.FolderOf("j") / path;
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, bytes).ok());
  }
  absl::StatusOr<ModelContent> Adopt(const std::string& path) {
    return AdoptResults(files_, contents_, "j", path);
  }

  const base::TemporaryDirectory folder_;
  const JobFiles files_{folder_.path() / "jobs"};
  const ModelContents contents_{folder_.path()};
};

TEST_F(JobModelTest, TakesAFolderOrAFile) {
  Write("outputs/model/w", "weights");
  Write("outputs/model/conf/a", "{}");
  Write("outputs/model2", "other");
  Write("logs/rank-0.stdout", "log");
  const auto folder = Adopt("outputs/model/");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_FALSE(folder->is_file);
  ASSERT_EQ(folder->files.size(), 2u);
  EXPECT_EQ(folder->files[0].path, "conf/a");
  EXPECT_EQ(folder->files[1].path, "w");
  EXPECT_TRUE(contents_.Find("sha256:" + folder->files[1].sha256).ok());
  const auto file = Adopt("outputs/model/w");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->is_file);
  EXPECT_EQ(file->files[0].path, "w");
  EXPECT_EQ(Adopt("outputs")->files.size(), 3u);
}

TEST_F(JobModelTest, TakesNothingElse) {
  EXPECT_THAT(Adopt("outputs/model").status().message(), HasSubstr("it has no outputs here"));
  Write("outputs/model/w", "weights");
  Write("logs/rank-0.stdout", "log");
  for (const char* path : {"logs", "logs/rank-0.stdout", "outputs/mod", "outputs/model/x"}) {
    const absl::Status status = Adopt(path).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << path << status;
    EXPECT_THAT(status.message(), HasSubstr("but outputs/model"));
  }
  for (const char* path : {"", "../j/outputs", "/etc/passwd", "outputs//model"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Adopt(path).status())) << path;
  }
  Write("outputs/bad/\xff", "x");
  EXPECT_THAT(Adopt("outputs/bad").status().message(), HasSubstr("is not UTF-8"));
  std::filesystem::create_directory_symlink("/etc", files_.FolderOf("j") / "outputs/link");
  EXPECT_TRUE(absl::IsNotFound(Adopt("outputs/link").status()));
}

TEST(LineageOf, SaysWhatAJobWasMadeOf) {
  store::Job job{.id = "train-1", .snapshot = "sha256:ab"};
  job.spec.command = "python train.py";
  job.spec.experiment_name = "digits";
  job.spec.environment.name = "torch";
  job.spec.environment.packages = {{.text = "torch==2.5"}};
  job.spec.inputs["lr"] = {.type = "number", .literal = "0.1"};
  job.spec.inputs["images"] = {
      .type = "uri_folder", .path = "/data/images", .asset = "azureml:images:2"};
  job.spec.inputs["more"] = {
      .place = spec::DataPlace{.kind = spec::StoreKind::kS3, .container = "sets", .path = "train"}};
  const json lineage = json::parse(LineageOf(job, "outputs/model"));
  EXPECT_EQ(lineage["job"], "train-1");
  EXPECT_EQ(lineage["path"], "outputs/model");
  EXPECT_EQ(lineage["code"], "sha256:ab");
  EXPECT_EQ(lineage["command"], "python train.py");
  EXPECT_EQ(lineage["environment"]["name"], "torch");
  EXPECT_EQ(lineage["environment"]["packages"], json::array({"torch==2.5"}));
  EXPECT_EQ(lineage["values"], json::parse(R"({"lr": "0.1"})"));
  ASSERT_EQ(lineage["data"].size(), 2u);
  EXPECT_EQ(lineage["data"][0], json({{"input", "images"},
                                      {"type", "uri_folder"},
                                      {"asset", "azureml:images:2"},
                                      {"address", "/data/images"}}));
  EXPECT_EQ(lineage["data"][1]["address"], "s3 sets/train");
}

}  // namespace
}  // namespace tutti::service
