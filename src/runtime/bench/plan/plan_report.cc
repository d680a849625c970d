#include "runtime/bench/plan/plan_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/bench/plan/facts.h"

namespace tutti::bench {
namespace {

constexpr double kGoodEfficiency = 1 - kNetworkLimit;
constexpr double kBusy = 0.1;
constexpr double kWorthTelling = 0.95;
constexpr double kMostTimes = 64;  // as large a batch is looked for
constexpr double kLargestOfGoyal = 8192;
constexpr const char* kFasterLinks[] = {"1gbit",  "10gbit",  "25gbit", "40gbit",  "100gbit",
                                        "ib-edr", "200gbit", "ib-hdr", "400gbit", "ib-ndr"};

std::string Percent(double share) { return absl::StrFormat("%.0f %%", 100 * share); }
std::string Rate(double rate) { return absl::StrFormat(rate < 100 ? "%.1f" : "%.0f", rate); }
std::string Number(double value) { return absl::StrFormat("%.4g", value); }
std::string Bytes(double bytes) {
  return bytes < 1e9 ? absl::StrFormat("%.3g MB", bytes / 1e6)
                     : absl::StrFormat("%.3g GB", bytes / 1e9);
}
std::string Nodes(int nodes) { return absl::StrCat(nodes, nodes == 1 ? " node" : " nodes"); }

Advice AdviseUp(const NodeFacts& facts, const PlanQuestion& question, const PlanRow& last) {
  if (last.nodes == 1) {
    return {"up before out", "This is one node: what more would bring, --nodes 1..8 tells."};
  }
  const double times = last.nodes * last.efficiency;
  if (times < 1) {
    return {"up before out",
            absl::StrFormat("%s do %.1f times what one does alone: as it is, stay with one node.",
                            Nodes(last.nodes), times)};
  }
  std::string text = absl::StrFormat(
      "%s do %.1f times as many images/s as one (%s). One node that is %.1f times as fast does the "
      "same without a network, and is worth up to %d times one's price",
      Nodes(last.nodes), times, Percent(last.efficiency), times, last.nodes);
  if (question.price > 0) {
    absl::StrAppendFormat(&text, ", %s an hour", Number(question.price * last.nodes));
  }
  absl::StrAppend(&text, ": measure one there before you take ", last.nodes,
                  ". A search for hyperparameters scales better as ", last.nodes,
                  " trainings of one node each, a sweep");
  if (last.efficiency < kWorthTelling) {
    absl::StrAppend(&text, ": ", Number(std::round(100 / last.efficiency) / 100), " times this");
  }
  return {"up before out", text + "."};
}

// The same facts with so many images per rank, however many ranks there are.
NodeFacts Batched(const NodeFacts& facts, double batch) {
  NodeFacts changed = WithBatch(facts, batch);
  changed.batch_is_shared = false;
  return changed;
}

// The least power of two times the batch with which so many nodes do nearly as many times what one
// does with it, and with the batch that it has; none up to kMostTimes.
std::optional<PlanRow> BatchFor(const NodeFacts& facts, const PlanQuestion& question,
                                const PlanRow& last) {
  const double now = PredictRow(facts, question, 1).images_per_second();
  for (double times = 2; times <= kMostTimes; times *= 2) {
    const NodeFacts larger = Batched(facts, last.batch * times);
    PlanRow row = PredictRow(larger, question, last.nodes);
    row.efficiency = std::min(row.efficiency, row.images_per_second() / (last.nodes * now));
    if (row.efficiency >= kGoodEfficiency) return row;
  }
  return std::nullopt;
}

std::string MemoryFor(const NodeFacts& facts, double batch) {
  if (facts.memory_of_an_image <= 0) return "a rank's memory holds it";
  return absl::StrCat("a rank has ",
                      Bytes(facts.memory + (batch - facts.batch) * facts.memory_of_an_image),
                      " of memory");
}

// How the learning rate goes with the batch: linearly, with a warm-up (Goyal et al. 2017).
std::string LearningRate(const NodeFacts& facts, const PlanRow& row, const PlanRow& one) {
  const double times = row.batch * row.ranks / (one.batch * one.ranks);
  std::string text;
  if (facts.rate_rule == RateRule::kPerImage) {
    text = "The recipe's scale-lr takes the learning rate along";
  } else if (facts.rate_rule == RateRule::kPerRank && facts.learning_rate > 0) {
    const double per_rank = row.batch / one.batch;
    text = absl::StrCat("The learning rate goes with it (Goyal et al. 2017): lr ",
                        Number(facts.learning_rate), " per rank becomes ",
                        Number(facts.learning_rate * per_rank));
  } else if (facts.learning_rate > 0) {
    text =
        absl::StrCat("The learning rate goes with it (Goyal et al. 2017): lr ",
                     Number(facts.learning_rate), " becomes ", Number(facts.learning_rate * times));
  } else {
    text = absl::StrCat("Multiply the learning rate by ", Number(times), " (Goyal et al. 2017)");
  }
  if (facts.warmup_epochs < 1) absl::StrAppend(&text, ", with warmup-epochs: 5");
  absl::StrAppend(&text, ".");
  if (row.batch * row.ranks > kLargestOfGoyal) {
    absl::StrAppend(&text, " Above ", Number(kLargestOfGoyal),
                    " images a step accuracy may suffer: look at it, or take optimizer: lars.");
  }
  return text;
}

Advice AdviseBatch(const NodeFacts& facts, const PlanQuestion& question, const PlanRow& last) {
  const PlanRow one = PredictRow(facts, question, 1);
  const std::string now = absl::StrCat(Number(last.batch), " images a rank, ",
                                       Number(last.batch * last.ranks), " a step");
  if (last.efficiency >= kGoodEfficiency) {
    return {"batch", absl::StrCat(now, ", are enough for ", Percent(last.efficiency), ". ",
                                  last.ranks > 1 ? LearningRate(facts, last, one) : "")};
  }
  const std::optional<PlanRow> row = BatchFor(facts, question, last);
  if (!row) {
    return {"batch", absl::StrCat(now, "; no batch up to ", kMostTimes, " times as large brings ",
                                  Nodes(last.nodes), " to ", Percent(kGoodEfficiency), ".")};
  }
  return {
      "batch",
      absl::StrCat(now, "; batch-per-rank: ", Number(row->batch), ", ",
                   Number(row->batch * row->ranks), " a step, brings ", Nodes(last.nodes), " to ",
                   Percent(row->efficiency), ", ", Rate(row->images_per_second()), " images/s, if ",
                   MemoryFor(facts, row->batch), ". ", LearningRate(facts, *row, one))};
}

Advice AdviseTransport(const NodeFacts& facts, const PlanQuestion& question, const PlanRow& last) {
  if (last.nodes == 1) return {"transport", "One node needs no network."};
  std::string text = absl::StrFormat(
      "Over %s the %s of gradients take %.1f ms of a link, of which %.1f ms are not hidden",
      question.link.name, Bytes(facts.gradient_bytes() * facts.wire_share),
      1e3 * last.step.communication, 1e3 * last.step.exposed);
  if (last.step.exposed < kNetworkLimit * last.step.step()) {
    return {"transport", text + ": a faster link brings little."};
  }
  PlanQuestion faster = question;
  PlanRow best = last;
  for (const char* name : kFasterLinks) {
    const NetworkLink link = *ReadLink(name);
    if (link.bytes_per_second() <= question.link.bytes_per_second()) continue;
    faster.link = link;
    best = PredictRow(facts, faster, last.nodes);
    if (best.step.exposed < kNetworkLimit * best.step.step()) break;
  }
  if (faster.link.name == question.link.name) {
    absl::StrAppend(&text, ". No link that is known by name is faster");
  } else {
    absl::StrAppend(&text, ". Over ", faster.link.name, " they do ", Rate(best.images_per_second()),
                    " images/s (", Percent(best.efficiency), ")");
  }
  if (facts.wire_share == 1 && facts.device == "cpu") {
    NodeFacts halved = facts;
    halved.wire_share = 0.5;
    const PlanRow row = PredictRow(halved, question, last.nodes);
    absl::StrAppend(&text, "; compression: bf16 on this link, ", Rate(row.images_per_second()),
                    " (", Percent(row.efficiency), ")");
  }
  return {"transport", text + "."};
}

Advice AdviseData(const NodeFacts& facts, const PlanQuestion& question, const PlanRow& last) {
  const LoaderFacts& loader = facts.loader;
  if (loader.images_per_second == 0 && loader.bytes_per_image == 0) {
    return {"data",
            "Not measured: no data (--data FOLDER). Copy them to each node, and do not mount a "
            "store: mode: download, or tutti data."};
  }
  std::string text;
  if (loader.images_per_second > 0) {
    const double rank = last.batch / last.step.step();
    absl::StrAppendFormat(&text, "A rank's loader gives %s images/s, a step takes %s. ",
                          Rate(loader.images_per_second), Rate(rank));
    if (last.limit == PlanLimit::kLoader) {
      absl::StrAppend(&text, "Raise workers (", loader.workers,
                      ") where cores are idle, or store smaller images. ");
    }
  }
  if (loader.bytes_per_image > 0) {
    const double asked = last.images_per_second() * loader.bytes_per_image;
    const NetworkLink& link = question.data_link ? *question.data_link : question.link;
    absl::StrAppend(&text, Nodes(last.nodes), " read ", Bytes(asked), "/s, ",
                    Percent(asked / link.bytes_per_second()),
                    " of what one file server gives over ", link.name, ". ");
  }
  return {"data", absl::StrCat(text, question.data_link && last.limit == PlanLimit::kFileServer
                                         ? "Copy them to each node: mode: download."
                                         : "Data that are copied to each node (mode: download) "
                                           "have no such limit; a mounted store does.")};
}

std::string Heading(const NodeFacts& facts, const PlanQuestion& question) {
  std::string text = absl::StrCat(
      facts.source, ": ", facts.model.empty() ? "a script" : facts.model, ", ", facts.precision,
      " on ", facts.device, ", ", Number(facts.batch), " images a rank, ",
      facts.ranks == facts.ranks_per_node ? "one node"
                                          : absl::StrCat("one of ", facts.ranks_per_node, " ranks"),
      " measured at ", Rate(facts.ranks * facts.batch / facts.parts.Sum()), " images/s; ",
      Bytes(facts.gradient_bytes()), " of gradients; links of ", question.link.name);
  if (question.data_link) absl::StrAppend(&text, "; a file server on ", question.data_link->name);
  return text + "\n\n";
}

std::string PlanTableRow(const PlanRow& row, bool priced) {
  std::string text =
      absl::StrFormat("| %d | %d | %s | %s | %s | %.1f | %.1f | %s |", row.nodes, row.ranks,
                      Number(row.batch), Rate(row.images_per_second()), Percent(row.efficiency),
                      1e3 * row.seconds, 1e3 * row.step.exposed, NameOf(row.limit));
  if (priced) absl::StrAppendFormat(&text, " %.2f |", row.cost);
  return text + "\n";
}

PlanRow LastRow(const NodeFacts& facts, const PlanQuestion& question) {
  return PredictRow(facts, question, question.nodes.back());
}

nlohmann::ordered_json RowJson(const PlanRow& row, bool priced) {
  nlohmann::ordered_json json = {
      {"nodes", row.nodes},           {"ranks", row.ranks},
      {"batch_per_rank", row.batch},  {"images_per_second", row.images_per_second()},
      {"efficiency", row.efficiency}, {"step", row.seconds},
      {"compute", row.step.compute},  {"communication", row.step.communication},
      {"exposed", row.step.exposed},  {"data", row.data},
      {"limit", NameOf(row.limit)}};
  if (priced) json["cost"] = row.cost;
  return json;
}

}  // namespace

std::vector<Advice> AdviceOf(const NodeFacts& facts, const PlanQuestion& question) {
  const PlanRow last = LastRow(facts, question);
  return {AdviseUp(facts, question, last), AdviseBatch(facts, question, last),
          AdviseTransport(facts, question, last), AdviseData(facts, question, last)};
}

std::vector<std::string> WarningsOf(const NodeFacts& facts, const PlanQuestion& question,
                                    std::span<const PlanRow> rows) {
  std::vector<std::string> warnings;
  for (const PlanLimit limit : {PlanLimit::kNetwork, PlanLimit::kLoader, PlanLimit::kFileServer}) {
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const PlanRow& row) { return row.limit == limit; });
    if (found == rows.end()) continue;
    warnings.push_back(absl::StrCat("from ", Nodes(found->nodes), " on the ", NameOf(limit),
                                    " is the limit: ", Percent(found->efficiency)));
  }
  if (facts.waited > kBusy) {
    warnings.push_back(absl::StrCat("other programs took ", Percent(facts.waited),
                                    " of the time in which steps were measured: measure again when "
                                    "the machine is idle"));
  }
  if (facts.device == "cpu" && facts.cores < 1) {
    warnings.push_back(
        "nodes share a processor, and what TCP takes of it is not foreseen: they may do less");
  }
  if (facts.fixed == 0 && facts.batch_is_shared) {
    warnings.push_back(
        "one batch was measured: that a smaller one takes as much less time is an assumption");
  }
  return warnings;
}

