#include "platform/container/packages.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Stands for podman: keeps what it builds under the name that it is given, and what the build read.
constexpr char kPodman[] = R"(#!/bin/sh
here=${0%/*}
echo "$1" >>"$here/calls"
case $1 in
  build)
    for option; do
      case $option in
        --tag=*) tag=${option#--tag=} ;;
        --volume=*:/run/tutti) build=${option#--volume=}; build=${build%:/run/tutti} ;;
      esac
    done
    echo "$@" >"$here/options"
    cat "$build/requirements.txt" >"$here/requirements"
    cat "$build/Containerfile" >"$here/containerfile"
    cat "$build/start" >"$here/start"
    cmp -s "$build/uv" "$here/uv" && echo same >"$here/brought"
    grep -q slow-package "$build/requirements.txt" && exec sleep 60
    if grep -q no-such-package "$build/requirements.txt"; then
      echo 'ERROR: No matching distribution found for no-such-package' >"$build/said"
      echo 'Error: building at STEP "RUN": exit status 1' >&2
      exit 125
    fi
    echo "$tag" >>"$here/images" ;;
  image)
    for last; do :; done
    grep -qx "$last" "$here/images" 2>/dev/null && echo "id of $last" ||
      { echo 'Error: image not known' >&2; exit 125; } ;;
esac
)";

class PackagesTest : public ::testing::Test {
 protected:
  PackagesTest() {
    EXPECT_TRUE(base::MakeDirectories(bin_).ok() && base::MakeDirectories(made_).ok());
    EXPECT_TRUE(base::WriteFileAtomic(bin_ / "podman", kPodman, 0755).ok());
    EXPECT_TRUE(base::WriteFileAtomic(bin_ / "uv", "#!/bin/sh\n", 0755).ok());
    ::setenv("PATH", absl::StrCat(bin_.string(), ":/usr/bin:/bin").c_str(), 1);
    environment_.image.location = "job.yml:3";
    environment_.packages = {{"numpy==2.0", "job.yml:5"}, {"pandas", "job.yml:6"}};
  }
  ~PackagesTest() override { ::setenv("PATH", path_.c_str(), 1); }

  absl::StatusOr<std::string> Make(const std::string& base = "sha256:11") {
    return WithPackages(environment_, "a.example/b:1", base, made_, cancelled_);
  }
  std::string Text(const char* name) const {
    return base::ReadFile(bin_ / name, 1 << 20).value_or("");
  }
  int Builds() const {
    int count = 0;
    for (const auto line : absl::StrSplit(Text("calls"), '\n')) count += line == "build" ? 1 : 0;
    return count;
  }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory folder_;
  const fs::path bin_ = folder_.path() / "bin", made_ = folder_.path() / "environments";
  spec::Environment environment_;
  std::atomic<bool> cancelled_ = false;
};

TEST_F(PackagesTest, AreInstalledOnTopOfTheImage) {
  const auto made = Make();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(*made, StartsWith("id of localhost/tutti-packages:"));
  EXPECT_THAT(Text("containerfile"), StartsWith("FROM sha256:11\n"));
  EXPECT_EQ(Text("requirements"), "numpy==2.0\npandas\n");
  EXPECT_EQ(Text("brought"), "same\n") << "the image has this machine's uv while it is built";
  EXPECT_THAT(Text("options"), AllOf(HasSubstr("--pull=never"), HasSubstr("--no-cache")));
}

TEST_F(PackagesTest, AreBuiltOnceForEachContent) {
  const std::string first = *Make();
  EXPECT_EQ(*Make(), first);
  EXPECT_EQ(Builds(), 1);
  EXPECT_NE(*Make("sha256:22"), first) << "another image";
  environment_.options = {"--pre"};
  EXPECT_NE(*Make(), first) << "another option";
  environment_.options.clear();
  environment_.packages.pop_back();
  EXPECT_NE(*Make(), first) << "other packages";
  EXPECT_EQ(Builds(), 4);
}

TEST_F(PackagesTest, AFileThatHasChangedIsAnotherPackage) {
  const fs::path wheel = folder_.path() / "mine.whl";
  ASSERT_TRUE(base::WriteFileAtomic(wheel, "1").ok());
  environment_.packages = {{wheel.string(), "job.yml:5"}};
  const std::string first = *Make();
  EXPECT_THAT(Text("options"), HasSubstr(absl::StrCat("--volume=", wheel.string(), ":")));
  ASSERT_TRUE(base::WriteFileAtomic(wheel, "2").ok());
  EXPECT_NE(*Make(), first);
}

TEST_F(PackagesTest, ThisMachinesIndexesAreKnownInTheImage) {
  ::setenv("PIP_INDEX_URL", "https://mirror.example/it's", 1);
  const auto made = Make();
  ::unsetenv("PIP_INDEX_URL");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(Text("start"),
              AllOf(HasSubstr("export PIP_INDEX_URL="), HasSubstr("export UV_DEFAULT_INDEX="),
                    HasSubstr("mirror.example")));
}

TEST_F(PackagesTest, WhatCannotBeHadIsNamedByItsLine) {
  environment_.packages.push_back({"no-such-package", "job.yml:7"});
  const auto made = Make();
  EXPECT_TRUE(absl::IsFailedPrecondition(made.status())) << made.status();
  EXPECT_THAT(std::string(made.status().message()),
              AllOf(StartsWith("job.yml:"), HasSubstr("no-such-package")));
  EXPECT_FALSE(Make().ok()) << "a build that failed is no image";
}

TEST_F(PackagesTest, ACancelledBuildEnds) {
  environment_.packages = {{"slow-package", "job.yml:5"}};
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(Make().status()));
  EXPECT_EQ(Text("images"), "");
}

}  // namespace
}  // namespace tutti::container
