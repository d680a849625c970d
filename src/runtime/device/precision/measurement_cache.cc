#include "runtime/device/precision/measurement_cache.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/hash.h"

namespace tutti::device {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostBytes = 1 << 16;
constexpr absl::string_view kPrefix = "measured-";

// An absolute path, as the XDG base directory specification asks for; else empty.
fs::path Absolute(const std::map<std::string, std::string>& environment, const char* name) {
  const auto found = environment.find(name);
  const fs::path path = found == environment.end() ? "" : found->second;
  return path.is_absolute() ? path : fs::path();
}

// Removes the oldest files of measurements; other processes may do so at once.
void RemoveAllButNewest(const fs::path& folder, size_t kept) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code ended;
  for (fs::directory_iterator at(folder, ended); !ended && at != fs::directory_iterator();
       at.increment(ended)) {
    if (!absl::StartsWith(at->path().filename().string(), kPrefix)) continue;
    std::error_code gone;
    const auto time = at->last_write_time(gone);
    if (!gone) found.emplace_back(time, at->path());
  }
  if (found.size() <= kept) return;
  std::sort(found.begin(), found.end(), std::greater<>());
  for (size_t i = kept; i < found.size(); ++i) fs::remove(found[i].second, ended);
}

}  // namespace

fs::path CacheFolder(const std::map<std::string, std::string>& environment) {
  fs::path caches = Absolute(environment, "XDG_CACHE_HOME");
  if (caches.empty()) {
    const fs::path home = Absolute(environment, "HOME");
    if (home.empty()) return {};
    caches = home / ".cache";
  }
  return caches / "tutti";
}

fs::path MeasurementCache::PathOf(absl::string_view key) const {
  const base::Sha256Digest digest = base::Sha256Of(key);
  std::string name(kPrefix);
  for (size_t i = 0; i < 8; ++i) name += absl::StrFormat("%02x", digest[i]);
  return folder_ / (name + ".json");
}

std::optional<double> MeasurementCache::Find(absl::string_view key) const {
  if (folder_.empty()) return std::nullopt;
  const auto text = base::ReadFile(PathOf(key), kMostBytes);
  if (!text.ok()) return std::nullopt;
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("key", nlohmann::json()) != std::string(key)) {
    return std::nullopt;
  }
  const nlohmann::json number = json.value("number", nlohmann::json());
  if (!number.is_number()) return std::nullopt;
  const auto value = number.get<double>();
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

void MeasurementCache::Keep(absl::string_view key, double number) const {
  if (folder_.empty() || !base::MakeDirectories(folder_).ok()) return;
  const nlohmann::json json = {{"key", std::string(key)}, {"number", number}};
  const std::string text =
      json.dump(/*indent=*/2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  base::ReplaceFile(PathOf(key), text).IgnoreError();
  RemoveAllButNewest(folder_, kMostKept);
}

}  // namespace tutti::device
