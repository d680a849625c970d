// How outputs are brought to places outside of the service once no process of the job runs.
#pragma once

namespace tutti::launch {

enum class Storing {
  kUntilThere,    // failures are waited out
  kOnce,          // what there is, as far as it goes
  kFinishedOnly,  // the same without what may be half written, as its processes were killed in it
};

}  // namespace tutti::launch
