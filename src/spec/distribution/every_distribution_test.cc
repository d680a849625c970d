// What holds of every driver; what each one does is told by job_file_test.cc, job_json_test.cc and
// job_test.cc. Covers: job_distribution.cc, distributions.cc, mpi.cc, none.cc, pytorch.cc,
// ray.cc, tensorflow.cc.
#include <gtest/gtest.h>

#include <set>

#include "spec/types/job_distribution.h"

namespace tutti::spec {
namespace {

TEST(Distributions, AreFoundByTheirOwnTypesAndOthersThatTheyTake) {
  std::set<absl::string_view> types;
  for (const DistributionDriver* const driver : Distributions()) {
    EXPECT_TRUE(types.insert(driver->type).second) << driver->type;
    EXPECT_EQ(FindDistribution(driver->type), driver);
    EXPECT_EQ(&DriverOf({.type = std::string(driver->type)}), driver);
    if (driver->other_type.empty()) continue;
    EXPECT_TRUE(types.insert(driver->other_type).second) << driver->other_type;
    EXPECT_EQ(FindDistribution(driver->other_type), driver);
  }
  EXPECT_EQ(FindDistribution(""), nullptr);
  EXPECT_EQ(FindDistribution("slurm"), nullptr);
}

TEST(Distributions, OnlyTheLastIsThatOfJobsThatNameNone) {
  for (const DistributionDriver* const driver : Distributions()) {
    EXPECT_EQ(driver->has_ranks, driver != Distributions().back()) << driver->type;
  }
  EXPECT_EQ(&DriverOf({}), Distributions().back());
}

TEST(Distributions, LeaveAProcessBesideThoseThatServe) {
  for (const DistributionDriver* const driver : Distributions()) {
    for (const int nodes : {1, 2, 5}) {
      Distribution distribution{.type = std::string(driver->type)};
      if (driver->counts_all) distribution.worker_count = nodes;
      EXPECT_EQ(WorldSizeOf(distribution, nodes), nodes) << driver->type;
      const int servers = ServerCountOf(distribution, nodes);
      EXPECT_GE(servers, 0) << driver->type;
      EXPECT_LT(servers, nodes) << driver->type;
      EXPECT_TRUE(servers == 0 || !driver->server_words.chief.empty()) << driver->type;
      const auto port = StartPortOf(distribution, nodes);
      EXPECT_TRUE(!port || port->usual > 0) << driver->type;
    }
  }
}

}  // namespace
}  // namespace tutti::spec
