#include "platform/client/jobs/job_parts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::client {
namespace {

constexpr size_t kMostAsked = 50;  // children

void AddParts(const std::vector<ChildView>& children, bool trials, const std::string& folder,
              std::vector<JobPart>& parts) {
  for (const ChildView& child : children) {
    if (child.id.empty()) continue;
    const std::string own = absl::StrCat(folder, trials ? "trials/" : "steps/", child.step);
    parts.push_back({child.id, own, child.state == "Completed"});
    AddParts(child.children, child.type == "sweep", own + "/", parts);
  }
}

// Not all trials of a sweep may be listed.
std::string FailedAmong(const std::vector<ChildView>& children,
                        const std::optional<TrialsView>& trials) {
  for (const ChildView& child : !trials || trials->next.empty() ? children : trials->failed) {
    if (child.state != "Failed") continue;
    const std::string own = FailedAmong(child.children, child.trials);
    return own.empty() ? child.id : own;
  }
  return "";
}

absl::StatusOr<std::vector<FileView>> FilesOf(ServiceClient& service, const std::string& job) {
  const auto text = service.Files(job);
  if (!text.ok()) return text.status();
  TUTTI_ASSIGN_OR_RETURN(FilesView view, Parse<FilesView>(*text));
  return std::move(view.files);
}

bool HasAny(ServiceClient& service, const std::string& job) {
  const auto files = FilesOf(service, job);
  return !files.ok() || !files->empty();
}

bool HasOutputs(ServiceClient& service, const std::string& job) {
  const auto files = FilesOf(service, job);
  return !files.ok() || std::any_of(files->begin(), files->end(), [](const FileView& file) {
    return absl::StartsWith(file.path, "outputs/");
  });
}

}  // namespace

std::vector<JobPart> PartsOf(const JobView& job) {
  std::vector<JobPart> parts = {{job.id, ""}};
  AddParts(job.children, job.type == "sweep", "", parts);
  return parts;
}

KeptFiles KeptFilesOf(ServiceClient& service, const JobView& job) {
  const auto files = FilesOf(service, job.id);
  if (!files.ok()) return {true, true, true, true, true};
  KeptFiles kept;
  for (const FileView& file : *files) {
    kept.outputs |= absl::StartsWith(file.path, "outputs/");
    kept.logs |= absl::StartsWith(file.path, "logs/");
  }
  std::vector<JobPart> parts = PartsOf(job);
  parts.erase(parts.begin());
  if (parts.size() > kMostAsked) parts.resize(kMostAsked);
  kept.of_children = std::any_of(parts.begin(), parts.end(),
                                 [&](const JobPart& part) { return HasAny(service, part.job); });
  const std::string failed = FailedJob(job);
  kept.of_failed = !failed.empty() && HasAny(service, failed);
  // Asked only where it is what there is to offer.
  kept.of_completed =
      !failed.empty() && std::any_of(parts.begin(), parts.end(), [&](const JobPart& part) {
        return part.completed && HasOutputs(service, part.job);
      });
  return kept;
}

std::string FailedJob(const JobView& job) { return FailedAmong(job.children, job.trials); }

}  // namespace tutti::client
