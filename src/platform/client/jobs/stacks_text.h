// Shows what the ranks of a job are doing: ranks that do the same together.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

struct StacksText {
  std::string lines;
  bool has_any = false;  // a rank has said something
};

// Makes lines of `answer`, JSON as docs/formats/rest.md has it of /v1/jobs/{job}/stacks.
absl::StatusOr<StacksText> TextOfStacks(const std::string& answer, bool colour);

// Returns "ranks 0-2,5", "rank 3" of ascending numbers.
std::string RanksText(const std::vector<int>& ranks);

}  // namespace tutti::client
