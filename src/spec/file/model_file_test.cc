#include "spec/file/model_file.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace tutti::spec {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

absl::StatusOr<ModelFile> ReadModel(absl::string_view text) {
  return ReadModelText(text, "model.yml", "/base");
}

TEST(ModelFile, HasWhatAzuresFilesSay) {
  const auto model = ReadModel(
      "$schema: https://azuremlschemas.azureedge.net/latest/model.schema.json\n"
      "name: net\nversion: 1.0\ntype: mlflow_model\ndescription: classifies\nstage: Staging\n"
      "path: ./model\ntags: {team: vision}\nproperties: {a: 1}\n");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name, "net");
  EXPECT_EQ(model->version, "1.0");
  EXPECT_EQ(model->type, "mlflow_model");
  EXPECT_EQ(model->stage, "Staging");
  EXPECT_EQ(model->path, "/base/model");
  EXPECT_THAT(model->tags, ElementsAre(Pair("team", "vision")));
  EXPECT_THAT(model->properties, ElementsAre(Pair("a", "1")));
  EXPECT_EQ(ReadModel("name: n\npath: /abs/net.pt\n")->type, "custom_model");
}

TEST(ModelFile, TakesWhatAJobHasLeft) {
  const auto model = ReadModel("name: n\npath: azureml://jobs/train-1/outputs/model/paths/best\n");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->job, "train-1");
  EXPECT_EQ(model->path_of_job, "outputs/model/best");
  EXPECT_EQ(model->path, "");
  EXPECT_EQ(ReadModel("name: n\npath: runs:/train-1/model\n")->path_of_job, "outputs/model");
  EXPECT_EQ(
      ReadModel("name: n\npath: azureml://jobs/j/outputs/artifacts/paths/outputs/m\n")->path_of_job,
      "outputs/m");
}

TEST(ModelFile, SaysAllThatIsWrong) {
  const absl::Status wrong =
      ReadModel(
          "name: a b\nversion: '@1'\ntype: custom_model\nstage: a stage\npath: s3://b/m\nnam: x\n")
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong));
  EXPECT_THAT(wrong.message(),
              AllOf(HasSubstr("model.yml:1: name must be"), HasSubstr("model.yml:2: version must"),
                    HasSubstr("model.yml:4: stage must be"),
                    HasSubstr("model.yml:5: path \"s3://b/m\" is not on this machine"),
                    HasSubstr("model.yml:6")));
  EXPECT_THAT(ReadModel("name: n\n").status().message(), HasSubstr("the key \"path\" is missing"));
  EXPECT_FALSE(ReadModel("name: n\npath: azureml://jobs/../outputs/x\n").ok());
  EXPECT_FALSE(ReadModel("name: n\ntype: other_model\npath: x\n").ok());
  EXPECT_THAT(ReadModel("type: command\ncommand: x\n").status().message(),
              HasSubstr("of kind job"));
}

TEST(ModelFile, CountsPathsFromItsOwnFolder) {
  const base::TemporaryDirectory folder;
  const auto file = folder.path() / "model.yml";
  ASSERT_TRUE(base::WriteFileAtomic(file, "name: n\npath: sub\n").ok());
  EXPECT_EQ(ReadModelFile(file)->path, folder.path() / "sub");
  EXPECT_TRUE(absl::IsNotFound(ReadModelFile(folder.path() / "none.yml").status()));
}

}  // namespace
}  // namespace tutti::spec
