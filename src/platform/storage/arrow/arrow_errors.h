// Tells from what Arrow and the providers' libraries say of an error what it is. Pure functions.
#pragma once

#include <arrow/status.h>

#include "absl/status/status.h"

namespace tutti::storage {

// Returns the error by its kind, as object_store.h has them, with a phrase that says what to do and
// the store's own name of the error. Of Arrow's text nothing else is in it: that has addresses, and
// with them signatures.
absl::Status StatusFrom(const arrow::Status& status);

}  // namespace tutti::storage
