#include "runtime/train/report/trace.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::train {
namespace {

enum Thread { kSteps = 0, kPasses = 1, kCommunication = 2 };  // the last one, and those behind

absl::string_view NameOf(SpanKind kind) {
  const auto number = static_cast<size_t>(kind);
  if (number < kStepParts.size()) return kStepParts[number].name;
  switch (kind) {
    case SpanKind::kEvaluation:
      return "evaluation";
    case SpanKind::kCheckpoint:
      return "checkpoint";
    case SpanKind::kForwardPass:
      return "forward";
    case SpanKind::kBackwardPass:
      return "backward";
    case SpanKind::kAllReduce:
      return "all-reduce";
    case SpanKind::kReduceScatter:
      return "reduce-scatter";
    case SpanKind::kBroadcast:
      return "broadcast";
    case SpanKind::kAllGather:
      return "all-gather";
    case SpanKind::kAllToAll:
      return "all-to-all";
    case SpanKind::kBarrier:
      return "barrier";
    case SpanKind::kSend:
      return "send";
    default:
      return "receive";
  }
}

std::string NameEvent(size_t rank, int thread, absl::string_view what, absl::string_view name) {
  return absl::StrFormat(R"({"name":"%s","ph":"M","pid":%d,"tid":%d,"args":{"name":"%s"}})", what,
                         rank, thread, name);
}

// How a span is shown.
struct Shown {
  std::string name;
  absl::string_view category, detail;
  Thread thread;
};

Shown ShownOf(const TraceSpan& span) {
  const auto kind = static_cast<SpanKind>(span.kind);
  if (kind == SpanKind::kForwardPass || kind == SpanKind::kBackwardPass) {
    return {absl::StrCat(NameOf(kind), " ", static_cast<int64_t>(span.detail)), "pipeline",
            "micro-batch", kPasses};
  }
  if (kind >= SpanKind::kAllReduce) {
    return {std::string(NameOf(kind)), "communication", "bytes", kCommunication};
  }
  return {std::string(NameOf(kind)), "step", "step", kSteps};
}

// Returns for each span the first thread on which nothing else goes on then: of what goes over the
// network several things do.
std::vector<int> ThreadsOf(const std::vector<TraceSpan>& spans) {
  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return spans[a].begin < spans[b].begin; });
  std::vector<int> threads(spans.size());
  std::vector<double> free_from;  // by thread of communication
  for (const size_t i : order) {
    threads[i] = ShownOf(spans[i]).thread;
    if (threads[i] != kCommunication) continue;
    auto lane = std::find_if(free_from.begin(), free_from.end(),
                             [&](double end) { return end <= spans[i].begin; });
    if (lane == free_from.end()) lane = free_from.insert(lane, 0);
    threads[i] += static_cast<int>(lane - free_from.begin());
    *lane = spans[i].begin + spans[i].seconds;
  }
  return threads;
}

std::string Event(size_t rank, const TraceSpan& span, int thread) {
  const Shown shown = ShownOf(span);
  return absl::StrFormat(
      R"({"name":"%s","cat":"%s","ph":"X","ts":%.3f,"dur":%.3f,"pid":%d,"tid":%d,"args":{"%s":%d}})",
      shown.name, shown.category, 1e6 * span.begin, 1e6 * span.seconds, rank, thread, shown.detail,
      static_cast<int64_t>(span.detail));
}

}  // namespace

void Trace::Begin(absl::Duration now) {
  const std::lock_guard lock(mutex_);
  origin_ = now;
  spans_.clear();
  next_ = 0;
}

void Trace::Push(const TraceSpan& span) {
  if (spans_.size() < capacity_) {
    spans_.push_back(span);
  } else {
    spans_[next_] = span;
    next_ = (next_ + 1) % capacity_;
  }
}

void Trace::Add(SpanKind kind, double seconds, absl::Duration now, int64_t detail) {
  const std::lock_guard lock(mutex_);
  Push({static_cast<double>(kind), absl::ToDoubleSeconds(now - origin_) - seconds, seconds,
        static_cast<double>(detail)});
}

void Trace::AddStep(int64_t step, const StepParts& parts, absl::Duration now) {
  const std::lock_guard lock(mutex_);
  // "other" came before the step's own parts.
  double begin = absl::ToDoubleSeconds(now - origin_) - parts.Sum();
  const auto push = [&](size_t kind, double seconds) {
    Push({static_cast<double>(kind), begin, seconds, static_cast<double>(step)});
    begin += seconds;
  };
  push(kStepParts.size() - 1, parts.other);
  for (size_t kind = 0; kind + 1 < kStepParts.size(); ++kind) {
    push(kind, parts.*kStepParts[kind].seconds);
  }
}

std::vector<TraceSpan> Trace::Spans() const {
  const std::lock_guard lock(mutex_);
  std::vector<TraceSpan> spans = spans_;
  std::rotate(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(next_), spans.end());
  return spans;
}

std::string ChromeTrace(std::span<const std::vector<TraceSpan>> ranks) {
  std::string json = R"({"displayTimeUnit":"ms","traceEvents":[)";
  const char* separator = "\n";
  const auto add = [&](const std::string& event) {
    absl::StrAppend(&json, separator, event);
    separator = ",\n";
  };
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    add(NameEvent(rank, kSteps, "process_name", absl::StrCat("rank ", rank)));
    add(NameEvent(rank, kSteps, "thread_name", "steps"));
    const std::vector<int> threads = ThreadsOf(ranks[rank]);
    const int last = threads.empty() ? 0 : *std::max_element(threads.begin(), threads.end());
    for (int thread = kCommunication; thread <= std::max<int>(last, kCommunication); ++thread) {
      add(NameEvent(rank, thread, "thread_name", "communication"));
    }
    const bool has_passes = std::any_of(ranks[rank].begin(), ranks[rank].end(), [](const auto& s) {
      return static_cast<SpanKind>(s.kind) == SpanKind::kForwardPass;
    });
    if (has_passes) add(NameEvent(rank, kPasses, "thread_name", "micro-batches"));
    for (size_t i = 0; i < threads.size(); ++i) add(Event(rank, ranks[rank][i], threads[i]));
  }
  return json + "\n]}\n";
}

}  // namespace tutti::train
