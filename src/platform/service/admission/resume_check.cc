#include "platform/service/admission/resume_check.h"

#include <filesystem>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/store/store.h"
#include "spec/types/enum_names.h"

namespace tutti::service {
namespace {

// MLflow's stores are not taken over (launch/outputs/resumed_files.h).
bool HasOutputs(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder / "outputs", error);
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error)) {
    if (!absl::StartsWith(entry->path().filename().native(), "mlruns")) return true;
  }
  return false;
}

absl::Status CheckOneToResume(const std::string& id, SharedState& state) {
  const auto found = state.store->GetJob(id);
  if (absl::IsNotFound(found.status())) {
    return absl::NotFoundError(absl::StrCat("there is no job \"", id.substr(0, 200),
                                            "\" here; tutti job list shows those that there are"));
  }
  TUTTI_RETURN_IF_ERROR(found.status());
  const spec::JobKind kind = found->job.spec.kind;
  if (kind != spec::JobKind::kCommand) {
    const bool is_pipeline = kind == spec::JobKind::kPipeline;
    return absl::InvalidArgumentError(absl::StrCat(
        "job ", id, " is a ", spec::Name(kind), ": resume from one of its ",
        is_pipeline ? "steps, as " : "trials, as ", id, is_pipeline ? ".STEP" : ".trial-1"));
  }
  if (!store::IsEnd(found->last.state)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", id, " is ", absl::AsciiStrToLower(store::Name(found->last.state)),
        ": cancel it (tutti job cancel ", id, ") or wait for its end (tutti job wait ", id, ")"));
  }
  const std::filesystem::path folder = state.files.FolderOf(id);
  TUTTI_RETURN_IF_ERROR(state.folders.Check(folder));
  if (HasOutputs(folder)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "job ", id, " has no outputs to go on from: it left none, or the site's retention has ",
      "removed them; submit the job without resume, and it begins anew"));
}

}  // namespace

void CheckResume(const spec::JobSpec& job, SharedState& state, base::Faults& faults) {
  for (const spec::Step& step : job.steps) CheckResume(step.job, state, faults);
  if (job.resume.empty()) return;
  const absl::Status status = CheckOneToResume(job.resume, state);
  if (status.ok()) return;
  faults.Add(absl::InvalidArgumentError(absl::StrCat(
      job.resume_location.file, ":", job.resume_location.line, ": resume: ", status.message())));
}

}  // namespace tutti::service
