// MeasureLinks measures what the links of a group cost; all its ranks try at once when it forms: a
// byte to the right neighbour and one from the left, then 64 KiB, and a megabyte where those were
// quick, each until the neighbour's receipt has come. Some milliseconds, at most about 25. Rank 0's
// numbers are everybody's, so that all choose alike.
#pragma once

#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/selection.h"

namespace tutti::comm {

// Measures the links. Every rank must call it, as a collective.
absl::StatusOr<LinkCost> MeasureLinks(Links& links, base::Deadline deadline);

}  // namespace tutti::comm
