// RenewedStore is a store whose credentials end by themselves, as those that the service grants: it
// is opened anew with others when half of their time is over. Who reads an object reads it to its
// end with those with which it was opened. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/storage/objects/object_store.h"

namespace tutti::stream {

struct GrantedStore {
  std::shared_ptr<storage::ObjectStore> store;
  absl::Time expires = absl::InfiniteFuture();
};

class RenewedStore final : public storage::ObjectStore {
 public:
  // Asks for credentials and opens the store with them; blocks. Called by one thread at a time.
  using OpenGranted = std::function<absl::StatusOr<GrantedStore>()>;

  // After a renewal that has failed the next is tried after this time; until they expire, calls go
  // on with the credentials that are there.
  static constexpr absl::Duration kBetweenTries = absl::Minutes(1);

  // Opens it for the first time; errors are those of `open`. `now` is a clock.
  static absl::StatusOr<std::unique_ptr<RenewedStore>> Make(OpenGranted open,
                                                            std::function<absl::Time()> now);

  absl::StatusOr<storage::PathKind> KindOf(const std::string& path) override;
  absl::StatusOr<std::vector<storage::StoredObject>> List(const std::string& folder,
                                                          bool recursive) override;
  absl::StatusOr<std::unique_ptr<storage::ObjectReader>> Open(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<storage::ObjectReader>> OpenWhole(const std::string& path,
                                                                   int64_t most) override;
  absl::Status Put(const std::string& path, const std::filesystem::path& file,
                   const storage::SentListener& sent) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveFolder(const std::string& path) override;

 private:
  RenewedStore(OpenGranted open, std::function<absl::Time()> now)
      : open_(std::move(open)), now_(std::move(now)) {}

  // Returns the store for the next call; the error of a renewal once the credentials have ended.
  absl::StatusOr<std::shared_ptr<storage::ObjectStore>> Current();
  absl::Status Renew() ABSL_LOCKS_EXCLUDED(mutex_);

  const OpenGranted open_;
  const std::function<absl::Time()> now_;
  absl::Mutex mutex_;
  GrantedStore granted_ ABSL_GUARDED_BY(mutex_);
  absl::Time renew_at_ ABSL_GUARDED_BY(mutex_);
  bool is_renewing_ ABSL_GUARDED_BY(mutex_) = false;  // a thread does, and others need not
  absl::Status renewed_ ABSL_GUARDED_BY(mutex_);      // what came of the last time
};

}  // namespace tutti::stream