std::string PlanTable(const NodeFacts& facts, const PlanQuestion& question,
                      std::span<const PlanRow> rows) {
  const bool priced = question.price > 0;
  std::string text = Heading(facts, question);
  absl::StrAppend(&text,
                  "| nodes | ranks | batch | images/s | efficiency | step ms | exposed | limit |",
                  !priced                  ? ""
                  : facts.train_images > 0 ? " cost of an epoch |"
                                           : " of a million images |",
                  "\n|---:|---:|---:|---:|---:|---:|---:|---|", priced ? "---:|\n" : "\n");
  for (const PlanRow& row : rows) absl::StrAppend(&text, PlanTableRow(row, priced));
  absl::StrAppend(&text, "\n");
  for (const std::string& warning : WarningsOf(facts, question, rows)) {
    absl::StrAppend(&text, "warning: ", warning, "\n");
  }
  int number = 0;
  for (const Advice& advice : AdviceOf(facts, question)) {
    absl::StrAppend(&text, ++number, ". ", advice.about, ": ", advice.text, "\n");
  }
  return text;
}

std::string PlanDocument(const NodeFacts& facts, const PlanQuestion& question,
                         std::span<const PlanRow> rows) {
  nlohmann::ordered_json document;
  document["facts"] = AsJson(facts);
  document["link"] = {{"name", question.link.name},
                      {"bytes_per_second", question.link.bytes_per_second()},
                      {"latency", question.link.latency}};
  document["rows"] = nlohmann::ordered_json::array();
  for (const PlanRow& row : rows) document["rows"].push_back(RowJson(row, question.price > 0));
  document["warnings"] = WarningsOf(facts, question, rows);
  document["advice"] = nlohmann::ordered_json::array();
  for (const Advice& advice : AdviceOf(facts, question)) {
    document["advice"].push_back({{"about", advice.about}, {"text", advice.text}});
  }
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tutti::bench
