#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/follow/follow.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/summary.h"

namespace tutti::client {
namespace {

// The stream's own lines, with their cursors, for programs.
absl::StatusOr<ExitCode> WriteLines(Context& context, const std::string& id,
                                    const FollowReaderOptions& options, Format format) {
  FollowReader reader(context.connect, id, options);
  while (true) {
    const auto item = reader.Next(base::Deadline::After(absl::Hours(1)));
    if (!item.has_value()) continue;
    if (item->kind == FollowItem::Kind::kFailed) return item->status;
    if (item->kind == FollowItem::Kind::kEnded) return ExitCode::kOk;
    if (item->kind != FollowItem::Kind::kLine) continue;
    if (format == Format::kJson) {
      context.out << item->raw << "\n" << std::flush;
    } else {
      context.out << "---\n";
      TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, item->raw, format));
    }
  }
}

DisplayOptions LookOf(const JobStreamOptions& options) {
  const bool all = options.only_rank < 0 && !options.only_stderr && !options.only_stdout;
  DisplayOptions look;
  look.only_rank = options.only_rank;
  look.only_stderr = options.only_stderr;
  look.only_stdout = options.only_stdout;
  look.prefix = !options.no_prefix;
  // Who asks for a part of the output gets that part and nothing else.
  look.states = all && !options.no_prefix;
  look.metrics = look.states;
  look.progress = !options.no_follow;  // of what is over there is none
  return look;
}

// A rank that the job does not have would be waited for in silence, and so would output that was
// removed be missed.
absl::Status CheckRank(Context& context, ServiceClient& service, const std::string& id, int rank) {
  TUTTI_ASSIGN_OR_RETURN(const std::string json, service.Job(id));
  TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(json));
  for (const std::string& line : RemovedLines(job)) {
    if (absl::StartsWith(line, "logs")) context.err << "removed: " << line << "\n";
  }
  if (rank < job.world_size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("job ", id, " has no rank ", rank, ": its last is ", job.world_size - 1));
}

}  // namespace

absl::StatusOr<ExitCode> JobStream(Context& context, const JobStreamOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_RETURN_IF_ERROR(CheckRank(context, service, id, options.only_rank));
  FollowOptions follow;
  follow.offer_cancel = false;
  follow.reader.cursor = options.since;
  follow.reader.follow = !options.no_follow;
  if (options.format != Format::kTable) {
    follow.reader.reports = true;
    return WriteLines(context, id, follow.reader, options.format);
  }
  LiveText text(context.out, context.out_screen);
  JobDisplay display(&text, LookOf(options));
  SignalInterrupts interrupts;
  TUTTI_ASSIGN_OR_RETURN(const FollowEnd end,
                         FollowJob(context.connect, id, follow, display, interrupts));
  return end.kind == FollowEnd::Kind::kEnded ? ExitCode::kOk : ExitCode::kInterrupted;
}

}  // namespace tutti::client
