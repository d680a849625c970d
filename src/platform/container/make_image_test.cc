// Covers: podman.cc.
#include "platform/container/make_image.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "platform/container/podman.h"

namespace tutti::container {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Image, NamesWithoutARegistryAreDockers) {
  EXPECT_EQ(FullReference("python:3.11"), "docker.io/library/python:3.11");
  EXPECT_EQ(FullReference("pytorch/pytorch"), "docker.io/pytorch/pytorch");
  EXPECT_EQ(FullReference("localhost/mine:1"), "localhost/mine:1");
  EXPECT_EQ(FullReference("127.0.0.1:5000/mine"), "127.0.0.1:5000/mine");
  EXPECT_EQ(FullReference("my.azurecr.io/a/b:2"), "my.azurecr.io/a/b:2");
}

TEST(Image, OnlyTheLatestIsAskedForAgain) {
  for (const char* name : {"a.example/b", "a.example/b:latest", "127.0.0.1:5000/b", "python"}) {
    EXPECT_TRUE(MayChange(name)) << name;
  }
  for (const char* name :
       {"a.example/b:1", "localhost/b", "a.example/b@sha256:00", "python:3.11"}) {
    EXPECT_FALSE(MayChange(name)) << name;
  }
}

TEST(Image, ABuildIsNamedByTheContentOfItsFolder) {
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "Dockerfile", "FROM a.example/b:1\n").ok());
  ASSERT_TRUE(base::MakeDirectories(folder.path() / ".git").ok());
  const spec::Image image{"", folder.path().string(), "Dockerfile", "job.yml:1"};
  const std::string name = *NameOfBuild(image);
  EXPECT_THAT(name, StartsWith("localhost/tutti-build:"));
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / ".git/HEAD", "x").ok());
  EXPECT_EQ(*NameOfBuild(image), name);
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "more", "x").ok());
  const std::string second = *NameOfBuild(image);
  EXPECT_NE(second, name);
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "more", "y").ok());
  EXPECT_NE(*NameOfBuild(image), second);
}

