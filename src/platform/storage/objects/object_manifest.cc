#include "platform/storage/objects/object_manifest.h"

#include <fcntl.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string LineOf(const std::string& path, const ManifestEntry& entry) {
  json line = {
      {"path", path}, {"bytes", entry.bytes}, {"etag", entry.etag}, {"sha256", entry.sha256}};
  if (entry.modified > 0) line["modified"] = entry.modified;
  return absl::StrCat(line.dump(-1, ' ', false, json::error_handler_t::replace), "\n");
}

std::optional<std::pair<std::string, ManifestEntry>> EntryOf(absl::string_view text) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object()) return std::nullopt;
  const auto text_of = [&](const char* name) {
    const auto found = line.find(name);
    return found != line.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const auto bytes = line.find("bytes"), modified = line.find("modified");
  if (bytes == line.end() || !bytes->is_number_integer()) return std::nullopt;
  ManifestEntry entry{bytes->get<int64_t>(), text_of("etag"), text_of("sha256")};
  if (modified != line.end() && modified->is_number()) entry.modified = modified->get<double>();
  return std::pair(text_of("path"), std::move(entry));
}

}  // namespace

std::map<std::string, ManifestEntry> ManifestEntriesIn(absl::string_view text) {
  std::map<std::string, ManifestEntry> entries;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (auto entry = EntryOf(line)) entries[entry->first] = std::move(entry->second);
  }
  return entries;
}

absl::StatusOr<std::unique_ptr<ObjectManifest>> ObjectManifest::Open(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  absl::StatusOr<std::string> text = base::ReadFile(path);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd file,
                         base::Open(path, O_WRONLY | O_CREAT | O_APPEND, 0644));
  std::unique_ptr<ObjectManifest> manifest(new ObjectManifest(folder, std::move(file)));
  if (!text.ok()) return manifest;
  // So that the next line is none of half a line.
  if (!text->empty() && text->back() != '\n') {
    TUTTI_RETURN_IF_ERROR(base::AppendWhole(manifest->file_.get(), "\n", path.string()));
  }
  absl::MutexLock lock(&manifest->mutex_);
  manifest->entries_ = ManifestEntriesIn(*text);
  return manifest;
}

bool IsOf(const ManifestEntry& entry, const StoredObject& object, bool is_settled) {
  if (entry.bytes != object.bytes) return false;
  if (is_settled && entry.modified > 0 && entry.modified == object.modified) return true;
  return !object.etag.empty() && entry.etag == object.etag;
}

std::optional<ManifestEntry> ObjectManifest::Find(const StoredObject& object,
                                                  bool is_settled) const {
  ManifestEntry entry;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(object.path);
    if (found == entries_.end() || !IsOf(found->second, object, is_settled)) return std::nullopt;
    entry = found->second;
  }
  std::error_code error;
  const fs::path file = folder_ / object.path;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  if (fs::file_size(file, error) != static_cast<uintmax_t>(object.bytes)) return std::nullopt;
  return entry;
}

std::map<std::string, ManifestEntry> ObjectManifest::entries() const {
  absl::MutexLock lock(&mutex_);
  return entries_;
}

absl::Status ObjectManifest::Add(const std::string& path, const ManifestEntry& entry) {
  absl::MutexLock lock(&mutex_);
  entries_[path] = entry;
  return base::AppendWhole(file_.get(), LineOf(path, entry), (folder_ / kManifestName).string());
}

absl::Status ObjectManifest::Keep(const std::map<std::string, ManifestEntry>& entries) {
  std::string text;
  for (const auto& [path, entry] : entries) text += LineOf(path, entry);
  absl::MutexLock lock(&mutex_);
  entries_ = entries;
  return base::WriteFileAtomic(folder_ / kManifestName, text);
}

}  // namespace tutti::storage
