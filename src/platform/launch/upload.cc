#include "platform/launch/upload.h"

#include <spdlog/spdlog.h>

#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/http/url.h"
#include "platform/launch/node_folders.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

struct Result {
  fs::path file;
  std::string path;  // of the job: "outputs/model/x"
};

void Collect(const fs::path& folder, const std::string& prefix, std::vector<Result>& results) {
  std::error_code error;
  auto entry = fs::recursive_directory_iterator(
      folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    results.push_back(
        {entry->path(),
         absl::StrCat(prefix, "/", entry->path().lexically_relative(folder).string())});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    spdlog::warn("{}: {}", folder.string(), error.message());
  }
}

// The service's own logs have these names.
bool IsReserved(const std::string& path) {
  return absl::StartsWith(path, "logs/rank-") || absl::StartsWith(path, "logs/arrivals");
}

absl::Status Upload(const Result& result, int node, ServiceLink* link, base::Deadline deadline) {
  http::ClientRequest request;
  request.method = "PUT";
  request.target =
      link->Target(node, absl::StrCat("/files?path=", http::PercentEncode(result.path, true)));
  request.content_type = "application/octet-stream";
  request.body_file = result.file;
  request.timeout = absl::Minutes(5);  // the service makes the file durable before it answers
  request.stall_timeout = absl::Seconds(60);
  while (true) {
    const auto response = link->Call(request, deadline);
    // The file became shorter while it was read: a process outside of our reach still writes it.
    if (!absl::IsDataLoss(response.status()) || deadline.Expired()) return response.status();
    link->PauseAfterFailure();
  }
}

}  // namespace

absl::Status UploadOutputs(const spec::LaunchPlan& plan, ServiceLink* link,
                           base::Deadline deadline) {
  const NodeFolders folders(plan.directory);
  std::vector<Result> results;
  Collect(folders.work_outputs(), "outputs", results);
  Collect(folders.work_logs(), "logs", results);
  std::erase_if(results, [](const Result& result) { return IsReserved(result.path); });
  for (const auto& [name, output] : plan.outputs) {
    Collect(folders.outputs() / name, absl::StrCat("outputs/", name), results);
  }
  absl::Status first;
  for (const Result& result : results) {
    const absl::Status status = Upload(result, plan.node_index, link, deadline);
    if (absl::IsAborted(status)) return status;
    first.Update(base::Annotate(status, absl::StrCat("sending ", result.path)));
  }
  return first;
}

}  // namespace tutti::launch
