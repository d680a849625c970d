// BearerToken is what a service principal shows to Azure's storage: a token that Microsoft Entra
// ID, or who stands for it, gives for its secret, for an hour or so. Thread-safe.
// https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

class BearerToken {
 public:
  // `credentials` of a service principal.
  // `now` is a clock.
  explicit BearerToken(const Credentials& credentials, std::function<absl::Time()> now = absl::Now)
      : credentials_(credentials), now_(std::move(now)) {}

  // Returns one that lasts, asking for it some minutes before it ends: meanwhile, and where that
  // fails, it still counts. Who comes when it has ended waits for who asks, and takes his answer.
  // Unavailable: the authority cannot be reached or is too busy; PermissionDenied: it gives
  // none.
  absl::StatusOr<std::string> Get();

 private:
  struct Given {
    std::string token;
    absl::Duration lasts;
  };
  absl::StatusOr<Given> Ask() const;

  const Credentials credentials_;
  const std::function<absl::Time()> now_;
  absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  absl::Time renew_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  absl::Time ends_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool is_renewing_ ABSL_GUARDED_BY(mutex_) = false;  // a thread asks, without the mutex
  absl::Status renewed_ ABSL_GUARDED_BY(mutex_);      // what came of the last time
};

}  // namespace tutti::storage
