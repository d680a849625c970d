#include "platform/client/storage/storage_session.h"

#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/status.h"
#include "platform/client/storage/job_side.h"
#include "platform/client/storage/store_side.h"

namespace tutti::client {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

std::string OwnVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

struct StorageSession::Handlers {
  struct sigaction interrupt = {}, end = {};
};

StorageSession::StorageSession(Connect connect, std::filesystem::path home)
    : connect_(std::move(connect)), home_(std::move(home)), former_(std::make_unique<Handlers>()) {
  interrupted = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { interrupted = true; };
  ::sigaction(SIGINT, &action, &former_->interrupt);
  ::sigaction(SIGTERM, &action, &former_->end);
}

StorageSession::~StorageSession() {
  ::sigaction(SIGINT, &former_->interrupt, nullptr);
  ::sigaction(SIGTERM, &former_->end, nullptr);
}

const std::atomic<bool>& StorageSession::cancelled() const { return interrupted; }

absl::Status StorageSession::ReadNames() {
  if (has_names_) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(names_.datastores, spec::ReadDatastores(home_));
  TUTTI_ASSIGN_OR_RETURN(names_.data, spec::ReadAssets(home_, spec::AssetKind::kData));
  names_.directory = std::filesystem::current_path();
  has_names_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StorageSide>> StorageSession::Open(const std::string& text) {
  TUTTI_RETURN_IF_ERROR(ReadNames());
  TUTTI_ASSIGN_OR_RETURN(StorageAddress address, ParseStorageAddress(text, names_));
  if (address.is_job()) return JobSideOf(std::move(address), connect_);
  return StoreSideOf(std::move(address), connect_, OwnVariable, interrupted);
}

}  // namespace tutti::client
