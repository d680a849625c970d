#include "platform/client/storage/store_code.h"

#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/text/amounts.h"
#include "platform/storage/objects/object_manifest.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

absl::Status CheckIsCode(const std::string& address, const Listing& listing,
                         const StoreCodeLimits& limits) {
  if (listing.objects.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": no file is there"));
  }
  const auto files = static_cast<int64_t>(listing.objects.size());
  int64_t bytes = 0;
  for (const storage::StoredObject& object : listing.objects) bytes += object.bytes;
  if (files <= limits.files && bytes <= limits.bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(address, ": ", WithCommas(files), files == 1 ? " file, " : " files, ",
                   Bytes(static_cast<uint64_t>(bytes)), ", are more than code may have (",
                   WithCommas(limits.files), " files, ", Bytes(static_cast<uint64_t>(limits.bytes)),
                   "): name the folder that has the scripts alone, and make data an input"));
}

}  // namespace

absl::StatusOr<fs::path> FetchStoreCode(StorageSide& side, const fs::path& folder,
                                        const StoreCodeLimits& limits) {
  TUTTI_ASSIGN_OR_RETURN(const Listing listing, side.List(/*recursive=*/true));
  TUTTI_RETURN_IF_ERROR(CheckIsCode(side.address().text, listing, limits));
  std::vector<std::string> files;
  for (const storage::StoredObject& object : listing.objects) files.push_back(object.path);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_RETURN_IF_ERROR(side.Fetch(listing.base, files, folder, [](int64_t) {}));
  std::error_code error;
  fs::remove(folder / storage::kManifestName, error);  // which is no code
  if (error) return base::ErrnoStatus("remove the list of what was fetched", error.value());
  return listing.is_file ? folder / files.front() : folder;
}

}  // namespace tutti::client
