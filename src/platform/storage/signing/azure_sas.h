// Makes shared access signatures of Azure: the right to do some things in one container or share,
// or with one blob or file, for a limited time, which the account's key is not needed for
// afterwards. Pure function; thread-safe.
// https://learn.microsoft.com/rest/api/storageservices/create-service-sas
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spec/types/data_place.h"

namespace tutti::storage {

struct SasTerms {
  bool write = false;       // of one object: to put it alone; else also to write, remove and rename
  bool one_object = false;  // the place's object alone; else the container, which may be listed too
  absl::Time expires;
};

// Returns "sv=…&sig=…", without "?". InvalidArgument if the key is not base64, or the place is
// neither a container of blobs nor a share of files.
absl::StatusOr<std::string> AzureSas(const spec::DataPlace& place, absl::string_view account_key,
                                     const SasTerms& terms);

}  // namespace tutti::storage
