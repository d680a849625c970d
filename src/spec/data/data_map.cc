#include "spec/data/data_map.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "spec/data/asset.h"
#include "spec/data/percent.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kByName = "azureml:";
constexpr absl::string_view kAzureMl = "azureml://";

// "azureml:NAME:1" or "azureml:NAME@latest".
std::string CanonicalName(absl::string_view name) {
  const size_t end = name.find_first_of(":@/");
  if (end == absl::string_view::npos) return absl::StrCat(kByName, name);
  if (name[end] == '/') return absl::StrCat(kByName, name);
  return absl::StrCat(kByName, name.substr(0, end), name[end] == ':' ? "/versions/" : "/labels/",
                      name.substr(end + 1));
}

// Without "subscriptions/S/resourcegroups/R/workspaces/W/", which names the one workspace there is.
std::string CanonicalAzureMl(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  size_t first = 0;
  while (first + 2 < parts.size()) {
    const std::string word = absl::AsciiStrToLower(parts[first]);
    if (word != "subscriptions" && word != "resourcegroups" && word != "workspaces") break;
    first += 2;
  }
  std::string rest;
  for (size_t i = first; i < parts.size(); ++i) {
    absl::StrAppend(&rest, i == first ? "" : "/", parts[i]);
  }
  const bool is_named = absl::StartsWith(rest, "data/") || absl::StartsWith(rest, "models/");
  if (first > 0 && is_named) return absl::StrCat(kByName, rest.substr(rest.find('/') + 1));
  return absl::StrCat(kAzureMl, rest);
}

// "CONTAINER@HOST/PATH" becomes "HOST/CONTAINER/PATH", as Azure's blobs have it by https.
std::string BlobByHttps(absl::string_view rest) {
  const size_t slash = std::min(rest.find('/'), rest.size());
  const size_t at = rest.find('@');
  if (at >= slash) return std::string(rest);
  return absl::StrCat(rest.substr(at + 1, slash - at - 1), "/", rest.substr(0, at),
                      rest.substr(slash));
}

// A store whose files https serves, too. One more is one more line here.
struct Store {
  absl::string_view scheme;
  std::string (*by_https)(absl::string_view rest);  // "HOST/PATH" from what is behind "SCHEME://"
};
constexpr Store kStoresByHttps[] = {
    {"wasb", BlobByHttps}, {"wasbs", BlobByHttps}, {"abfs", BlobByHttps}, {"abfss", BlobByHttps}};

// nullptr if there is none of that scheme.
const Store* FindStore(absl::string_view scheme) {
  const auto* const found =
      std::find_if(std::begin(kStoresByHttps), std::end(kStoresByHttps),
                   [scheme](const Store& store) { return store.scheme == scheme; });
  return found == std::end(kStoresByHttps) ? nullptr : found;
}

// The one form of all addresses of a thing: by https, if it is one of a store.
std::string CanonicalUrl(absl::string_view scheme, absl::string_view rest) {
  rest = rest.substr(0, rest.find_first_of("?#"));
  const Store* const store = FindStore(scheme);
  const std::string whole = store == nullptr ? std::string(rest) : store->by_https(rest);
  const size_t slash = std::min(whole.find('/'), whole.size());
  std::string host = absl::AsciiStrToLower(whole.substr(0, slash));
  std::string path(absl::StripPrefix(absl::string_view(whole).substr(slash), "/"));
  if (const size_t dfs = host.find(".dfs."); dfs != std::string::npos) {
    host.replace(dfs, 5, ".blob.");
  }
  const bool web = store != nullptr || scheme == "http" || scheme == "https";
  while (!path.empty() && path.back() == '/') path.pop_back();
  return absl::StrCat(web ? "https" : scheme, "://", host, path.empty() ? "" : "/", path);
}

// Where the name ends in "azureml://registries/R/models/NAME/versions/1"; npos for what is no model
// or data of a registry.
size_t EndOfRegistryName(absl::string_view canonical) {
  absl::string_view rest = canonical;
  if (!absl::ConsumePrefix(&rest, "azureml://registries/")) return absl::string_view::npos;
  rest.remove_prefix(std::min(rest.find('/'), rest.size()));
  if (!absl::ConsumePrefix(&rest, "/models/") && !absl::ConsumePrefix(&rest, "/data/")) {
    return absl::string_view::npos;
  }
  return canonical.size() - rest.size() + std::min(rest.find('/'), rest.size());
}

