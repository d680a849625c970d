// StorageSession is what the commands of `tutti storage` share: the names that addresses use, and a
// flag that an interrupt sets, by which a transfer ends and gives back what a store had begun to
// take. One at a time in a process; not thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/client/connection/connection.h"
#include "platform/client/storage/storage_side.h"

namespace tutti::client {

class StorageSession {
 public:
  // SIGINT and SIGTERM set the flag as long as it lives.
  StorageSession(Connect connect, std::filesystem::path home);
  ~StorageSession();
  StorageSession(const StorageSession&) = delete;
  StorageSession& operator=(const StorageSession&) = delete;

  // Opens the side of an address.
  absl::StatusOr<std::unique_ptr<StorageSide>> Open(const std::string& text);
  const std::atomic<bool>& cancelled() const;
  const std::filesystem::path& home() const { return home_; }
  const Connect& connect() const { return connect_; }

 private:
  absl::Status ReadNames();

  const Connect connect_;
  const std::filesystem::path home_;
  AddressNames names_;
  bool has_names_ = false;
  struct Handlers;
  const std::unique_ptr<Handlers> former_;
};

}  // namespace tutti::client
