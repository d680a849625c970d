// A distribution that only the tests' program has (tests/jobs/test_another_distribution.py): as
// "pytorch", with ranks that count from the last to the first. Beside it, MPI's: the lists of this
// program, in the place of spec/distribution/distributions.cc and
// platform/launch/distribution/rank_drivers.cc.
#include "absl/strings/str_cat.h"
#include "platform/launch/environment/rank_driver.h"
#include "spec/types/job_distribution.h"

namespace tutti {
namespace {

constexpr std::pair<absl::string_view, absl::string_view> kVariables[] = {
    {"REVERSED_RANK", "its rank from the last to the first"}};

void SetContract(const spec::LaunchPlan& plan, int rank, launch::Variables& variables) {
  variables["REVERSED_RANK"] = absl::StrCat(plan.WorldSize() - 1 - rank);
}

std::string Command(const spec::LaunchPlan&, const launch::NodeFacts&, const std::string& command) {
  return absl::StrCat("echo reversed; ", command);
}

constexpr spec::DistributionDriver kReversed = {.type = "reversed",
                                                .other_type = "backwards",
                                                .count_key = "ranks_of_a_node",
                                                .program = "sh",
                                                .variables = kVariables};
constexpr launch::RankDriver kReversedRanks = {
    .type = "reversed", .set_contract = SetContract, .command = Command};

}  // namespace

namespace spec {

extern const DistributionDriver kMpi, kNoDistribution;

std::span<const DistributionDriver* const> Distributions() {
  static constexpr const DistributionDriver* kAll[] = {&kMpi, &kReversed, &kNoDistribution};
  return kAll;
}

}  // namespace spec

namespace launch {

std::span<const RankDriver* const> RankDrivers() {
  static constexpr const RankDriver* kAll[] = {&kReversedRanks};
  return kAll;
}

}  // namespace launch
}  // namespace tutti
