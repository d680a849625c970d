// Says who gives a service principal its tokens. Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::storage {

// Returns the URL of Microsoft Entra ID, or who stands for it, as requests begin with it: `given`
// or, where that is empty, `of_environment` (AZURE_AUTHORITY_HOST), without the slash that Azure
// writes at its end; "" where both are empty. InvalidArgument unless the secret may go there
// (base/text/secure_url.h).
absl::StatusOr<std::string> LoginAuthority(absl::string_view given,
                                           absl::string_view of_environment);

}  // namespace tutti::storage
