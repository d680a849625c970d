// NCCL's group over a fake of the library: what is loaded, what is passed on, and what becomes of
// ranks that are lost, work that hangs and errors that come later.
// Covers: nccl_library.cc.
#include "runtime/comm/collective/nccl/nccl_group.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>

#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/lost_rank.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

enum Mode { kWorks, kHangs, kRemoteErrorLater, kConnectHangs, kRefuses };

// TUTTI_FAKE_NCCL is where CMake built it.
class NcclGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    auto loaded = NcclLibrary::LoadFrom(TUTTI_FAKE_NCCL);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    library_ = *loaded;
    fake_ = ::dlopen(TUTTI_FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
    Set(kWorks);
  }
  void TearDown() override { Set(kWorks); }

  void Set(Mode mode) { reinterpret_cast<void (*)(int)>(::dlsym(fake_, "fake_nccl_set"))(mode); }
  int Ask(const char* what) { return reinterpret_cast<int (*)()>(::dlsym(fake_, what))(); }

  // Every rank with its group; ranks go on together.
  void OnRanks(int size, const std::function<void(Communicator&, NcclGroup&)>& body) {
    OnEveryRank(OptionsFor(size, Transport::kAuto),
                [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                  ASSERT_TRUE(group.ok()) << group.status();
                  auto made = NcclGroup::Create(**group, library_, Soon());
                  ASSERT_TRUE(made.ok()) << made.status();
                  body(**group, **made);
                });
  }

  std::shared_ptr<const NcclLibrary> library_;
  void* fake_ = nullptr;
};

TEST_F(NcclGroupTest, ReducesScattersGathersAndBroadcasts) {
  OnRanks(3, [](Communicator& group, NcclGroup& nccl) {
    const float mine = static_cast<float>(group.rank() + 1);
    std::vector<float> data(6, mine), one(2), all(6);
    EXPECT_TRUE(nccl.AllReduce(data.data(), data.data(), 6, DataType::kFloat32, ReduceOp::kMean,
                               nullptr, Soon())
                    .ok());
    EXPECT_EQ(data, std::vector<float>(6, 2.0f));
    EXPECT_TRUE(nccl.ReduceScatter(data.data(), one.data(), 2, DataType::kFloat32, ReduceOp::kSum,
                                   nullptr, Soon())
                    .ok());
    EXPECT_EQ(one, std::vector<float>(2, 6.0f));
    one.assign(2, mine);
    EXPECT_TRUE(nccl.AllGather(one.data(), 8, all.data(), nullptr, Soon()).ok());
    EXPECT_EQ(all, (std::vector<float>{1, 1, 2, 2, 3, 3}));
    EXPECT_TRUE(nccl.Broadcast(one.data(), one.data(), 8, 2, nullptr, Soon()).ok());
    EXPECT_EQ(one, std::vector<float>(2, 3.0f));
    EXPECT_TRUE(nccl.Await([] { return true; }, Soon()).ok());
  });
}

TEST_F(NcclGroupTest, SendsFromOneRankToAnother) {
  OnRanks(2, [](Communicator& group, NcclGroup& nccl) {
    int64_t number = group.rank() == 0 ? 42 : 0;
    const absl::Status moved = group.rank() == 0
                                   ? nccl.Send(&number, sizeof(number), 1, nullptr, Soon())
                                   : nccl.Receive(&number, sizeof(number), 0, nullptr, Soon());
    EXPECT_TRUE(moved.ok()) << moved;
    EXPECT_EQ(number, 42);
  });
}

TEST_F(NcclGroupTest, AGroupThatEndsInGoodOrderIsNotAborted) {
  const int aborts = Ask("fake_nccl_aborts"), destroyed = Ask("fake_nccl_destroyed");
  OnRanks(2, [](Communicator& group, NcclGroup&) { EXPECT_TRUE(group.Barrier(Soon()).ok()); });
  EXPECT_EQ(Ask("fake_nccl_aborts"), aborts);
  EXPECT_EQ(Ask("fake_nccl_destroyed"), destroyed + 2);
}