// Whether `path` stays below the folder that it is looked up in.
bool StaysBelow(absl::string_view path) {
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part == "..") return false;
  }
  return path.find('\0') == absl::string_view::npos;
}

}  // namespace

bool IsAddress(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos || colon == 0 || !absl::ascii_isalpha(text[0])) return false;
  const absl::string_view scheme = text.substr(0, colon);
  if (absl::EqualsIgnoreCase(scheme, "file")) return false;
  return std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.';
  });
}

bool IsUrl(absl::string_view text) {
  const std::string scheme = absl::AsciiStrToLower(text.substr(0, text.find("://")));
  const bool has_scheme = scheme.size() < text.size() && IsAddress(text);
  return has_scheme && scheme != "azureml" && scheme != "gs" && !absl::StartsWith(scheme, "s3");
}

std::string CanonicalAddress(absl::string_view address) {
  const std::string by_name = NameOfId(address);
  address = absl::StripAsciiWhitespace(by_name);
  const size_t colon = std::min(address.find(':'), address.size());
  const std::string scheme = absl::AsciiStrToLower(address.substr(0, colon));
  absl::string_view rest = address.substr(std::min(colon + 1, address.size()));
  if (!absl::ConsumePrefix(&rest, "//")) {
    return scheme == "azureml" ? CanonicalName(rest) : absl::StrCat(scheme, ":", rest);
  }
  if (scheme != "azureml") return CanonicalUrl(scheme, rest);
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  return CanonicalAzureMl(rest);
}

std::string WebAddress(absl::string_view address) {
  const std::string scheme = absl::AsciiStrToLower(address.substr(0, address.find(':')));
  const bool is_url = absl::StrContains(address, "://") && address.size() <= 8192;
  if (is_url && (scheme == "http" || scheme == "https")) {
    return absl::StrCat(scheme, address.substr(scheme.size()));
  }
  return is_url && FindStore(scheme) != nullptr ? CanonicalAddress(address) : "";
}

bool LooksLikeAFile(absl::string_view path) {
  const size_t host = path.find("://");
  path = path.substr(0, path.find_first_of("?#"));
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos || (host != absl::string_view::npos && slash < host + 3)) {
    return false;
  }
  const size_t dot = path.rfind('.');
  return dot != absl::string_view::npos && dot > slash + 1 && dot + 1 < path.size();
}

std::string WithoutQuery(absl::string_view address) {
  return std::string(absl::StrContains(address, "://") ? address.substr(0, address.find('?'))
                                                       : address);
}

bool IsSigned(absl::string_view address) {
  const std::string rest = absl::AsciiStrToLower(address.substr(WithoutQuery(address).size()));
  return absl::StrContains(rest, "sig=") || absl::StrContains(rest, "signature=");
}

size_t EndOfServer(absl::string_view address) {
  const size_t server = address.find_first_not_of('/', address.find("://") + 3);
  return std::min(address.find_first_of("/?#", server), address.size());
}

bool HasUser(absl::string_view address) {
  const bool is_web = absl::StartsWithIgnoreCase(address, "https://") ||
                      absl::StartsWithIgnoreCase(address, "http://");
  return is_web && absl::StrContains(address.substr(0, EndOfServer(address)), '@');
}

std::string ShownAddress(absl::string_view address) {
  std::string shown(address);
  if (HasUser(address)) {
    const size_t host = address.substr(0, EndOfServer(address)).rfind('@');
    shown = absl::StrCat(address.substr(0, address.find("://") + 3), "…", address.substr(host));
  }
  const size_t query = absl::StrContains(shown, "://") ? shown.find('?') : std::string::npos;
  return absl::StrCat(shown.substr(0, std::min<size_t>(query, 200)),
                      query == std::string::npos ? "" : "?…");
}

