#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

std::string Ran(const JobView& job, absl::Time now) {
  if (job.started.empty()) return "";
  return Clock((job.ended.empty() ? now : ParseTime(job.ended)) - ParseTime(job.started));
}

}  // namespace

absl::StatusOr<ExitCode> JobList(Context& context, const JobListOptions& options) {
  ServiceClient service(context.connect());
  if (options.format != Format::kTable) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Jobs(options.state, options.limit));
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Summaries(options.state, options.limit));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<JobView> jobs, ParseJobs(text));
  if (jobs.empty()) {
    context.err << "no jobs; `tutti run job.yml` makes one\n";
    return ExitCode::kOk;
  }
  Table table({{"NAME"},
               {"STATE"},
               {"NODES", Table::Align::kRight, false, 4},
               {"AGE", Table::Align::kRight, false, 2},
               {"RAN", Table::Align::kRight, false, 3},
               {"REASON", Table::Align::kLeft, true, 1}});
  const absl::Time now = absl::Now();
  for (const JobView& job : jobs) {
    table.Add({{job.id},
               {job.state, TintOfState(job.state)},
               {job.node_count == 0 ? "" : absl::StrCat(job.node_count)},  // a pipeline's jobs have
               {Age(now - ParseTime(job.created))},
               {Ran(job, now)},
               {job.reason}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  if (static_cast<int>(jobs.size()) == options.limit) {
    context.err << "the newest " << options.limit << "; --limit N shows more\n";
  }
  return ExitCode::kOk;
}

}  // namespace tutti::client
