#include "spec/install_failure.h"

#include <gmock/gmock.h>

namespace tutti::spec {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(InstallFailure, BlamesOnlyWhatUvNames) {
  Environment environment;
  environment.packages = {{"torch==9", "c:1"}, {"torch-vision", "c:2"}, {"Foo.Bar>=1", "c:3"}};
  EXPECT_THAT(ExplainFailure(environment, "there is no version of torch==9"),
              HasSubstr("c:1: torch==9 cannot be had"));
  EXPECT_THAT(ExplainFailure(environment, "there is no version of torch==9"),
              Not(HasSubstr("c:2")));
  EXPECT_THAT(ExplainFailure(environment, "foo-bar depends on torch_vision."),
              HasSubstr("c:2: torch-vision, c:3: Foo.Bar>=1 cannot be had"));
  EXPECT_THAT(ExplainFailure(environment, "no network"), HasSubstr("environment host cannot"));
}

}  // namespace
}  // namespace tutti::spec
