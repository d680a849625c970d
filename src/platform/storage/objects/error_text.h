// Tells from what Arrow and the providers' libraries say of an error what it is. Pure function.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::storage {

// Returns the error by its kind, as object_store.h has them, with a phrase that says what to do and
// the store's own name of the error; what is wrong with the credentials themselves, whatever they
// are used for, has the source kLogin (storage_fault.h). Of the text nothing else is in it: that
// has addresses, and with them signatures. The text may be of any length and of any bytes; its
// beginning counts.
absl::Status StatusFromText(absl::string_view text);

}  // namespace tutti::storage
