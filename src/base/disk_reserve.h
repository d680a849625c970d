// DiskReserve holds room on a disk by a file until it is needed: what must be written although the
// disk is full gets a part of it. Thread-safe.
//
//   base::DiskReserve reserve(home / "reserve");
//   reserve.Restore();                                       // as there is room
//   while (IsResourceExhausted(status) && reserve.GiveUp()) status = Write();
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tutti::base {

class DiskReserve {
 public:
  // Takes over what an earlier process left of the reserve in `file`. Makes no file: call Restore
  // for that.
  explicit DiskReserve(std::filesystem::path file) : file_(std::move(file)) {}

  // Gives a part of it back to the disk, so that others get as little of it as can be. False if
  // nothing is left of it.
  bool GiveUp();
  // Makes it whole again where `spare` bytes stay free beside it: 16 MiB, but no more than a
  // sixteenth of the disk. True if it is whole then.
  bool Restore(uint64_t spare);
  uint64_t bytes() const;

 private:
  const std::filesystem::path file_;
  mutable absl::Mutex mutex_;
};

}  // namespace tutti::base
