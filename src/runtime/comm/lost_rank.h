// Makes errors that name the rank they are about: the rank travels as a payload of the status,
// where LostRank() of communicator.h finds it.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::comm {

absl::Status ErrorAboutRank(int rank, absl::StatusCode code, absl::string_view text);

}  // namespace tutti::comm
