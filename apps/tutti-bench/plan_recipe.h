// Reads what a plan is asked of: a recipe of tutti-train, or a job file whose command is one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti {

struct PlanRecipe {
  train::Recipe recipe;
  int ranks_per_node = 1;
  // What of a job's command could not be taken, since its value is known to the service alone:
  // "--data ${{inputs.images}}".
  std::vector<std::string> left_out;
  bool has_model = true;  // false: it is among what was left out
};

// InvalidArgument names file and line, or what of the command is not understood.
absl::StatusOr<PlanRecipe> ReadPlanRecipe(const std::filesystem::path& path);

}  // namespace tutti
