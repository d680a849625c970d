#include "platform/service/mends.h"

#include <gmock/gmock.h>

#include <string>

namespace tutti::service {
namespace {
using ::testing::HasSubstr;

TEST(MendOfTest, KnowsWhatToDoAboutCommonFailures) {
  const std::pair<const char*, const char*> kCases[] = {
      {"ModuleNotFoundError: No module named 'torch'", "environment"},
      {"ImportError: libcudart.so.12: cannot open shared object file: No such file", "CPU builds"},
      {"ImportError: libGL.so.1: cannot open shared object file", "not on the node"},
      {"RuntimeError: Found no NVIDIA driver on your system.", "no usable GPU"},
      {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried", "smaller batch"},
      {"OSError: [Errno 98] Address already in use", "MASTER_PORT"},
      {"socket.gaierror: [Errno -2] Name or service not known", "MASTER_ADDR"},
      {"OSError: [Errno 28] No space left on device", "disk"},
      {"bash: line 1: deepspeed: command not found", "environment"}};
  for (const auto& [words, mend] : kCases) {
    EXPECT_THAT(std::string(MendOf(words)), HasSubstr(mend)) << words;
  }
}

TEST(MendOfTest, SaysNothingOfOtherFailures) {
  EXPECT_EQ(MendOf("ValueError: boom"), "");
  EXPECT_EQ(MendOf(""), "");
}

}  // namespace
}  // namespace tutti::service
