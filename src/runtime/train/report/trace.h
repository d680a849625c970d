// Trace records what this rank did lately and when, for a timeline of all ranks in chrome://tracing
// or ui.perfetto.dev: the parts of its steps on one line, its collectives on another.
//
// Invariant: at most `capacity` spans are kept, the latest. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/train/report/meter.h"

namespace tutti::train {

enum class SpanKind {
  kPart0 = 0,  // and on: the step's parts, in the order of kStepParts
  kEvaluation = kStepParts.size(),
  kCheckpoint,
  kForwardPass,  // of a micro-batch by a stage, on a line of its own
  kBackwardPass,
  kAllReduce,  // from here on the communication's threads
  kReduceScatter,
  kBroadcast,
  kAllGather,
  kAllToAll,
  kBarrier,
  kSend,
  kReceive,  // from when its first bytes are there, of a mailbox
  kEnd
};

// Four numbers, so that ranks send spans to each other as an array.
struct TraceSpan {
  double kind = 0;   // SpanKind
  double begin = 0;  // seconds since the trace's beginning
  double seconds = 0;
  double detail = 0;  // the step, from 1; the micro-batch; bytes of a collective
};
static_assert(sizeof(TraceSpan) == 4 * sizeof(double));

class Trace {
 public:
  explicit Trace(size_t capacity) : capacity_(capacity) {}

  // Sets the time that all ranks call zero, on the clock of base::SteadyNow. Drops what there is.
  void Begin(absl::Duration now);
  // Adds a span that ends now.
  void Add(SpanKind kind, double seconds, absl::Duration now, int64_t detail);
  // Adds the parts of a step one after the other, of which the last ends now; backward's
  // communication has its own spans. With several micro-batches a part is the sum over them.
  void AddStep(int64_t step, const StepParts& parts, absl::Duration now);

  // Returns the spans in the order in which they ended.
  std::vector<TraceSpan> Spans() const;
  size_t capacity() const { return capacity_; }

 private:
  void Push(const TraceSpan& span);

  const size_t capacity_;
  mutable std::mutex mutex_;
  absl::Duration origin_ = absl::ZeroDuration();
  std::vector<TraceSpan> spans_;  // a ring from capacity_ on
  size_t next_ = 0;
};

// Returns the trace event format's JSON object: a process a rank, in it a thread for steps, as many
// for communication as went on at a time and, of a pipeline, one for the passes of micro-batches
// ("forward 3").
std::string ChromeTrace(std::span<const std::vector<TraceSpan>> ranks);

}  // namespace tutti::train
