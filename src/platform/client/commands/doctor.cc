#include "base/process/child_process.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/doctor/checks.h"
#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

struct Mark {
  const char* text;
  Tint tint;
};

Mark MarkOf(Check::Outcome outcome) {
  switch (outcome) {
    case Check::Outcome::kOk:
      return {"ok", Tint::kGreen};
    case Check::Outcome::kWarning:
      return {"warning", Tint::kYellow};
    case Check::Outcome::kFailed:
      return {"failed", Tint::kRed};
  }
  return {"", Tint::kNone};
}

void Show(Context& context, const Check& check) {
  const Mark mark = MarkOf(check.outcome);
  const bool colour = context.out_screen.colour;
  context.out << Styled(PadRight(mark.text, 8), mark.tint, colour) << PadRight(check.name, 13)
              << Printable(check.detail) << "\n";
  if (!check.remedy.empty()) {
    context.out << PadRight("", 21) << Styled("fix: ", Tint::kBold, colour) << check.remedy << "\n";
  }
}

}  // namespace

absl::StatusOr<ExitCode> RunDoctor(Context& context, Format format) {
  DoctorSubject subject;
  subject.connect = context.connect;
  subject.version = context.version;
  subject.home = context.home;
  subject.program_folder = context.program_folder;
  subject.variables = base::CurrentEnvironment();
  const std::vector<Check> checks = AllChecks(subject);
  if (format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, ChecksAsJson(checks), format));
  } else {
    for (const Check& check : checks) Show(context, check);
  }
  return NoneFailed(checks) ? ExitCode::kOk : ExitCode::kJobFailed;
}

}  // namespace tutti::client
