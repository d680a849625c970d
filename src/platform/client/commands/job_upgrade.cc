#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "spec/file/job_file.h"
#include "spec/file/preview_job.h"
#include "spec/site/site.h"

namespace tutti::client {
namespace {

// What is still wrong with it, by the lines of the new text.
absl::Status CheckAgain(const Context& context, const JobUpgradeOptions& options,
                        const std::string& text) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  const auto folder = std::filesystem::absolute(options.file).parent_path();
  return spec::ReadJobFile(text, options.file, folder, site).status();
}

}  // namespace

absl::StatusOr<ExitCode> JobUpgrade(Context& context, const JobUpgradeOptions& options) {
  const auto text = spec::ReadFromDisk(options.file);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  const auto upgraded = spec::UpgradeJob(*text, options.file);
  if (absl::IsFailedPrecondition(upgraded.status())) {
    return absl::InvalidArgumentError(upgraded.status().message());
  }
  TUTTI_RETURN_IF_ERROR(upgraded.status());
  for (const std::string& note : upgraded->notes) {
    context.err << "not converted: " << note << std::endl;
  }
  const absl::Status left = CheckAgain(context, options, upgraded->text);
  for (const absl::string_view line : absl::StrSplit(left.message(), '\n', absl::SkipEmpty())) {
    context.err << "still to be done: " << line << std::endl;
  }
  if (!options.save) {
    context.out << upgraded->text;
    return ExitCode::kOk;
  }
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(options.file, upgraded->text));
  context.err << options.file << " is of today's schema\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
