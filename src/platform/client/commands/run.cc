#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/views.h"
#include "platform/client/follow/follow.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/summary.h"
#include "platform/client/submit/submit.h"

namespace tutti::client {
namespace {

void ShowSummary(LiveText& text, const JobView& job, const std::optional<Metric>& result,
                 const KeptFiles& kept) {
  const std::vector<std::string> lines = Summary(job, result, kept);
  const bool colour = text.screen().colour;
  text.Print("");
  for (size_t i = 0; i < lines.size(); ++i) {
    text.Print(Styled(lines[i], i == 0 ? TintOfState(job.state) : Tint::kNone, colour));
  }
  text.Flush();
}

KeyOption ResumeFrom(const std::string& job) {
  return {.option = "--resume", .key = "resume", .value = job, .sbatch = ""};
}

void ShowHowToGoOn(LiveText& text, const std::string& id) {
  text.Print(absl::StrCat("The job goes on. Follow it: tutti job stream ", id,
                          "   cancel it: tutti job cancel ", id));
  text.Flush();
}

absl::StatusOr<ExitCode> Follow(Context& context, const RunOptions& options, LiveText& text,
                                const std::string& id) {
  DisplayOptions look;
  look.only_rank = options.only_rank;
  JobDisplay display(&text, look);
  FollowOptions follow;
  follow.cancel_on_interrupt = options.cancel_on_interrupt;
  SignalInterrupts interrupts;
  const auto end = FollowJob(context.connect, id, follow, display, interrupts);
  if (!end.ok()) {
    ShowHowToGoOn(text, id);
    return end.status();
  }
  if (end->kind != FollowEnd::Kind::kEnded) {
    ShowHowToGoOn(text, id);
    return end->kind == FollowEnd::Kind::kDetached ? ExitCode::kOk : ExitCode::kInterrupted;
  }
  ServiceClient service(context.connect());
  ShowSummary(text, *end->job, display.result(), KeptFilesOf(service, *end->job));
  return ExitCodeOfJobState(end->job->state);
}

// Shows a job that was just taken, and follows it to its end unless that is not wanted.
absl::StatusOr<ExitCode> FollowCreated(Context& context, const RunOptions& options,
                                       const std::string& created) {
  // Data for a program goes to standard output alone; what a person reads then goes beside it.
  const bool table = options.format == Format::kTable;
  std::ostream& shown = table ? context.out : context.err;
  LiveText text(shown, table ? context.out_screen : context.err_screen);
  TUTTI_ASSIGN_OR_RETURN(const JobView job, Parse<JobView>(created));
  if (options.detach) {
    if (!table) {
      TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, created, options.format));
      return ExitCode::kOk;
    }
    context.out << job.id << "\n";
    return ExitCode::kOk;
  }
  const std::string what =
      job.type != "command"
          ? job.type
          : absl::StrCat(job.node_count, job.node_count == 1 ? " node" : " nodes", " · ",
                         job.world_size, job.world_size == 1 ? " process" : " processes");
  text.Print(absl::StrCat("job ", Styled(job.id, Tint::kBold, text.screen().colour), " · ", what));
  text.Flush();
  TUTTI_ASSIGN_OR_RETURN(const ExitCode code, Follow(context, options, text, job.id));
  if (!table) {
    ServiceClient now(context.connect());  // it may have come back at another address
    TUTTI_ASSIGN_OR_RETURN(const std::string ended, now.Job(job.id));
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, ended, options.format));
  }
  return code;
}

}  // namespace

absl::StatusOr<ExitCode> Run(Context& context, const RunOptions& options) {
  std::vector<KeyOption> keys = options.keys;
  if (!options.resume.empty()) {
    ServiceClient service(context.connect());
    TUTTI_ASSIGN_OR_RETURN(const std::string earlier, ResolveJob(service, options.resume));
    keys.push_back(ResumeFrom(earlier));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string created, SubmitJob(context.connect, context.home,
                                                              {options.file, options.settings, keys,
                                                               options.script, options.batch_ai},
                                                              context.err));
  return FollowCreated(context, options, created);
}

absl::StatusOr<ExitCode> Rerun(Context& context, const RunOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.file));
  std::vector<KeyOption> keys = options.keys;
  if (options.resumes) keys.push_back(ResumeFrom(id));
  TUTTI_ASSIGN_OR_RETURN(
      const std::string created,
      RerunJob(context.connect, id, keys, options.settings, options.script.arguments, context.err));
  return FollowCreated(context, options, created);
}

}  // namespace tutti::client
