// Parses the command line of tutti-train: the recipe's fields as flags, and a file of them.
#pragma once

#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti {

struct ShowAndExit {
  std::string text;  // help, version or the models
};

struct DescribeMachine {};  // and exit

struct ExplainAndExit {
  train::Recipe recipe;
};

// Reads the defaults, then --config's file, then the other flags. InvalidArgument names the flag,
// or the file and line.
using Asked = std::variant<train::Recipe, ShowAndExit, DescribeMachine, ExplainAndExit>;
absl::StatusOr<Asked> ReadCommandLine(int argc, char** argv);

}  // namespace tutti
