// Makes of a job's input or output in a store what `tutti-storage` is asked, and of what it answers
// the line that a user reads. Shared by the service, which looks before a job queues, and the
// launcher, which fetches and puts. Pure functions; thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/storage/storage_request.h"
#include "spec/types/job.h"

namespace tutti::storage {

// Returns what an input of that type must be: a file, a folder, or, of a model, either.
PlaceType PlaceTypeOf(const spec::Input& input);

// Returns the folder that holds what a place's path names: "a" of "a/b", "" of "b", "/" of "/b".
std::string FolderOf(const std::string& path);

// Returns the request for an input that has a place, without a folder. `secrets`: values by the
// secrets' names, of which it takes the place's. FailedPrecondition if that is not among them or
// does not hold credentials of the place's kind, or is of a datastore that was replaced by another
// store: the new credentials are for that, and the input is where it was when the job was accepted.
absl::StatusOr<StorageRequest> RequestFor(Operation operation, const spec::Input& input,
                                          const std::map<std::string, std::string>& secrets);

// Returns the same of an output that has a place: it is of the folder that its files are put into,
// of a uri_file that which holds the file. `job`: the job's name for its path; empty: it has none
// yet.
absl::StatusOr<StorageRequest> RequestFor(Operation operation, const spec::Output& output,
                                          absl::string_view job,
                                          const std::map<std::string, std::string>& secrets);

// Returns why the output cannot be put there, in one line: what `status` says, and what to do about
// what it is about (storage_fault.h): of an error without a source nothing is added.
std::string OutputFault(const spec::Output& output, const absl::Status& status);

// Returns why what the output's place has cannot be had before the job's processes start, likewise.
std::string EarlierFault(const spec::Output& output, const absl::Status& status);

// Returns why the input cannot be had, in one line: what `status` says, and what to do.
std::string InputFault(const spec::Input& input, const absl::Status& status);

}  // namespace tutti::storage
