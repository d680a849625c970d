// DataStream serves an input of a job that its program reads by itself (mode: direct) and that lies
// in a datastore: the job's processes have its address and the node's cache, and no credentials, so
// that the launcher, which has them, runs `tutti-storage stream` for them (decision 072). A program
// that ends meanwhile is started anew. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/child_process.h"
#include "base/unique_fd.h"
#include "platform/storage/storage_program.h"
#include "platform/storage/storage_request.h"

namespace tutti::launch {

class DataStream {
 public:
  // Returns once the program has listed the place; Cancelled once `cancelled` is set. `address`: as
  // the processes name it; `home.cache`: the node's, as TUTTI_DATA_CACHE tells them, and
  // `home.list`, which may be removed then: one that is started anew lists the place, and is not
  // told of it; `name`: as TUTTI_DATA_STREAM does (stream_name.h). Errors are those of
  // storage::RunStorage.
  static absl::StatusOr<std::unique_ptr<DataStream>> Open(
      std::filesystem::path program, storage::StorageRequest request, const std::string& address,
      storage::StreamHome home, const std::string& name, const std::atomic<bool>& cancelled);
  // Nobody is served any more, unless another job of the node has the same name.
  ~DataStream();
  DataStream(const DataStream&) = delete;
  DataStream& operator=(const DataStream&) = delete;

 private:
  DataStream(std::filesystem::path program, storage::StorageRequest request,
             std::filesystem::path socket, storage::StreamHome home)
      : program_(std::move(program)),
        request_(std::move(request)),
        socket_(std::move(socket)),
        home_(std::move(home)) {}
  absl::Status Connect(const std::atomic<bool>& cancelled);
  absl::Status StartUnlessItRuns();
  absl::Status Reach(const std::atomic<bool>& cancelled);
  absl::StatusOr<std::string> Greeting(const std::atomic<bool>& cancelled);
  void Keep();

  const std::filesystem::path program_;
  const storage::StorageRequest request_;
  const std::filesystem::path socket_;
  storage::StreamHome home_;  // as it is once Open has returned
  std::optional<base::ChildProcess> running_;
  base::UniqueFd connection_;  // as long as it is open the program serves
  std::atomic<bool> ending_ = false;
  std::thread keeper_;
};

}  // namespace tutti::launch
