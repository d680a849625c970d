#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "base/file.h"
#include "platform/client/doctor/checks.h"

namespace tutti::client {
namespace {

using testing::HasSubstr;
using Outcome = Check::Outcome;

class NetworkChecksTest : public testing::Test {
 protected:
  NetworkChecksTest() { subject_.rdma_devices = folder_.path(); }
  void AddPort() {
    const auto port = folder_.path() / "mlx5_9/ports/1";
    ASSERT_TRUE(base::MakeDirectories(port).ok());
    ASSERT_TRUE(base::WriteFileAtomic(port / "state", "4: ACTIVE\n").ok());
  }
  base::TemporaryDirectory folder_;
  DoctorSubject subject_;
};

TEST_F(NetworkChecksTest, WithoutRdmaNothingIsWrong) {
  EXPECT_EQ(CheckRdma(subject_).outcome, Outcome::kOk);
  EXPECT_THAT(CheckRdma(subject_).detail, HasSubstr("over TCP"));
}

TEST_F(NetworkChecksTest, RdmaWithoutUcxIsAWarning) {
  AddPort();
  subject_.ucx = "libnone.so.0";
  const Check check = CheckRdma(subject_);
  EXPECT_EQ(check.outcome, Outcome::kWarning);
  EXPECT_THAT(check.detail, HasSubstr("mlx5_9 port 1; not used, since UCX"));
  EXPECT_THAT(check.remedy, HasSubstr("libucx0"));
}

TEST_F(NetworkChecksTest, RdmaNeedsLockedMemory) {
  AddPort();
  subject_.ucx = "libc.so.6";  // which is there
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  const rlimit little{std::min<rlim_t>(before.rlim_max, 8 << 10), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &little), 0);
  const Check check = CheckRdma(subject_);
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
  EXPECT_EQ(check.outcome, Outcome::kWarning);
  EXPECT_THAT(check.remedy, HasSubstr("ulimit -l"));
}

}  // namespace
}  // namespace tutti::client
