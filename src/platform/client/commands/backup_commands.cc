#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "platform/backup/backup.h"
#include "platform/backup/restore.h"
#include "platform/client/commands/commands.h"
#include "platform/client/text/amounts.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

std::string JobsOf(int count) {
  return absl::StrCat(WithCommas(count), count == 1 ? " job" : " jobs");
}

// Says what became of jobs that had not ended; "" if all had.
std::string NoteOf(const backup::UnendedJobs& unended) {
  std::string note;
  if (unended.failed > 0) {
    absl::StrAppend(&note, JobsOf(unended.failed), " that had begun: Failed, as lost. ");
  }
  if (unended.canceled > 0) {
    absl::StrAppend(&note, JobsOf(unended.canceled),
                    " that waited: Canceled, since the other service may have begun them. ");
  }
  if (unended.kept > 0) absl::StrAppend(&note, JobsOf(unended.kept), " that waited: Queued. ");
  return note;
}

// Says what the backup is worth for secrets.
std::string NoteOfSecrets(const backup::BackupReport& made, bool with_key) {
  if (made.secrets == 0) return "";
  const std::string count = absl::StrCat(made.secrets, made.secrets == 1 ? " secret" : " secrets");
  return with_key ? absl::StrCat("it has ", count, " and their key: whoever reads it knows them\n")
                  : absl::StrCat("it has ", count, " encrypted, without their key (secrets.key): ",
                                 "keep that apart, or a restored service cannot read them\n");
}

std::string NoteOfMissingCode(const backup::BackupReport& made) {
  if (made.missing_code.empty()) return "";
  return absl::StrCat("warning: the code of jobs that have not ended is not there, so that it is ",
                      "not saved: ", absl::StrJoin(made.missing_code, ", "), "\n");
}

}  // namespace

absl::StatusOr<ExitCode> Backup(Context& context, const BackupOptions& options) {
  const fs::path file = fs::absolute(options.file).lexically_normal();
  TUTTI_ASSIGN_OR_RETURN(const backup::BackupReport made,
                         backup::MakeBackup({.home = context.home,
                                             .file = file,
                                             .with_results = options.with_results,
                                             .with_secret_key = options.with_secret_key,
                                             .version = context.version,
                                             .now = absl::Now()}));
  context.out << file.string() << ": " << JobsOf(made.jobs) << " of " << context.home.string()
              << (options.with_results ? " with their results, " : ", ") << Bytes(made.bytes)
              << "; it has the service's token and key: keep it where nobody else reads it\n"
              << NoteOfSecrets(made, options.with_secret_key) << NoteOfMissingCode(made);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> Restore(Context& context, const BackupOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const backup::RestoreReport restored,
                         backup::Restore({.file = fs::absolute(options.file),
                                          .home = context.home,
                                          .keep_queue = options.keep_queue,
                                          .replace = options.replace,
                                          .now = absl::Now()}));
  if (!restored.aside.empty()) {
    context.out << "what was there is now " << restored.aside.string()
                << ", with its results and the key of its secrets (secrets.key)\n";
  }
  context.out << context.home.string() << ": " << JobsOf(restored.jobs) << " of "
              << backup::ShownTime(restored.head.made)
              << (restored.head.with_results ? " with their results. " : ". ")
              << NoteOf(restored.unended) << "Start it: tutti serve\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
