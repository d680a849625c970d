// LibraryOf and MakeJobPython of python_environment.h.
#include <fcntl.h>

#include <set>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/launch/staging/python_environment.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestScript = 1 << 20;

absl::Status Link(const fs::path& target, const fs::path& link) {
  std::error_code error;
  fs::create_symlink(target, link, error);
  if (error) return base::ErrnoStatus(absl::StrCat("link ", link.string()), error.value());
  return absl::OkStatus();
}

// `link` leads to where `from` does.
absl::Status LinkAs(const fs::path& from, const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(from, error);
  if (error) return base::ErrnoStatus(absl::StrCat("read link ", from.string()), error.value());
  return Link(target, link);
}

// A program that pip or uv wrote: `#!SHARED/bin/python`, or by way of /bin/sh where that is too
// long for the kernel. The same program for the job's Python, whatever the length of its path.
std::string ForPython(absl::string_view script, const std::string& python) {
  size_t body = script.find('\n');
  if (absl::StartsWith(script, "#!/bin/sh\n'''exec'")) body = script.find("\n' '''\n") + 6;
  return absl::StrCat("#!/bin/sh\n'''exec' \"", python, "\" \"$0\" \"$@\"\n' '''",
                      script.substr(std::min(body, script.size())));
}

// Not made durable: it is as short-lived as the allocation.
absl::Status Write(const fs::path& file, absl::string_view content, int mode) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(file, O_WRONLY | O_CREAT | O_TRUNC, mode));
  return base::WriteAll(fd.get(), content, file.string());
}

absl::Status AddProgram(const fs::path& shared, const fs::directory_entry& entry,
                        const fs::path& bin) {
  const fs::path place = bin / entry.path().filename();
  std::error_code error;
  if (entry.is_symlink(error)) return LinkAs(entry.path(), place);
  if (!entry.is_regular_file(error)) return absl::OkStatus();
  const auto text = base::ReadFile(entry.path(), kLargestScript);
  const std::string start = text.ok() ? text->substr(0, 600) : "";
  const bool is_script =
      absl::StartsWith(start, "#!") && absl::StrContains(start, (shared / "bin/python").string());
  if (!is_script) return Link(entry.path(), place);
  return Write(place, ForPython(*text, (bin / "python").string()), 0755);
}

// Folders of the job's own with links to the files, so that what the job adds stays its own.
absl::Status AddFiles(const fs::path& shared, const fs::path& own,
                      const std::set<fs::path>& without) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(own));
  std::error_code error;
  for (fs::directory_iterator entry(shared, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path place = own / entry->path().filename();
    std::error_code unknown;
    if (without.count(place) > 0) continue;
    if (entry->is_symlink(unknown)) {
      TUTTI_RETURN_IF_ERROR(LinkAs(entry->path(), place));
    } else if (entry->is_directory(unknown)) {
      TUTTI_RETURN_IF_ERROR(AddFiles(entry->path(), place, without));
    } else {
      TUTTI_RETURN_IF_ERROR(Link(entry->path(), place));
    }
  }
  if (error) return base::ErrnoStatus(shared.string(), error.value());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> LibraryOf(const fs::path& environment) {
  std::error_code error;
  for (fs::directory_iterator entry(environment / "lib", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (absl::StartsWith(name, "python3.")) return name;
  }
  const std::string none = absl::StrCat(environment.string(), " is no Python environment");
  if (!error) return absl::InternalError(none);
  const absl::Status unread = base::ErrnoStatus((environment / "lib").string(), error.value());
  if (error != std::errc::no_such_file_or_directory) return unread;
  return absl::InternalError(absl::StrCat(unread.message(), ": ", none));
}

absl::Status MakeJobPython(const fs::path& shared, const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const std::string version, LibraryOf(shared));
  std::error_code error;
  const fs::path packages = folder / "lib" / version / "site-packages";
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(packages));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder / "bin"));
  TUTTI_ASSIGN_OR_RETURN(const std::string settings, base::ReadFile(shared / "pyvenv.cfg", 65536));
  TUTTI_RETURN_IF_ERROR(Write(folder / "pyvenv.cfg", settings, 0644));
  // addsitedir and not the bare path: packages may have .pth files of their own.
  const std::string pth =
      absl::StrCat("import site; site.addsitedir(r'",
                   (shared / "lib" / version / "site-packages").string(), "')\n");
  TUTTI_RETURN_IF_ERROR(Write(packages / "_tutti_environment.pth", pth, 0644));
  for (const fs::directory_entry& entry : fs::directory_iterator(shared / "bin", error)) {
    TUTTI_RETURN_IF_ERROR(AddProgram(shared, entry, folder / "bin"));
  }
  if (error) return base::ErrnoStatus((shared / "bin").string(), error.value());
  return AddFiles(
      shared, folder,
      {packages, folder / "bin", folder / "pyvenv.cfg", folder / "complete", folder / ".lock"});
}

}  // namespace tutti::launch
