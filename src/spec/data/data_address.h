// Finds where in a store an address lies: "azureml://datastores/NAME/paths/PATH",
// "wasbs://CONTAINER@ACCOUNT.blob.core.windows.net/PATH", abfss:, a blob's https:,
// "s3://BUCKET/PATH", "gs://BUCKET/PATH". Pure functions; thread-safe.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/datastore.h"
#include "spec/types/data_place.h"

namespace tutti::spec {

// Returns the place; nothing for an address of another kind, such as "azureml:NAME:1" or https of
// no store, and for one with a query, which may be a signature. An address whose container is a
// datastore's is reached as the datastore says, with its credentials; of several by the first of
// their names. Without one the place is public. Of a datastore that is a folder the place has the
// absolute path.
//
// NotFound: it names a datastore that is not there, and says which is like it. InvalidArgument: it
// names no container, its path has "..", or it is a pattern where none can be.
absl::StatusOr<std::optional<DataPlace>> PlaceOf(absl::string_view address,
                                                 const Datastores& datastores);

}  // namespace tutti::spec
