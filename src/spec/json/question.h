// What the service asks a launcher while its job runs, in the answer to the launcher's own call
// (docs/formats/launcher-calls.md): only launchers call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::spec {

// The kinds of questions: for the stacks of ranks (rank_stacks.h), and for the results that a node
// has so far, which its launcher sends before it answers for the node's first rank (SentResults).
inline constexpr char kStacksQuestion[] = "stacks";
inline constexpr char kResultsQuestion[] = "results";
// The longest answer for one rank, in bytes.
inline constexpr size_t kLongestAnswer = 4 << 20;

struct Question {
  std::string id;
  std::string kind;        // a launcher says so of one that it does not know
  absl::Duration time;     // that is left for the answer
  std::vector<int> ranks;  // of the launcher's node, that have not been answered for
  bool native = false;     // of stacks: also what a process has to be stopped for
  std::string name = "";   // of results: only files with this in their name; empty: all
};

struct Questions {
  std::vector<Question> questions;  // that are open
  absl::Duration pause;             // before the launcher's next call
};

// The answer to a question for results: what the node has sent for it.
struct SentResults {
  int64_t files = 0, bytes = 0;  // those that the service already had do not count
  std::string error;             // why some, or all, were not sent; empty: the service has all
  // To a question that names none: the paths of all results that the node has, by PathAsSent; none
  // if they are too many, or not all could be read.
  std::optional<std::vector<std::string>> present = {};
};
// Returns a path, which may be any bytes, for JSON: with percent escapes.
std::string PathAsSent(absl::string_view path);

std::string ToJson(const SentResults& sent);
// InvalidArgument if it is no such document; what is not there is 0 or empty.
absl::StatusOr<SentResults> SentResultsFromJson(absl::string_view text);

std::string ToJson(const Questions& questions);
// InvalidArgument if it is no such document; fields of later versions are passed over, and
// questions that are none.
absl::StatusOr<Questions> QuestionsFromJson(absl::string_view text);

}  // namespace tutti::spec
