#include "runtime/bench/plan/prediction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "runtime/comm/collective/selection.h"
#include "runtime/parallel/flat_model.h"

namespace tutti::bench {
namespace {

constexpr double kMega = 1e6, kGiga = 1e9;
// 1448 bytes of TCP's data in 1538 of the line: headers, preamble and the gap between frames.
constexpr double kTcpPayload = 1448.0 / 1538;
constexpr double kInfiniBandPayload = 0.985;
constexpr int kMostNodes = 1 << 16, kMostOfARange = 8;
constexpr double kMillion = 1e6, kSecondsOfAnHour = 3600;

// Of a message between two programs, where nothing else was said.
constexpr double kSlowLatency = 50e-6, kFastLatency = 20e-6, kInfiniBandLatency = 2e-6;

struct InfiniBand {
  absl::string_view name;
  double bits;
};
constexpr std::array<InfiniBand, 5> kInfiniBands = {
    {{"ib-qdr", 32e9}, {"ib-fdr", 54.5e9}, {"ib-edr", 97e9}, {"ib-hdr", 194e9}, {"ib-ndr", 388e9}}};

absl::StatusOr<double> BitsOf(absl::string_view text) {
  double number = 0;
  for (const auto& [unit, scale] : {std::pair("mbit", kMega), {"gbit", kGiga}}) {
    absl::string_view count = text;
    if (absl::ConsumeSuffix(&count, unit) && absl::SimpleAtod(count, &number) && number > 0 &&
        std::isfinite(number)) {
      return number * scale;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text,
                   "\" is no link: write RATE[:LATENCY], as 1gbit, 100mbit or 25gbit:20us, or "
                   "ib-qdr, ib-fdr, ib-edr, ib-hdr, ib-ndr"));
}

absl::StatusOr<int> CountOf(absl::string_view text) {
  int count = 0;
  if (absl::SimpleAtoi(text, &count) && count >= 1 && count <= kMostNodes) return count;
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is no number of nodes: write 4, 1..8 or 1,2,4, from 1 to ", kMostNodes));
}

// Seconds in which a rank's loader fills a batch, and a file server sends those of all ranks.
struct DataTimes {
  double loader = 0, server = 0;
};

DataTimes DataTimesOf(const NodeFacts& facts, const PlanQuestion& question, int ranks) {
  DataTimes times;
  const LoaderFacts& loader = facts.loader;
  if (loader.images_per_second > 0) {
    const double decoding = question.ranks_per_node * loader.processor_seconds / facts.cores;
    times.loader = facts.batch * std::max(1 / loader.images_per_second, decoding);
  }
  if (question.data_link) {
    const double bytes = ranks * facts.batch * loader.bytes_per_image;
    times.server = bytes / question.data_link->bytes_per_second();
  }
  return times;
}

// By how much a step takes longer because the node's cores compute for all its ranks, and decode
// beside it.
double SlowdownOf(const NodeFacts& facts, const PlanQuestion& question) {
  const double step = facts.parts.Sum();
  if (facts.device != "cpu" || step <= 0) return 1;
  const double decoding = facts.batch * facts.loader.processor_seconds / step;
  return std::max(1.0, question.ranks_per_node * (facts.threads + decoding) / facts.cores);
}

PlanLimit LimitOf(const Prediction& step, const DataTimes& data) {
  if (std::max(data.loader, data.server) > step.step()) {
    return data.server > data.loader ? PlanLimit::kFileServer : PlanLimit::kLoader;
  }
  return step.exposed >= kNetworkLimit * step.step() ? PlanLimit::kNetwork : PlanLimit::kCompute;
}

double BatchOf(const NodeFacts& facts, int ranks) {
  return facts.batch_is_shared ? facts.batch * facts.ranks_per_node / ranks : facts.batch;
}

PlanRow RowWithoutEfficiency(const NodeFacts& given, const PlanQuestion& question, int nodes) {
  PlanRow row;
  row.nodes = nodes;
  row.ranks = nodes * question.ranks_per_node;
  row.batch = BatchOf(given, row.ranks);
  const NodeFacts facts = WithBatch(given, row.batch);
  Work work{facts.parts, row.ranks > facts.ranks ? facts.bucket_bytes : std::vector<double>()};
  if (facts.device != "cpu") {  // adds up when backward has ended
    work.alone.forward += work.alone.backward;
    work.alone.backward = 0;
  }
  row.step =
      PredictStepOver([&](double bytes) { return AllReduceSeconds(facts, question, nodes, bytes); },
                      work, SlowdownOf(facts, question));
  const DataTimes data = DataTimesOf(facts, question, row.ranks);
  row.data = std::max(data.loader, data.server);
  row.seconds = std::max(row.step.step(), row.data);
  row.limit = LimitOf(row.step, data);
  const double images = given.train_images > 0 ? static_cast<double>(given.train_images) : kMillion;
  row.cost = nodes * question.price * images / row.images_per_second() / kSecondsOfAnHour;
  return row;
}

}  // namespace

double NodeFacts::gradient_bytes() const {
  return std::accumulate(bucket_bytes.begin(), bucket_bytes.end(), 0.0);
}

absl::string_view NameOf(PlanLimit limit) {
  switch (limit) {
    case PlanLimit::kBatch:
      return "small batch";
    case PlanLimit::kNetwork:
      return "network";
    case PlanLimit::kLoader:
      return "loader";
    case PlanLimit::kFileServer:
      return "file server";
    case PlanLimit::kCompute:
      break;
  }
  return "compute";
}

absl::StatusOr<NetworkLink> ReadLink(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  NetworkLink link{std::string(text), 0, kInfiniBandLatency, kInfiniBandPayload};
  const auto found = std::find_if(kInfiniBands.begin(), kInfiniBands.end(),
                                  [&](const auto& known) { return known.name == parts.first; });
  if (found != kInfiniBands.end()) {
    link.bits = found->bits;
  } else {
    TUTTI_ASSIGN_OR_RETURN(link.bits, BitsOf(parts.first));
    link.payload = kTcpPayload;
    link.latency = link.bits < 10 * kGiga ? kSlowLatency : kFastLatency;
  }
  if (parts.second.empty()) return link;
  absl::Duration latency;
  if (!absl::ParseDuration(parts.second, &latency) || latency < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", parts.second, "\" is no latency: write 20us or 1ms"));
  }
  link.latency = absl::ToDoubleSeconds(latency);
  return link;
}

