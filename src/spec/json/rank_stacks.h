// RankStacks is what the processes of one rank are doing, as a launcher has seen them: its answer
// to a question of the kind "stacks" (question.h).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

// The stacks of a process, of each thread, as the program that has read them prints them; empty:
// they have not been read.
struct ProcessStacks {
  int pid = 0;
  std::string command;             // its arguments, with spaces between them
  std::string python;              // by py-spy
  std::string native;              // by gdb
  std::string kernel;              // what each thread waits for in the kernel, by /proc
  std::vector<std::string> notes;  // what could not be read, and why
};

struct RankStacks {
  std::string error;                     // why there are none of the whole rank; or empty
  std::vector<ProcessStacks> processes;  // its first one, and all that it has started
};

std::string ToJson(const RankStacks& stacks);
// InvalidArgument if it is no such document; fields of later versions are passed over, and
// processes that are none.
absl::StatusOr<RankStacks> RankStacksFromJson(absl::string_view text);

}  // namespace tutti::spec
