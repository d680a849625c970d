#include "platform/service/results/incoming_file.h"

#include <fcntl.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::service {

IncomingFile::IncomingFile(std::filesystem::path path, std::filesystem::path temporary,
                           base::UniqueFd fd, bool hashed)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {
  if (hashed) hash_.emplace();
}

absl::StatusOr<std::unique_ptr<IncomingFile>> IncomingFile::Create(
    const std::filesystem::path& path, const StagingFolder& staging, bool hashed) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(const std::filesystem::path temporary,
                         staging.NewPathFor(path.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd,
                         base::Open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0644));
  return std::unique_ptr<IncomingFile>(new IncomingFile(path, temporary, std::move(fd), hashed));
}

IncomingFile::~IncomingFile() {
  if (!committed_) ::unlink(temporary_.c_str());
}

absl::Status IncomingFile::Reserve(uint64_t bytes) {
  if (bytes == 0 ||
      ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0) {
    return absl::OkStatus();
  }
  absl::Status status =
      base::ErrnoStatus(absl::StrCat("taking room for ", bytes, " bytes of ", path_.native()));
  return absl::IsResourceExhausted(status) ? status : absl::OkStatus();
}

absl::Status IncomingFile::Write(absl::string_view bytes) {
  if (hash_) hash_->Update(bytes);
  TUTTI_RETURN_IF_ERROR(base::WriteAll(fd_.get(), bytes, path_.native()));
  if (on_write_) on_write_();
  return absl::OkStatus();
}

absl::Status IncomingFile::Commit(absl::string_view sha256) {
  if (hash_ && !sha256.empty()) {
    const std::string actual = base::Hex(hash_->Finish());
    if (actual != sha256) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the bytes that came have the hash sha256:", actual, ", not sha256:", sha256));
    }
  }
  if (::fsync(fd_.get()) != 0) return base::ErrnoStatus(absl::StrCat("fsync ", path_.native()));
  if (check_) TUTTI_RETURN_IF_ERROR(check_());
  TUTTI_RETURN_IF_ERROR(move_(temporary_, path_));
  committed_ = true;
  return base::SyncDirectory(path_.parent_path());
}

}  // namespace tutti::service
