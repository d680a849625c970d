#include "platform/service/admission/place_check.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/threads/at_once.h"
#include "platform/storage/input_request.h"
#include "platform/storage/storage_program.h"
#include "spec/types/node_folder.h"

namespace tutti::service {
namespace {

constexpr size_t kMostStoresAtOnce = 8;  // each a process

struct Question {
  const spec::JobSpec* job;
  const std::string* name;
  const spec::Input* input;
  absl::Status answer = absl::OkStatus();
};

std::string LineOf(const Question& question, absl::string_view text) {
  const spec::SourceLocation& at = question.input->location;
  return absl::StrCat(at.file, ":", at.line, ": input \"", *question.name, "\": ", text);
}

bool IsOnCluster(const spec::JobSpec& job) {
  return job.compute != "local" && !job.compute.empty();
}

// Whether its nodes share no folder with this machine: launchers travel there, and nothing beside
// them.
bool HasNodesApart(const spec::JobSpec& job, const spec::Site& site) {
  const auto compute = site.slurm_computes.find(job.compute);
  return compute != site.slurm_computes.end() && spec::NodeFolder(compute->second.folder);
}

void Collect(const spec::JobSpec& job, std::vector<Question>& questions) {
  for (const auto& [name, input] : job.inputs) {
    if (input.place) questions.push_back({&job, &name, &input});
  }
  for (const spec::Step& step : job.steps) Collect(step.job, questions);
}

absl::Status Ask(const spec::Input& input, const Secrets& secrets, base::Deadline deadline) {
  static const std::atomic<bool> never = false;
  SecretValues values;
  if (!input.place->secret.empty()) {
    auto known = secrets.ValuesOf({input.place->secret});
    if (!known.ok()) return absl::OkStatus();
    values = *std::move(known);
  }
  const auto request = storage::RequestFor(storage::Operation::kStat, input, values);
  if (!request.ok()) return request.status();
  return storage::RunStorage(*request, deadline, never, {}).status();
}

}  // namespace

void CheckPlaces(const spec::JobSpec& job, const Secrets& secrets, const spec::Site& site,
                 base::Deadline deadline, base::Faults& faults,
                 std::vector<std::string>& warnings) {
  std::vector<Question> questions;
  Collect(job, questions);
  base::ForEachAtOnce(questions.size(), kMostStoresAtOnce, [&](size_t i) {
    questions[i].answer = Ask(*questions[i].input, secrets, deadline);
  });
  for (const Question& question : questions) {
    if (HasNodesApart(*question.job, site)) {
      faults.Add(absl::InvalidArgumentError(
          LineOf(question,
                 absl::StrCat("the nodes of compute \"", question.job->compute,
                              "\" share no folder with this machine, and what fetches from "
                              "stores does not travel there yet: copy the data here and say "
                              "where (tutti data map), or take a compute with a shared folder"))));
      continue;
    }
    const absl::Status& answer = question.answer;
    if (answer.ok()) continue;
    const std::string text = LineOf(question, storage::InputFault(*question.input, answer));
    if (absl::IsDeadlineExceeded(answer)) {
      warnings.push_back(absl::StrCat(text, "; the job is taken all the same"));
    } else if (absl::IsUnavailable(answer) && IsOnCluster(*question.job)) {
      warnings.push_back(absl::StrCat(text, "; the nodes of compute \"", question.job->compute,
                                      "\" may reach it all the same"));
    } else {
      faults.Add(absl::InvalidArgumentError(text));
    }
  }
}

}  // namespace tutti::service
