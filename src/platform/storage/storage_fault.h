// Notes on an error of a request what it is about, beside its code: the same code of a store and of
// this machine's disk has different remedies. The notes are payloads of the status, which stay with
// it through tutti-storage's answer. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::storage {

enum class FaultSource {
  kNone,   // nothing is known of the store: the error is of who asks it
  kStore,  // the store, or the way to it
  kLogin,  // the store does not take the credentials, whatever they are used for
  kDisk,   // a file or the disk of this machine
};

// Notes what an error is about, and reads it back. OK stays OK.
absl::Status WithSource(absl::Status status, FaultSource source);
FaultSource SourceOf(const absl::Status& status);
// Returns "", "store", "login", "disk"; of a name that is not known kStore.
absl::string_view Name(FaultSource source);
FaultSource SourceFromName(absl::string_view name);

// Notes which object an error is about, and reads it back: "" if it is about none.
absl::Status AboutObject(absl::Status status, absl::string_view path);
std::string ObjectOf(const absl::Status& status);

// Notes how many bytes of this machine's disk a fetch lacks beyond those that it has found free,
// and reads it back: 0 where that is not known.
absl::Status WithLacking(absl::Status status, int64_t bytes);
int64_t LackingOf(const absl::Status& status);

// Takes the error of one of several objects into `first`, which stays the first one, but that one
// which another try may mend goes before a refusal for good (InvalidArgument).
void TakeFailure(const absl::Status& failure, absl::Status& first);

// Returns whether each object would meet the same error: the store is away or full, has no such
// container, or does not take the credentials.
bool ConcernsAllObjects(const absl::Status& status);

}  // namespace tutti::storage
