// Shows the children of a pipeline or a sweep as a tree, for `tutti job show`.
#pragma once

#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"
#include "platform/client/jobs/summary.h"

namespace tutti::client {

// Writes a line for each child. Of a sweep that has more trials than were fetched, the best ones
// and some that failed, and how to see the others.
void ShowChildren(Context& context, ServiceClient& service, const JobView& job, Extent extent);

}  // namespace tutti::client
