// Cursors say where a page of trials ends: an opaque text, safe in an URL. Pure functions.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/store/store.h"

namespace tutti::service {

// Returns the cursor of the trials behind this one.
std::string TrialCursor(store::TrialFilter::Order order, const store::TrialRecord& last);
// Has the filter begin there. InvalidArgument for what is no cursor of the filter's order.
absl::Status BeginBehind(absl::string_view cursor, store::TrialFilter& filter);

}  // namespace tutti::service
