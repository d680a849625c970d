// ChooseStreams finds by trying how many TCP streams a link deserves: both sides move a burst both
// ways at once over one stream, two, and four, and the opener tells the listener which was fastest.
// More streams must win by a tenth, for they cost calls. Takes about 10 ms, and at most half a
// second on a link so slow that it does not matter.
#pragma once

#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/transport/striped_channel.h"

namespace tutti::comm {

inline constexpr int kMostMeasuredStreams = 4;

// Chooses on a channel that carries nothing yet; both sides must call it at once.
absl::Status ChooseStreams(StripedChannel& channel, Side side, const Patience& patience);

}  // namespace tutti::comm
