#include "platform/backup/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/backup/archive_writer.h"

namespace tutti::backup {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLargestHead = 1 << 20;
constexpr size_t kLargestSums = size_t{1} << 30;

struct Free {
  void operator()(archive* reader) const { archive_read_free(reader); }
};

bool IsSafe(absl::string_view name) {
  if (name.empty() || name.front() == '/' || absl::StrContains(name, '\0')) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  return std::none_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

// Whether the file begins as what zstd has compressed.
bool IsCompressed(int fd) {
  std::array<char, 4> magic = {};
  return ::pread(fd, magic.data(), magic.size(), 0) == 4 &&
         absl::string_view(magic.data(), magic.size()) == "\x28\xb5\x2f\xfd";
}

absl::Status NoBackup(const fs::path& file) {
  return absl::InvalidArgumentError(
      absl::StrCat(file.string(), " is no backup that tutti has made"));
}

absl::Status Damaged(const fs::path& file, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(file.string(), " is damaged (", why,
                                          "): nothing was restored; take another backup"));
}

std::string ErrorOf(archive* reader) {
  const char* text = archive_error_string(reader);
  return text == nullptr ? "it cannot be read" : text;
}

std::string NameOf(archive_entry* entry) {
  const char* name = archive_entry_pathname(entry);
  return name == nullptr ? "" : name;
}

// The first line that two lists do not share.
std::string FirstDifference(absl::string_view written, absl::string_view found) {
  const std::vector<absl::string_view> a = absl::StrSplit(written, '\n');
  const std::vector<absl::string_view> b = absl::StrSplit(found, '\n');
  const auto [of_a, of_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const absl::string_view line = of_a == a.end() ? *of_b : *of_a;
  return std::string(line.substr(std::min<size_t>(line.size(), 66), 200));  // after the hash
}

class Unpacking {
 public:
  Unpacking(archive* reader, const fs::path& file, fs::path folder, std::string head)
      : reader_(reader), file_(file), folder_(std::move(folder)), head_(std::move(head)) {}

  absl::StatusOr<std::string> Run() {
    archive_entry* entry = nullptr;
    int result = archive_read_next_header(reader_, &entry);
    if (result != ARCHIVE_OK) return Damaged(Error());
    if (NameOf(entry) != head_) return NoBackup(file_);
    for (; result != ARCHIVE_EOF; result = archive_read_next_header(reader_, &entry)) {
      if (result != ARCHIVE_OK) return Damaged(Error());
      if (has_sums_) return Damaged("goes on behind its end");
      TUTTI_RETURN_IF_ERROR(Take(entry));
    }
    if (!has_sums_) return Damaged("it ends early");
    if (written_sums_ != sums_) return Damaged(FirstDifference(written_sums_, sums_));
    TUTTI_RETURN_IF_ERROR(MakeLinks());
    return std::move(head_content_);
  }

 private:
  absl::Status Damaged(absl::string_view why) const { return backup::Damaged(file_, why); }

  std::string Error() const { return ErrorOf(reader_); }

  absl::Status Take(archive_entry* entry) {
    const std::string name = NameOf(entry);
    const auto type = archive_entry_filetype(entry);
    const std::string bare(absl::StripSuffix(name, "/"));
    if (!IsSafe(bare) || archive_entry_hardlink(entry) != nullptr) return Damaged("a wrong name");
    if (type == AE_IFDIR) return base::MakeDirectories(folder_ / bare);
    if (type == AE_IFLNK) return TakeLink(name, archive_entry_symlink(entry));
    if (type != AE_IFREG) return Damaged(absl::StrCat(name, " is no file"));
    if (name == head_) return ReadText(name, kLargestHead, head_content_);
    if (name == kSumsName) return ReadSums();
    return WriteFile(name, (archive_entry_perm(entry) & 0100) != 0 ? 0700 : 0600);
  }

  absl::Status TakeLink(const std::string& name, const char* target) {
    if (target == nullptr) return Damaged(absl::StrCat(name, " leads nowhere"));
    absl::StrAppend(&sums_, SumLine(base::Hex(base::Sha256Of(LinkContent(target))), name));
    links_.emplace_back(name, target);
    return absl::OkStatus();
  }

  absl::Status ReadSums() {
    const std::string before = sums_;
    TUTTI_RETURN_IF_ERROR(ReadText(kSumsName, kLargestSums, written_sums_));
    sums_ = before;
    has_sums_ = true;
    return absl::OkStatus();
  }

  // `take` gets the content in order, zeros of sparse parts with it.
  template <typename Sink>
  absl::Status Read(const std::string& name, const Sink& take) {
    base::Sha256 hash;
    std::vector<char> block(1 << 18);
    while (true) {
      const la_ssize_t n = archive_read_data(reader_, block.data(), block.size());
      if (n == 0) break;
      if (n < 0) return Damaged(Error());
      const absl::string_view bytes(block.data(), static_cast<size_t>(n));
      hash.Update(bytes);
      TUTTI_RETURN_IF_ERROR(take(bytes));
    }
    absl::StrAppend(&sums_, SumLine(base::Hex(hash.Finish()), name));
    return absl::OkStatus();
  }

  absl::Status ReadText(const std::string& name, size_t most, std::string& text) {
    return Read(name, [&](absl::string_view bytes) {
      absl::StrAppend(&text, bytes);
      return text.size() <= most ? absl::OkStatus() : Damaged(absl::StrCat(name, " is too large"));
    });
  }

  absl::Status WriteFile(const std::string& name, int mode) {
    const fs::path path = folder_ / name;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
    const auto fd = base::Open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    if (absl::IsAlreadyExists(fd.status())) return Damaged(absl::StrCat(name, " is there twice"));
    TUTTI_RETURN_IF_ERROR(fd.status());
    return Read(name, [&](absl::string_view bytes) {
      return base::WriteAll(fd->get(), bytes, path.string());
    });
  }

  absl::Status MakeLinks() {
    for (const auto& [name, target] : links_) {
      if (IsBelowLink(name)) return Damaged(absl::StrCat(name, " is below a link"));
      const fs::path path = folder_ / name;
      TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
      if (::symlink(target.c_str(), path.c_str()) != 0) {
        return base::ErrnoStatus(absl::StrCat("link ", path.string()));
      }
    }
    return absl::OkStatus();
  }

  bool IsBelowLink(const fs::path& name) const {
    for (fs::path above = name.parent_path(); !above.empty(); above = above.parent_path()) {
      std::error_code error;
      if (fs::is_symlink(fs::symlink_status(folder_ / above, error))) return true;
    }
    return false;
  }

  archive* const reader_;
  const fs::path file_, folder_;
  const std::string head_;
  std::string head_content_, sums_, written_sums_;
  bool has_sums_ = false;
  std::vector<std::pair<std::string, std::string>> links_;  // name, target
};

}  // namespace

absl::StatusOr<std::string> UnpackArchive(const fs::path& file, const fs::path& folder,
                                          const std::string& head) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(file, O_RDONLY));
  if (!IsCompressed(fd.get())) return NoBackup(file);
  const std::unique_ptr<archive, Free> reader(archive_read_new());
  archive_read_support_format_tar(reader.get());
  archive_read_support_filter_zstd(reader.get());
  archive_read_set_options(reader.get(), "hdrcharset=BINARY");
  if (archive_read_open_fd(reader.get(), fd.get(), 256 << 10) != ARCHIVE_OK) {
    return Damaged(file, ErrorOf(reader.get()));
  }
  return Unpacking(reader.get(), file, folder, head).Run();
}

}  // namespace tutti::backup
