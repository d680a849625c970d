#include "platform/container/registry_check.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "base/file.h"

namespace tutti::container {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Stands for podman and for the registries that it asks, with their words.
constexpr char kPodmanAndRegistries[] = R"(#!/bin/sh
for last; do :; done
case $1-$last in
  image-*here*) ;;
  image-*) exit 1 ;;
  *gone*) echo "Error: reading image: reading manifest 1 in $last: manifest unknown" >&2; exit 125 ;;
  *mirrored*) echo "Error: (Mirrors also failed: [m: manifest unknown]): x: i/o timeout" >&2; exit 125 ;;
  *down*) echo "Error: pinging container registry: connect: connection refused" >&2; exit 125 ;;
  *closed*) echo "Error: requested access to the resource is denied" >&2; exit 125 ;;
esac
)";

class RegistryCheck : public ::testing::Test {
 protected:
  RegistryCheck() {
    EXPECT_TRUE(base::WriteFileAtomic(bin_.path() / "podman", kPodmanAndRegistries, 0755).ok());
    ::setenv("PATH", (bin_.path().string() + ":" + path_).c_str(), 1);
  }
  ~RegistryCheck() override { ::setenv("PATH", path_.c_str(), 1); }

  static spec::JobSpec Job(const std::string& reference) {
    spec::JobSpec job;
    job.compute = "local";
    job.environment.image = {reference, "", "", "job.yml:3"};
    return job;
  }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory bin_;
  std::vector<std::string> warnings_;
};

TEST_F(RegistryCheck, RefusesAnImageThatItsRegistrySaysItDoesNotHave) {
  const absl::Status status = CheckRegistries(Job("a.example/gone:1"), warnings_);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "job.yml:3: image a.example/gone:1 cannot be pulled: its registry does not have it");
}

TEST_F(RegistryCheck, WhatMayBeThereIsNotRefused) {
  for (const char* reference : {"a.example/gone-but-here:1", "a.example/there:1",
                                "a.example/mirrored:1", "a.example/down:1", "closed:1"}) {
    EXPECT_TRUE(CheckRegistries(Job(reference), warnings_).ok()) << reference;
  }
  spec::JobSpec of_cluster = Job("a.example/gone:1");
  of_cluster.compute = "hpc";
  EXPECT_TRUE(CheckRegistries(of_cluster, warnings_).ok());
  EXPECT_TRUE(CheckRegistries(Job("localhost/gone:1"), warnings_).ok());
  EXPECT_TRUE(CheckRegistries(spec::JobSpec(), warnings_).ok());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RegistryCheck, WarnsOfAStepsImageWhichAnotherStepMayPush) {
  spec::JobSpec pipeline;
  spec::Step step;
  step.job = Job("a.example/gone:1");
  pipeline.steps.push_back(step);
  EXPECT_TRUE(CheckRegistries(pipeline, warnings_).ok());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("job.yml:3: image a.example/gone:1 cannot be "
                                               "pulled: its registry does not have it, unless")));
}

}  // namespace
}  // namespace tutti::container