std::string PrefixToMap(absl::string_view address) {
  const std::string canonical = CanonicalAddress(address);
  if (absl::StartsWith(canonical, kByName) && !absl::StartsWith(canonical, kAzureMl)) {
    return canonical.substr(0, canonical.find('/'));
  }
  if (const size_t end = EndOfRegistryName(canonical); end != std::string::npos) {
    return canonical.substr(0, end);
  }
  absl::string_view prefix = address.substr(0, address.find_first_of("?#"));
  const size_t host = prefix.find("://");
  const size_t slash = prefix.rfind('/');
  // Not the host alone: too much would be served from one folder.
  const bool below = host != absl::string_view::npos && slash > prefix.find('/', host + 3);
  if (below) return std::string(prefix.substr(0, slash));
  absl::ConsumeSuffix(&prefix, "/");
  return std::string(prefix);
}

absl::StatusOr<std::string> PathOfJobOutput(absl::string_view address, absl::string_view jobs) {
  const std::string canonical = CanonicalAddress(address);
  absl::string_view rest = canonical;
  const bool by_run = absl::ConsumePrefix(&rest, "runs:/");
  if (!by_run && !absl::ConsumePrefix(&rest, "azureml://jobs/")) {
    return absl::NotFoundError("no address of a job's output");
  }
  std::vector<absl::string_view> parts = absl::StrSplit(rest, '/', absl::SkipEmpty());
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ShownAddress(address), "\" ", why,
                     "; write azureml://jobs/JOB/outputs/NAME/paths/PATH"));
  };
  if (parts.empty()) return wrong("names no job");
  if (!StaysBelow(rest) || parts[0][0] == '.') return wrong("leads out of the job's results");
  std::string path = absl::StrCat(jobs, "/", parts[0]);
  if (by_run) {
    absl::StrAppend(&path, "/outputs");
    parts.erase(parts.begin());
  } else {
    if (parts.size() < 3 || parts[1] != "outputs") return wrong("names no output");
    if (parts[2] != "artifacts") absl::StrAppend(&path, "/outputs/", parts[2]);
    const bool has_paths = parts.size() > 3 && parts[3] == "paths";
    parts.erase(parts.begin(), parts.begin() + (has_paths ? 4 : 3));
  }
  for (const absl::string_view part : parts) absl::StrAppend(&path, "/", part);
  return path;
}

absl::Status DataMap::Add(absl::string_view prefix, absl::string_view folder) {
  if (!IsAddress(prefix)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ShownAddress(prefix),
                     "\" is no address: it begins with https:, wasbs:, azureml: or the like"));
  }
  if (!absl::StartsWith(folder, "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", folder.substr(0, 200), "\" is no absolute path"));
  }
  entries_[CanonicalAddress(prefix)] = {std::string(prefix), std::string(folder)};
  return absl::OkStatus();
}

absl::Status DataMap::Remove(absl::string_view prefix) {
  if (entries_.erase(CanonicalAddress(prefix)) > 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("\"", ShownAddress(prefix), "\" is not mapped"));
}

absl::StatusOr<std::string> DataMap::Find(absl::string_view address) const {
  const std::string canonical = CanonicalAddress(address);
  // Cut at ever earlier slashes, so that the longest prefix is found first.
  for (size_t end = canonical.size(); end != std::string::npos && end > 0;
       end = canonical.rfind('/', end - 1)) {
    const auto found = entries_.find(canonical.substr(0, end));
    if (found == entries_.end()) continue;
    const bool by_name =
        !absl::StrContains(found->first, "//") || end == EndOfRegistryName(canonical);
    const std::string rest = by_name ? "" : PercentDecoded(canonical.substr(end));
    if (!StaysBelow(rest)) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", ShownAddress(address), "\" leads out of ", found->second.folder));
    }
    return absl::StrCat(found->second.folder, rest);
  }
  return absl::NotFoundError(absl::StrCat("\"", ShownAddress(address), "\" is not mapped"));
}

absl::StatusOr<JobOutput> OutputOfAddress(absl::string_view address) {
  TUTTI_ASSIGN_OR_RETURN(const std::string path, PathOfJobOutput(address, ""));
  const size_t end = path.find('/', 1);  // "/JOB/outputs/model"
  if (end == std::string::npos) return JobOutput{path.substr(1), "outputs"};
  return JobOutput{path.substr(1, end - 1), path.substr(end + 1)};
}

}  // namespace tutti::spec
