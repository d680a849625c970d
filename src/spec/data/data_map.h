// Parses the addresses of data that lies elsewhere, and finds the local copies that serve them:
// `tutti data map https://account.blob.core.windows.net/datasets /data/datasets`. One blob has
// several addresses (https, wasbs, abfss; a datastore with or without its workspace): all of them
// are served.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns whether `text` is an address and no path: "https://…", "wasbs://…", "azureml:NAME:1". Not
// "file:…", which is a path.
bool IsAddress(absl::string_view text);

// Returns whether `text` is an address whose path is percent-encoded, and ends at a "?": that of a
// server, and none of azureml:, s3: or gs:.
bool IsUrl(absl::string_view text);

// Returns the one form of all addresses of a thing: without query, trailing slash and upper case in
// the host; blobs by https; "azureml:NAME/versions/1" for data and models by name.
std::string CanonicalAddress(absl::string_view address);

// Returns the address by http or https of the file that `address` names: itself, or that of a blob
// by wasbs or abfss; "" if it has none.
std::string WebAddress(absl::string_view address);

// Returns whether the last part of an address or a path has an ending:
// "https://example.org/data.csv".
bool LooksLikeAFile(absl::string_view address);

// Returns an address as messages show it: not too long, and without what may be a key: its query
// ("?sv=…&sig=…") and its user.
std::string ShownAddress(absl::string_view address);
// Returns an address without its query, and a path as it is.
std::string WithoutQuery(absl::string_view address);
// Returns whether an address has a signature, by which whoever knows it reads: "?sv=…&sig=…".
bool IsSigned(absl::string_view address);

// Returns where the path of an address by http or https begins, "/FILE" of
// "https://USER@HOST:PORT/FILE". libcurl finds the server by what stands before that, and takes
// "https:///" for "https://".
size_t EndOfServer(absl::string_view address);
// Returns whether an address by http or https has a user, with whom a password or a token may stand
// ("https://USER:PASSWORD@HOST/FILE", "https://TOKEN@HOST/REPOSITORY.git").
bool HasUser(absl::string_view address);

// Returns a prefix that serves `address` and what lies beside it, for advice.
std::string PrefixToMap(absl::string_view address);

// Returns where what an earlier job has left lies, below `jobs`, the folder of all jobs' results:
// "azureml://jobs/JOB/outputs/NAME/paths/PATH", with "artifacts" for what it left in ./outputs and
// ./logs, and "runs:/JOB/PATH", which counts from its ./outputs. NotFound if `address` is of
// another form; InvalidArgument if it leads out of the job's results.
absl::StatusOr<std::string> PathOfJobOutput(absl::string_view address, absl::string_view jobs);
// Returns the same as the job's name and the path in its results, "outputs/model".
struct JobOutput {
  std::string job, path;
};
absl::StatusOr<JobOutput> OutputOfAddress(absl::string_view address);

// Thread-compatible.
class DataMap {
 public:
  struct Entry {
    std::string prefix;  // as the user wrote it
    std::string folder;  // absolute; a file, if `prefix` is the address of one
  };

  // Adds a prefix; one that is there already gets the new folder. InvalidArgument if `prefix` is no
  // address or `folder` no absolute path.
  absl::Status Add(absl::string_view prefix, absl::string_view folder);
  // Removes the prefix; NotFound if it is not there.
  absl::Status Remove(absl::string_view prefix);

  // Returns where a copy of `address` should lie, by the longest prefix that it has; whether it is
  // there is not looked at. NotFound if it has none; InvalidArgument if its path leaves the folder.
  absl::StatusOr<std::string> Find(absl::string_view address) const;

  // Lists the entries by their canonical prefixes.
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace tutti::spec
