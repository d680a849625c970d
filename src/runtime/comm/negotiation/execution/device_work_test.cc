// Named collectives in memory of GPUs, over stand-ins for CUDA's driver and NCCL which do the work
// on plain memory. tests/collectives/test_gpu.py has the same on a GPU.
// Covers: device_work.cc, runtime/comm/collective/nccl/device_stream.cc,
// runtime/comm/collective/nccl/cuda_driver.cc.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "runtime/comm/collective/nccl/device_stream.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/lost_rank.h"
#include "runtime/comm/negotiation/negotiation.h"

namespace tutti::comm {
namespace {

using testing::HasSubstr;
using Transport = GroupOptions::Transport;
using Values = std::vector<float>;

class DeviceNegotiationTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TUTTI_NCCL_LIBRARY", TUTTI_FAKE_NCCL, 1);
    ::setenv("TUTTI_CUDA_LIBRARY", TUTTI_FAKE_CUDA, 1);
    ASSERT_TRUE(CudaDriver::Load().ok());
    fake_ = ::dlopen(TUTTI_FAKE_CUDA, RTLD_NOW | RTLD_NOLOAD);
  }
  void TearDown() override {
    Hold(-1);
    ::unsetenv("TUTTI_NCCL_LIBRARY");
    ::unsetenv("TUTTI_CUDA_LIBRARY");
  }
  // A GPU that does not come to the end of anything (-1: none).
  void Hold(int device) {
    reinterpret_cast<void (*)(int)>(::dlsym(fake_, "fake_cuda_hold"))(device);
  }
  int Ask(const char* what) { return reinterpret_cast<int (*)()>(::dlsym(fake_, what))(); }

  static void OnRanks(int size, const std::function<void(Negotiation&)>& body) {
    OnEveryRank(OptionsFor(size, Transport::kAuto),
                [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                  ASSERT_TRUE(group.ok()) << group.status();
                  const auto negotiation = Negotiation::Start(*std::move(group), {});
                  body(*negotiation);
                });
  }

  void* fake_ = nullptr;
};

Submission OnGpu(Kind kind, const std::string& name, Values& data, int device = 0) {
  Submission submission;
  submission.request.kind = kind;
  submission.request.name = name;
  submission.request.device = true;
  submission.request.parts = {{DataType::kFloat32, {static_cast<int64_t>(data.size())}}};
  submission.inputs = {data.data()};
  submission.outputs = {data.data()};
  submission.device = device;
  return submission;
}

std::shared_ptr<Operation> Start(Negotiation& negotiation, Submission submission) {
  OperationOr operation = negotiation.Submit(std::move(submission));
  EXPECT_TRUE(operation.ok()) << operation.status();
  return operation.ok() ? *operation : nullptr;
}

TEST_F(DeviceNegotiationTest, ReducesInTheOrderThatRanksAgreedOnAndWaitsForNoHost) {
  const int waits = Ask("fake_cuda_waits");
  OnRanks(3, [](Negotiation& negotiation) {
    const int rank = negotiation.rank();
    int event = 0;
    std::vector<Values> data(20, Values(1000, static_cast<float>(rank + 1)));
    std::vector<std::shared_ptr<Operation>> operations(20);
    for (int i = 0; i < 20; ++i) {
      const int own = rank % 2 == 0 ? i : 19 - i;  // ranks come to them in different orders
      Submission submission = OnGpu(Kind::kAllReduce, absl::StrCat("g", own), data[own]);
      submission.request.op = own % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMean;
      submission.ready = &event;
      operations[own] = Start(negotiation, std::move(submission));
    }
    for (int i = 0; i < 20; ++i) {
      const auto mark = operations[i]->WaitIssued(Soon());
      ASSERT_TRUE(mark.ok() && *mark != nullptr) << mark.status();
      EXPECT_TRUE((*mark)->Before(nullptr).ok());
      EXPECT_TRUE(operations[i]->Wait(Soon()).ok());
      EXPECT_EQ(data[i], Values(1000, i % 2 == 0 ? 6.0F : 2.0F));
    }
  });
  // Every tensor's stream was waited for before, and waits itself afterwards.
  EXPECT_EQ(Ask("fake_cuda_waits"), waits + 3 * 20 * 2);
  EXPECT_EQ(Ask("fake_cuda_events"), 0);
}

