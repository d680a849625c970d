// AllReduce all-reduces over links by the algorithm that selection.h expects to be the fastest.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/comm/collective/links.h"
#include "runtime/comm/collective/reduction/reduce.h"

namespace tutti::comm {

// Reduces `count` elements at `data` in place. All ranks of the links call it alike.
absl::Status AllReduce(Links& links, std::byte* data, size_t count, const Reduction& reduction,
                       base::Deadline deadline);

}  // namespace tutti::comm
