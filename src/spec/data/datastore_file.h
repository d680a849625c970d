// Reads Azure ML's datastore files (azure_blob, azure_data_lake_gen2, azure_file), and tutti's own
// types in the same form: s3, gcs, and local or nfs for a folder that is on every node. Pure
// function; thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/datastore.h"

namespace tutti::spec {

struct DatastoreFile {
  Datastore datastore;
  // Its secret (DataPlace::secret) is to be this, a JSON object of the credentials' fields. Empty:
  // the file has none, or names a secret that is there. No message has any of it.
  std::string credentials;
  std::vector<std::string> warnings;
};

// Reads the text of a datastore file; relative paths count from `folder`. InvalidArgument holds all
// errors, with their lines.
absl::StatusOr<DatastoreFile> ReadDatastoreFile(absl::string_view text, absl::string_view file_name,
                                                const std::filesystem::path& folder);

}  // namespace tutti::spec
