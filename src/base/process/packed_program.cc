#include "base/process/packed_program.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/status.h"

namespace tutti::base {
namespace {

namespace fs = std::filesystem;

// The C library and its loader, which belong together, and what is part of them.
bool IsTheSystems(const std::string& library) {
  static constexpr std::array<absl::string_view, 8> kNames = {
      "ld-",       "libc.so.",       "libm.so.",      "libdl.so.",
      "librt.so.", "libpthread.so.", "libresolv.so.", "libmvec.so."};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](absl::string_view name) { return absl::StartsWith(library, name); });
}

}  // namespace

absl::StatusOr<ProgramParts> PartsOfThisProgram(const std::string& name) {
  std::error_code error;
  ProgramParts parts = {{name, fs::read_symlink("/proc/self/exe", error)}};
  if (error) return ErrnoStatus("read /proc/self/exe", error.value());
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* into) {
        // The program itself has no name, the kernel's library no file.
        const fs::path file = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        const std::string name = file.filename().native();
        if (!file.is_absolute() || IsTheSystems(name)) return 0;
        (*static_cast<ProgramParts*>(into))[absl::StrCat("lib/", name)] = file;
        return 0;
      },
      &parts);
  return parts;
}

absl::StatusOr<ProgramParts> PartsOfProgram(const std::string& name, const fs::path& program) {
  ProgramParts parts = {{name, program}};
  TUTTI_ASSIGN_OR_RETURN(const UniqueFd file, Open(program, O_RDONLY));
  std::array<char, 4> magic = {};
  const bool is_elf = ::pread(file.get(), magic.data(), magic.size(), 0) == 4 &&
                      absl::string_view(magic.data(), magic.size()) == "\177ELF";
  if (!is_elf) return parts;
  ChildOptions options;
  options.arguments = {program.native()};
  options.environment = CurrentEnvironment();
  options.environment["LD_TRACE_LOADED_OBJECTS"] = "1";
  options.directory = "/";
  TUTTI_ASSIGN_OR_RETURN(const CommandResult loaded,
                         RunCommand(std::move(options), "", Deadline::After(absl::Minutes(1))));
  // "\tlibz.so.1 => /lib/libz.so.1 (0x00007f…)"; others are the loader and the kernel's library.
  for (const absl::string_view line : absl::StrSplit(loaded.out, '\n')) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits(" => ", 1));
    if (sides.second.empty()) continue;
    const std::string library(absl::StripAsciiWhitespace(sides.first));
    if (IsTheSystems(library)) continue;
    const fs::path at(std::string(sides.second.substr(0, sides.second.rfind(" ("))));
    if (!at.is_absolute()) {
      return absl::FailedPreconditionError(
          absl::StrCat(program.native(), " needs the library ", library, ", which is not there"));
    }
    parts[absl::StrCat("lib/", library)] = at;
  }
  return parts;
}

absl::Status PackProgram(const ProgramParts& parts, const fs::path& archive) {
  // The files are put there as links, which tar follows.
  const TemporaryDirectory folder("tutti-program");
  TUTTI_RETURN_IF_ERROR(MakeDirectories(folder.path() / "lib"));
  for (const auto& [name, file] : parts) {
    std::error_code error;
    fs::create_symlink(file, folder.path() / name, error);
    if (error) return ErrnoStatus(absl::StrCat("link ", name), error.value());
  }
  ChildOptions options;
  // A job waits for it: gzip's default takes twice as long for a tenth less.
  options.arguments = {"tar",
                       "--create",
                       "--use-compress-program=gzip -1",
                       "--dereference",
                       "--sort=name",
                       "--mtime=@0",
                       "--owner=0",
                       "--group=0",
                       "--numeric-owner",
                       "--mode=u=rwx,go=rx",
                       "--file",
                       archive.native(),
                       "--"};
  for (const auto& [name, file] : parts) options.arguments.push_back(name);
  options.environment = CurrentEnvironment();
  options.directory = folder.path();
  TUTTI_ASSIGN_OR_RETURN(const CommandResult result,
                         RunCommand(std::move(options), "", Deadline::After(absl::Minutes(5))));
  if (result.exit.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("tar: ", result.err));
}

}  // namespace tutti::base
