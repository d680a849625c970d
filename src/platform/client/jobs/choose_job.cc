#include "platform/client/jobs/choose_job.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text/closest.h"

namespace tutti::client {

absl::StatusOr<std::string> ChooseJob(absl::string_view name, const std::vector<std::string>& ids) {
  std::vector<std::string> fitting;
  for (const std::string& id : ids) {
    if (id == name) return id;
    if (absl::StartsWith(id, name)) fitting.push_back(id);
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty()) {
    const std::vector<absl::string_view> views(ids.begin(), ids.end());
    return absl::NotFoundError(absl::StrCat("no job is called \"", name, "\"",
                                            base::DidYouMean(name, views),
                                            "; `tutti job list` shows them"));
  }
  const size_t shown = std::min<size_t>(fitting.size(), 5);
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" begins ", fitting.size(), " jobs' names: ",
      absl::StrJoin(fitting.begin(), fitting.begin() + static_cast<ptrdiff_t>(shown), ", "),
      shown < fitting.size() ? ", …" : ""));
}

absl::StatusOr<std::string> ResolveJob(ServiceClient& service, const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("the job's name is empty");
  const auto exact = service.Job(name);
  if (exact.ok()) return name;
  if (!absl::IsNotFound(exact.status()) && !absl::IsInvalidArgument(exact.status())) {
    return exact.status();
  }
  // A child is its parent's name, ".", and its own: "hello-3f.train".
  if (const size_t dot = name.find('.'); dot != std::string::npos && dot > 0) {
    TUTTI_ASSIGN_OR_RETURN(const std::string parent, ResolveJob(service, name.substr(0, dot)));
    const std::string child = parent + name.substr(dot);
    TUTTI_RETURN_IF_ERROR(service.Job(child).status());
    return child;
  }
  const bool is_last = name == "last";
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Jobs("", is_last ? 1 : 1000));
  TUTTI_ASSIGN_OR_RETURN(const JobListView list, Parse<JobListView>(text));
  if (is_last && !list.jobs.empty()) return list.jobs.front().id;
  std::vector<std::string> ids;
  for (const JobView& job : list.jobs) ids.push_back(job.id);
  return ChooseJob(name, ids);
}

}  // namespace tutti::client
