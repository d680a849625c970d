#include "runtime/comm/transport/connect/ucx_rdma.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace tutti::comm {
namespace {
using ::testing::HasSubstr;

// A folder as the kernel's /sys/class/infiniband is one.
class RdmaTest : public ::testing::Test {
 protected:
  void AddPort(const std::string& device, const std::string& port, const std::string& state,
               const std::string& type = "1: CA\n") {
    const auto folder = devices_.path() / device;
    ASSERT_TRUE(base::MakeDirectories(folder / "ports" / port).ok());
    ASSERT_TRUE(base::ReplaceFile(folder / "node_type", type).ok());
    ASSERT_TRUE(base::ReplaceFile(folder / "ports" / port / "state", state).ok());
  }
  const base::TemporaryDirectory devices_;
};

TEST_F(RdmaTest, WhatUcxCannotUseIsNamed) {
  EXPECT_EQ(CheckRdma(devices_.path()).code(), absl::StatusCode::kNotFound);
  AddPort("mlx5_9", "1", "4: ACTIVE\n");  // which this machine has only in this folder
  const absl::Status status = CheckRdma(devices_.path());
  if (status.ok()) GTEST_SKIP() << "this machine has RDMA of its own";
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("RDMA is there (mlx5_9 port 1) and not used, so ranks talk over TCP: "));
}

TEST(UnusedRdmaTest, IsToldWhereItWouldServe) {
  std::vector<Hello> ranks(2);
  ranks[1].rank = ranks[1].node = 1;
  const absl::Status none = absl::NotFoundError("no RDMA");
  const absl::Status unusable = absl::FailedPreconditionError("why");
  EXPECT_EQ(UnusedRdma(ranks, none), "");
  EXPECT_EQ(UnusedRdma(ranks, unusable), "why");
  ranks[0].rdma = true;
  EXPECT_THAT(UnusedRdma(ranks, absl::OkStatus()),
              HasSubstr("RDMA of rank 0's node is not used towards rank 1's"));
  ranks[1].rdma = true;
  EXPECT_EQ(UnusedRdma(ranks, absl::OkStatus()), "");
  ranks[0].encrypt = ranks[1].encrypt = true;
  EXPECT_EQ(UnusedRdma(ranks, unusable), "") << "TLS was asked for, which goes over TCP";
  ranks[1].node = 0;
  ranks[0].encrypt = false;
  EXPECT_EQ(UnusedRdma(ranks, unusable), "") << "one node needs none";
}

}  // namespace
}  // namespace tutti::comm
