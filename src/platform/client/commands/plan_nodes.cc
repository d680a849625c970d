#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/jobs/choose_job.h"

namespace tutti::client {
namespace {

constexpr char kPlanProgram[] = "tutti-bench";

// Returns where the one word is that is no option and no option's value; the number of words if
// there is none. All options of a plan but those for help have a value.
size_t PlaceOfWhat(const std::vector<std::string>& words) {
  size_t at = 0;
  while (at < words.size() && absl::StartsWith(words[at], "-")) {
    if (words[at] == "-h" || words[at] == "--help") return words.size();
    at += absl::StrContains(words[at], '=') ? 1 : 2;
  }
  return std::min(at, words.size());
}

// Whether the word is for the program alone.
bool IsFile(const std::string& word) {
  std::error_code error;
  return absl::StrContains(word, '/') || absl::EndsWith(word, ".yml") ||
         absl::EndsWith(word, ".yaml") || absl::EndsWith(word, ".json") ||
         absl::EndsWith(word, ".jsonl") || std::filesystem::exists(word, error);
}

// The lines of the lowest rank that has any: tutti-train's rank 0 tells of all.
absl::StatusOr<std::string> MetricLines(ServiceClient& service, const std::string& id) {
  std::map<int, std::string> lines;
  TUTTI_RETURN_IF_ERROR(service.Follow(
      id, /*cursor=*/"", /*follow=*/false, /*reports=*/true,
      [&](absl::string_view text) -> absl::Status {
        if (text.empty()) return absl::OkStatus();
        TUTTI_ASSIGN_OR_RETURN(const std::optional<FollowLine> line, ParseFollowLine(text));
        const bool is_metric = line && line->kind == FollowLine::Kind::kOutput &&
                               line->stream == "metrics" && !line->partial;
        if (is_metric) absl::StrAppend(&lines[line->rank], line->text, "\n");
        return absl::OkStatus();
      }));
  if (!lines.empty()) return lines.begin()->second;
  return absl::InvalidArgumentError(
      absl::StrCat("job ", id,
                   " has no metrics, by which a plan is made: have it write images_per_second to "
                   "TUTTI_METRICS_FILE (docs/formats/metrics.md), or plan a recipe"));
}

absl::Status CheckIsOfOneNode(ServiceClient& service, const std::string& id) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Job(id));
  TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(text));
  if (job.node_count <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("job ", id, " has ", job.node_count,
                   " nodes, and a plan is made from what one does: run it with instance_count: 1"));
}

// In memory, so that nothing is left behind by the program that takes this one's place.
absl::StatusOr<base::UniqueFd> FileOf(const std::string& text) {
  base::UniqueFd fd(::memfd_create("metrics", 0));
  if (fd.get() < 0) return base::ErrnoStatus("memory for a job's metrics");
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(fd.get(), text.data() + at, text.size() - at);
    if (written < 0) return base::ErrnoStatus("memory for a job's metrics");
    at += static_cast<size_t>(written);
  }
  return fd;
}

}  // namespace

absl::StatusOr<ExitCode> Plan(Context& context, const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {"plan"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  const size_t what = PlaceOfWhat(words);
  if (what == words.size() || IsFile(words[what])) {
    return RunBeside(context, kPlanProgram, arguments);
  }
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, words[what]));
  TUTTI_RETURN_IF_ERROR(CheckIsOfOneNode(service, id));
  TUTTI_ASSIGN_OR_RETURN(const std::string lines, MetricLines(service, id));
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd file, FileOf(lines));
  arguments[1 + what] = absl::StrCat("/proc/self/fd/", file.get());
  arguments.insert(arguments.end(), {"--name", absl::StrCat("job ", id)});
  return RunBeside(context, kPlanProgram, arguments);
}

}  // namespace tutti::client
