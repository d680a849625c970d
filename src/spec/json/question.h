// What the service asks a launcher while its job runs, in the answer to the launcher's own call
// (docs/formats/launcher-calls.md): only launchers call.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::spec {

// The kind of a question for the stacks of ranks (rank_stacks.h).
inline constexpr char kStacksQuestion[] = "stacks";
// The longest answer for one rank, in bytes.
inline constexpr size_t kLongestAnswer = 4 << 20;

struct Question {
  std::string id;
  std::string kind;        // a launcher says so of one that it does not know
  absl::Duration time;     // that is left for the answer
  std::vector<int> ranks;  // of the launcher's node, that have not been answered for
  bool native = false;     // of stacks: also what a process has to be stopped for
};

struct Questions {
  std::vector<Question> questions;  // that are open
  absl::Duration pause;             // before the launcher's next call
};

std::string ToJson(const Questions& questions);
// InvalidArgument if it is no such document; fields of later versions are passed over, and
// questions that are none.
absl::StatusOr<Questions> QuestionsFromJson(absl::string_view text);

}  // namespace tutti::spec
