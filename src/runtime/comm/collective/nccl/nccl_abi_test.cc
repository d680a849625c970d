// The declarations of nccl_abi.h against NVIDIA's header, where there is one (TUTTI_NCCL_INCLUDE):
// its text is read, since it needs CUDA's headers to be compiled.
#include "runtime/comm/collective/nccl/nccl_abi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

namespace tutti::comm::nccl {
namespace {

class NcclAbiTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("TUTTI_NCCL_INCLUDE");
    std::ifstream file(std::string(folder == nullptr ? "/usr/include" : folder) + "/nccl.h");
    if (!file) GTEST_SKIP() << "no nccl.h on this machine (TUTTI_NCCL_INCLUDE names its folder)";
    std::stringstream text;
    text << file.rdbuf();
    header_ = text.str();
  }
  int Value(const std::string& name) const {
    std::smatch found;
    const bool there = std::regex_search(header_, found, std::regex(name + "\\s*=\\s*(\\d+)"));
    return there ? std::stoi(found[1]) : -1;
  }
  // The types of a function's parameters, as far as they are told by commas.
  long Parameters(const std::string& function) const {
    std::smatch found;
    const std::regex pattern("(?:ncclResult_t|const char\\*)\\s+" + function + "\\(([^)]*)\\)");
    if (!std::regex_search(header_, found, pattern)) return -1;
    const std::string list = found[1];
    return 1 + std::count(list.begin(), list.end(), ',');
  }
  std::string header_;
};

TEST_F(NcclAbiTest, ValuesAreTheHeaders) {
  EXPECT_EQ(Value("ncclSuccess"), kSuccess);
  EXPECT_EQ(Value("ncclUnhandledCudaError"), kUnhandledCudaError);
  EXPECT_EQ(Value("ncclSystemError"), kSystemError);
  EXPECT_EQ(Value("ncclInternalError"), kInternalError);
  EXPECT_EQ(Value("ncclInvalidArgument"), kInvalidArgument);
  EXPECT_EQ(Value("ncclInvalidUsage"), kInvalidUsage);
  EXPECT_EQ(Value("ncclRemoteError"), kRemoteError);
  EXPECT_EQ(Value("ncclInProgress"), kInProgress);
  EXPECT_EQ(Value("ncclInt8"), kInt8);
  EXPECT_EQ(Value("ncclUint8"), kUint8);
  EXPECT_EQ(Value("ncclInt32"), kInt32);
  EXPECT_EQ(Value("ncclInt64"), kInt64);
  EXPECT_EQ(Value("ncclFloat16"), kFloat16);
  EXPECT_EQ(Value("ncclFloat32"), kFloat32);
  EXPECT_EQ(Value("ncclFloat64"), kFloat64);
  EXPECT_EQ(Value("ncclBfloat16"), kBfloat16);
  EXPECT_EQ(Value("ncclSum"), kSum);
  EXPECT_EQ(Value("ncclProd"), kProduct);
  EXPECT_EQ(Value("ncclMax"), kMax);
  EXPECT_EQ(Value("ncclMin"), kMin);
  EXPECT_EQ(Value("ncclAvg"), kAverage);
}

TEST_F(NcclAbiTest, LayoutsAreTheHeaders) {
  EXPECT_TRUE(std::regex_search(header_, std::regex("NCCL_UNIQUE_ID_BYTES\\s+128")));
  EXPECT_EQ(sizeof(UniqueId), 128u);
  // The settings begin with the same fields; the header's own are more.
  EXPECT_TRUE(std::regex_search(
      header_, std::regex("size_t size;\\s+unsigned int magic;\\s+unsigned int version;"
                          "(\\s+/\\*[^*]*\\*/)?\\s+int blocking;")));
  EXPECT_NE(header_.find("0xcafebeef"), std::string::npos);
  EXPECT_EQ(sizeof(Config), 24u);
}

TEST_F(NcclAbiTest, FunctionsTakeAsManyParameters) {
  EXPECT_EQ(Parameters("ncclGetVersion"), 1);
  EXPECT_EQ(Parameters("ncclGetUniqueId"), 1);
  EXPECT_EQ(Parameters("ncclCommInitRankConfig"), 5);
  EXPECT_EQ(Parameters("ncclCommAbort"), 1);
  EXPECT_EQ(Parameters("ncclCommDestroy"), 1);
  EXPECT_EQ(Parameters("ncclCommFinalize"), 1);
  EXPECT_EQ(Parameters("ncclCommGetAsyncError"), 2);
  EXPECT_EQ(Parameters("ncclGetErrorString"), 1);
  EXPECT_EQ(Parameters("ncclGetLastError"), 1);
  EXPECT_EQ(Parameters("ncclAllReduce"), 7);
  EXPECT_EQ(Parameters("ncclBroadcast"), 7);
  EXPECT_EQ(Parameters("ncclAllGather"), 6);
  EXPECT_EQ(Parameters("ncclReduceScatter"), 7);
  EXPECT_EQ(Parameters("ncclSend"), 6);
  EXPECT_EQ(Parameters("ncclRecv"), 6);
  EXPECT_EQ(Parameters("ncclGroupStart"), 1);  // none: "()" counts as one
  EXPECT_EQ(Parameters("ncclGroupEnd"), 1);
}

}  // namespace
}  // namespace tutti::comm::nccl
