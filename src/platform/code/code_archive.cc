#include "platform/code/code_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::code {
namespace {

CodeEntry::Kind KindOf(archive_entry* entry) {
  using enum CodeEntry::Kind;
  if (archive_entry_hardlink(entry) != nullptr) return kHardLink;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return kFile;
    case AE_IFDIR:
      return kFolder;
    case AE_IFLNK:
      return archive_entry_symlink(entry) == nullptr ? kOther : kLink;
    default:
      return kOther;
  }
}

}  // namespace

absl::StatusOr<std::string> SafeRelativePath(absl::string_view name) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("archive entry \"", name.substr(0, 200), "\" ", why));
  };
  if (name.empty() || name.front() == '/') return refuse("has no relative path");
  if (name.size() >= PATH_MAX / 2) return refuse("has too long a name");
  if (name.find('\0') != absl::string_view::npos) return refuse("has a NUL in its name");
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(name, '/', absl::SkipEmpty())) {
    if (part == "..") return refuse("would leave the folder");
    if (part.size() > NAME_MAX) return refuse("has too long a name");
    if (part != ".") parts.push_back(part);
  }
  return absl::StrJoin(parts, "/");
}

void CodeArchive::Free::operator()(::archive* reader) const { archive_read_free(reader); }

CodeArchive::CodeArchive(base::UniqueFd fd, std::string name, uint64_t most_bytes)
    : fd_(std::move(fd)),
      name_(std::move(name)),
      most_bytes_(most_bytes),
      reader_(archive_read_new()) {}

absl::StatusOr<std::unique_ptr<CodeArchive>> CodeArchive::Open(const std::filesystem::path& file,
                                                               uint64_t most_bytes) {
  const std::string name = absl::StrCat("'", file.string(), "'");
  base::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return base::ErrnoStatus(name);
  std::unique_ptr<CodeArchive> opened(new CodeArchive(std::move(fd), name, most_bytes));
  ::archive* const reader = opened->reader_.get();
  archive_read_support_format_tar(reader);
  archive_read_support_filter_zstd(reader);
  if (archive_read_open(reader, opened.get(), nullptr, Feed, nullptr) != ARCHIVE_OK) {
    return opened->Error();
  }
  return opened;
}

// The library asks for the next piece of the file as it unpacks the former one, also within an
// entry that it skips: so this is where an archive of nothing but zeros ends.
ssize_t CodeArchive::Feed(::archive* reader, void* self, const void** piece) {
  auto& own = *static_cast<CodeArchive*>(self);
  const int64_t unpacked = archive_filter_bytes(reader, 0);
  if (unpacked > 0 && static_cast<uint64_t>(unpacked) > own.most_bytes_) {
    own.is_over_ = true;
    archive_set_error(reader, EFBIG, "%s", "the code is too large to look at");
    return -1;
  }
  ssize_t bytes = 0;
  do {
    bytes = ::read(own.fd_.get(), own.piece_.data(), own.piece_.size());
  } while (bytes < 0 && errno == EINTR);
  if (bytes < 0) archive_set_error(reader, errno, "read %s", own.name_.c_str());
  *piece = own.piece_.data();
  return bytes;
}

// EILSEQ and EINVAL are the library's own.
absl::Status CodeArchive::Error() const {
  const char* const said = archive_error_string(reader_.get());
  const std::string text = said == nullptr ? "unknown reason" : said;
  if (is_over_) return absl::ResourceExhaustedError(text);
  const int number = archive_errno(reader_.get());
  if (number > 0 && number != EILSEQ && number != EINVAL) return base::ErrnoStatus(text, number);
  return absl::InvalidArgumentError(absl::StrCat("broken archive: ", text));
}

absl::StatusOr<std::optional<CodeEntry>> CodeArchive::Next() {
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(reader_.get(), &entry);
  if (result == ARCHIVE_EOF) return std::nullopt;
  if (result != ARCHIVE_OK) return Error();
  const char* const raw = archive_entry_pathname(entry);
  if (raw == nullptr) return absl::InvalidArgumentError("an entry of the archive has no name");
  CodeEntry next;
  TUTTI_ASSIGN_OR_RETURN(next.name, SafeRelativePath(raw));
  next.kind = KindOf(entry);
  if (next.name.empty() && next.kind != CodeEntry::Kind::kFolder) {
    return absl::InvalidArgumentError(absl::StrCat("archive entry \"", raw, "\" has no name"));
  }
  next.executable = (archive_entry_perm(entry) & 0100) != 0;
  next.bytes = static_cast<uint64_t>(std::max<int64_t>(archive_entry_size(entry), 0));
  if (next.kind == CodeEntry::Kind::kLink) next.target = archive_entry_symlink(entry);
  return next;
}

// Hands over each block of the content with its place; between them are zeros.
absl::Status CodeArchive::Blocks(
    absl::FunctionRef<absl::Status(absl::string_view, uint64_t)> take) {
  while (true) {
    const void* block = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int result = archive_read_data_block(reader_.get(), &block, &size, &offset);
    if (result == ARCHIVE_EOF) return absl::OkStatus();
    if (result != ARCHIVE_OK) return Error();
    TUTTI_RETURN_IF_ERROR(
        take({static_cast<const char*>(block), size}, static_cast<uint64_t>(offset)));
  }
}

absl::StatusOr<std::string> CodeArchive::Text(size_t most) {
  std::string text;
  TUTTI_RETURN_IF_ERROR(Blocks([&](absl::string_view block, uint64_t offset) {
    if (offset < text.size() || offset > most || block.size() > most - offset) {
      return absl::OutOfRangeError(absl::StrCat("a file of more than ", most, " bytes"));
    }
    text.resize(offset);
    text.append(block.data(), block.size());
    return absl::OkStatus();
  }));
  return text;
}

absl::Status CodeArchive::WriteTo(int fd, absl::string_view name) {
  return Blocks([&](absl::string_view block, uint64_t offset) {
    if (::lseek(fd, static_cast<off_t>(offset), SEEK_SET) < 0) return base::ErrnoStatus(name);
    return base::WriteAll(fd, block, name);
  });
}

}  // namespace tutti::code
