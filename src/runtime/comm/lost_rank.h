// Makes errors that name the rank they are about: the rank travels as a payload of the status,
// where LostRank() of communicator.h finds it.
#pragma once

#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::comm {

absl::Status ErrorAboutRank(int rank, absl::StatusCode code, absl::string_view text);

// Returns an error about a rank of a smaller group as one about whole[rank], the same one's number
// in the whole group; others as they are.
absl::Status Renumbered(const absl::Status& status, std::span<const int> whole);

}  // namespace tutti::comm
