#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "spec/file/job_file.h"
#include "spec/json/job_json.h"

namespace tutti::spec {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<ReadResult> ReadWithResources(absl::string_view resources,
                                             absl::string_view image = "a.example/train:1") {
  return ReadJobFile(
      absl::StrCat("command: x\nenvironment: {image: '", image, "'}\nresources: ", resources, "\n"),
      "job.yml", "/base");
}

TEST(ContainerOptions, WhatIsSafeIsPassedOnInOneForm) {
  const auto result = ReadWithResources(
      "{shm_size: 2g, docker_args: '--ipc=host -v /data:/data --ulimit memlock=-1 "
      "--cap-add=SYS_PTRACE --network=host'}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->spec.container_options,
              ElementsAre("--shm-size=2g", "--volume=/data:/data", "--ulimit=memlock=-1",
                          "--cap-add=SYS_PTRACE"));
  EXPECT_THAT(result->warnings, IsEmpty());
  const auto again = JobSpecFromJson(ToJson(result->spec));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->container_options, result->spec.container_options);
  EXPECT_EQ(again->environment.image.reference, "a.example/train:1");
}

TEST(ContainerOptions, WhatChangesHowContainersAreRunIsNamedAndLeftOut) {
  const auto result = ReadWithResources(
      "{docker_args: [--name, mine, --detach, --env, A=1, --entrypoint=/bin/x, "
      "--pid=container:1]}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->spec.container_options, ElementsAre("--env=A=1"));
  EXPECT_THAT(result->warnings,
              ElementsAre(HasSubstr("job.yml:3: docker_args: --name=mine --detach "
                                    "--entrypoint=/bin/x --pid=container:1 has no effect")));
}

TEST(ContainerOptions, WhatAsksForGpusIsKnownWithItsPlace) {
  const auto demands = [](absl::string_view resources, absl::string_view image) {
    std::vector<std::string> found;
    const auto read = ReadWithResources(resources, image);
    for (const GpuDemand& demand : read.value().spec.gpu_demands) {
      found.push_back(absl::StrCat(demand.location.file, ":", demand.location.line, " ",
                                   demand.what, demand.is_strict ? " strictly" : ""));
    }
    return found;
  };
  EXPECT_THAT(demands("{instance_type: Standard_NC6s_v3, docker_args: '--gpus all --ipc=host "
                      "--runtime=nvidia --device nvidia.com/gpu=0'}",
                      "a.example/b:1"),
              ElementsAre("job.yml:3 instance_type Standard_NC6s_v3",
                          "job.yml:3 --gpus=all (docker_args) strictly",
                          "job.yml:3 --runtime=nvidia (docker_args) strictly",
                          "job.yml:3 --device=nvidia.com/gpu=0 (docker_args) strictly"));
  EXPECT_THAT(demands("{docker_args: --gpus=2}", "python"),
              ElementsAre("job.yml:3 --gpus=2 (docker_args) strictly"));
  EXPECT_THAT(demands("{instance_type: Standard_D4s_v3, docker_args: --gpus=0}", "a.example/b:1"),
              IsEmpty());
}

TEST(ContainerOptions, OfAJobWithoutAnImageNothingHasAnEffect) {
  const auto result = ReadWithResources("{shm_size: 2g, docker_args: --init}", "python");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->spec.container_options, IsEmpty());
  EXPECT_THAT(result->warnings, ElementsAre(HasSubstr("\"shm_size\" has no effect"),
                                            HasSubstr("\"docker_args\" has no effect")));
}

TEST(ContainerOptions, GpusAreNoContainersAlone) {
  const auto result = ReadWithResources("{docker_args: --gpus=all}", "python");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->warnings, IsEmpty());
}

TEST(ContainerOptions, ASizeThatIsNoneIsAnError) {
  EXPECT_THAT(std::string(ReadWithResources("{shm_size: much}").status().message()),
              HasSubstr("job.yml:3: shm_size \"much\" is no size: write 512m or 2g"));
}

}  // namespace
}  // namespace tutti::spec
