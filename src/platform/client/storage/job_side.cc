#include "platform/client/storage/job_side.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/results/download.h"

namespace tutti::client {
namespace {

using storage::StoredObject;

class JobSide final : public StorageSide {
 public:
  JobSide(StorageAddress address, const Connect& connect)
      : address_(std::move(address)), service_(connect()) {}

  // Asks which job it is and which files it has.
  absl::Status Open() {
    TUTTI_ASSIGN_OR_RETURN(job_, ResolveJob(service_, address_.job));
    TUTTI_ASSIGN_OR_RETURN(const std::string text, service_.Files(job_));
    TUTTI_ASSIGN_OR_RETURN(const FilesView view, Parse<FilesView>(text));
    for (const FileView& file : view.files) bytes_[file.path] = file.bytes;
    return absl::OkStatus();
  }

  const StorageAddress& address() const override { return address_; }
  std::string holder() const override { return job_; }
  absl::StatusOr<Listing> List(bool recursive) override;
  absl::Status Fetch(const std::string& base, const std::vector<std::string>& files,
                     const std::filesystem::path& folder, const BytesListener& listener) override;
  absl::Status Put(const std::string&, const std::vector<std::string>&,
                   const std::filesystem::path&, const BytesListener&) override {
    return ReadOnly();
  }
  absl::Status Remove(const std::string&, const std::vector<std::string>&) override {
    return ReadOnly();
  }
  absl::Status RemoveAll() override { return ReadOnly(); }

 private:
  absl::Status ReadOnly() const {
    return absl::InvalidArgumentError(absl::StrCat(
        address_.text, ": a job's files are kept as they are; tutti job delete removes the job"));
  }

  const StorageAddress address_;
  ServiceClient service_;
  std::string job_;
  std::map<std::string, uint64_t> bytes_;  // of each file
};

absl::StatusOr<Listing> JobSide::List(bool recursive) {
  const std::string& path = address_.path;
  if (const auto file = bytes_.find(path); file != bytes_.end()) {
    return Listing{true, FolderPart(path), {{NamePart(path), static_cast<int64_t>(file->second)}}};
  }
  Listing listing{false, path, {}};
  const std::string prefix = path.empty() ? "" : absl::StrCat(path, "/");
  for (const auto& [name, bytes] : bytes_) {
    absl::string_view below = name;
    if (!absl::ConsumePrefix(&below, prefix)) continue;
    const size_t slash = recursive ? absl::string_view::npos : below.find('/');
    if (slash == absl::string_view::npos) {
      listing.objects.push_back({std::string(below), static_cast<int64_t>(bytes)});
    } else if (const std::string folder(below.substr(0, slash + 1));
               listing.objects.empty() || listing.objects.back().path != folder) {
      listing.objects.push_back({folder});
    }
  }
  if (!listing.objects.empty() || path.empty()) return listing;
  return absl::NotFoundError(absl::StrCat(
      address_.text, ": job ", job_, " has no such file or folder: tutti storage ls job:", job_));
}

absl::Status JobSide::Fetch(const std::string& base, const std::vector<std::string>& files,
                            const std::filesystem::path& folder, const BytesListener& listener) {
  int64_t before = 0;  // of files that are whole
  for (const std::string& file : files) {
    const std::string path = base.empty() ? file : absl::StrCat(base, "/", file);
    const auto known = bytes_.find(path);
    const FileView view{path, known == bytes_.end() ? 0 : known->second};
    TUTTI_ASSIGN_OR_RETURN(const std::filesystem::path target, DestinationOf(folder, file));
    TUTTI_RETURN_IF_ERROR(DownloadFile(service_, job_, view, target, [&](uint64_t bytes) {
      if (listener) listener(before + static_cast<int64_t>(bytes));
    }));
    before += static_cast<int64_t>(view.bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StorageSide>> JobSideOf(StorageAddress address,
                                                       const Connect& connect) {
  auto side = std::make_unique<JobSide>(std::move(address), connect);
  TUTTI_RETURN_IF_ERROR(side->Open());
  return side;
}

}  // namespace tutti::client
