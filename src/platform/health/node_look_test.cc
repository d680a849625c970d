// Covers: check_program.cc.
#include "platform/health/node_look.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::health {
namespace {

using ::testing::HasSubstr;

class NodeLookTest : public ::testing::Test {
 protected:
  NodeLookTest() {
    Write("proc/meminfo", "MemTotal: 65536000 kB\nMemAvailable: 32768000 kB\n");
    look_ = {.folder = folder_.path() / "scratch",
             .root = folder_.path(),
             .nvidia_smi = (folder_.path() / "nvidia-smi").native(),
             .kernel_log = [this] { return kernel_log_; }};
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::MakeDirectories((folder_.path() / name).parent_path()).ok());
    ASSERT_TRUE(base::ReplaceFile(folder_.path() / name, text, 0700).ok());
  }
  std::string Illness() { return IllnessOf(LookAtNode(look_, abandoned_)); }

  const base::TemporaryDirectory folder_;
  std::string kernel_log_;
  NodeLook look_;
  std::atomic<bool> abandoned_ = false;
};

TEST_F(NodeLookTest, FindsNothingWrongWithANodeThatIsWell) {
  const auto checks = LookAtNode(look_, abandoned_);
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].name, "disk");
  EXPECT_EQ(checks[1].name, "memory");
  EXPECT_EQ(Illness(), "");
}

TEST_F(NodeLookTest, NamesAllThatIsIll) {
  Write("scratch", "no folder");
  look_.checks = {.command = "echo the fan is loud; exit 3", .links = {"eth0"}};
  const std::string illness = Illness();
  EXPECT_THAT(illness, HasSubstr("disk: "));
  EXPECT_THAT(illness, HasSubstr("link: "));
  EXPECT_THAT(illness, HasSubstr("; program: the fan is loud"));
}

TEST_F(NodeLookTest, OfTheGpusItIsTheJobsThatCount) {
  Write("nvidia-smi",
        "#!/bin/sh\ncat <<'E'\n0, GPU-a, 00000000:3B:00.0, 0\n1, GPU-b, 00000000:5E:00.0, 2\nE\n");
  kernel_log_ = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n";
  EXPECT_EQ(Illness(), "") << "a job without GPUs";
  look_.gpus = {"0"};
  EXPECT_THAT(Illness(), HasSubstr("gpu: GPU 0 had XID 79"));
  look_.gpus = {"GPU-b"};
  EXPECT_THAT(Illness(), HasSubstr("gpu: GPU 1 "));
  Write("nvidia-smi", "#!/bin/sh\necho Unable to determine the device handle; exit 9\n");
  EXPECT_THAT(Illness(), HasSubstr("gpu: nvidia-smi ended with exit code 9"));
}

TEST_F(NodeLookTest, AProgramThatIsNotThereSaysNothing) {
  look_.gpus = {"0"};
  look_.checks.command = absl::StrCat(folder_.path().native(), "/none");
  EXPECT_EQ(Illness(), "");
}

TEST_F(NodeLookTest, AProgramThatHangsIsIllnessAndOneThatIsAbandonedIsNot) {
  look_.checks = {.command = "exec sleep 600", .timeout_seconds = 1};
  EXPECT_EQ(Illness(), "program: it did not end within 1s");
  abandoned_ = true;
  look_.checks.timeout_seconds = 600;
  EXPECT_EQ(Illness(), "");
}

}  // namespace
}  // namespace tutti::health
