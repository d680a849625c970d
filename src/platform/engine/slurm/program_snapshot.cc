#include "platform/engine/slurm/program_snapshot.h"

#include <sys/stat.h>

#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/packed_program.h"
#include "base/status.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

std::string KeyOf(const base::ProgramParts& parts) {
  std::string key;
  for (const auto& [name, file] : parts) {
    struct stat info = {};
    ::stat(file.c_str(), &info);
    absl::StrAppend(&key, file.native(), " ", info.st_ino, " ", info.st_size, " ",
                    info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, "\n");
  }
  return base::Hex(base::Sha256Of(key));
}

// `note` begins the name of the file that says what came of the parts.
absl::StatusOr<std::string> Pack(const base::ProgramParts& parts, const std::string& note,
                                 const fs::path& snapshots) {
  const auto file_of = [&](const std::string& hex) { return snapshots / ("sha256-" + hex); };
  // Which archive came of these files, by their sizes and times.
  const fs::path noted = snapshots / (note + KeyOf(parts));
  std::error_code error;
  if (const auto hex = base::ReadFile(noted, 64); hex.ok() && fs::exists(file_of(*hex), error)) {
    base::Touch(noted);  // the newest is this program, which retention keeps
    return absl::StrCat("sha256:", *hex);
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(snapshots));
  const fs::path packed = noted.native() + ".tar.gz";
  TUTTI_RETURN_IF_ERROR(base::PackProgram(parts, packed));
  TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest digest, base::Sha256OfFile(packed));
  const std::string hex = base::Hex(digest);
  fs::rename(packed, file_of(hex), error);
  if (error) return base::ErrnoStatus(file_of(hex).native(), error.value());
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(noted, hex));
  return absl::StrCat("sha256:", hex);
}

}  // namespace

absl::StatusOr<std::string> PackThisProgram(const fs::path& snapshots) {
  TUTTI_ASSIGN_OR_RETURN(const base::ProgramParts parts, base::PartsOfThisProgram("tutti"));
  return Pack(parts, "program-", snapshots);
}

absl::StatusOr<std::string> PackProgramOf(const std::string& name, const fs::path& program,
                                          const fs::path& snapshots) {
  TUTTI_ASSIGN_OR_RETURN(const base::ProgramParts parts, base::PartsOfProgram(name, program));
  return Pack(parts, absl::StrCat("program-", name, "-"), snapshots);
}

}  // namespace tutti::engine
