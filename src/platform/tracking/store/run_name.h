#pragma once

#include <string>

namespace tutti::tracking {

// Returns a name for a run that has none, as "calm-otter-417": one that people can tell from others
// on a page.
std::string RandomRunName();

}  // namespace tutti::tracking
