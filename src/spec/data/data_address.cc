#include "spec/data/data_address.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "spec/data/data_map.h"
#include "spec/data/nfs_endpoint.h"
#include "spec/data/percent.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kDatastores = "azureml://datastores/";
constexpr absl::string_view kPublicCloud = "core.windows.net";
constexpr size_t kLongestAddress = 8192;

bool IsOf(absl::string_view text, bool (*fits)(unsigned char), absl::string_view others) {
  return !text.empty() && text.size() <= 255 &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return fits(c) || absl::StrContains(others, static_cast<char>(c));
         });
}
bool IsAccount(absl::string_view text) { return IsOf(text, absl::ascii_isalnum, "-"); }
bool IsContainer(absl::string_view text) { return IsOf(text, absl::ascii_isalnum, "-_$."); }

bool IsAzure(StoreKind kind) {
  return kind == StoreKind::kAzureBlob || kind == StoreKind::kAzureDataLake ||
         kind == StoreKind::kAzureFile;
}

// Whether both name the same objects: a blob has an address in Data Lake, too.
bool SameFamily(StoreKind a, StoreKind b) {
  const auto is_blob = [](StoreKind kind) {
    return kind == StoreKind::kAzureBlob || kind == StoreKind::kAzureDataLake;
  };
  return a == b || (is_blob(a) && is_blob(b));
}

// "ACCOUNT.blob.core.windows.net" and its like, into kind, account and endpoint of `place`.
bool TakeAzureHost(absl::string_view host, DataPlace& place) {
  const std::string lower = absl::AsciiStrToLower(host);
  const std::vector<absl::string_view> parts = absl::StrSplit(lower, absl::MaxSplits('.', 2));
  if (parts.size() < 3 || !IsAccount(parts[0]) || !IsOf(parts[2], absl::ascii_isalnum, "-.")) {
    return false;
  }
  if (parts[1] == "blob") {
    place.kind = StoreKind::kAzureBlob;
  } else if (parts[1] == "dfs") {
    place.kind = StoreKind::kAzureDataLake;
  } else if (parts[1] == "file") {
    place.kind = StoreKind::kAzureFile;
  } else {
    return false;
  }
  place.account = std::string(parts[0]);
  if (parts[2] != kPublicCloud) place.endpoint = absl::StrCat("https://", lower);
  return true;
}

std::pair<absl::string_view, absl::string_view> SplitAt(absl::string_view text, char separator) {
  const size_t at = std::min(text.find(separator), text.size());
  return {text.substr(0, at), text.substr(std::min(at + 1, text.size()))};
}

// Has what an address says by itself, and its path as it is written there.
struct Parsed {
  DataPlace place;
  std::string path;
  bool is_url = false;  // its path is percent-encoded and has no "?"
};

// "CONTAINER@HOST/PATH", as Hadoop writes blobs.
std::optional<Parsed> ParseHadoop(absl::string_view rest) {
  const auto [authority, path] = SplitAt(rest, '/');
  const auto [container, host] = SplitAt(authority, '@');
  Parsed parsed{.path = std::string(path), .is_url = true};
  parsed.place.container = std::string(container);
  if (!TakeAzureHost(host, parsed.place)) return std::nullopt;
  return parsed;
}

// "HOST/CONTAINER/PATH".
std::optional<Parsed> ParseHttps(absl::string_view rest) {
  const auto [host, below] = SplitAt(rest, '/');
  const auto [container, path] = SplitAt(below, '/');
  Parsed parsed{.path = std::string(path), .is_url = true};
  parsed.place.container = std::string(container);
  if (!TakeAzureHost(host, parsed.place)) return std::nullopt;
  return parsed;
}

std::optional<Parsed> ParseBucket(StoreKind kind, absl::string_view rest) {
  const auto [bucket, path] = SplitAt(rest, '/');
  Parsed parsed{.path = std::string(path)};
  parsed.place.kind = kind;
  parsed.place.container = std::string(bucket);
  return parsed;
}

// "HOST:PORT/FOLDER/PATH": the first folder is what is mounted.
std::optional<Parsed> ParseNfs(absl::string_view rest) {
  const auto [authority, below] = SplitAt(rest, '/');
  const auto [container, path] = SplitAt(below, '/');
  const std::optional<std::string> endpoint = NfsEndpoint(authority);
  if (!endpoint || container == "." || container == "..") return std::nullopt;
  Parsed parsed{.path = std::string(path), .is_url = true};
  parsed.place.kind = StoreKind::kNfs;
  parsed.place.container = std::string(container);
  parsed.place.endpoint = *endpoint;
  return parsed;
}

std::optional<Parsed> Parse(absl::string_view scheme, absl::string_view rest) {
  if (scheme == "nfs") return ParseNfs(rest);
  if (scheme == "s3" || scheme == "s3a" || scheme == "s3n") {
    return ParseBucket(StoreKind::kS3, rest);
  }
  if (scheme == "gs") return ParseBucket(StoreKind::kGcs, rest);
  if (scheme == "wasb" || scheme == "wasbs" || scheme == "abfs" || scheme == "abfss") {
    return ParseHadoop(rest);
  }
  return scheme == "http" || scheme == "https" ? ParseHttps(rest) : std::nullopt;
}

