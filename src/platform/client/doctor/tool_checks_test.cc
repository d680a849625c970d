#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "platform/client/doctor/checks.h"

namespace tutti::client {
namespace {

using testing::HasSubstr;
using Outcome = Check::Outcome;

class ToolChecksTest : public testing::Test {
 protected:
  ToolChecksTest() {
    subject_.home = folder_.path() / "home";
    subject_.variables = {{"PATH", folder_.path().string()}};
  }
  void Program(const std::filesystem::path& name, const std::string& script) {
    const auto path = folder_.path() / name;
    ASSERT_TRUE(base::MakeDirectories(path.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(path, "#!/bin/sh\n" + script + "\n", 0755).ok());
  }
  base::TemporaryDirectory folder_;
  DoctorSubject subject_;
};

TEST_F(ToolChecksTest, UvIsThereOrTuttisOwnIsOrItWillBeFetchedOrCannotBe) {
  EXPECT_EQ(CheckUv(subject_).outcome, Outcome::kWarning);
  EXPECT_THAT(CheckUv(subject_).remedy, HasSubstr("pip install uv"));
  Program("python3", "exit 0");
  EXPECT_EQ(CheckUv(subject_).outcome, Outcome::kOk);
  EXPECT_THAT(CheckUv(subject_).detail, HasSubstr("fetches it"));
  Program("home/environments/uv/bin/uv", "echo uv 0.9.1");
  EXPECT_THAT(CheckUv(subject_).detail, HasSubstr("uv 0.9.1 ("));
  Program("uv", "echo uv 0.9.9");
  EXPECT_THAT(CheckUv(subject_).detail, HasSubstr("uv 0.9.9 ("));
  Program("uv", "exit 1");
  EXPECT_EQ(CheckUv(subject_).outcome, Outcome::kWarning);
}

TEST_F(ToolChecksTest, PodmanIsThereOrItIsSaidWhatLacksWithoutIt) {
  EXPECT_EQ(CheckPodman(subject_).outcome, Outcome::kWarning);
  EXPECT_EQ(CheckPodman(subject_).remedy, "apt-get install podman");
  Program("podman", "echo podman version 4.3.1");
  EXPECT_EQ(CheckPodman(subject_).outcome, Outcome::kOk);
  EXPECT_THAT(CheckPodman(subject_).detail, HasSubstr("podman version 4.3.1 ("));
}

}  // namespace
}  // namespace tutti::client
