#include "platform/service/admission/inputs/remote_input_check.h"

#include <atomic>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/threads/at_once.h"
#include "http/client/fetch.h"
#include "spec/data/remote_input.h"
#include "spec/data/signed_address.h"

namespace tutti::service {
namespace {

constexpr size_t kMostServersAtOnce = 16;

using Answers = std::map<std::string, absl::Status>;  // by address

void Collect(const spec::JobSpec& job, Answers& answers) {
  for (const auto& [name, input] : job.inputs) {
    if (spec::IsRemote(input)) answers.try_emplace(input.path);
  }
  for (const spec::Step& step : job.steps) Collect(step.job, answers);
}

// Several servers at a time, all by one deadline.
void AskAll(Answers& answers, const SecretValues& signatures, base::Deadline deadline) {
  static const std::atomic<bool> never = false;
  std::vector<Answers::value_type*> list;
  for (auto& entry : answers) list.push_back(&entry);
  base::ForEachAtOnce(list.size(), kMostServersAtOnce, [&](size_t i) {
    const auto address = spec::WithSignature(list[i]->first, signatures);
    // Why a signature cannot be used is told by CheckSecrets.
    if (address.ok()) list[i]->second = http::Examine(*address, deadline, never).status();
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

absl::Status CheckRemoteInputs(const spec::JobSpec& job, const SecretValues& signatures,
                               base::Deadline deadline, std::vector<std::string>& warnings) {
  Answers answers;
  Collect(job, answers);
  AskAll(answers, signatures, deadline);
  Findings findings{{}, warnings};
  Report(job, answers, findings);
  if (findings.faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(findings.faults, "\n"));
}

}  // namespace tutti::service