// The datastore whose container `place` is; nullptr if there is none.
const Datastore* FindBy(const DataPlace& place, const Datastores& datastores) {
  const auto of_blob = [](std::string endpoint) {
    if (const size_t at = endpoint.find(".dfs."); at != std::string::npos) {
      endpoint.replace(at, 5, ".blob.");
    }
    return endpoint;
  };
  for (const auto& [name, datastore] : datastores) {
    const DataPlace& known = datastore.place;
    if (!SameFamily(known.kind, place.kind) || known.container != place.container) continue;
    if (place.kind == StoreKind::kNfs && known.endpoint != place.endpoint) continue;
    if (!IsAzure(place.kind)) return &datastore;
    if (known.account == place.account && of_blob(known.endpoint) == of_blob(place.endpoint)) {
      return &datastore;
    }
  }
  return nullptr;
}

// Finds one that has a server of its own: "http://127.0.0.1:10000/devstoreaccount1/CONTAINER/PATH".
const Datastore* FindByEndpoint(absl::string_view url, const Datastores& datastores,
                                absl::string_view& path) {
  for (const auto& [name, datastore] : datastores) {
    const DataPlace& known = datastore.place;
    absl::string_view rest = url;
    if (known.endpoint.empty() || !absl::ConsumePrefix(&rest, known.endpoint)) continue;
    if (!absl::ConsumePrefix(&rest, absl::StrCat("/", known.container))) continue;
    if (!rest.empty() && rest[0] != '/') continue;
    path = rest;
    return &datastore;
  }
  return nullptr;
}

bool IsPattern(absl::string_view path, bool is_url) {
  return path.find_first_of(is_url ? "*" : "*?") != absl::string_view::npos;
}

absl::Status Wrong(absl::string_view address, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", ShownAddress(address), "\" ", why));
}

// Sets the path of `place`, below that of a datastore's folder.
absl::StatusOr<DataPlace> WithPath(absl::string_view address, DataPlace place,
                                   absl::string_view path, bool is_url) {
  while (absl::ConsumePrefix(&path, "/")) {
  }
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  place.is_pattern = IsPattern(path, is_url);
  const std::string decoded = is_url ? PercentDecoded(path) : std::string(path);
  for (const absl::string_view part : absl::StrSplit(decoded, '/')) {
    if (part == "..") return Wrong(address, "leads out of its container");
  }
  if (absl::StrContains(decoded, '\0')) return Wrong(address, "has a zero byte");
  if (place.kind != StoreKind::kLocal) {
    place.path = decoded;
    return place;
  }
  if (place.is_pattern) {
    return Wrong(address, "is a pattern in a folder of this machine: name the folder itself");
  }
  place.root = place.path;
  if (!decoded.empty()) absl::StrAppend(&place.path, "/", decoded);
  return place;
}

absl::StatusOr<DataPlace> OfDatastore(absl::string_view address, absl::string_view canonical,
                                      const Datastores& datastores) {
  const auto [name, rest] = SplitAt(canonical.substr(kDatastores.size()), '/');
  const auto [paths, path] = SplitAt(rest, '/');
  if (!paths.empty() && paths != "paths") {
    return Wrong(address, "is not written azureml://datastores/NAME/paths/PATH");
  }
  if (const auto found = datastores.find(std::string(name)); found != datastores.end()) {
    return WithPath(address, found->second.place, path, /*is_url=*/false);
  }
  std::vector<absl::string_view> names;
  for (const auto& [known, datastore] : datastores) names.push_back(known);
  const absl::string_view shown = name.substr(0, 80);
  return absl::NotFoundError(
      absl::StrCat("there is no datastore \"", shown, "\"", base::DidYouMean(shown, names)));
}

}  // namespace

absl::StatusOr<std::optional<DataPlace>> PlaceOf(absl::string_view address,
                                                 const Datastores& datastores) {
  address = absl::StripAsciiWhitespace(address);
  const size_t colon = address.find("://");
  if (colon == absl::string_view::npos || address.size() > kLongestAddress) return std::nullopt;
  const std::string scheme = absl::AsciiStrToLower(address.substr(0, colon));
  if (scheme == "azureml") {
    const std::string canonical = CanonicalAddress(address);
    if (!absl::StartsWith(canonical, kDatastores)) return std::nullopt;
    return OfDatastore(address, canonical, datastores);
  }
  absl::string_view path;
  if (const Datastore* const own = FindByEndpoint(address, datastores, path)) {
    if (address.find_first_of("?#") != absl::string_view::npos) return std::nullopt;
    return WithPath(address, own->place, path, /*is_url=*/true);
  }
  std::optional<Parsed> parsed = Parse(scheme, address.substr(colon + 3));
  if (!parsed) return std::nullopt;
  if (parsed->is_url && address.find_first_of("?#") != absl::string_view::npos) {
    return std::nullopt;
  }
  if (!IsContainer(parsed->place.container)) return Wrong(address, "names no container or bucket");
  if (const Datastore* const known = FindBy(parsed->place, datastores)) {
    parsed->place = known->place;
  } else if (parsed->place.kind == StoreKind::kAzureDataLake) {
    parsed->place.kind = StoreKind::kAzureBlob;  // Data Lake's own interface has nothing public
    const size_t at = parsed->place.endpoint.find(".dfs.");
    if (at != std::string::npos) parsed->place.endpoint.replace(at, 5, ".blob.");
  }
  return WithPath(address, std::move(parsed->place), parsed->path, parsed->is_url);
}

}  // namespace tutti::spec