absl::StatusOr<std::vector<int>> ReadNodes(absl::string_view text) {
  std::vector<int> nodes;
  const std::vector<absl::string_view> ends = absl::StrSplit(text, "..");
  if (ends.size() != 2) {
    for (const absl::string_view word : absl::StrSplit(text, ',')) {
      TUTTI_ASSIGN_OR_RETURN(const int count, CountOf(word));
      nodes.push_back(count);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }
  TUTTI_ASSIGN_OR_RETURN(const int first, CountOf(ends[0]));
  TUTTI_ASSIGN_OR_RETURN(const int last, CountOf(ends[1]));
  if (first > last) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" goes down: write ", last, "..", first));
  }
  for (int count = first; count < last;) {
    nodes.push_back(count);
    if (last - first < kMostOfARange) {
      ++count;
    } else {  // the next power of two
      int power = 1;
      while (power <= count) power *= 2;
      count = power;
    }
  }
  nodes.push_back(last);
  return nodes;
}

double AllReduceSeconds(const NodeFacts& facts, const PlanQuestion& question, int nodes,
                        double bytes) {
  double seconds = 0;
  const int ranks = question.ranks_per_node;
  if (ranks > facts.ranks && facts.memory_speed > 0) {
    // Each rank reads and writes all of it twice, but for its own part, and writes its part's sum.
    seconds += (3.0 * ranks - 1) * bytes / facts.memory_speed;
  }
  if (nodes == 1) return seconds;
  const comm::LinkCost cost = {question.link.latency, 1 / question.link.bytes_per_second(),
                               comm::kUsualCost.gamma};
  const auto sent = static_cast<size_t>(bytes * facts.wire_share);
  return seconds +
         comm::PredictedSeconds(comm::ChooseAllReduce(sent, nodes, cost), sent, nodes, cost);
}

double FixedShare(const train::StepParts& whole, const train::StepParts& part, double share) {
  const double longer = whole.forward + whole.backward, shorter = part.forward + part.backward;
  const double fixed = (shorter - share * longer) / (1 - share);
  return std::clamp(fixed / longer, 0.0, 1.0);
}

NodeFacts WithBatch(const NodeFacts& facts, double batch) {
  NodeFacts changed = facts;
  const double scale = facts.fixed + (1 - facts.fixed) * batch / facts.batch;
  changed.batch = batch;
  changed.memory += (batch - facts.batch) * facts.memory_of_an_image;
  changed.fixed = facts.fixed / scale;
  changed.parts.forward *= scale;
  changed.parts.backward *= scale;
  return changed;
}

PlanRow PredictRow(const NodeFacts& facts, const PlanQuestion& question, int nodes) {
  PlanRow row = RowWithoutEfficiency(facts, question, nodes);
  const PlanRow one = RowWithoutEfficiency(facts, question, 1);
  row.efficiency = row.images_per_second() / (nodes * one.images_per_second());
  const bool few_images = row.efficiency < 1 - kNetworkLimit;
  if (row.limit == PlanLimit::kCompute && few_images) row.limit = PlanLimit::kBatch;
  return row;
}

absl::StatusOr<std::vector<PlanRow>> PredictRows(const NodeFacts& facts,
                                                 const PlanQuestion& question) {
  std::vector<PlanRow> rows;
  for (const int nodes : question.nodes) {
    rows.push_back(PredictRow(facts, question, nodes));
    if (rows.back().batch >= 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", facts.batch * facts.ranks_per_node,
                     " over all is smaller than the ", rows.back().ranks, " ranks of ", nodes,
                     " nodes: say --batch, in images per rank, or fewer --nodes"));
  }
  return rows;
}

std::vector<double> EvenBuckets(double bytes) {
  const parallel::BucketCaps caps = parallel::UsualBucketCaps(static_cast<size_t>(bytes));
  std::vector<double> buckets;
  for (double left = bytes; left > 0;) {
    const size_t cap = buckets.empty() ? caps.first : caps.others;
    buckets.push_back(std::min(left, static_cast<double>(cap)));
    left -= buckets.back();
  }
  return buckets;
}

}  // namespace tutti::bench
