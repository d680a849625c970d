#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/jobs/job_difference.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

constexpr uint64_t kMostCodeOfADiff = 2ull << 30;  // bytes: as much as a job takes unasked

void ShowPart(Context& context, absl::string_view name, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  context.out << Styled(name, Tint::kBold, context.out_screen.colour) << "\n";
  for (const std::string& line : lines) context.out << "  " << Printable(line) << "\n";
}

// A pipe gets the patch as it is, which programs may apply.
void ShowPatch(Context& context, const std::string& patch) {
  if (patch.empty()) return;
  context.out << Styled("Code", Tint::kBold, context.out_screen.colour) << "\n";
  if (!context.out_screen.is_terminal) {
    context.out << patch;
    return;
  }
  for (const absl::string_view line : absl::StrSplit(patch, '\n')) {
    context.out << Printable(line) << "\n";
  }
}

}  // namespace

absl::StatusOr<ExitCode> JobDiff(Context& context, const JobDiffOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string job, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(const std::string other, options.other.empty()
                                                      ? FormerJob(service, job)
                                                      : ResolveJob(service, options.other));
  TUTTI_ASSIGN_OR_RETURN(const JobDifference difference,
                         CompareJobs(service, other, job, kMostCodeOfADiff));
  context.out << "From " << other << " to " << job << "\n";
  ShowPart(context, "Arguments", difference.arguments);
  ShowPart(context, "Keys", difference.keys);
  ShowPart(context, "Packages", difference.packages);
  ShowPart(context, "Notes", difference.notes);
  ShowPatch(context, difference.patch);
  if (DifferenceLine(difference, job, 0) == "nothing") context.out << "nothing differs\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
