#include "platform/launch/ranks/starter_program.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "platform/launch/diagnosis/last_error.h"

namespace tutti::launch {
namespace {

// What the small program in a rank's place (launch-rank) prints is why it did not start the rank;
// mpirun says no more than that it ended.
std::string ErrorOfRankPrograms(const std::string& printed) {
  std::string last;
  for (const absl::string_view line : absl::StrSplit(printed, '\n')) {
    if (absl::StartsWith(line, "tutti: ")) last = std::string(line.substr(0, 300));
  }
  return last;
}

// Leaves out what Open MPI's programs tell on each node of a signal that they hand on: it is no
// error.
std::string WithoutNotices(const std::string& printed) {
  std::vector<absl::string_view> lines = absl::StrSplit(printed, '\n');
  const auto is_notice = [](absl::string_view line) {
    return absl::StrContains(line, "Forwarding signal ");
  };
  lines.erase(std::remove_if(lines.begin(), lines.end(), is_notice), lines.end());
  return absl::StrJoin(lines, "\n");
}

}  // namespace

absl::Status StarterProgram::Start(std::vector<std::string> arguments, Variables environment) {
  TUTTI_ASSIGN_OR_RETURN(output_, OutputPipe::Open(spool_));
  base::ChildOptions options;
  options.arguments = std::move(arguments);
  options.environment = std::move(environment);
  options.directory = directory_;
  options.stdout_fd = options.stderr_fd = output_->write_fd();
  options.die_with_parent = true;
  options.before_exec = [this] { return limit_.Enter(); };
  TUTTI_ASSIGN_OR_RETURN(child_, base::ChildProcess::Start(options));
  output_->CloseWriteEnd();
  return absl::OkStatus();
}

StarterProgram::End StarterProgram::Reap() {
  const auto status = child_->Wait(base::Deadline::After(absl::Seconds(1)));
  child_.reset();
  output_->ReadLast(1 << 20);
  End end{.ok = status.ok() && status->ok(),
          .told = status.ok() && status->signal == SIGTERM,
          .status = status.ok() ? status->ToString()
                                : absl::StrCat("a status that could not be read: ",
                                               status.status().message()),
          .printed = WithoutNotices(output_->tail())};
  end.said = ErrorOfRankPrograms(end.printed);
  if (end.said.empty()) end.said = LastError(end.printed);
  return end;
}

std::string StarterProgram::ErrorSoFar() const {
  const std::string error = output_ ? LastError(output_->tail()) : "";
  return error.empty() ? "" : absl::StrCat(": ", error);
}

}  // namespace tutti::launch
