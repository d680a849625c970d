#include "platform/stream/renewed_store.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tutti::stream {
namespace {

using storage::ObjectReader;
using storage::ObjectStore;

// Keeps the store in which it was opened.
class GrantedReader final : public ObjectReader {
 public:
  GrantedReader(std::shared_ptr<ObjectStore> store, std::unique_ptr<ObjectReader> reader)
      : ObjectReader(reader->object(), reader->md5_is_certain(), reader->checksum()),
        store_(std::move(store)),
        reader_(std::move(reader)) {}

  absl::Status Read(int64_t offset, std::span<char> out) override {
    return reader_->Read(offset, out);
  }
  std::optional<absl::string_view> content() const override { return reader_->content(); }
  bool is_of_one_version() const override { return reader_->is_of_one_version(); }
  bool streams() const override { return reader_->streams(); }
  absl::Status Stream(int64_t offset, int64_t bytes, const storage::PieceTaker& take) override {
    return reader_->Stream(offset, bytes, take);
  }

 private:
  const std::shared_ptr<ObjectStore> store_;
  const std::unique_ptr<ObjectReader> reader_;  // goes before it
};

}  // namespace

absl::StatusOr<std::unique_ptr<RenewedStore>> RenewedStore::Make(OpenGranted open,
                                                                 std::function<absl::Time()> now) {
  std::unique_ptr<RenewedStore> store(new RenewedStore(std::move(open), std::move(now)));
  TUTTI_RETURN_IF_ERROR(store->Renew());
  return store;
}

absl::Status RenewedStore::Renew() {
  absl::StatusOr<GrantedStore> fresh = open_();
  const absl::Time now = now_();
  absl::MutexLock lock(&mutex_);
  is_renewing_ = false;
  renewed_ = fresh.status();
  if (!fresh.ok()) {
    renew_at_ = now + kBetweenTries;
    return fresh.status();
  }
  granted_ = *std::move(fresh);
  renew_at_ = granted_.expires == absl::InfiniteFuture() ? absl::InfiniteFuture()
                                                         : now + (granted_.expires - now) / 2;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ObjectStore>> RenewedStore::Current() {
  bool has_ended;
  {
    absl::MutexLock lock(&mutex_);
    has_ended = now_() >= granted_.expires;
    if (has_ended && is_renewing_) {
      // A thread that finds them expired waits for the one that renews them, and takes its result:
      // if each asked again, one after the other, each would take as long.
      const auto is_free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_renewing_; };
      mutex_.Await(absl::Condition(&is_free));
      TUTTI_RETURN_IF_ERROR(renewed_);
      has_ended = now_() >= granted_.expires;
    }
    const bool is_due = has_ended || now_() >= renew_at_;
    if (!is_due || is_renewing_) return granted_.store;
    is_renewing_ = true;
  }
  const absl::Status renewed = Renew();
  if (!renewed.ok() && has_ended) return renewed;
  absl::MutexLock lock(&mutex_);
  return granted_.store;
}

absl::StatusOr<storage::PathKind> RenewedStore::KindOf(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const auto store, Current());
  return store->KindOf(path);
}

absl::StatusOr<std::vector<storage::StoredObject>> RenewedStore::List(const std::string& folder,
                                                                      bool recursive) {
  TUTTI_ASSIGN_OR_RETURN(const auto store, Current());
  return store->List(folder, recursive);
}

absl::StatusOr<std::unique_ptr<ObjectReader>> RenewedStore::Open(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(auto store, Current());
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, store->Open(path));
  return std::make_unique<GrantedReader>(std::move(store), std::move(reader));
}

absl::StatusOr<std::unique_ptr<ObjectReader>> RenewedStore::OpenWhole(const std::string& path,
                                                                      int64_t most) {
  TUTTI_ASSIGN_OR_RETURN(auto store, Current());
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, store->OpenWhole(path, most));
  return std::make_unique<GrantedReader>(std::move(store), std::move(reader));
}

absl::Status RenewedStore::Put(const std::string& path, const std::filesystem::path& file,
                               const storage::SentListener& sent) {
  TUTTI_ASSIGN_OR_RETURN(const auto store, Current());
  return store->Put(path, file, sent);
}

absl::Status RenewedStore::Remove(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const auto store, Current());
  return store->Remove(path);
}

absl::Status RenewedStore::RemoveFolder(const std::string& path) {
  TUTTI_ASSIGN_OR_RETURN(const auto store, Current());
  return store->RemoveFolder(path);
}

}  // namespace tutti::stream
