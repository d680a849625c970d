#include "platform/storage/objects/memory_store_fake.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/storage/objects/content_hash.h"

namespace tutti::storage {

class MemoryReader final : public ObjectReader {
 public:
  MemoryReader(MemoryStore& store, StoredObject object, bool md5_is_certain, Checksum checksum,
               size_t piece, std::optional<std::string> content)
      : ObjectReader(std::move(object), md5_is_certain, std::move(checksum)),
        store_(store),
        piece_(piece),
        content_(std::move(content)) {}

  std::optional<absl::string_view> content() const override { return content_; }
  bool streams() const override { return piece_ > 0; }
  bool is_of_one_version() const override { return piece_ > 0; }
  absl::Status Stream(int64_t offset, int64_t bytes, const PieceTaker& take) override {
    std::string piece(piece_, ' ');
    for (const int64_t end = offset + bytes; offset < end;) {
      TUTTI_RETURN_IF_ERROR(store_.Ask("piece", object().path, offset));
      piece.resize(std::min(piece_, static_cast<size_t>(end - offset)));
      TUTTI_RETURN_IF_ERROR(Read(offset, piece));
      TUTTI_RETURN_IF_ERROR(take(piece));
      offset += static_cast<int64_t>(piece.size());
    }
    return absl::OkStatus();
  }

  absl::Status Read(int64_t offset, std::span<char> out) override {
    if (content_.has_value()) {  // the same each time
      std::copy_n(content_->begin() + offset, out.size(), out.begin());
      return absl::OkStatus();
    }
    TUTTI_RETURN_IF_ERROR(store_.Ask("read", object().path, offset));
    absl::MutexLock lock(&store_.mutex_);
    const auto found = store_.objects_.find(object().path);
    if (found == store_.objects_.end()) return absl::NotFoundError("gone");
    const std::string& content = found->second.content;
    if (offset + out.size() > content.size()) return absl::DataLossError("too short");
    std::copy_n(content.begin() + offset, out.size(), out.begin());
    store_.NoteRead(out);
    ++store_.reads_;
    return absl::OkStatus();
  }

 private:
  MemoryStore& store_;
  const size_t piece_;
  const std::optional<std::string> content_;
};

void MemoryStore::Set(const std::string& path, const std::string& content, double modified) {
  absl::MutexLock lock(&mutex_);
  objects_[path] = Entry{content, ++versions_, modified};
}

void MemoryStore::Erase(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  objects_.erase(path);
}

std::string MemoryStore::Content(const std::string& path) const {
  absl::MutexLock lock(&mutex_);
  const auto found = objects_.find(path);
  return found == objects_.end() ? "" : found->second.content;
}

std::vector<std::string> MemoryStore::Paths() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> paths;
  for (const auto& [path, entry] : objects_) paths.push_back(path);
  return paths;
}

void MemoryStore::set_hook(Hook hook) {
  absl::MutexLock lock(&mutex_);
  hook_ = std::move(hook);
}

void MemoryStore::set_md5(bool has_md5, bool is_right) {
  absl::MutexLock lock(&mutex_);
  has_md5_ = has_md5;
  md5_is_right_ = is_right;
}

void MemoryStore::set_checksum(ChecksumKind kind, bool is_right) {
  absl::MutexLock lock(&mutex_);
  checksum_ = kind;
  checksum_is_right_ = is_right;
}

void MemoryStore::set_direct(size_t piece) {
  absl::MutexLock lock(&mutex_);
  piece_ = piece;
}

void MemoryStore::set_damaged(int reads) {
  absl::MutexLock lock(&mutex_);
  damaged_ = reads;
}

void MemoryStore::NoteRead(std::span<char> bytes) {
  bytes_read_ += static_cast<int64_t>(bytes.size());
  if (!bytes.empty() && damaged_ > 0) {
    bytes[bytes.size() / 2] ^= 1;
    --damaged_;
  }
}

int64_t MemoryStore::bytes_read() const {
  absl::MutexLock lock(&mutex_);
  return bytes_read_;
}

int64_t MemoryStore::reads() const {
  absl::MutexLock lock(&mutex_);
  return reads_;
}

