#include "platform/service/admission/place_check.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "platform/service/admission/disk_space.h"
#include "platform/service/admission/store_inquiry.h"
#include "platform/service/stored_logs/log_place.h"
#include "platform/storage/input_request.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/storage_program.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kPatienceWithLists = absl::Seconds(3);  // of who submits
constexpr char kUnnamed[] = "tutti-probe";

// Asks whether an input is there, or whether one may write to the place of an output or of the
// folder for logs.
struct Question {
  const spec::JobSpec* job;
  const std::string* name = nullptr;  // null: of the logs
  const spec::Input* input = nullptr;
  const spec::Output* output = nullptr;                // of the two one
  std::shared_ptr<const spec::Output> logs = nullptr;  // what `output` is then
  absl::Status answer = absl::OkStatus();

  const spec::DataPlace& place() const { return input != nullptr ? *input->place : *output->place; }
};

std::string LineOf(const Question& question) {
  const bool is_input = question.input != nullptr;
  const spec::SourceLocation& at = is_input ? question.input->location : question.output->location;
  const std::string what = question.name == nullptr ? std::string(kLogsKey)
                                                    : absl::StrCat(is_input ? "input" : "output",
                                                                   " \"", *question.name, "\"");
  return absl::StrCat(at.file, ":", at.line, ": ", what, ": ",
                      is_input ? storage::InputFault(*question.input, question.answer)
                               : storage::OutputFault(*question.output, question.answer));
}

bool IsOnCluster(const spec::JobSpec& job) {
  return job.compute != "local" && !job.compute.empty();
}

void Collect(const spec::JobSpec& job, std::vector<Question>& questions) {
  for (const auto& [name, input] : job.inputs) {
    if (input.place) questions.push_back({.job = &job, .name = &name, .input = &input});
  }
  // A pipeline's are written by its steps.
  const bool writes = job.kind != spec::JobKind::kPipeline;
  for (const auto& [name, output] : job.outputs) {
    // A folder of a cluster's nodes need not be here.
    const bool is_away =
        output.place && IsOnCluster(job) && output.place->kind == spec::StoreKind::kLocal;
    if (!writes || !output.place || is_away) continue;
    questions.push_back({.job = &job, .name = &name, .output = &output});
  }
  if (job.logs_place && writes) {
    auto logs = std::make_shared<spec::Output>(LogsOutput(*job.logs_place, spec::kOwnName));
    logs->location = job.logs_location;
    questions.push_back({.job = &job, .output = logs.get(), .logs = logs});
  }
  for (const spec::Step& step : job.steps) Collect(step.job, questions);
}

// Returns what the store is to be asked; nothing if a secret is missing, which CheckSecrets tells.
std::optional<absl::StatusOr<storage::StorageRequest>> RequestOf(const Question& question,
                                                                 const Secrets& secrets) {
  SecretValues values;
  if (const std::string& secret = question.place().secret; !secret.empty()) {
    auto known = secrets.ValuesOf({secret});
    if (!known.ok()) return std::nullopt;
    values = *std::move(known);
  }
  if (question.input != nullptr) {
    return storage::RequestFor(storage::Operation::kStat, *question.input, values);
  }
  // A job that is not named yet is taken for one of that name: a key may be for its folder alone.
  const std::string& own = question.job->name;
  const std::string name = own.empty() ? kUnnamed : own;
  return storage::RequestFor(storage::Operation::kProbe, *question.output, name, values);
}

// A key may be for the file of a uri_file alone, and that the probe does not touch.
bool IsUncertain(const Question& question) {
  return question.output != nullptr && question.output->type == "uri_file" &&
         absl::IsPermissionDenied(question.answer) &&
         storage::SourceOf(question.answer) != storage::FaultSource::kLogin;
}

StoreAnswer AskProgram(const storage::StorageRequest& request, base::Deadline deadline) {
  static const std::atomic<bool> never = false;
  return storage::RunStorage(request, deadline, never, {});
}

