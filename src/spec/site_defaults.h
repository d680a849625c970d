// The tables that come with tutti, in the form of site.yml. Inside the room spec only.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::spec {

extern const absl::string_view kSiteDefaults;

// What places in it are called, before a colon and the line.
inline constexpr absl::string_view kBuiltInTable = "built-in table";

}  // namespace tutti::spec
