#include <functional>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

constexpr int kJobsPerPage = 1000;  // jobs that are looked at in one call, where not all are wanted

std::string Ran(const JobView& job, absl::Time now) {
  if (job.started.empty()) return "";
  return Clock((job.ended.empty() ? now : ParseTime(job.ended)) - ParseTime(job.started));
}

bool IsFiltered(const JobListOptions& options) {
  return !options.experiment.empty() || !options.name.empty() ||
         options.age != absl::InfiniteDuration();
}

// Returns whether the options ask for the job, as far as the service has not looked at that.
bool Wants(const JobListOptions& options, const JobView& job, absl::Time now) {
  if (!options.experiment.empty() && job.experiment_name != options.experiment) return false;
  if (now - ParseTime(job.created) > options.age) return false;
  return absl::StrContains(job.id, options.name) ||
         absl::StrContains(job.display_name, options.name);
}

using Ask = std::function<absl::StatusOr<std::string>(int limit, int64_t before)>;

// The jobs that are wanted, and the same as the service gave them.
struct WantedJobs {
  std::vector<JobView> jobs;
  nlohmann::ordered_json documents = nlohmann::ordered_json::array();
};

// Asks for pages of jobs until so many that are wanted have come.
absl::StatusOr<WantedJobs> FindJobs(const JobListOptions& options, const Ask& ask) {
  const absl::Time now = absl::Now();
  const int page = IsFiltered(options) ? kJobsPerPage : options.limit;
  WantedJobs wanted;
  for (int64_t before = 0;;) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, ask(page, before));
    TUTTI_ASSIGN_OR_RETURN(const JobListView list, Parse<JobListView>(text));
    const std::vector<JobView>& jobs = list.jobs;
    const auto document = nlohmann::ordered_json::parse(text);
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (!Wants(options, jobs[i], now)) continue;
      wanted.jobs.push_back(jobs[i]);
      wanted.documents.push_back(document["jobs"][i]);
      if (std::ssize(wanted.jobs) == options.limit) return wanted;
    }
    const bool is_last =
        std::ssize(jobs) < page || now - ParseTime(jobs.back().created) > options.age;
    if (is_last) return wanted;
    before = jobs.back().sequence;
  }
}

}  // namespace

absl::StatusOr<ExitCode> JobList(Context& context, const JobListOptions& options) {
  ServiceClient service(context.connect());
  const bool in_table = options.format == Format::kTable;
  TUTTI_ASSIGN_OR_RETURN(WantedJobs wanted, FindJobs(options, [&](int limit, int64_t before) {
                           return in_table ? service.Summaries(options.state, limit, before)
                                           : service.Jobs(options.state, limit, before);
                         }));
  if (!in_table) {
    const std::string text = nlohmann::ordered_json{{"jobs", std::move(wanted.documents)}}.dump();
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  const std::vector<JobView>& jobs = wanted.jobs;
  if (jobs.empty()) {
    context.err << "no jobs" << (IsFiltered(options) ? " like that" : "")
                << "; `tutti run job.yml` makes one\n";
    return ExitCode::kOk;
  }
  Table table({{"NAME"},
               {"STATE"},
               {"NODES", Table::Align::kRight, false, 4},
               {"AGE", Table::Align::kRight, false, 2},
               {"RAN", Table::Align::kRight, false, 3},
               {"COMMAND", Table::Align::kLeft, true, 5},
               {"REASON", Table::Align::kLeft, true, 1}});
  const absl::Time now = absl::Now();
  for (const JobView& job : jobs) {
    table.Add({{job.id},
               {job.state, TintOfState(job.state)},
               {job.node_count == 0 ? "" : absl::StrCat(job.node_count)},  // a pipeline's jobs have
               {Age(now - ParseTime(job.created))},
               {Ran(job, now)},
               {job.command},
               {job.reason.substr(0, job.reason.find('\n'))}});
  }
  table.DropEmpty();
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  if (static_cast<int>(jobs.size()) == options.limit) {
    context.err << "the newest " << options.limit << "; --limit N shows more\n";
  }
  return ExitCode::kOk;
}

}  // namespace tutti::client
