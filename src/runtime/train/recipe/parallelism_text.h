// Reads and writes `parallel` of a recipe: "{pipeline: 2, data: 3}", "sync=diloco,every=50".
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/parallel/parallelism.h"

namespace tutti::train {

// Reads what is said; what is not said is as usual. InvalidArgument names the entry, and what it
// may be or goes with.
absl::Status ReadParallelism(absl::string_view text, parallel::Parallelism& value);

// Writes it as ReadParallelism would take it, all that applies.
std::string ParallelismText(const parallel::Parallelism& value);

// Writes every entry and what it takes, for help.
const std::string& AboutParallelism();

}  // namespace tutti::train
