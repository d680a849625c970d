#include "platform/client/submit.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/archive/git_code.h"
#include "platform/client/archive/snapshot.h"
#include "platform/client/job_text.h"
#include "platform/client/text/amounts.h"
#include "platform/client/views.h"
#include "spec/code.h"
#include "spec/job_file.h"
#include "spec/site.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestJobFile = 1 << 20;  // what the service takes

// A file that is missing here is a fault of what the user wrote, not an unknown job.
absl::Status AsInput(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::InvalidArgumentError(status.message()) : status;
}

// A git address becomes a folder below `temporary`, which is checked as any other code is.
absl::Status FetchCode(spec::JobSpec& job, const fs::path& temporary, std::ostream& remarks) {
  if (!spec::IsGitCode(job.code)) return absl::OkStatus();
  remarks << "code: fetching " << job.code << std::endl;
  TUTTI_ASSIGN_OR_RETURN(const spec::GitCode git, spec::ParseGitCode(job.code));
  TUTTI_ASSIGN_OR_RETURN(const fs::path folder, FetchGitCode(git, temporary / "repository"));
  job.code = folder.string();
  return AsInput(spec::CheckPaths(job));
}

// Packs the code and uploads it if the service does not have it; its hash, or "" without code.
absl::StatusOr<std::string> SendCode(Service& service, const std::string& code,
                                     const fs::path& temporary, std::ostream& remarks) {
  if (code.empty()) return "";
  const fs::path archive = temporary / "code.tar.zst";
  const auto snapshot = PackCode(code, archive);
  if (!snapshot.ok()) return AsInput(snapshot.status());
  remarks << "code: " << WithCommas(snapshot->files)
          << (snapshot->files == 1 ? " file, " : " files, ") << Bytes(snapshot->content_bytes);
  TUTTI_ASSIGN_OR_RETURN(const bool known, service.HasSnapshot(snapshot->hash));
  if (known) {
    remarks << ", unchanged since an earlier job" << std::endl;
    return snapshot->hash;
  }
  remarks << "; sending " << Bytes(snapshot->archive_bytes) << std::endl;
  TUTTI_RETURN_IF_ERROR(service.PutSnapshot(snapshot->hash, archive));
  return snapshot->hash;
}

}  // namespace

absl::StatusOr<std::string> SubmitJob(Service& service, const fs::path& home, const JobFile& file,
                                      std::ostream& remarks) {
  const auto content = base::ReadFile(file.path, kLargestJobFile);
  if (!content.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the job file: ", content.status().message()));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ApplySettings(*content, file.settings));
  const fs::path directory = fs::absolute(file.path).parent_path();
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(home));
  TUTTI_ASSIGN_OR_RETURN(spec::ReadResult job, spec::ReadJobFile(text, file.path, directory, site));
  for (const std::string& warning : job.warnings) remarks << "warning: " << warning << std::endl;
  TUTTI_RETURN_IF_ERROR(AsInput(spec::CheckPaths(job.spec)));
  const base::TemporaryDirectory temporary("tutti-code");
  TUTTI_RETURN_IF_ERROR(FetchCode(job.spec, temporary.path(), remarks));
  TUTTI_ASSIGN_OR_RETURN(const std::string snapshot,
                         SendCode(service, job.spec.code, temporary.path(), remarks));
  return service.CreateJob(CreateJobBody(file.path, text, directory.string(), snapshot));
}

}  // namespace tutti::client
