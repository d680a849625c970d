#include "platform/service/results/incoming_batch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr size_t kMany = 32;  // files

}  // namespace

absl::StatusOr<std::unique_ptr<IncomingBatch>> IncomingBatch::Create(
    const std::filesystem::path& staging) {
  const std::filesystem::path folder = staging / base::RandomHex(8);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  return std::unique_ptr<IncomingBatch>(new IncomingBatch(folder));
}

IncomingBatch::~IncomingBatch() { base::RemoveTree(folder_).IgnoreError(); }

absl::Status IncomingBatch::Add(const std::filesystem::path& path, absl::string_view bytes) {
  const std::filesystem::path parent = path.parent_path();
  if (!parents_.contains(parent)) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(parent));
    parents_.insert(parent);
  }
  const std::filesystem::path temporary = folder_ / absl::StrCat(files_.size());
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0644));
  const absl::Status written = base::WriteAll(fd.get(), bytes, path.native());
  if (!written.ok()) ::unlink(temporary.c_str());
  TUTTI_RETURN_IF_ERROR(written);
  files_.push_back({temporary, path});
  return absl::OkStatus();
}

absl::Status IncomingBatch::SyncOne(const File& file) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(file.temporary, O_RDONLY));
  if (::fsync(fd.get()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("fsync ", file.path.native()));
}

absl::Status IncomingBatch::SyncAll() const {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(folder_, O_RDONLY | O_DIRECTORY));
  if (::syncfs(fd.get()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("syncfs ", folder_.native()));
}

absl::StatusOr<std::vector<absl::Status>> IncomingBatch::Commit() {
  std::vector<absl::Status> statuses(files_.size());
  if (files_.size() >= kMany) TUTTI_RETURN_IF_ERROR(SyncAll());
  for (size_t i = 0; i < files_.size() && files_.size() < kMany; ++i) {
    statuses[i] = SyncOne(files_[i]);
  }
  for (size_t i = 0; i < files_.size(); ++i) {
    const File& file = files_[i];
    if (!statuses[i].ok() || std::rename(file.temporary.c_str(), file.path.c_str()) == 0) continue;
    statuses[i] = base::ErrnoStatus(absl::StrCat("rename to ", file.path.native()));
  }
  for (const std::filesystem::path& parent : parents_) {
    TUTTI_RETURN_IF_ERROR(base::SyncDirectory(parent));
  }
  return statuses;
}

}  // namespace tutti::service
