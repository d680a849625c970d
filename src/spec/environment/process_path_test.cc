#include "spec/environment/process_path.h"

#include <gtest/gtest.h>

namespace tutti::spec {
namespace {

TEST(ProcessPath, TakesTheJobsPathBeforeTheMachines) {
  EXPECT_EQ(ProcessPath({{"PATH", "/jobs"}}, {{"PATH", "/own"}}, ""), "/jobs");
  EXPECT_EQ(ProcessPath({}, {{"PATH", "/own"}}, ""), "/own");
  EXPECT_EQ(ProcessPath({}, {}, ""), "/usr/local/bin:/usr/bin:/bin");
}

TEST(ProcessPath, PutsTuttisProgramsAndThePythonEnvironmentBeforeIt) {
  EXPECT_EQ(ProcessPath({}, {{"PATH", "/own"}}, "/tutti", "/env"), "/tutti:/env/bin:/own");
}

}  // namespace
}  // namespace tutti::spec