// Stands for podman: a build writes down the registries.conf that it was given, or fails.
constexpr char kFakePodman[] = R"(#!/bin/sh
here=${0%/*}
for last; do :; done
case $1 in
  build)
    cat "$REGISTRY_AUTH_FILE" >"$here/auth" 2>/dev/null
    echo "$*" >"$here/arguments"
    grep -q gone "$last/Dockerfile" && { echo "Error: no such image" >&2; exit 125; }
    cat "$CONTAINERS_REGISTRIES_CONF" >"$here/registries" ;;
  image) [ -e "$here/registries" ] && echo made || { echo "Error: image not known" >&2; exit 125; } ;;
esac
)";

class Build : public ::testing::Test {
 protected:
  Build() {
    EXPECT_TRUE(base::MakeDirectories(bin_).ok() && base::MakeDirectories(context_).ok());
    EXPECT_TRUE(base::WriteFileAtomic(bin_ / "podman", kFakePodman, 0755).ok());
    ::setenv("PATH", (bin_.string() + ":" + path_).c_str(), 1);
  }
  ~Build() override { ::setenv("PATH", path_.c_str(), 1); }

  absl::StatusOr<MadeImage> Of(absl::string_view dockerfile, const std::string& needed_by = "",
                               const Logins& logins = {}) {
    EXPECT_TRUE(base::WriteFileAtomic(context_ / "Dockerfile", dockerfile).ok());
    spec::Environment environment;
    environment.image = {"", context_.string(), "Dockerfile", "job.yml:1", needed_by};
    return MakeImage(environment, folder_.path() / "environments", false, logins);
  }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory folder_;
  const std::filesystem::path bin_ = folder_.path() / "bin", context_ = folder_.path() / "context";
};

TEST_F(Build, FindsNamesWithoutARegistryOnDockerHub) {
  const auto made = Of("FROM python:3.11\n");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->id, "made");
  EXPECT_THAT(base::ReadFile(bin_ / "registries", 1 << 20).value(),
              HasSubstr("unqualified-search-registries"));
}

TEST_F(Build, IsGivenLoginsByAFileThatIsGoneAfterwards) {
  ASSERT_TRUE(Of("FROM a.example/x\n", "", {{"a.example", {"alice", "right"}}}).ok());
  EXPECT_THAT(base::ReadFile(bin_ / "auth").value_or(""), HasSubstr("YWxpY2U6cmlnaHQ="));
  const std::string arguments = base::ReadFile(bin_ / "arguments").value_or("");
  EXPECT_THAT(arguments, HasSubstr("--tag="));
  EXPECT_EQ(arguments.find("right"), std::string::npos);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path())) {
    if (!entry.is_regular_file() || entry.path().filename() == "auth") continue;
    EXPECT_EQ(base::ReadFile(entry.path()).value_or("").find("YWxpY2U6"), std::string::npos)
        << entry.path();
  }
}

TEST_F(Build, SaysWhatItIsForWhereItFails) {
  EXPECT_EQ(Of("FROM gone\n").status().message(),
            "job.yml:1: Dockerfile cannot be built: no such image");
  EXPECT_EQ(
      Of("FROM gone\n", "Dockerfile:2: RUN apt-get").status().message(),
      "job.yml:1: Dockerfile cannot be built: no such image; it is built for Dockerfile:2: RUN "
      "apt-get, unless site.yml says which packages stand for its image");
}

TEST_F(Build, NamesTheDiskThatTookNoneOfPodmansWords) {
  const auto log = folder_.path() / "log";
  std::filesystem::create_symlink("/dev/full", log);
  const absl::Status failed = RunPodman({"image"}, log, std::atomic<bool>{false}).status();
  EXPECT_EQ(failed.message(), log.string() + ": No space left on device");
  EXPECT_EQ(LookUpImage("a.example/x", std::atomic<bool>{false}).status(),
            absl::NotFoundError("a.example/x"));
}

TEST(Podman, ItsReasonIsOneLine) {
  EXPECT_EQ(ErrorIn("Trying to pull r/x:1...\nError: initializing source docker://r/x:1: reading "
                    "manifest 1 in r/x: manifest unknown\n"),
            "initializing source docker://r/x:1: reading manifest 1 in r/x: manifest unknown");
  EXPECT_EQ(ErrorIn("STEP 3/3: RUN make\nmake: no rule\nError: building at STEP \"RUN make\": "
                    "while running runtime: exit status 2\n"),
            "make: no rule (building at STEP \"RUN make\": while running runtime: exit status 2)");
  EXPECT_EQ(ErrorIn(""), "");
}

TEST(Podman, WithoutItAJobWithAnImageIsRefusedWithTheRemedy) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nonexistent", 1);
  spec::JobSpec job;
  EXPECT_TRUE(CheckCanRun(job).ok());
  spec::Step step;
  step.job.environment.image = {"a.example/b:1", "", "", "job.yml:7"};
  step.job.compute = "hpc";
  job.steps.push_back(step);
  EXPECT_TRUE(CheckCanRun(job).ok()) << "the nodes of a cluster may have it";
  job.steps[0].job.compute = "local";
  const absl::Status status = CheckCanRun(job);
  job.steps[0].job.environment.image = {"", "/docker", "Dockerfile", "job.yml:7",
                                        "docker/Dockerfile:6: RUN apt-get"};
  const absl::Status of_build = CheckCanRun(job);
  job.steps.push_back(step);
  job.steps[1].job.compute = "local";
  const absl::Status of_both = CheckCanRun(job);
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(std::string(of_both.message()),
              ::testing::AllOf(StartsWith("docker/Dockerfile:6: RUN apt-get cannot be run: "),
                               HasSubstr("\njob.yml:7: image a.example/b:1 cannot be run: ")));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("job.yml:7: image a.example/b:1 cannot be run: podman, which runs images, "
                        "is not on this machine: install it"));
  EXPECT_THAT(std::string(of_build.message()),
              StartsWith("docker/Dockerfile:6: RUN apt-get cannot be run: podman, which runs"));
}

}  // namespace
}  // namespace tutti::container
