#include "platform/mlflow/model_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::mlflow {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ModelRegistryTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(own_); }
  // Returns whether the registry is added to an environment that has the package.
  bool IsAddedTo(const std::string& package) {
    const fs::path shared = folder_.path() / package;
    fs::create_directories(shared / package);
    EXPECT_TRUE(AddModelRegistry(shared, own_).ok());
    return !fs::is_empty(own_);
  }

  base::TemporaryDirectory folder_;
  fs::path own_ = folder_.path() / "own";
};

TEST_F(ModelRegistryTest, OnlyMlflow1IsGivenOne) {
  EXPECT_FALSE(IsAddedTo("mlflow-2.22.4.dist-info"));
  EXPECT_FALSE(IsAddedTo("mlflow_skinny-3.17.2.dist-info"));
  EXPECT_FALSE(IsAddedTo("mlflow_export-1.2.dist-info"));
  EXPECT_FALSE(IsAddedTo("mlflow"));
  EXPECT_TRUE(AddModelRegistry(folder_.path() / "none", own_).ok());
  EXPECT_TRUE(IsAddedTo("mlflow_skinny-1.30.1.dist-info"));
}

TEST_F(ModelRegistryTest, MlflowFindsItByItsEntryPoint) {
  ASSERT_TRUE(IsAddedTo("mlflow-1.20.2.dist-info"));
  EXPECT_EQ(base::ReadFile(own_ / "tutti_model_registry-1.0.dist-info/entry_points.txt").value(),
            "[mlflow.model_registry_store]\nfile = tutti_model_registry:FileStore\n");
  EXPECT_THAT(base::ReadFile(own_ / "tutti_model_registry.py").value(),
              HasSubstr("\nclass FileStore(AbstractStore):\n"));
}

}  // namespace
}  // namespace tutti::mlflow