absl::Status MemoryStore::Ask(absl::string_view call, const std::string& path, int64_t offset) {
  Hook hook;
  {
    absl::MutexLock lock(&mutex_);
    hook = hook_;
  }
  return hook ? hook(call, path, offset) : absl::OkStatus();
}

Checksum MemoryStore::ChecksumOf(const Entry& entry) const {
  RunningChecksum running(checksum_);
  running.Update(checksum_is_right_ ? entry.content : "other");
  return running.Finish();
}

StoredObject MemoryStore::Describe(const std::string& path, const Entry& entry) const {
  StoredObject object{path, static_cast<int64_t>(entry.content.size()),
                      absl::StrCat("version-", entry.version)};
  object.modified = entry.modified;
  if (has_md5_) {
    ContentHash hash({.md5 = true});
    hash.Update(md5_is_right_ ? entry.content : "other");
    object.md5 = hash.Finish().md5;
  }
  return object;
}

absl::StatusOr<PathKind> MemoryStore::KindOf(const std::string& path) {
  TUTTI_RETURN_IF_ERROR(Ask("kind", path));
  absl::MutexLock lock(&mutex_);
  if (path.empty()) return PathKind::kFolder;
  if (objects_.contains(path)) return PathKind::kFile;
  const auto below = objects_.lower_bound(absl::StrCat(path, "/"));
  const bool is_folder =
      below != objects_.end() && absl::StartsWith(below->first, absl::StrCat(path, "/"));
  return is_folder ? PathKind::kFolder : PathKind::kNothing;
}

absl::StatusOr<std::vector<StoredObject>> MemoryStore::List(const std::string& folder,
                                                            bool recursive) {
  TUTTI_RETURN_IF_ERROR(Ask("list", folder));
  absl::MutexLock lock(&mutex_);
  const std::string prefix = folder.empty() ? "" : absl::StrCat(folder, "/");
  std::vector<StoredObject> found;
  for (const auto& [path, entry] : objects_) {
    if (!absl::StartsWith(path, prefix)) continue;
    const size_t slash = path.find('/', prefix.size());
    if (!recursive && slash != std::string::npos) {
      const std::string below = path.substr(0, slash + 1);
      if (found.empty() || found.back().path != below) found.push_back({below});
      continue;
    }
    StoredObject object{path, static_cast<int64_t>(entry.content.size())};
    object.modified = entry.modified;
    found.push_back(std::move(object));
  }
  if (found.empty()) return absl::NotFoundError("there is no such folder");
  return found;
}

absl::StatusOr<std::unique_ptr<ObjectReader>> MemoryStore::Open(const std::string& path) {
  return Open(path, /*with_content=*/false);
}

absl::StatusOr<std::unique_ptr<ObjectReader>> MemoryStore::OpenWhole(const std::string& path,
                                                                     int64_t most) {
  bool comes;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = objects_.find(path);
    comes = piece_ > 0 && found != objects_.end() &&
            static_cast<int64_t>(found->second.content.size()) <= most;
  }
  return Open(path, comes);
}

absl::StatusOr<std::unique_ptr<ObjectReader>> MemoryStore::Open(const std::string& path,
                                                                bool with_content) {
  TUTTI_RETURN_IF_ERROR(Ask("open", path));
  absl::MutexLock lock(&mutex_);
  const auto found = objects_.find(path);
  if (found == objects_.end()) return absl::NotFoundError("there is no such object");
  std::optional<std::string> content;
  if (with_content) {
    content = found->second.content;
    NoteRead(*content);
  }
  return std::make_unique<MemoryReader>(*this, Describe(path, found->second), md5_is_right_,
                                        ChecksumOf(found->second), piece_, std::move(content));
}

absl::Status MemoryStore::Put(const std::string& path, const std::filesystem::path& file,
                              const SentListener& sent) {
  TUTTI_RETURN_IF_ERROR(Ask("put", path));
  TUTTI_ASSIGN_OR_RETURN(const std::string content, base::ReadFile(file));
  TUTTI_RETURN_IF_ERROR(sent(static_cast<int64_t>(content.size())));
  Set(path, content);
  return absl::OkStatus();
}

absl::Status MemoryStore::Remove(const std::string& path) {
  TUTTI_RETURN_IF_ERROR(Ask("remove", path));
  Erase(path);
  return absl::OkStatus();
}

}  // namespace tutti::storage
