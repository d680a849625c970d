// Look is what the user of `tutti top` has chosen to see; Turn changes it by a key. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "platform/client/connection/usage_view.h"
#include "platform/client/connection/views.h"
#include "platform/client/top/live_view.h"

namespace tutti::client {

enum class Key { kUp, kDown, kPageUp, kPageDown, kFirst, kLast, kEnter, kBack, kOrder, kQuit };

// Takes whole keys from the beginning of `bytes`, as a terminal sends them, and passes over those
// that mean nothing here. An escape sequence that may go on stays, unless `is_all` says that
// nothing more comes soon: ESC alone is a key, too.
std::vector<Key> TakeKeys(std::string& bytes, bool is_all);

// kState: those that run, then those that prepare or end, then those that wait, the newest first;
// nodes and ranks as they are numbered.
enum class Order { kState, kCores, kMemory, kName };
absl::string_view Name(Order order);

struct Look {
  std::string open;      // the job whose ranks are seen; "": all nodes and jobs
  std::string selected;  // of all jobs, by its id; "": the first
  int row = 0;           // of an open job, of its nodes and ranks
  Order order = Order::kState;
};

// Return the jobs of a view of all, its nodes, and the usage of an open job, in an order.
std::vector<JobView> InOrder(const LiveView& view, Order order);
std::vector<NodeView> NodesInOrder(const LiveView& view, Order order);
JobUsageView RanksInOrder(const JobUsageView& usage, Order order);

// Returns the place of the selected job, 0 where it is gone.
int PlaceOf(const std::vector<JobView>& jobs, const std::string& selected);

// Returns what is seen once the key was pressed. kQuit changes nothing. `page`: rows that a page
// has.
Look Turn(Look look, Key key, const LiveView& view, int page);

}  // namespace tutti::client
