#include "platform/container/registry_check.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::container {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Stands for podman and for the registries that it asks, with their words.
constexpr char kPodmanAndRegistries[] = R"(#!/bin/sh
for last; do :; done
case $1-$last in
  image-*here*) ;;
  image-localhost/tutti-build:*) [ -e "${0%/*}/built" ] ;;
  image-*) exit 1 ;;
  *gone*) echo "Error: reading image: reading manifest 1 in $last: manifest unknown" >&2; exit 125 ;;
  *mirrored*) echo "Error: (Mirrors also failed: [m: manifest unknown]): x: i/o timeout" >&2; exit 125 ;;
  *down*) echo 'Error: pinging: Get "https://x/": dial tcp: connect: connection refused' >&2; exit 125 ;;
  *unknown*) echo 'Error: Get "https://x/": dial tcp: lookup x: no such host' >&2; exit 125 ;;
  *private*) [ "$REGISTRY_AUTH_FILE" = "$DOCKER_CONFIG/config.json" ] && grep -q YWxpY2U6cmlnaHQ= "$REGISTRY_AUTH_FILE" ||
    { echo "Error: reading manifest 1 in x: unauthorized: authentication required" >&2; exit 125; } ;;
  *closed*) echo "Error: requested access to the resource is denied" >&2; exit 125 ;;
  *silent*) exec sleep 60 ;;
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

  static spec::JobSpec BuiltFrom(const std::string& dockerfile,
                                 const base::TemporaryDirectory& in) {
    EXPECT_TRUE(base::WriteFileAtomic(in.path() / "Dockerfile", dockerfile).ok());
    spec::JobSpec job;
    job.compute = "local";
    job.environment.image = {"", in.path().string(), "Dockerfile", "job.yml:3", ""};
    return job;
  }

  absl::Status Check(const spec::JobSpec& job,
                     absl::Duration patience = base::Patient(absl::Seconds(60))) {
    return CheckRegistries(job, logins_, base::Deadline::After(patience), warnings_);
  }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory bin_;
  std::vector<std::string> warnings_;
  Logins logins_;
};

TEST_F(RegistryCheck, RefusesWhatCannotBePulledWithTheReason) {
  const std::pair<const char*, const char*> kCases[] = {
      {"a.example/gone:1", "its registry does not have it"},
      {"a.example/down:1",
       "registry a.example cannot be reached: dial tcp: connect: connection refused"},
      {"a.example/unknown:1", "there is no host a.example: dial tcp: lookup x: no such host; "},
      {"closed:1",
       "registry docker.io does not have it or asks for a login: podman login docker.io"},
  };
  for (const auto& [reference, why] : kCases) {
    const absl::Status status = Check(Job(reference));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(status.message()),
        StartsWith(absl::StrCat("job.yml:3: image ", reference, " cannot be pulled: ", why)));
  }
}

TEST_F(RegistryCheck, AsksWithTheLoginOfASecretAndRefusesAWrongOneOfAClusterToo) {
  spec::JobSpec job = Job("a.example/private:1");
  EXPECT_THAT(std::string(Check(job).message()),
              HasSubstr("podman login a.example, as the user of the service, or tutti secret set "
                        "registry.a.example"));
  logins_ = {{"a.example", {"alice", "right"}}, {"b.example", {"bob", "secret"}}};
  EXPECT_TRUE(Check(job).ok());
  logins_["a.example"].password = "wrong";
  job.compute = "hpc";
  EXPECT_EQ(
      Check(job).message(),
      "job.yml:3: image a.example/private:1 cannot be pulled: registry a.example does not take "
      "the login of secret \"registry.a.example\", or has no such image for it: tutti secret "
      "set registry.a.example");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RegistryCheck, WhatIsHereOrNeedsNoRegistryIsNotRefused) {
  for (const char* reference :
       {"a.example/gone-but-here:1", "a.example/there:1", "localhost/gone:1"}) {
    EXPECT_TRUE(Check(Job(reference)).ok()) << reference;
  }
  EXPECT_TRUE(Check(spec::JobSpec()).ok());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RegistryCheck, RefusesAlsoWhereTheComputeWasRefused) {
  spec::JobSpec job = Job("a.example/unknown:1");
  job.compute.clear();
  EXPECT_THAT(std::string(Check(job).message()), HasSubstr("a.example/unknown:1 cannot be pulled"));
}

TEST_F(RegistryCheck, WarnsOfWhatIsNotKnown) {
  EXPECT_TRUE(Check(Job("a.example/mirrored:1")).ok());
  EXPECT_TRUE(Check(Job("a.example/silent:1"), absl::Milliseconds(300)).ok());
  spec::JobSpec of_cluster = Job("a.example/unknown:1");
  of_cluster.compute = "hpc";
  EXPECT_TRUE(Check(of_cluster).ok());
  EXPECT_THAT(
      warnings_,
      ElementsAre(HasSubstr("a.example/mirrored:1 may not be had: "),
                  "job.yml:3: image a.example/silent:1 may not be had: its registry has not "
                  "answered in time",
                  HasSubstr("as seen from here; the nodes of compute \"hpc\" must reach it")));
}

TEST_F(RegistryCheck, ABuildIsRefusedForEachImageThatItIsMadeFrom) {
  const base::TemporaryDirectory context;
  const spec::JobSpec job =
      BuiltFrom("FROM a.example/down as one\nFROM one\nCOPY --from=b.example/gone /x /\n", context);
  EXPECT_EQ(Check(job).message(),
            "job.yml:3: Dockerfile:1: image a.example/down cannot be pulled: registry a.example "
            "cannot be reached: dial tcp: connect: connection refused\n"
            "job.yml:3: Dockerfile:3: image b.example/gone cannot be pulled: its registry does not "
            "have it");
  ASSERT_TRUE(base::WriteFileAtomic(bin_.path() / "built", "").ok());
  EXPECT_TRUE(Check(job).ok()) << "it was built earlier";
}

TEST_F(RegistryCheck, OfWhatWasBuiltEarlierASilentRegistryIsNoMatter) {
  const base::TemporaryDirectory context;
  ASSERT_TRUE(base::WriteFileAtomic(bin_.path() / "built", "").ok());
  EXPECT_TRUE(Check(BuiltFrom("FROM a.example/silent\n", context), absl::Milliseconds(300)).ok());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RegistryCheck, WarnsOfAStepsImageWhichAnotherStepMayPush) {
  spec::JobSpec pipeline;
  spec::Step step;
  step.job = Job("a.example/gone:1");
  pipeline.steps.push_back(step);
  EXPECT_TRUE(Check(pipeline).ok());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("job.yml:3: image a.example/gone:1 cannot be "
                                               "pulled: its registry does not have it, unless")));
}

}  // namespace
}  // namespace tutti::container
