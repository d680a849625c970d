#include "platform/engine/slurm/program_snapshot.h"

#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/command.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

using Parts = std::map<std::string, fs::path>;  // by the name in the archive

// The C library and its loader, which belong together, and what is part of them.
bool IsTheSystems(const std::string& library) {
  static constexpr std::array<absl::string_view, 8> kNames = {
      "ld-",       "libc.so.",       "libm.so.",      "libdl.so.",
      "librt.so.", "libpthread.so.", "libresolv.so.", "libmvec.so."};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](absl::string_view name) { return absl::StartsWith(library, name); });
}

absl::StatusOr<Parts> PartsOfThisProgram() {
  std::error_code error;
  Parts parts = {{"tutti", fs::read_symlink("/proc/self/exe", error)}};
  if (error) return base::ErrnoStatus("read /proc/self/exe", error.value());
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* into) {
        // The program itself has no name, the kernel's library no file.
        const fs::path file = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        const std::string name = file.filename().native();
        if (!file.is_absolute() || IsTheSystems(name)) return 0;
        (*static_cast<Parts*>(into))[absl::StrCat("lib/", name)] = file;
        return 0;
      },
      &parts);
  return parts;
}

std::string KeyOf(const Parts& parts) {
  std::string key;
  for (const auto& [name, file] : parts) {
    struct stat info = {};
    ::stat(file.c_str(), &info);
    absl::StrAppend(&key, file.native(), " ", info.st_ino, " ", info.st_size, " ",
                    info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec, "\n");
  }
  return base::Hex(base::Sha256Of(key));
}

// By links, which tar follows: equal files give equal bytes.
absl::Status Pack(const Parts& parts, const fs::path& archive) {
  const base::TemporaryDirectory folder("tutti-program");
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder.path() / "lib"));
  for (const auto& [name, file] : parts) {
    std::error_code error;
    fs::create_symlink(file, folder.path() / name, error);
    if (error) return base::ErrnoStatus(absl::StrCat("link ", name), error.value());
  }
  base::ChildOptions options;
  options.arguments = {"tar",
                       "--create",
                       "--gzip",
                       "--dereference",
                       "--sort=name",
                       "--mtime=@0",
                       "--owner=0",
                       "--group=0",
                       "--numeric-owner",
                       "--mode=u=rwx,go=rx",
                       "--file",
                       archive.native(),
                       "tutti",
                       "lib"};
  options.environment = base::CurrentEnvironment();
  options.directory = folder.path();
  TUTTI_ASSIGN_OR_RETURN(
      const base::CommandResult result,
      base::RunCommand(std::move(options), "", base::Deadline::After(absl::Minutes(5))));
  if (result.exit.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("tar: ", result.err));
}

}  // namespace

absl::StatusOr<std::string> PackThisProgram(const fs::path& snapshots) {
  TUTTI_ASSIGN_OR_RETURN(const Parts parts, PartsOfThisProgram());
  const auto file_of = [&](const std::string& hex) { return snapshots / ("sha256-" + hex); };
  // Which archive came of these files, by their sizes and times.
  const fs::path noted = snapshots / ("program-" + KeyOf(parts));
  std::error_code error;
  if (const auto hex = base::ReadFile(noted, 64); hex.ok() && fs::exists(file_of(*hex), error)) {
    return absl::StrCat("sha256:", *hex);
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(snapshots));
  const fs::path packed = noted.native() + ".tar.gz";
  TUTTI_RETURN_IF_ERROR(Pack(parts, packed));
  TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest digest, base::Sha256OfFile(packed));
  const std::string hex = base::Hex(digest);
  fs::rename(packed, file_of(hex), error);
  if (error) return base::ErrnoStatus(file_of(hex).native(), error.value());
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(noted, hex));
  return absl::StrCat("sha256:", hex);
}

}  // namespace tutti::engine
