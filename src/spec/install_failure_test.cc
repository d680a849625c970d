#include "spec/install_failure.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

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

TEST(InstallFailure, BeginsAtTheInstallersErrorAndBlamesNothingThatWasOnlyDownloaded) {
  Environment environment;
  environment.packages = {{"numpy", "c:1"}, {"./kernels", "c:2"}};
  EXPECT_EQ(ExplainFailure(environment,
                           "Resolved 2 packages in 5ms\n   Building kernels @ file:///k\n"
                           "Downloading numpy (16.1MiB)\n"
                           "  × Failed to build `kernels @\n  │ file:///k`\n"
                           "  ├─▶ The build backend returned an error\n"
                           "  ╰─▶ Call to `build_wheel` failed (exit status: 1)\n\n"
                           "      [stdout]\n      running build\n\n      [stderr]\n"
                           "      k.c:1:10: fatal error: no.h: No such file or directory\n"
                           "      error: command 'gcc' failed\n\n      hint: install no.h\n"),
            "c:2: ./kernels cannot be had: Failed to build `kernels @ file:///k`: k.c:1:10: fatal "
            "error: no.h: No such file or directory hint: install no.h");
}

TEST(InstallFailure, UvsDecidingHintIsNotCutOff) {
  const std::string words = absl::StrCat(
      "  × No solution found\n  ╰─▶ Because ", std::string(700, 'x'), "\n\n",
      "      hint: Pre-releases are available for `torch`\n\n",
      "      hint: You require CPython 3.12 (`cp312`), but we only found wheels\n      for `torch` "
      "(v1.7.1) with the following Python ABI tags: `cp38`\n\n      hint: Another one\n");
  const std::string line = InOneLine(words);
  EXPECT_THAT(line, HasSubstr("x… hint: You require CPython 3.12 (`cp312`), but we only found "
                              "wheels for `torch` (v1.7.1) with the following Python ABI tags: "
                              "`cp38`"));
  EXPECT_THAT(line, Not(HasSubstr("Another one")));
  EXPECT_EQ(InOneLine("a\n  b hint: c"), "a b hint: c");
}

}  // namespace
}  // namespace tutti::spec
