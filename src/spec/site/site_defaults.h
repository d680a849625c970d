// Holds the tables that come with tutti, in the form of site.yml. Inside the room spec only.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::spec {

extern const absl::string_view kSiteDefaults;
// The names that Azure ML publishes, version by version; they come before those of kSiteDefaults.
extern const absl::string_view kCuratedEnvironments;

// Places in the tables are called so, before a colon and the line. Each name begins with the first.
inline constexpr absl::string_view kBuiltInTable = "built-in table";
inline constexpr absl::string_view kCuratedTable = "built-in table of curated environments";

// Returns whether a rule's or requirement's place is in one of them, and in no file of the user.
bool IsInBuiltInTable(absl::string_view location);

}  // namespace tutti::spec
