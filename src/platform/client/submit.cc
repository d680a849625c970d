#include "platform/client/submit.h"

#include <filesystem>
#include <map>

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

// A code folder on its way: each is packed and sent once, whichever of the jobs take it.
class CodeSender {
 public:
  CodeSender(Service& service, const fs::path& temporary, std::ostream& remarks)
      : service_(service), temporary_(temporary), remarks_(remarks) {}

  // That of the job and of all below it.
  absl::Status SendTree(const spec::JobSpec& job) {
    TUTTI_RETURN_IF_ERROR(SendOne(job));
    for (const spec::Step& step : job.steps) TUTTI_RETURN_IF_ERROR(SendTree(step.job));
    return absl::OkStatus();
  }

  // By the `code` that the jobs name.
  const std::map<std::string, std::string>& snapshots() const { return snapshots_; }

 private:
  absl::Status SendOne(spec::JobSpec job) {
    const std::string named = job.code;
    if (named.empty() || snapshots_.contains(named)) return absl::OkStatus();
    const fs::path folder = temporary_ / absl::StrCat(snapshots_.size());
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
    TUTTI_RETURN_IF_ERROR(FetchCode(job, folder, remarks_));
    TUTTI_ASSIGN_OR_RETURN(snapshots_[named], SendCode(service_, job.code, folder, remarks_));
    return absl::OkStatus();
  }

  Service& service_;
  const fs::path temporary_;
  std::ostream& remarks_;
  std::map<std::string, std::string> snapshots_;
};

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
  CodeSender code(service, temporary.path(), remarks);
  TUTTI_RETURN_IF_ERROR(code.SendTree(job.spec));
  if (job.spec.kind != spec::JobKind::kCommand) {
    return service.CreateJob(
        CreateJobBody(file.path, text, directory.string(), "", code.snapshots()));
  }
  const auto sent = code.snapshots().find(job.spec.code);
  return service.CreateJob(CreateJobBody(file.path, text, directory.string(),
                                         sent == code.snapshots().end() ? "" : sent->second));
}

}  // namespace tutti::client