// Sets the answers.
void Ask(std::vector<Question>& questions, const Secrets& secrets, base::Deadline deadline) {
  std::vector<storage::StorageRequest> requests;
  std::vector<Question*> asked;
  for (Question& question : questions) {
    auto request = RequestOf(question, secrets);
    if (!request.has_value()) continue;
    question.answer = request->status();
    if (!request->ok()) continue;
    requests.push_back(**std::move(request));
    asked.push_back(&question);
  }
  const std::vector<StoreAnswer> answers = AskStores(requests, deadline, AskProgram);
  for (size_t i = 0; i < asked.size(); ++i) asked[i]->answer = answers[i].status();
}

// A list tells a folder's size, which a look at it does not.
bool IsFetchedHere(const Question& question) {
  const spec::Input* const input = question.input;
  const std::vector<std::string>& mounts = question.job->mounts;
  return input != nullptr && !input->absent && input->mode != "direct" &&
         std::find(mounts.begin(), mounts.end(), *question.name) == mounts.end() &&
         input->place->kind != spec::StoreKind::kLocal &&
         question.job->kind != spec::JobKind::kPipeline && !IsOnCluster(*question.job);
}

// Returns those that are there and whose sizes are known by then.
std::vector<InputInStore> SizesOf(const std::vector<Question>& questions, const Secrets& secrets,
                                  base::Deadline deadline) {
  std::vector<storage::StorageRequest> requests;
  std::vector<const Question*> asked;
  for (const Question& question : questions) {
    if (!IsFetchedHere(question) || !question.answer.ok()) continue;
    auto request = RequestOf(question, secrets);
    if (!request.has_value() || !request->ok()) continue;
    (*request)->operation = storage::Operation::kDigest;  // a list of which the sum alone is told
    (*request)->settled_before = static_cast<int64_t>(storage::kLatestTime);  // and no more
    requests.push_back(**std::move(request));
    asked.push_back(&question);
  }
  const std::vector<StoreAnswer> answers = AskStores(requests, deadline, AskProgram);
  std::vector<InputInStore> sizes;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!answers[i].ok()) continue;
    sizes.push_back({.job = asked[i]->job,
                     .name = asked[i]->name,
                     .input = asked[i]->input,
                     .bytes = static_cast<uint64_t>(answers[i]->bytes)});
  }
  return sizes;
}

}  // namespace

void CheckPlaces(const spec::JobSpec& job, const Secrets& secrets, RemotePaths& paths,
                 const std::filesystem::path& directory, base::Deadline deadline,
                 base::Faults& faults, std::vector<std::string>& warnings) {
  std::vector<Question> questions;
  Collect(job, questions);
  Ask(questions, secrets, deadline);
  const auto sizes = SizesOf(questions, secrets, base::Deadline::After(kPatienceWithLists));
  if (!sizes.empty()) {  // a disk that does not answer is not asked
    const auto visit = paths.Begin({directory.native(), (directory / "data").native()});
    if (visit.ok()) faults.Add(CheckFetchesFit(sizes, directory));
  }
  for (const Question& question : questions) {
    const absl::Status& answer = question.answer;
    if (answer.ok()) continue;
    const std::string text = LineOf(question);
    if (absl::IsDeadlineExceeded(answer)) {
      warnings.push_back(absl::StrCat(text, "; the job is taken all the same"));
    } else if (IsUncertain(question)) {
      warnings.push_back(absl::StrCat(text,
                                      "; the job is taken all the same, as they may be for "
                                      "this one file"));
    } else if (absl::IsUnavailable(answer) && IsOnCluster(*question.job) && !question.logs) {
      warnings.push_back(absl::StrCat(text, "; the nodes of compute \"", question.job->compute,
                                      "\" may reach it all the same"));
    } else {
      faults.Add(absl::InvalidArgumentError(text));
    }
  }
}

}  // namespace tutti::service
