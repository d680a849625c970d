// Tells this program apart from the same program built from other sources.
#pragma once

#include <string>

namespace tutti::base {

// Returns the build ID that the linker left in this program, in hexadecimal digits as `readelf
// --notes` prints it: other code, another one. Libraries that it loads are not part of it. Empty
// where the linker leaves none. Thread-safe.
std::string BuildIdOfThisProgram();

}  // namespace tutti::base
