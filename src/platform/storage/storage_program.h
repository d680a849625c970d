// Runs `tutti-storage`, which moves objects between stores and folders, as a process of its own:
// what it does to memory, threads and descriptors ends with it. Thread-safe.
//
//   TUTTI_ASSIGN_OR_RETURN(request.credentials, CredentialsFrom(place.credential, value));
//   TUTTI_ASSIGN_OR_RETURN(const StorageResult result,
//                          RunStorage(request, deadline, cancelled, progress));
#pragma once

#include <sys/types.h>

#include <atomic>
#include <filesystem>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/process/child_process.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

inline constexpr char kStorageProgram[] = "tutti-storage";

// Runs the program to its end; blocks. `progress` is called in the caller's thread, at most about
// twice a second, and may be empty. The request goes by a file in memory, so credentials are on no
// command line, in no variable and on no disk. `lock`, a locked descriptor (flock) or -1: the
// program keeps it open, so that what it locks stays locked until the program, which may outlive
// who has killed it, has ended too.
//
// Errors, whose message is one line that names the store and never a secret, and which say what
// they are about (storage_fault.h; kNone if the store has said nothing):
//   PermissionDenied    the store does not take the credentials, or they may not do this
//   NotFound            no such container, or nothing at the path
//   Unavailable         the store cannot be reached, or has failed again and again
//   ResourceExhausted   the disk is full
//   Aborted             an object has changed while it was fetched
//   DataLoss            what came is not what the store has, by its checksum
//   InvalidArgument     the request is wrong, or asks for what cannot be had
//   Unknown             the store does not do this, or says what is not known here
//   FailedPrecondition  the program is not there; says how to get it
//   DeadlineExceeded, Cancelled   it was killed, a put once it has given back what the store had
//                       begun to take, within 10 s; the same request goes on where it was
//   Internal            it has ended without an answer; has the end of what it printed
absl::StatusOr<StorageResult> RunStorage(
    const StorageRequest& request, base::Deadline deadline, const std::atomic<bool>& cancelled,
    const std::function<void(const StorageProgress&)>& progress, int lock = -1);
// StorageListener is called while the program runs; any of the functions may be empty.
struct StorageListener {
  std::function<void(pid_t)> began = {};  // the program's process, before it does anything
  std::function<void(const StorageProgress&)> progress = {};
  // Is called at the end, also if the request has failed, with each object that the program
  // reports.
  std::function<void(const StoredObject&)> object = {};
  // The program is killed, with DeadlineExceeded, once it has told nothing for so long. While bytes
  // come or go it tells of them about twice a second.
  absl::Duration longest_silence = absl::InfiniteDuration();
};
// Does the same by the program of that path.
absl::StatusOr<StorageResult> RunStorageWatched(const std::filesystem::path& program,
                                                const StorageRequest& request,
                                                base::Deadline deadline,
                                                const std::atomic<bool>& cancelled,
                                                const StorageListener& listener, int lock = -1);
// Does the same with the program at that path.
absl::StatusOr<StorageResult> RunStorageAt(
    const std::filesystem::path& program, const StorageRequest& request, base::Deadline deadline,
    const std::atomic<bool>& cancelled, const std::function<void(const StorageProgress&)>& progress,
    int lock = -1);

// StreamHome is the cache out of which a program serves a place.
struct StreamHome {
  std::filesystem::path cache;
  uint64_t most_bytes = 0;  // of the disk, beside the program's own bound; 0: that alone
  // For a cache on a disk that a job's nodes share: this node's name, and how many nodes there are.
  std::string node;
  int nodes = 1;
  std::filesystem::path list;  // what StorageRequest::list_file got of the place; empty: it lists
};

// Starts the program to serve the request's place at a socket out of a node's cache
// (docs/formats/stream.md), and does not wait. It ends when nobody has read for a while; it
// outlives this process.
absl::StatusOr<base::ChildProcess> StartStream(const std::filesystem::path& program,
                                               const StorageRequest& request,
                                               const std::filesystem::path& socket,
                                               const StreamHome& home);

// Returns the program that RunStorage runs: $TUTTI_STORAGE_PROGRAM, else tutti-storage in the
// folder of this process's own program. FailedPrecondition if it is not there.
absl::StatusOr<std::filesystem::path> StorageProgram();

}  // namespace tutti::storage
