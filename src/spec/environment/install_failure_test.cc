#include "spec/environment/install_failure.h"

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

TEST(InstallFailure, SaysInOneLineWhyTheIndexIsAway) {
  Environment environment;
  environment.packages = {{"six", "c:1"}, {"git+https://h.org/a.git", "c:2"}};
  EXPECT_EQ(WhyIndexIsAway(environment,
                           "error: Request failed after 3 retries\n"
                           "  Caused by: Failed to fetch: `https://pypi.org/simple/six/`\n"
                           "  Caused by: error sending request for url (https://pypi.org/x)\n"
                           "  Caused by: client error (Connect)\n  Caused by: dns error\n"
                           "  Caused by: failed to lookup address information: Name or service "
                           "not known\n"),
            "https://pypi.org/simple/six/: dns error: failed to lookup address information: Name "
            "or service not known");
  EXPECT_EQ(WhyIndexIsAway(environment,
                           "WARNING: Retrying (Retry(total=4)) after connection broken by 'New"
                           "ConnectionError(': Failed to establish a new connection: [Errno -2] "
                           "Name or service not known')': /simple/uv/\n"
                           "ERROR: No matching distribution found for uv==0.9.*\n"),
            "Name or service not known");
  EXPECT_EQ(WhyIndexIsAway(environment, "error: there is no version of six==9"), "");
  EXPECT_EQ(WhyIndexIsAway(environment,
                           "error: Git operation failed\n  Caused by: failed to fetch "
                           "https://h.org/a.git: Connection timed out"),
            "");
  EXPECT_EQ(WhyIndexIsAway(environment,
                           "  × Failed to build `six`\n  ├─▶ The build backend returned an error\n"
                           "      [stderr]\n      TimeoutError: timed out\n"),
            "");
}

TEST(InstallFailure, HidesThePasswordsOfAddresses) {
  EXPECT_EQ(
      WithoutPasswords("$ uv --index-url=https://me:s3c@ret@h.org/simple a@b.org (http://k@h)\n"
                       "git+https://h.org/a.git@v1"),
      "$ uv --index-url=https://****@h.org/simple a@b.org (http://****@h)\n"
      "git+https://h.org/a.git@v1");
}

std::string OfABuild(const std::string& package, const std::string& module) {
  Environment environment;
  environment.packages = {{"torch", "c:1"}, {"flash-attn==2.8.3", "c:2"}};
  return ExplainFailure(
      environment,
      absl::StrCat("  × Failed to build `flash-attn==2.8.3`\n"
                   "  ├─▶ The build backend returned an error\n  ╰─▶ Call to `x` failed\n\n"
                   "      [stderr]\n      ModuleNotFoundError: No module named 'torch'\n\n"
                   "      hint: This error likely indicates that `",
                   package, "` depends\n      on `", module,
                   "`, but doesn't declare it as a build dependency. If\n      `flash-attn` is a "
                   "first-party package, consider adding `torch`\n      to its "
                   "`build-system.requires`. Otherwise, either add it to your\n      "
                   "`pyproject.toml` under:\n\n      [tool.uv.extra-build-dependencies]\n"
                   "      flash-attn = [\"torch\"]\n\n      or `uv pip install torch` into the "
                   "environment and re-run with\n      `--no-build-isolation`.\n"));
}

TEST(InstallFailure, SaysWhatAJobCanDoAboutABuildThatMissesAModule) {
  EXPECT_EQ(OfABuild("flash-attn@2.8.3", "torch"),
            "c:2: flash-attn==2.8.3 cannot be had: Failed to build `flash-attn==2.8.3`: "
            "ModuleNotFoundError: No module named 'torch' hint: flash-attn==2.8.3 is built with "
            "torch, but does not ask for it: give a built wheel (https://….whl) in its place, or "
            "take it out there and begin the job's command with `pip install --no-build-isolation "
            "flash-attn==2.8.3 && …`");
  EXPECT_THAT(OfABuild("file", "torch"), HasSubstr("hint: it is built with torch"));
  for (const char* module : {"distutils.msvccompiler", "pkg_resources", "setuptools", "imp"}) {
    EXPECT_THAT(OfABuild("numpy@1.19.0", module),
                HasSubstr("hint: numpy==1.19.0 has no build for this Python and needs older tools "
                          "to be built: take a later version, or an older Python"));
  }
}

TEST(InstallFailure, BlamesWhatHasNoNameForABuildThatUvDoesNotName) {
  Environment environment;
  environment.packages = {{"six", "c:1"}, {"./kern", "c:2"}, {"a @ https://host/a.whl", "c:3"}};
  EXPECT_EQ(ExplainFailure(environment,
                           "error: The build backend returned an error\n"
                           "  Caused by: Call to `build_wheel` failed (exit status: 1)\n\n"
                           "[stderr]\nModuleNotFoundError: No module named 'six'\n"),
            "c:2: ./kern cannot be had: error: The build backend returned an error Caused by: Call "
            "to `build_wheel` failed (exit status: 1): ModuleNotFoundError: No module named 'six'");
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

TEST(InstallFailure, OfALongProofTheStepThatNamesWhatDoesNotGoTogetherIsKept) {
  const std::string words = absl::StrCat(
      "  × No solution found when resolving dependencies:\n  ╰─▶ Because a==1 depends on "
      "pyarrow>=0.17.0 ",
      std::string(900, 'x'),
      ", we can conclude that b==2 depends on pyarrow>=0.17.0.\n      And because c==3 depends on "
      "pyarrow==0.16.0\n      and m==4 depends on c==3, we can conclude that m==4 and b==2 are "
      "incompatible.\n      And because m==4 depends on b==2 and you require m==4, we can conclude "
      "that your requirements are unsatisfiable.\n");
  const std::string line = InOneLine(words);
  EXPECT_THAT(line, HasSubstr("Because a==1 depends on pyarrow>=0.17.0 x"));
  EXPECT_THAT(line, HasSubstr("x… And because c==3 depends on pyarrow==0.16.0 and m==4 depends on "
                              "c==3, we can conclude that m==4 and b==2 are incompatible."));
  EXPECT_LT(line.size(), 1000u);
}

}  // namespace
}  // namespace tutti::spec
