#include "platform/client/storage/store_side.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/text/path_pattern.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/storage_program.h"

namespace tutti::client {
namespace {

using storage::Operation;
using storage::StorageRequest;

// Another access is asked for when this much of its time is left.
constexpr absl::Duration kRenewalMargin = absl::Minutes(20);
// The program itself gives up where nothing happens.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

class StoreSide final : public StorageSide {
 public:
  StoreSide(StorageAddress address, Connect connect, Variables variables,
            const std::atomic<bool>& cancelled)
      : address_(std::move(address)),
        connect_(std::move(connect)),
        variables_(std::move(variables)),
        cancelled_(cancelled) {}

  const StorageAddress& address() const override { return address_; }

  absl::StatusOr<Listing> List(bool recursive) override {
    StorageRequest request{.operation = Operation::kBrowse, .place = address_.place};
    request.recursive = recursive;
    request.tells_left_out = true;
    if (address_.ends_with_slash && !address_.place.is_pattern) {
      request.type = storage::PlaceType::kFolder;
    }
    TUTTI_ASSIGN_OR_RETURN(storage::StorageResult result,
                           Run(std::move(request), /*write=*/false, {}));
    Listing listing{result.is_file, address_.path, std::move(result.objects),
                    std::move(result.left_out)};
    if (address_.place.is_pattern) {
      listing.base = base::FolderOfPattern(address_.path);
    } else if (listing.is_file) {
      listing.base = FolderPart(address_.path);
    }
    return listing;
  }

  absl::Status Fetch(const std::string& base, const std::vector<std::string>& files,
                     const std::filesystem::path& folder, const BytesListener& listener) override {
    return Move(Operation::kFetch, base, files, folder, listener);
  }
  absl::Status Put(const std::string& base, const std::vector<std::string>& files,
                   const std::filesystem::path& folder, const BytesListener& listener) override {
    return Move(Operation::kPut, base, files, folder, listener);
  }
  absl::Status Remove(const std::string& base, const std::vector<std::string>& files) override {
    return Move(Operation::kRemove, base, files, {}, {});
  }
  absl::Status RemoveAll() override {
    if (address_.path == "/") return absl::InvalidArgumentError("/ is all of this machine");
    return Run({.operation = Operation::kRemove, .place = address_.place}, /*write=*/true, {})
        .status();
  }

 private:
  absl::Status Move(Operation operation, const std::string& base,
                    const std::vector<std::string>& files, const std::filesystem::path& folder,
                    const BytesListener& listener) {
    if (files.empty()) return absl::OkStatus();  // none named would be all
    StorageRequest request{.operation = operation, .place = address_.place};
    request.place.path = base;
    request.place.is_pattern = false;
    request.folder = folder;
    request.files = files;
    return Run(std::move(request), operation != Operation::kFetch, listener).status();
  }

  absl::StatusOr<storage::StorageResult> Run(StorageRequest request, bool write,
                                             const BytesListener& listener);
  absl::Status Renew(bool write);
  std::string Advice(const absl::Status& status, bool write) const;

  const StorageAddress address_;
  const Connect connect_;
  const Variables variables_;
  const std::atomic<bool>& cancelled_;
  std::optional<FoundCredentials> found_;
  bool may_write_ = false;
};

absl::Status StoreSide::Renew(bool write) {
  if (address_.is_local()) return absl::OkStatus();
  const bool fits = found_.has_value() && (may_write_ || !write);
  if (fits && found_->expires - absl::Now() > kRenewalMargin) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(found_, FindCredentials(connect_, address_, write, variables_));
  may_write_ = write;
  return absl::OkStatus();
}

// If the store refuses access, what to do depends on the credentials that the program was given.
std::string StoreSide::Advice(const absl::Status& status, bool write) const {
  if (!absl::IsPermissionDenied(status) || address_.is_local() ||
      storage::SourceOf(status) == storage::FaultSource::kDisk) {
    return "";
  }
  const char* const what = write ? "write there" : "read it";
  if (!address_.place.datastore.empty()) {
    return absl::StrCat("; give datastore ", address_.place.datastore, " credentials that may ",
                        what, ": tutti datastore create --file FILE");
  }
  if (found_.has_value() && found_->credentials.kind != spec::CredentialKind::kNone) return "";
  return "; it was asked for without credentials: make a datastore of it that has them (tutti "
         "datastore create --file FILE), or set the variables of its own tools "
         "(AWS_ACCESS_KEY_ID, AZURE_STORAGE_SAS_TOKEN, …)";
}

absl::StatusOr<storage::StorageResult> StoreSide::Run(StorageRequest request, bool write,
                                                      const BytesListener& listener) {
  TUTTI_RETURN_IF_ERROR(Renew(write));
  const auto progress = [&](const storage::StorageProgress& now) {
    if (listener) listener(now.bytes);
  };
  const auto run = [&] {
    if (found_.has_value()) request.credentials = found_->credentials;
    return storage::RunStorage(request, base::Deadline::After(kLongest), cancelled_, progress);
  };
  auto result = run();
  // One that took longer than its access goes on with another.
  if (absl::IsPermissionDenied(result.status()) && found_.has_value() &&
      found_->expires < absl::Now()) {
    TUTTI_RETURN_IF_ERROR(Renew(write));
    result = run();
  }
  if (result.ok()) return result;
  const absl::Status& status = result.status();
  absl::Status told(status.code(),
                    absl::StrCat(address_.text, ": ", status.message(), Advice(status, write)));
  return storage::AboutObject(std::move(told), storage::ObjectOf(status));
}

}  // namespace

std::unique_ptr<StorageSide> StoreSideOf(StorageAddress address, Connect connect,
                                         Variables variables, const std::atomic<bool>& cancelled) {
  return std::make_unique<StoreSide>(std::move(address), std::move(connect), std::move(variables),
                                     cancelled);
}

}  // namespace tutti::client
