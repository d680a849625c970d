#include "platform/launch/node/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// Acknowledged bytes that stay on the disk all the same: a service that lost its last seconds in a
// power failure asks for them again.
constexpr uint64_t kKept = uint64_t{64} << 20;
constexpr uint64_t kHole = uint64_t{16} << 20;  // punched in pieces of this size

}  // namespace

absl::StatusOr<std::unique_ptr<SpoolFile>> SpoolFile::Open(const fs::path& path, int rank,
                                                           std::string stream) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, base::Open(path, O_RDWR | O_CREAT));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return base::ErrnoStatus(absl::StrCat("stat ", path.string()));
  return std::unique_ptr<SpoolFile>(new SpoolFile(std::move(fd), path, rank, std::move(stream),
                                                  static_cast<uint64_t>(info.st_size)));
}

absl::Status SpoolFile::Append(absl::string_view bytes) {
  const uint64_t begin = size_;
  uint64_t at = begin;
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const absl::Status status =
          base::ErrnoStatus(absl::StrCat("write rank-", rank_, ".", stream_));
      [[maybe_unused]] const int cut = ::ftruncate(fd_.get(), static_cast<off_t>(begin));
      return status;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  size_ = at;
  return absl::OkStatus();
}

uint64_t SpoolFile::Size() const {
  if (stream_ != "metrics") return size_;
  struct stat info;
  return ::fstat(fd_.get(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

absl::StatusOr<std::string> SpoolFile::Read(uint64_t offset, size_t most) const {
  const uint64_t size = Size();
  std::string bytes(size > offset ? std::min<uint64_t>(most, size - offset) : 0, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = ::pread(fd_.get(), bytes.data() + filled, bytes.size() - filled,
                              static_cast<off_t>(offset + filled));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("read rank-", rank_, ".", stream_));
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  bytes.resize(filled);
  return bytes;
}

absl::Status SpoolFile::Sync() const {
  if (::fdatasync(fd_.get()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("flush ", path_.string()));
}

void SpoolFile::Acknowledge(uint64_t offset) {
  acknowledged_ = offset;
  if (offset < given_back_ + kKept + kHole) return;
  const uint64_t length = (offset - kKept - given_back_) / kHole * kHole;
  // Not every file system can; then the spool keeps all.
  [[maybe_unused]] const int punched =
      ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(given_back_), static_cast<off_t>(length));
  given_back_ += length;
}

uint64_t SpoolFile::Backlog() const {
  const uint64_t size = Size();
  const uint64_t acknowledged = acknowledged_;
  return size > acknowledged ? size - acknowledged : 0;
}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Open(const fs::path& folder, int first_rank,
                                                   int process_count) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  auto spool = std::unique_ptr<Spool>(new Spool(folder));
  const auto add = [&](int rank, const char* stream) {
    auto file = SpoolFile::Open(folder / absl::StrCat("rank-", rank, ".", stream), rank, stream);
    if (file.ok()) spool->files_.push_back(*std::move(file));
    return file.status();
  };
  for (int rank = first_rank; rank < first_rank + process_count; ++rank) {
    for (const char* const stream : kRankStreams) {
      TUTTI_RETURN_IF_ERROR(add(rank, stream));
    }
  }
  TUTTI_RETURN_IF_ERROR(add(first_rank, "mpirun"));
  spool->LoadAcknowledged();
  return spool;
}

void Spool::MaskWith(std::shared_ptr<const base::TextMask> mask) {
  mask_ = std::move(mask);
  for (const auto& file : files_) file->set_mask(mask_.get());
}

uint64_t Spool::Backlog() const {
  uint64_t sum = 0;
  for (const auto& file : files_) sum += file->Backlog();
  return sum;
}

uint64_t Spool::Acknowledged() const {
  uint64_t sum = 0;
  for (const auto& file : files_) sum += file->acknowledged();
  return sum;
}

void Spool::LoadAcknowledged() {
  const auto text = base::ReadFile(folder_ / "acknowledged.json");
  const auto json = nlohmann::json::parse(text.ok() ? *text : "", nullptr, false);
  if (!json.is_object()) return;
  for (const auto& file : files_) {
    const auto at = json.find(absl::StrCat("rank-", file->rank(), ".", file->stream()));
    if (at != json.end() && at->is_number_unsigned() && at->get<uint64_t>() <= file->Size()) {
      file->Acknowledge(at->get<uint64_t>());
    }
  }
}

void Spool::SaveAcknowledged(int64_t events) const {
  nlohmann::json json = {{"events", events}};
  for (const auto& file : files_) {
    json[absl::StrCat("rank-", file->rank(), ".", file->stream())] = file->acknowledged();
  }
  // Only a hint, so no fsync: it is written once a second beside a training that needs the disk.
  const fs::path path = folder_ / "acknowledged.json";
  const fs::path temporary = path.string() + ".tmp";
  std::ofstream(temporary) << json.dump() << "\n";
  std::error_code error;
  fs::rename(temporary, path, error);
}

}  // namespace tutti::launch
