// ChainBroadcast sends large data along a chain from the root over its right neighbours, through
// which the bytes pass as one stream. Each link carries them once, and all links are busy at the
// same time.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/comm/collective/links.h"

namespace tutti::comm {

absl::Status ChainBroadcast(Links& links, std::span<std::byte> data, int root,
                            base::Deadline deadline);

}  // namespace tutti::comm
