// CallCounters counts the answers of a service's HTTP interface, by the route of the call. Calls of
// no route are counted together, so that nobody makes counters by calling what is not there.
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/metrics/histogram.h"
#include "http/server/server.h"
#include "platform/api/routing/router.h"

namespace tutti::api {

// These bound the time from a request's header until its answer begins.
inline constexpr std::array kCallBounds = {
    absl::Milliseconds(1),   absl::Milliseconds(5),   absl::Milliseconds(10),
    absl::Milliseconds(25),  absl::Milliseconds(50),  absl::Milliseconds(100),
    absl::Milliseconds(250), absl::Milliseconds(500), absl::Seconds(2),
    absl::Seconds(10),       absl::Seconds(60)};

struct CallCounts {
  std::string method, route;       // "other" of calls of no route
  std::map<int, int64_t> answers;  // by their status
  base::Histogram times{kCallBounds};
};

class CallCounters {
 public:
  explicit CallCounters(const std::vector<Route>& routes);
  void Add(const http::AnsweredRequest& answered);
  // Returns the routes that have been called.
  std::vector<CallCounts> Read() const;

 private:
  struct OfRoute {
    mutable absl::Mutex mutex;
    CallCounts counts ABSL_GUARDED_BY(mutex);
  };
  std::vector<std::unique_ptr<OfRoute>> routes_;  // the last: of no route
};

// How the HTTP interface is used.
struct HttpUse {
  std::vector<CallCounts> calls;
  http::ConnectionCounts connections;
};

}  // namespace tutti::api