TEST_F(NcclGroupTest, ALostRankIsNamedWhileNcclWaitsForIt) {
  Set(kWorks);
  std::atomic<int> left = 0;
  OnEveryRank(OptionsFor(3, Transport::kAuto),
              [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                ASSERT_TRUE(group.ok()) << group.status();
                auto nccl = NcclGroup::Create(**group, library_, Soon());
                ASSERT_TRUE(nccl.ok()) << nccl.status();
                if (rank == 1) {
                  nccl->reset();
                  group->reset();  // goes while the others' work is on their streams
                  ++left;
                  return;
                }
                const absl::Status status = (*nccl)->Await([] { return false; }, Soon());
                EXPECT_EQ(LostRank(status), 1) << status;
                float value = 1;
                EXPECT_EQ((*nccl)->AllReduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kSum,
                                             nullptr, Soon()),
                          status);
              });
  EXPECT_EQ(left, 1);
}

TEST_F(NcclGroupTest, WorkThatHangsIsAbortedAtTheDeadline) {
  const int aborts = Ask("fake_nccl_aborts");
  OnRanks(2, [&](Communicator& group, NcclGroup& nccl) {
    EXPECT_TRUE(group.Barrier(Soon()).ok());
    if (group.rank() == 0) Set(kHangs);
    EXPECT_TRUE(group.Barrier(Soon()).ok());
    float value = 1;
    const absl::Status status =
        nccl.AllReduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kSum, nullptr,
                       base::Deadline::After(absl::Milliseconds(200)));
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_EQ(nccl.Await([] { return true; }, Soon()), status);
    group.Barrier(Soon()).IgnoreError();
  });
  EXPECT_EQ(Ask("fake_nccl_aborts"), aborts + 2);
}

TEST_F(NcclGroupTest, AnErrorThatComesLaterEndsTheGroup) {
  OnRanks(2, [&](Communicator& group, NcclGroup& nccl) {
    EXPECT_TRUE(group.Barrier(Soon()).ok());
    if (group.rank() == 0) Set(kRemoteErrorLater);
    EXPECT_TRUE(group.Barrier(Soon()).ok());
    float value = 1;
    const absl::Status status =
        nccl.AllReduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kSum, nullptr, Soon());
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(status.message().find("remote process exited"), absl::string_view::npos) << status;
    group.Barrier(Soon()).IgnoreError();
  });
}

TEST_F(NcclGroupTest, ConnectingThatHangsEndsAtTheDeadline) {
  Set(kConnectHangs);
  OnEveryRank(OptionsFor(2, Transport::kAuto),
              [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                ASSERT_TRUE(group.ok()) << group.status();
                const auto nccl = NcclGroup::Create(**group, library_,
                                                    base::Deadline::After(absl::Milliseconds(300)));
                EXPECT_TRUE(absl::IsDeadlineExceeded(nccl.status())) << nccl.status();
                (*group)->Barrier(Soon()).IgnoreError();
              });
}

TEST_F(NcclGroupTest, ACallThatMakesNoSenseDoesNotEndTheGroup) {
  OnRanks(1, [&](Communicator&, NcclGroup& nccl) {
    float value = 1;
    const auto reduce = [&] {
      return nccl.AllReduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kSum, nullptr, Soon());
    };
    Set(kRefuses);
    const absl::Status refused = reduce();
    EXPECT_TRUE(absl::IsInvalidArgument(refused));
    EXPECT_EQ(refused.message(),
              "NCCL could not all-reduce: an error: Duplicate GPU detected : rank 0 and rank 1");
    Set(kWorks);
    EXPECT_TRUE(reduce().ok());
  });
}

// NCCL's own mean of one rank leaves elements out: see nccl_group.cc.
TEST_F(NcclGroupTest, TheMeanOfOneRankIsAskedForAsItsSum) {
  OnRanks(1, [&](Communicator&, NcclGroup& nccl) {
    float value = 3;
    EXPECT_TRUE(
        nccl.AllReduce(&value, &value, 1, DataType::kFloat32, ReduceOp::kMean, nullptr, Soon())
            .ok());
    EXPECT_EQ(value, 3);
    EXPECT_EQ(Ask("fake_nccl_last_op"), nccl::kSum);
  });
}

