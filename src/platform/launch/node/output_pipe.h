// OutputPipe moves the output of a process from one pipe to its spool file. While the process runs
// it holds at most one block in memory: when the spool takes no more the block waits here and the
// process, in the end, in its write. Not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/text/text_mask.h"
#include "base/unique_fd.h"
#include "platform/launch/node/spool.h"

namespace tutti::launch {

class OutputPipe {
 public:
  // Opens a pipe. The write end goes to the child, and is closed here by CloseWriteEnd after the
  // start. Of a file with a mask secrets are hidden in what is read, before it is kept anywhere.
  static absl::StatusOr<OutputPipe> Open(SpoolFile* spool);

  int read_fd() const { return read_.get(); }
  int write_fd() const { return write_.get(); }
  void CloseWriteEnd() { write_.reset(); }
  bool open() const { return read_.valid(); }
  int rank() const { return spool_->rank(); }

  // Moves up to `most` bytes of what is in the pipe to the spool without waiting; closes at the end
  // of the pipe. Returns how many were moved; ResourceExhausted while the disk is full.
  absl::StatusOr<size_t> Pump(size_t most);

  // Does the same of a process that has ended or is about to, whose last words are wanted now: what
  // the spool does not take is read all the same, up to `most` bytes, and waits here for a Pump.
  void ReadLast(size_t most);

  // Keeps what has been written by now, and of what follows the tail alone: nobody is to see it.
  void KeepNoMore();

  // Returns the last few KiB that were read, for the reason of a failure.
  const std::string& tail() const { return tail_; }
  // Returns when that was; by base::SteadyNow; -InfiniteDuration: never.
  absl::Duration last_read() const { return last_read_; }

 private:
  explicit OutputPipe(SpoolFile* spool) : spool_(spool) {
    if (spool->mask() != nullptr) masked_.emplace(spool->mask());
  }
  absl::Status Keep();
  void Take(absl::string_view bytes);
  // Takes what was held back for secrets, at the end.
  void TakeLast();
  // Reads what is in the pipe, at most one block, to what is held; 0: nothing now, or its end.
  size_t Read();

  SpoolFile* spool_;
  base::UniqueFd read_, write_;
  std::optional<base::MaskedStream> masked_;  // none where there are no secrets
  bool keeps_ = true;
  bool at_end_ = false;  // there is no more to read; still open while something is held
  std::string held_;     // read and not yet in the spool
  std::string tail_;
  absl::Duration last_read_ = -absl::InfiniteDuration();
};

}  // namespace tutti::launch
