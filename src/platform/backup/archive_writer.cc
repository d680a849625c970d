#include "platform/backup/archive_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::backup {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBlock = 1 << 18;

using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

Entry EntryOf(const std::string& name, unsigned type, int mode) {
  Entry entry(archive_entry_new(), &archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), type);
  archive_entry_set_perm(entry.get(), static_cast<mode_t>(mode));
  return entry;
}

absl::StatusOr<std::vector<std::string>> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus(absl::StrCat("read ", folder.string()), error.value());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string SumLine(absl::string_view hex, absl::string_view name) {
  return absl::StrCat(hex, "  ", name, "\n");
}

std::string LinkContent(absl::string_view target) { return absl::StrCat("-> ", target); }

absl::StatusOr<std::unique_ptr<ArchiveWriter>> ArchiveWriter::Create(const fs::path& file) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, base::Open(file, O_WRONLY | O_CREAT | O_EXCL, 0600));
  std::unique_ptr<ArchiveWriter> writer(new ArchiveWriter(file, std::move(fd)));
  archive* const archive = writer->archive_;
  archive_write_add_filter_zstd(archive);
  archive_write_set_format_pax_restricted(archive);
  archive_write_set_options(archive, "hdrcharset=BINARY");  // names are the file system's bytes
  archive_write_set_bytes_in_last_block(archive, 1);
  TUTTI_RETURN_IF_ERROR(writer->Check(archive_write_open_fd(archive, writer->fd_.get())));
  return writer;
}

ArchiveWriter::ArchiveWriter(fs::path file, base::UniqueFd fd)
    : file_(std::move(file)), fd_(std::move(fd)), archive_(archive_write_new()) {}

ArchiveWriter::~ArchiveWriter() { archive_write_free(archive_); }

absl::Status ArchiveWriter::AddText(const std::string& name, absl::string_view text) {
  const Entry entry = EntryOf(name, AE_IFREG, 0600);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(text.size()));
  TUTTI_RETURN_IF_ERROR(Begin(entry.get()));
  const la_ssize_t written = archive_write_data(archive_, text.data(), text.size());
  if (written != static_cast<la_ssize_t>(text.size())) return Check(ARCHIVE_FATAL);
  absl::StrAppend(&sums_, SumLine(base::Hex(base::Sha256Of(text)), name));
  return absl::OkStatus();
}

absl::Status ArchiveWriter::Add(const std::string& name, const fs::path& path) {
  std::error_code error;
  absl::Status added;
  switch (fs::symlink_status(path, error).type()) {
    case fs::file_type::regular:
      added = AddFile(name, path);
      break;
    case fs::file_type::symlink:
      added = AddLink(name, path);
      break;
    case fs::file_type::directory:
      added = AddFolder(name, path);
      break;
    case fs::file_type::none:
      return base::ErrnoStatus(path.string(), error.value());
    default:
      break;
  }
  return absl::IsNotFound(added) ? absl::OkStatus() : added;
}

absl::Status ArchiveWriter::AddFolder(const std::string& name, const fs::path& path) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> below, NamesIn(path));
  TUTTI_RETURN_IF_ERROR(Begin(EntryOf(name, AE_IFDIR, 0700).get()));
  for (const std::string& one : below) {
    if (path / one == left_out_) continue;
    TUTTI_RETURN_IF_ERROR(Add(absl::StrCat(name, "/", one), path / one));
  }
  return absl::OkStatus();
}

absl::Status ArchiveWriter::AddLink(const std::string& name, const fs::path& path) {
  std::error_code error;
  const std::string target = fs::read_symlink(path, error).string();
  if (error) return base::ErrnoStatus(path.string(), error.value());
  const Entry entry = EntryOf(name, AE_IFLNK, 0777);
  archive_entry_set_symlink(entry.get(), target.c_str());
  TUTTI_RETURN_IF_ERROR(Begin(entry.get()));
  absl::StrAppend(&sums_, SumLine(base::Hex(base::Sha256Of(LinkContent(target))), name));
  return absl::OkStatus();
}

absl::Status ArchiveWriter::AddFile(const std::string& name, const fs::path& path) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return base::ErrnoStatus(path.string());
  const Entry entry = EntryOf(name, AE_IFREG, (info.st_mode & S_IXUSR) != 0 ? 0700 : 0600);
  archive_entry_set_size(entry.get(), info.st_size);
  archive_entry_set_mtime(entry.get(), info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  TUTTI_RETURN_IF_ERROR(Begin(entry.get()));
  return base::Annotate(CopyContent(fd.get(), info.st_size, name), path.string());
}

absl::Status ArchiveWriter::Begin(archive_entry* entry) {
  return Check(archive_write_header(archive_, entry));
}

absl::Status ArchiveWriter::CopyContent(int fd, int64_t bytes, const std::string& name) {
  base::Sha256 hash;
  std::vector<char> block(kBlock);
  while (bytes > 0) {
    const size_t most = std::min(block.size(), static_cast<size_t>(bytes));
    const ssize_t n = ::read(fd, block.data(), most);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus("read");
    if (n == 0) return absl::UnavailableError("was cut while it was saved: try again");
    if (archive_write_data(archive_, block.data(), static_cast<size_t>(n)) != n) {
      return Check(ARCHIVE_FATAL);
    }
    hash.Update(absl::string_view(block.data(), static_cast<size_t>(n)));
    bytes -= n;
  }
  absl::StrAppend(&sums_, SumLine(base::Hex(hash.Finish()), name));
  return absl::OkStatus();
}

absl::Status ArchiveWriter::Finish() {
  const std::string sums = sums_;
  TUTTI_RETURN_IF_ERROR(AddText(kSumsName, sums));
  TUTTI_RETURN_IF_ERROR(Check(archive_write_close(archive_)));
  return ::fsync(fd_.get()) == 0 ? absl::OkStatus() : base::ErrnoStatus(file_.string());
}

absl::Status ArchiveWriter::Check(int code) {
  if (code == ARCHIVE_OK) return absl::OkStatus();
  const int error = archive_errno(archive_);
  const char* text = archive_error_string(archive_);
  const std::string what =
      absl::StrCat("write ", file_.string(), ": ", text == nullptr ? "failed" : text);
  return error > 0 ? absl::ErrnoToStatus(error, what) : absl::InternalError(what);
}

}  // namespace tutti::backup
