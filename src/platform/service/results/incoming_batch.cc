#include "platform/service/results/incoming_batch.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr size_t kMany = 32;  // files

}  // namespace

absl::StatusOr<std::unique_ptr<IncomingBatch>> IncomingBatch::Create(StagingFolder staging) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(staging.path()));
  return std::unique_ptr<IncomingBatch>(new IncomingBatch(std::move(staging)));
}

IncomingBatch::~IncomingBatch() {
  for (const auto& [in, folder] : folders_) base::RemoveTree(folder).IgnoreError();
}

// One on each file system.
absl::StatusOr<std::filesystem::path> IncomingBatch::ArrivalFor(
    const std::filesystem::path& parent) {
  if (const auto known = arrivals_.find(parent); known != arrivals_.end()) return known->second;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(parent));
  TUTTI_ASSIGN_OR_RETURN(const std::filesystem::path fresh, staging_.NewPathFor(parent));
  const auto [at, is_new] = folders_.try_emplace(fresh.parent_path(), fresh);
  if (is_new) TUTTI_RETURN_IF_ERROR(base::MakeDirectories(fresh));
  return arrivals_[parent] = at->second;
}

absl::Status IncomingBatch::Add(const std::filesystem::path& path, absl::string_view bytes) {
  TUTTI_ASSIGN_OR_RETURN(const std::filesystem::path folder, ArrivalFor(path.parent_path()));
  const std::filesystem::path temporary = folder / absl::StrCat(files_.size());
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
  for (const auto& [in, folder] : folders_) {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(folder, O_RDONLY | O_DIRECTORY));
    if (::syncfs(fd.get()) != 0) return base::ErrnoStatus(absl::StrCat("syncfs ", folder.native()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::Status>> IncomingBatch::Commit(const MoveResult& move) {
  std::vector<absl::Status> statuses(files_.size());
  if (files_.size() >= kMany) TUTTI_RETURN_IF_ERROR(SyncAll());
  for (size_t i = 0; i < files_.size() && files_.size() < kMany; ++i) {
    statuses[i] = SyncOne(files_[i]);
  }
  for (size_t i = 0; i < files_.size(); ++i) {
    const File& file = files_[i];
    if (statuses[i].ok()) statuses[i] = move(file.temporary, file.path);
  }
  for (const auto& [parent, arrival] : arrivals_) {
    TUTTI_RETURN_IF_ERROR(base::SyncDirectory(parent));
  }
  return statuses;
}

}  // namespace tutti::service
