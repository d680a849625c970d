// A rank driver is what a node does for a kind of distribution, beside what it does for all jobs
// (spec/types/job_distribution.h has what the service knows of it). Pure functions of the plan,
// but for the cleaning up.
#pragma once

#include <span>
#include <string>

#include "platform/launch/environment/process_environment.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

// Each function may be null: it does nothing.
struct RankDriver {
  absl::string_view type;  // of spec::Distribution
  // Changes the values that a user, or the job's environment, may replace.
  void (*set_defaults)(const spec::LaunchPlan& plan, Variables& variables) = nullptr;
  // Adds to what no user can replace, of one rank.
  void (*set_contract)(const spec::LaunchPlan& plan, int rank, Variables& variables) = nullptr;
  // Returns what the plan's node runs in place of the job's command.
  std::string (*command)(const spec::LaunchPlan& plan, const NodeFacts& facts,
                         const std::string& command) = nullptr;
  // Removes what the job left on the node.
  void (*clean_up)(const spec::LaunchPlan& plan) = nullptr;
};

// Returns all of them. Kinds of which nothing more is to be done have none.
std::span<const RankDriver* const> RankDrivers();

// Returns the plan's, or one that does nothing.
const RankDriver& RankDriverOf(const spec::LaunchPlan& plan);

}  // namespace tutti::launch
