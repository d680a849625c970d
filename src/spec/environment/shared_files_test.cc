#include "spec/environment/shared_files.h"

#include <gmock/gmock.h>

namespace tutti::spec {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Warnings(const std::vector<Requirement>& packages) {
  Diagnostics diagnostics("job.yml");
  WarnOfSharedFiles(packages, 3, diagnostics);
  return diagnostics.warnings();
}

TEST(SharedFiles, ThoseOfAFamilyAreHeldToTheVersionOfTheOneThatIsAskedFor) {
  EXPECT_THAT(ConstraintsOf({"azureml-mlflow==1.52.0", "MLflow[extras]==2.5.0"}),
              UnorderedElementsAre("mlflow-skinny==2.5.0", "mlflow-tracing==2.5.0"));
  EXPECT_THAT(ConstraintsOf({"tensorflow==2.9.1; python_version<'3.11' --hash=sha256:1"}),
              Contains("tensorflow-cpu==2.9.1; python_version<'3.11'"));
  EXPECT_THAT(ConstraintsOf({"opencv-python==4.8.*"}), Contains("opencv-python-headless==4.8.*"));
  // One that is named without a version takes that of the other.
  EXPECT_THAT(ConstraintsOf({"psycopg2", "psycopg2-binary==2.9.9"}),
              ElementsAre("psycopg2==2.9.9"));
  // A pin holds more than a range.
  EXPECT_THAT(ConstraintsOf({"mlflow>=2.9,<3", "mlflow-skinny==2.9.2"}),
              UnorderedElementsAre("mlflow==2.9.2", "mlflow-tracing==2.9.2"));
  EXPECT_THAT(ConstraintsOf({"xgboost", "numpy==1.21", "/wheels/mlflow-2.5.whl",
                             "faiss-cpu @ https://a.example/faiss-cpu==1.whl"}),
              IsEmpty());
}

TEST(SharedFiles, PyTorchBefore2GetsTheNumpyThatItWasCompiledAgainst) {
  EXPECT_THAT(ConstraintsOf({"torch==1.13.1", "numpy"}), ElementsAre("numpy<2"));
  for (const char* torch : {"torch==1.10.*", "torch~=1.13", "torch<2", "torch>=1.9,<2"}) {
    EXPECT_THAT(ConstraintsOf({torch, "numpy>=1.20"}), ElementsAre("numpy<2")) << torch;
  }
  EXPECT_THAT(ConstraintsOf({"torch>=1.13", "numpy"}), IsEmpty());
  EXPECT_THAT(ConstraintsOf({"torch==1.13.1", "numpy>=2"}), IsEmpty());
  EXPECT_THAT(ConstraintsOf({"torch==2.4.1"}), IsEmpty());
  EXPECT_THAT(ConstraintsOf({"torch"}), IsEmpty());
  EXPECT_THAT(ConstraintsOf({"torch==1.13.1", "numpy==1.23.5"}), IsEmpty());
}

TEST(SharedFiles, WhatAFileAsksForComesInPlaceOfWhatAnImageHas) {
  EXPECT_EQ(Beside("tensorflow==2.10", "tensorflow-cpu~=2.12.0"), "");
  EXPECT_EQ(Beside("mlflow==2.5.0", "mlflow-skinny"), "");
  EXPECT_EQ(Beside("mlflow-skinny==2.5.0", "mlflow>=2.9,<3"), "mlflow==2.5.0");
  EXPECT_EQ(Beside("mlflow-skinny", "mlflow>=2.9,<3"), "mlflow>=2.9,<3");
  EXPECT_EQ(Beside("numpy==1.21", "mlflow>=2.9,<3"), "mlflow>=2.9,<3");
  EXPECT_EQ(Beside("MLflow==2.5", "mlflow>=2.9,<3"), "");
}

TEST(SharedFiles, TwoVersionsOfOneFamilyAreSaidOnce) {
  EXPECT_THAT(Warnings({{"mlflow==2.5.0", "c.yml:4"},
                        {"numpy==1.21", "c.yml:5"},
                        {"mlflow-skinny==3.1.0", "c.yml:6"}}),
              ElementsAre("job.yml:3: mlflow==2.5.0 (c.yml:4) and mlflow-skinny==3.1.0 (c.yml:6) "
                          "install the same files in different versions: ask for one of them, or "
                          "for both in one version"));
  EXPECT_THAT(Warnings({{"tensorflow==2.9.0", ""}, {"tensorflow-cpu==2.9", ""}}), IsEmpty());
  EXPECT_THAT(Warnings({{"tensorflow==2.9.*", ""}, {"tensorflow-cpu==2.9.1", ""}}), IsEmpty());
  EXPECT_THAT(Warnings({{"mlflow>=2", ""}, {"mlflow-skinny==3.1.0", ""}}), IsEmpty());
}

}  // namespace
}  // namespace tutti::spec
