// MemoryStore is a store in memory for tests: it counts what is asked of it and fails when it is
// told to. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "platform/storage/objects/object_store.h"

namespace tutti::storage {

class MemoryStore final : public ObjectStore {
 public:
  // Is called for each call, which is "open", "read", "list", "put" or "remove", with the path and,
  // for a read, the offset from which it reads. An error that the hook returns is the result of the
  // call.
  using Hook =
      std::function<absl::Status(absl::string_view call, const std::string& path, int64_t offset)>;

  // `modified`: when it was last changed, in seconds since 1970; 0: the store does not say.
  void Set(const std::string& path, const std::string& content, double modified = 0);
  void Erase(const std::string& path);
  std::string Content(const std::string& path) const;  // "" if there is none
  std::vector<std::string> Paths() const;
  void set_hook(Hook hook);
  // From now on objects have no MD5, or one that is not that of their content and not certain.
  void set_md5(bool has_md5, bool is_right);
  // From now on objects have a checksum of that kind, of their content or of another.
  void set_checksum(ChecksumKind kind, bool is_right);
  // From now on the store behaves as one that is read directly: content arrives when the whole is
  // opened, readers stream in pieces of so many bytes, each a call of the hook ("piece"), and know
  // that all is of one version.
  void set_direct(size_t piece);
  // The next so many times that bytes of it are read, one bit of them comes flipped.
  void set_damaged(int reads);
  int64_t bytes_read() const;
  int64_t reads() const;

  absl::StatusOr<PathKind> KindOf(const std::string& path) override;
  absl::StatusOr<std::vector<StoredObject>> List(const std::string& folder,
                                                 bool recursive) override;
  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ObjectReader>> OpenWhole(const std::string& path,
                                                          int64_t most) override;
  absl::Status Put(const std::string& path, const std::filesystem::path& file,
                   const SentListener& sent) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& path) override { return Ask("remove folder", path); }

 private:
  friend class MemoryReader;
  struct Entry {
    std::string content;
    int version = 0;
    double modified = 0;
  };
  Checksum ChecksumOf(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StoredObject Describe(const std::string& path, const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Ask(absl::string_view call, const std::string& path, int64_t offset = 0);
  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const std::string& path, bool with_content);
  void NoteRead(std::span<char> bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, Entry> objects_ ABSL_GUARDED_BY(mutex_);
  Hook hook_ ABSL_GUARDED_BY(mutex_);
  int versions_ ABSL_GUARDED_BY(mutex_) = 0;
  ChecksumKind checksum_ ABSL_GUARDED_BY(mutex_) = ChecksumKind::kNone;
  bool checksum_is_right_ ABSL_GUARDED_BY(mutex_) = true;
  bool has_md5_ ABSL_GUARDED_BY(mutex_) = true, md5_is_right_ ABSL_GUARDED_BY(mutex_) = true;
  size_t piece_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: it does not stream
  int damaged_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t bytes_read_ ABSL_GUARDED_BY(mutex_) = 0, reads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tutti::storage
