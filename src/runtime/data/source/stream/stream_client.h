// StreamClient reads the objects of a place in a store through the program `tutti-storage`, which
// brings them to the node's cache, once for all processes of the node (docs/formats/stream.md). It
// connects to the program that serves the place on this machine, or starts one; a program that
// ends, however it does, is started anew, and the request that it was at is made again. No library
// of a store is linked here, and no credential is read. Not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/process/child_process.h"
#include "base/unique_fd.h"
#include "runtime/data/dataset.h"

namespace tutti::data {

struct StreamedFile {
  std::string path;  // relative to the address
  int64_t bytes = 0;
};

class StreamClient {
 public:
  // Connects. `cancelled` outlives the object; once it is set each call ends with Cancelled within
  // 0.2 s. Errors, one line that names the place: PermissionDenied, NotFound, Unavailable (the
  // store is away, or the program cannot be started), InvalidArgument (no address),
  // FailedPrecondition.
  static absl::StatusOr<std::unique_ptr<StreamClient>> Open(const std::string& address,
                                                            const StreamOptions& options,
                                                            const std::atomic<bool>& cancelled);

  // Returns the bytes of the disk that objects may take.
  int64_t most_bytes() const { return most_bytes_; }
  absl::StatusOr<std::vector<StreamedFile>> List();
  // Returns where a file lies, once it is there; it stays until Drop. Errors as above, and
  // ResourceExhausted, Aborted (it has changed at the store) and DataLoss.
  absl::StatusOr<std::filesystem::path> Get(const std::string& path);
  void Drop(const std::string& path);
  // Says which files are going to be asked for, the next first, in place of what was said before.
  void SetAhead(std::vector<std::string> paths);

 private:
  StreamClient(std::string address, StreamOptions options, const std::atomic<bool>& cancelled)
      : address_(std::move(address)), options_(std::move(options)), cancelled_(cancelled) {}

  absl::Status Connect();
  absl::Status StartProgram();
  absl::StatusOr<base::UniqueFd> Reach(base::Deadline deadline);
  absl::Status TakeGreeting();
  absl::Status Say(absl::string_view text);
  absl::StatusOr<std::string> Line();
  template <typename Answer>
  absl::StatusOr<Answer> Ask(const std::string& request,
                             absl::StatusOr<Answer> (StreamClient::*take)());
  absl::StatusOr<std::vector<StreamedFile>> TakeList();
  absl::StatusOr<std::filesystem::path> TakeFile();

  const std::string address_;
  StreamOptions options_;
  const std::atomic<bool>& cancelled_;
  std::filesystem::path socket_path_;
  std::optional<base::ChildProcess> program_;
  bool had_program_ = false;  // somebody else's served
  base::UniqueFd socket_;
  std::string rest_;  // the beginning of a line
  int64_t most_bytes_ = 0;
  std::vector<std::string> ahead_;
};

}  // namespace tutti::data
