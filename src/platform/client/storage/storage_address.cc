#include "platform/client/storage/storage_address.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/percent_encode.h"
#include "spec/data/data_address.h"
#include "spec/data/data_map.h"
#include "spec/data/percent.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

constexpr char kForms[] =
    "write azureml://datastores/NAME/paths/PATH, wasbs://, abfss://, https:// of a blob, s3://, "
    "gs://, file:PATH, job:NAME/PATH, or a path of this machine";

absl::StatusOr<StorageAddress> OfJob(absl::string_view text, absl::string_view rest) {
  const size_t slash = rest.find('/');
  StorageAddress address{std::string(text), std::string(rest.substr(0, slash))};
  if (slash != absl::string_view::npos) {
    address.path = std::string(absl::StripSuffix(rest.substr(slash + 1), "/"));
  }
  if (address.job.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" names no job: job:NAME/PATH"));
  }
  for (const absl::string_view part : absl::StrSplit(address.path, '/')) {
    if (part != "..") continue;
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" leads out of the job"));
  }
  return address;
}

StorageAddress OfPath(absl::string_view text, const fs::path& path) {
  StorageAddress address{std::string(text)};
  address.path = path.lexically_normal().string();
  if (address.path.size() > 1) address.path = std::string(absl::StripSuffix(address.path, "/"));
  address.place.path = address.path;
  return address;
}

// "azureml:NAME:VERSION", as `tutti data create` has named it.
absl::StatusOr<StorageAddress> OfAsset(absl::string_view text, const AddressNames& names) {
  bool known = false;
  const auto asset =
      names.data.Find(spec::ReferenceOf(spec::AssetKind::kData, spec::NameOfId(text)), &known);
  if (!asset.ok()) return base::Annotate(asset.status(), absl::StrCat("\"", text, "\""));
  TUTTI_ASSIGN_OR_RETURN(StorageAddress address, ParseStorageAddress(asset->path, names));
  address.text = std::string(text);
  return address;
}

absl::StatusOr<StorageAddress> OfStore(absl::string_view text, const AddressNames& names) {
  // "?" is a character of a pattern elsewhere.
  const size_t query = absl::StrContains(text, "sig=") ? text.find('?') : std::string::npos;
  const absl::string_view shown = text.substr(0, query);
  TUTTI_ASSIGN_OR_RETURN(std::optional<spec::DataPlace> place,
                         spec::PlaceOf(shown, names.datastores));
  if (!place.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", spec::ShownAddress(shown), "\" is no address of a store: ", kForms));
  }
  StorageAddress address{std::string(shown)};
  address.of_store = address.text;
  address.place = *std::move(place);
  if (query != absl::string_view::npos) address.sas = std::string(text.substr(query + 1));
  address.path = address.place.path;
  return address;
}

// Returns what an address of a store has before its path: "s3://sets/",
// "azureml://datastores/photos/paths/".
std::string BeforePath(const StorageAddress& address) {
  absl::string_view text = absl::StripAsciiWhitespace(address.of_store);
  while (absl::ConsumeSuffix(&text, "/")) {
  }
  const bool is_url = spec::IsUrl(text);
  for (size_t slash = text.find('/'); slash != std::string::npos;
       slash = text.find('/', slash + 1)) {
    const std::string path(text.substr(slash + 1));
    if ((is_url ? spec::PercentDecoded(path) : path) == address.path) {
      return std::string(text.substr(0, slash + 1));
    }
  }
  // It names all of the store, a datastore perhaps without the "/paths" that a path needs.
  const bool lacks_paths =
      !is_url && absl::EndsWith(text, absl::StrCat("/datastores/", address.place.datastore));
  return absl::StrCat(text, lacks_paths ? "/paths/" : "/");
}

}  // namespace

absl::StatusOr<StorageAddress> ParseStorageAddress(absl::string_view text,
                                                   const AddressNames& names) {
  absl::string_view rest = text;
  absl::StatusOr<StorageAddress> address = absl::InvalidArgumentError("the address is empty");
  if (absl::ConsumePrefix(&rest, "job:")) {
    address = OfJob(text, rest);
  } else if (absl::ConsumePrefix(&rest, "file:")) {
    absl::ConsumePrefix(&rest, "//");
    address = OfPath(text, names.directory / spec::PercentDecoded(rest));
  } else if (absl::StrContains(text, "://")) {
    address = OfStore(text, names);
  } else if (absl::StartsWith(text, "azureml:")) {
    address = OfAsset(text, names);
  } else if (!text.empty()) {
    address = OfPath(text, names.directory / std::string(text));
  }
  if (address.ok()) address->ends_with_slash = absl::EndsWith(address->text, "/");
  return address;
}

std::string AddressAt(const StorageAddress& address, const std::string& path) {
  if (address.is_job()) return absl::StrCat("job:", address.job, "/", path);
  if (address.is_local()) return path;
  return absl::StrCat(BeforePath(address), spec::IsUrl(address.of_store)
                                               ? base::PercentEncode(path, /*keep_slash=*/true)
                                               : path);
}

std::string JoinedPath(const std::string& folder, const std::string& path) {
  if (folder.empty() || path.empty()) return folder.empty() ? path : folder;
  return folder == "/" ? absl::StrCat("/", path) : absl::StrCat(folder, "/", path);
}

std::string FolderPart(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == 0) return "/";
  return std::string(path.substr(0, slash == absl::string_view::npos ? 0 : slash));
}

std::string NamePart(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace tutti::client
