// The tables that come with tutti, in the form of site.yml. Inside the room spec only.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::spec {

extern const absl::string_view kSiteDefaults;

}  // namespace tutti::spec
