// Checks the name of an image as registries have it:
// [HOST[:PORT]/]NAME[/NAME…][:TAG][@sha256:DIGEST]. Thread-safe.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns whether podman would take `text` for such a name, by the grammar of the distribution
// project (distribution/reference). No option of a command line is one.
bool IsImageReference(absl::string_view text);

}  // namespace tutti::spec
