#include "platform/service/admission/remote_input_check.h"

#include <atomic>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/threads/at_once.h"
#include "platform/http/client/fetch.h"
#include "spec/data/remote_input.h"

namespace tutti::service {
namespace {

constexpr size_t kMostAtOnce = 16;

using Answers = std::map<std::string, absl::Status>;  // by address

void Collect(const spec::JobSpec& job, Answers& answers) {
  for (const auto& [name, input] : job.inputs) {
    if (spec::IsRemote(input)) answers.try_emplace(input.path);
  }
  for (const spec::Step& step : job.steps) Collect(step.job, answers);
}

// Several servers at a time, all by one deadline.
void AskAll(Answers& answers, base::Deadline deadline) {
  static const std::atomic<bool> never = false;
  std::vector<Answers::value_type*> list;
  for (auto& entry : answers) list.push_back(&entry);
  base::ForEachAtOnce(list.size(), kMostAtOnce, [&](size_t i) {
    list[i]->second = http::Examine(list[i]->first, deadline, never).status();
  });
}

struct Findings {
  std::vector<std::string> faults;
  std::vector<std::string>& warnings;
};

void Report(const spec::JobSpec& job, const Answers& answers, Findings& findings) {
  for (const auto& [name, input] : job.inputs) {
    const auto answer = answers.find(input.path);
    if (answer == answers.end() || answer->second.ok()) continue;
    const std::string text =
        absl::StrCat(input.location.file, ":", input.location.line, ": input \"", name,
                     "\": ", spec::RemoteInputFault(input, answer->second));
    if (absl::IsDeadlineExceeded(answer->second)) {
      findings.warnings.push_back(text);
    } else if (absl::IsUnavailable(answer->second) && job.compute != "local" &&
               !job.compute.empty()) {
      findings.warnings.push_back(absl::StrCat(text, "; the nodes of compute \"", job.compute,
                                               "\" may reach it all the same"));
    } else {
      findings.faults.push_back(text);
    }
  }
  for (const spec::Step& step : job.steps) Report(step.job, answers, findings);
}

}  // namespace

absl::Status CheckRemoteInputs(const spec::JobSpec& job, base::Deadline deadline,
                               std::vector<std::string>& warnings) {
  Answers answers;
  Collect(job, answers);
  AskAll(answers, deadline);
  Findings findings{{}, warnings};
  Report(job, answers, findings);
  if (findings.faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(findings.faults, "\n"));
}

}  // namespace tutti::service
