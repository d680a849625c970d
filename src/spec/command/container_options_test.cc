#include <gmock/gmock.h>

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spec/file/job_file.h"
#include "spec/json/job_json.h"

namespace tutti::spec {
namespace {
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<ReadResult> ReadWithResources(absl::string_view resources,
                                             absl::string_view image = "a.example/train:1",
                                             const Site& site = BuiltInSite()) {
  return ReadJobFile(
      absl::StrCat("command: x\nenvironment: {image: '", image, "'}\nresources: ", resources, "\n"),
      "job.yml", "/base", site);
}

Site SiteThatAllows(std::set<std::string> options) {
  Site site = BuiltInSite();
  site.container_leave = std::move(options);
  return site;
}

TEST(ContainerOptions, WhatIsSafeIsPassedOnInOneForm) {
  const auto result = ReadWithResources(
      "{shm_size: 2g, docker_args: '--ipc=host -v /data:/data --ulimit memlock=-1 "
      "--cap-add=SYS_PTRACE --network=host --privileged'}",
      "a.example/train:1", SiteThatAllows({"cap-add", "privileged", "volume"}));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->spec.container_options,
              ElementsAre("--shm-size=2g", "--volume=/data:/data", "--ulimit=memlock=-1",
                          "--cap-add=SYS_PTRACE", "--privileged"));
  EXPECT_THAT(result->warnings, IsEmpty());
  const auto again = JobSpecFromJson(ToJson(result->spec));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->container_options, result->spec.container_options);
  EXPECT_EQ(again->environment.image.reference, "a.example/train:1");
}

TEST(ContainerOptions, WhatReachesOutOfAContainerNeedsTheSitesLeave) {
  for (const auto& [option, leave] :
       {std::pair("-v /:/host", "volume"), std::pair("--volume=/:/host", "volume"),
        std::pair("--mount type=bind,src=/,dst=/host", "volume"),
        std::pair("--mount type=tmpfs,dst=/a,type=bind,src=/", "volume"),
        std::pair("--mount type=tmpfs,dst=/a,\\\"type=bind\\\",src=/", "volume"),
        std::pair("--mount src=/,dst=/host", "volume"), std::pair("--device /dev/sda", "device"),
        std::pair("--device=nvidia.com/gpu/../../dev/sda", "device"),
        std::pair("--cap-add=ALL", "cap-add"), std::pair("--group-add keep-groups", "group-add"),
        std::pair("--security-opt seccomp=unconfined", "security-opt"),
        std::pair("--privileged", "privileged"), std::pair("--privileged=true", "privileged")}) {
    const std::string resources = absl::StrCat("{docker_args: \"", option, "\"}");
    const auto refused = ReadWithResources(resources);
    EXPECT_THAT(
        std::string(refused.status().message()),
        AllOf(HasSubstr("job.yml:3: docker_args: --"), HasSubstr("reaches out of"),
              HasSubstr(absl::StrCat("containers: {allow: [", leave, "]} in its site.yml"))))
        << option;
    const auto taken = ReadWithResources(resources, "a.example/b:1", SiteThatAllows({leave}));
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->spec.container_options.size(), 1u) << option;
  }
}

TEST(ContainerOptions, WhatIsRefusedIsSaidAtOnceBesideWhatIsAllowed) {
  const auto refused = ReadWithResources("{docker_args: '-v /a:/a --device=/dev/fuse --cap-add X'}",
                                         "a.example/b:1", SiteThatAllows({"cap-add"}));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("--volume=/a:/a --device=/dev/fuse reach out of the container, for which "
                        "this service gives no leave: containers: {allow: [cap-add, device, "
                        "volume]} in its site.yml does"));
}

TEST(ContainerOptions, WhatStaysInTheContainerNeedsNoLeave) {
  const auto result = ReadWithResources(
      "{docker_args: '--gpus=0 --add-host a:1.2.3.4 --cap-drop=ALL -e A=1 --ulimit memlock=-1 "
      "--mount type=tmpfs,dst=/fast --tmpfs /x --security-opt no-new-privileges "
      "--device nvidia.com/gpu=0'}");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->spec.container_options.size(), 8u);
}

TEST(ContainerOptions, AJobOnTheHostIsNotRefusedForWhatHasNoEffect) {
  const auto result = ReadWithResources("{docker_args: '-v /:/host'}", "python");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->warnings, ElementsAre(HasSubstr("\"docker_args\" has no effect")));
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
                                   demand.what, demand.is_strict ? " strictly" : "",
                                   demand.count > 1 ? absl::StrCat(", ", demand.count) : ""));
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
              ElementsAre("job.yml:3 --gpus=2 (docker_args) strictly, 2"));
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