TEST(NcclReductionTest, EveryTypeAndOperationIsMappedOrRefused) {
  const auto is = [](DataType type, ReduceOp op, nccl::Type as, nccl::Op by) {
    const auto how = ToNccl(type, op);
    return how.ok() && how->type == as && how->op == by;
  };
  EXPECT_TRUE(is(DataType::kFloat64, ReduceOp::kSum, nccl::kFloat64, nccl::kSum));
  EXPECT_TRUE(is(DataType::kFloat32, ReduceOp::kMean, nccl::kFloat32, nccl::kAverage));
  EXPECT_TRUE(is(DataType::kFloat16, ReduceOp::kMax, nccl::kFloat16, nccl::kMax));
  EXPECT_TRUE(is(DataType::kBFloat16, ReduceOp::kMin, nccl::kBfloat16, nccl::kMin));
  EXPECT_TRUE(is(DataType::kInt64, ReduceOp::kProduct, nccl::kInt64, nccl::kProduct));
  EXPECT_TRUE(is(DataType::kInt32, ReduceOp::kSum, nccl::kInt32, nccl::kSum));
  EXPECT_TRUE(is(DataType::kInt8, ReduceOp::kSum, nccl::kInt8, nccl::kSum));
  EXPECT_TRUE(is(DataType::kUint8, ReduceOp::kSum, nccl::kUint8, nccl::kSum));
  EXPECT_TRUE(is(DataType::kBool, ReduceOp::kSum, nccl::kUint8, nccl::kMax));
  EXPECT_TRUE(is(DataType::kBool, ReduceOp::kProduct, nccl::kUint8, nccl::kMin));
  EXPECT_TRUE(absl::IsInvalidArgument(ToNccl(DataType::kBool, ReduceOp::kMean).status()));
  EXPECT_TRUE(absl::IsUnimplemented(ToNccl(DataType::kInt16, ReduceOp::kSum).status()));
  EXPECT_TRUE(absl::IsUnimplemented(ToNccl(DataType::kFloat32, ReduceOp::kAdasum).status()));
}

TEST(NcclLibraryTest, AnAbsentLibraryIsSaidWithThePlaceWhereItWasLookedFor) {
  const auto absent = NcclLibrary::LoadFrom("/nowhere/libnccl.so.2");
  EXPECT_TRUE(absl::IsFailedPrecondition(absent.status()));
  EXPECT_NE(absent.status().message().find("NCCL is not there: /nowhere/libnccl.so.2"),
            absl::string_view::npos)
      << absent.status();
}

TEST(NcclLibraryTest, ALibraryThatIsNotNcclIsRefused) {
  const auto other = NcclLibrary::LoadFrom("libm.so.6");
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status()));
  EXPECT_NE(other.status().message().find("it has no ncclGetVersion"), absl::string_view::npos);
}

TEST(NcclLibraryTest, TheVariableAloneCountsElseTheSystemElseLibtorchsNeighbour) {
  EXPECT_EQ(NcclCandidates("/my/nccl.so", "/x/torch/lib/libc10.so"),
            std::vector<std::string>{"/my/nccl.so"});
  EXPECT_EQ(NcclCandidates("", ""), std::vector<std::string>{"libnccl.so.2"});
  EXPECT_EQ(NcclCandidates("", "/x/torch/lib/libc10.so"),
            (std::vector<std::string>{"libnccl.so.2", "/x/torch/lib/libnccl.so.2",
                                      "/x/nvidia/nccl/lib/libnccl.so.2"}));
}

TEST(NcclLibraryTest, TheRealLibraryHasWhatIsUsed) {
  const auto real = NcclLibrary::Load();
  if (!real.ok()) GTEST_SKIP() << "no NCCL on this machine (TUTTI_NCCL_LIBRARY names one)";
  EXPECT_GE((*real)->version(), 21400);
}

}  // namespace
}  // namespace tutti::comm
