// What to do about failures that are known by their words. A pure function.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::service {

// One clause for the end of a reason, from a process's last words; "" if they are not known.
absl::string_view MendOf(absl::string_view last_error);

}  // namespace tutti::service