TEST_F(DeviceNegotiationTest, BroadcastsFromARankOfTheWorldWithinAProcessSet) {
  OnRanks(3, [](Negotiation& negotiation) {
    const auto added = negotiation.AddProcessSet({1, 2});
    ASSERT_TRUE(added.ok() && (*added)->Wait(Soon()).ok());
    if (negotiation.rank() > 0) {
      Values data(7, static_cast<float>(negotiation.rank())), output(7);
      Submission submission = OnGpu(Kind::kBroadcast, "b", data);
      submission.request.set = static_cast<int>((*added)->value());
      submission.request.root = 2;
      submission.outputs = {output.data()};
      EXPECT_TRUE(Start(negotiation, std::move(submission))->Wait(Soon()).ok());
      EXPECT_EQ(output, Values(7, 2));
      EXPECT_EQ(data, Values(7, static_cast<float>(negotiation.rank())));
    }
    const auto removed = negotiation.RemoveProcessSet(static_cast<int>((*added)->value()));
    EXPECT_TRUE(removed.ok() && (*removed)->Wait(Soon()).ok());
  });
}

TEST_F(DeviceNegotiationTest, ARankThatHasJoinedTakesPartWithWhatChangesNothing) {
  OnRanks(2, [](Negotiation& negotiation) {
    if (negotiation.rank() == 0) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMin, ReduceOp::kProduct}) {
        Values data(300000, 5);
        Submission submission = OnGpu(Kind::kAllReduce, "a", data);
        submission.request.op = op;
        EXPECT_TRUE(Start(negotiation, std::move(submission))->Wait(Soon()).ok());
        EXPECT_EQ(data, Values(300000, 5));
      }
    }
    Submission join;
    join.request.kind = Kind::kJoin;
    join.device = 1;
    const auto joined = Start(negotiation, std::move(join));
    EXPECT_TRUE(joined->Wait(Soon()).ok());
    EXPECT_EQ(joined->value(), 0);
  });
}

TEST_F(DeviceNegotiationTest, MemoryOfTheHostAndOfAGpuUnderOneNameIsToldToBoth) {
  OnRanks(2, [](Negotiation& negotiation) {
    Values data(3, 1);
    Submission submission = OnGpu(Kind::kAllReduce, "mixed", data);
    if (negotiation.rank() == 1) {
      submission.request.device = false;
      submission.device = kHost;
    }
    const absl::Status status = Start(negotiation, std::move(submission))->Wait(Soon());
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("on GPUs"));
  });
}

TEST_F(DeviceNegotiationTest, WhatCannotBeDoneOnAGpuIsRefusedAtOnce) {
  OnRanks(1, [](Negotiation& negotiation) {
    Values data(4, 1);
    Submission gather = OnGpu(Kind::kAllGather, "x", data);
    EXPECT_FALSE(negotiation.Submit(gather).ok());
    Submission shorts = OnGpu(Kind::kAllReduce, "x", data);
    shorts.request.parts[0].type = DataType::kInt16;
    EXPECT_FALSE(negotiation.Submit(shorts).ok());
    Submission adasum = OnGpu(Kind::kAllReduce, "x", data);
    adasum.request.op = ReduceOp::kAdasum;
    EXPECT_FALSE(negotiation.Submit(adasum).ok());
    EXPECT_TRUE(Start(negotiation, OnGpu(Kind::kAllReduce, "x", data, 0))->Wait(Soon()).ok());
    const auto another = negotiation.Submit(OnGpu(Kind::kAllReduce, "x", data, 1));
    EXPECT_THAT(std::string(another.status().message()), HasSubstr("one GPU a rank"));
  });
}

TEST_F(DeviceNegotiationTest, WithoutNcclEveryRankIsToldAndTheSessionGoesOn) {
  ::setenv("TUTTI_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
  OnRanks(2, [](Negotiation& negotiation) {
    Values data(4, 1);
    for (int round = 0; round < 2; ++round) {
      const auto tried = Start(negotiation, OnGpu(Kind::kAllReduce, "x", data))->Wait(Soon());
      EXPECT_TRUE(absl::IsFailedPrecondition(tried)) << tried;
    }
    Submission host = OnGpu(Kind::kAllReduce, "x", data);
    host.request.device = false;
    host.device = kHost;
    EXPECT_TRUE(Start(negotiation, std::move(host))->Wait(Soon()).ok());
    EXPECT_EQ(data, Values(4, 2));
  });
}

TEST_F(DeviceNegotiationTest, ARankThatGoesWhileTheGpuIsAtWorkEndsTheOperation) {
  Hold(0);
  OnRanks(2, [](Negotiation& negotiation) {
    Values data(4, 1);
    const auto operation =
        Start(negotiation, OnGpu(Kind::kAllReduce, "x", data, negotiation.rank()));
    EXPECT_TRUE(operation->WaitIssued(Soon()).ok());
    if (negotiation.rank() == 1) return;  // shuts down
    EXPECT_FALSE(operation->Done());
    const absl::Status status = operation->Wait(Soon());
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(LostRank(status), 1) << status;
    Values later(4, 1);
    EXPECT_FALSE(negotiation.Submit(OnGpu(Kind::kAllReduce, "y", later)).ok());
  });
}

}  // namespace
}  // namespace tutti::comm
