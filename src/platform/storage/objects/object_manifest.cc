#include "platform/storage/objects/object_manifest.h"

#include <fcntl.h>
#include <stdio.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "base/status.h"
#include "platform/storage/objects/file_blocks.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kBlockBytes = 1 << 20;

std::string LineOf(const std::string& path, const ManifestEntry& entry) {
  json line = {
      {"path", path}, {"bytes", entry.bytes}, {"etag", entry.etag}, {"sha256", entry.sha256}};
  if (entry.modified > 0) line["modified"] = entry.modified;
  if (!entry.boot.empty()) line["boot"] = entry.boot;
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
  entry.boot = text_of("boot");
  if (modified != line.end() && modified->is_number()) entry.modified = modified->get<double>();
  return std::pair(text_of("path"), std::move(entry));
}

}  // namespace

const std::string& ThisBoot() {
  static const std::string* const boot = [] {
    const std::string said = base::BootId();
    return new std::string(said.empty() ? base::RandomHex(16) : said);
  }();
  return *boot;
}

bool MayBeLost(const ManifestEntry& entry) {
  return !entry.boot.empty() && entry.boot != ThisBoot();
}

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
  // A newline ends a line that was cut off, so that the next line does not join it.
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

std::optional<ManifestEntry> ObjectManifest::Find(const StoredObject& object, bool is_settled,
                                                  const std::function<void()>& on_block) const {
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
  if (!MayBeLost(entry)) return entry;
  base::Sha256 hash;
  const absl::Status read = ReadBlocks(file, kBlockBytes, [&](absl::string_view block) {
    hash.Update(block);
    if (on_block) on_block();
    return absl::OkStatus();
  });
  if (!read.ok() || base::Hex(hash.Finish()) != entry.sha256) return std::nullopt;
  return entry;
}

bool ObjectManifest::HasLike(const StoredObject& object) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(object.path);
  return found != entries_.end() && found->second.bytes == object.bytes;
}

std::map<std::string, ManifestEntry> ObjectManifest::entries() const {
  absl::MutexLock lock(&mutex_);
  return entries_;
}

absl::Status ObjectManifest::Add(const std::string& path, const ManifestEntry& entry) {
  ManifestEntry noted = entry;
  noted.boot = ThisBoot();
  const std::string line = LineOf(path, noted);
  absl::MutexLock lock(&mutex_);
  entries_[path] = std::move(noted);
  return base::AppendWhole(file_.get(), line, (folder_ / kManifestName).string());
}

absl::Status ObjectManifest::Keep(const std::map<std::string, ManifestEntry>& entries,
                                  const fs::path& scratch) {
  std::string text;
  auto kept = entries;
  for (auto& [path, entry] : kept) {
    entry.boot.clear();
    text += LineOf(path, entry);
  }
  absl::MutexLock lock(&mutex_);
  entries_ = std::move(kept);
  const fs::path whole = scratch / "objects", path = folder_ / kManifestName;
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(whole, text));
  if (::rename(whole.c_str(), path.c_str()) != 0) {
    return base::ErrnoStatus(absl::StrCat("rename to ", path.string()));
  }
  return base::SyncDirectory(folder_);
}

}  // namespace tutti::storage
