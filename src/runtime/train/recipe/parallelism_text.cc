#include <algorithm>
#include <set>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "runtime/models/networks/gradient_predictor.h"
#include "runtime/train/recipe/recipe.h"

namespace tutti::train {
namespace {

using parallel::Parallelism;
using Names = std::set<absl::string_view>;

constexpr double kMostRanks = 65536, kMostSteps = 1e9;

struct Entry {
  absl::string_view name;
  std::variant<int64_t*, double*, std::string*> value;
  double least = 0, most = 0;                   // of numbers
  std::vector<absl::string_view> choices = {};  // of a string
  // The entry that it is a term of, and the values of that which have it; empty: any.
  absl::string_view of = {};
  std::vector<absl::string_view> with = {};
};

std::vector<Entry> EntriesOf(Parallelism& p) {
  const std::vector<absl::string_view> local = {"local", "diloco"};
  const std::vector<absl::string_view> decoupled = {"synthetic", "delayed"};
  parallel::Exchange& e = p.exchange;
  parallel::Decoupling& d = p.decoupling;
  return {
      {"pipeline", &p.mesh.pipeline, 1, kMostRanks},
      {"data", &p.mesh.data, 1, kMostRanks},
      {"sync", &e.sync, 0, 0, {"steps", "local", "diloco"}},
      {"every", &e.every, 1, kMostSteps, {}, "sync", local},
      {"fragments", &e.fragments, 1, kMostSteps, {}, "sync", local},
      {"delay", &e.delay, 0, kMostSteps, {}, "sync", local},
      {"mix", &e.mix, 0, 1, {}, "sync", local},
      {"send", &e.send, 0, 0, {"fp32", "bf16", "int8"}, "sync", local},
      {"rate", &e.rate, 1e-9, 1e9, {}, "sync", {"diloco"}},
      {"momentum", &e.momentum, 0, 0.999999, {}, "sync", {"diloco"}},
      {"servers", &p.mesh.servers, 1, kMostRanks},
      {"staleness", &e.staleness, 0, kMostSteps, {}, "servers"},
      {"gradients", &d.gradients, 0, 0, {"exact", "synthetic", "delayed"}},
      {"predictor", &d.predictor, 0, 0, models::PredictorKinds(), "gradients", {"synthetic"}},
      {"width", &d.width, 0, kMostRanks, {}, "predictor", {"convolutions", "random"}},
      {"labels", &d.labels, 0, 0, {"auto", "yes", "no"}, "gradients", {"synthetic"}},
      {"predictor-rate", &d.predictor_rate, 0, 1e9, {}, "gradients", {"synthetic"}},
      {"waiting", &d.waiting, 1, kMostRanks, {}, "gradients", decoupled},
      {"full", &d.full, 0, 0, {"wait", "drop"}, "gradients", decoupled},
  };
}

std::string TakenBy(const Entry& entry) {
  if (!entry.choices.empty()) return absl::StrJoin(entry.choices, " or ");
  return absl::StrCat(std::holds_alternative<int64_t*>(entry.value) ? "a whole number" : "a number",
                      " from ", entry.least, " to ", entry.most);
}

bool SetNumber(const Entry& entry, absl::string_view text) {
  double number = 0;
  int64_t whole = 0;
  if (auto* const* value = std::get_if<int64_t*>(&entry.value)) {
    if (!absl::SimpleAtoi(text, &whole)) return false;
    number = static_cast<double>(** value = whole);
  } else if (!absl::SimpleAtod(text, *std::get_if<double*>(&entry.value))) {
    return false;
  } else {
    number = **std::get_if<double*>(&entry.value);
  }
  return number >= entry.least && number <= entry.most;  // of no number neither
}

bool Set(const Entry& entry, absl::string_view text) {
  auto* const* value = std::get_if<std::string*>(&entry.value);
  if (value == nullptr) return SetNumber(entry, text);
  **value = std::string(text);
  return std::find(entry.choices.begin(), entry.choices.end(), text) != entry.choices.end();
}

std::string ValueOf(const Entry& entry) {
  return std::visit([](const auto* value) { return absl::StrCat(*value); }, entry.value);
}

// Whether the entry that this is a term of is there, with a value that has it.
bool Applies(const Entry& entry, const std::vector<Entry>& all, const Names& named) {
  if (entry.of.empty()) return true;
  const auto owner = std::find_if(all.begin(), all.end(),
                                  [&](const Entry& each) { return each.name == entry.of; });
  if (!named.contains(entry.of)) return false;
  return entry.with.empty() ||
         std::find(entry.with.begin(), entry.with.end(), ValueOf(*owner)) != entry.with.end();
}

absl::Status Unknown(absl::string_view part, absl::string_view name,
                     const std::vector<Entry>& entries) {
  std::vector<absl::string_view> names;
  for (const Entry& each : entries) names.push_back(each.name);
  return absl::InvalidArgumentError(absl::StrCat("\"", part, "\" is none of ",
                                                 absl::StrJoin(names, ", "), ", each with =VALUE",
                                                 base::DidYouMean(name, names)));
}

absl::Status CheckTogether(const Parallelism& p, const std::vector<Entry>& entries,
                           const Names& named) {
  for (const Entry& each : entries) {
    if (!named.contains(each.name) || Applies(each, entries, named)) continue;
    return absl::InvalidArgumentError(absl::StrCat(each.name, " is a term of ", each.of,
                                                   each.with.empty() ? "" : "=",
                                                   absl::StrJoin(each.with, " and ")));
  }
  const bool is_local = p.exchange.is_local();
  if (is_local + (p.mesh.servers > 0) + (p.mesh.pipeline > 1) > 1) {
    return absl::InvalidArgumentError(
        "pipeline, servers and sync are ways of their own: choose one of them");
  }
  if (p.decoupling.is_on() && (p.mesh.pipeline == 1 || p.mesh.data > 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gradients=", p.decoupling.gradients,
        " is for the stages of one pipeline: say pipeline=STAGES, at least 2, without data"));
  }
  if (p.mesh.servers > 0 && !named.contains("staleness")) {
    return absl::InvalidArgumentError(
        "servers wants staleness=VERSIONS: 0 is rounds in which all wait for all, and at least the "
        "number of workers less one keeps every worker busy");
  }
  if (is_local && p.exchange.delay >= p.exchange.every) {
    return absl::InvalidArgumentError(absl::StrCat("a delay of ", p.exchange.delay,
                                                   " steps ends behind the next exchange, of ",
                                                   "every ", p.exchange.every, ": lower it"));
  }
  if (is_local && p.exchange.fragments > p.exchange.every) {
    return absl::InvalidArgumentError(absl::StrCat(p.exchange.fragments, " fragments every ",
                                                   p.exchange.every, " steps: at most one a step"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadParallelism(absl::string_view text, Parallelism& value) {
  text = absl::StripSuffix(absl::StripPrefix(text, "{"), "}");
  Parallelism read;
  const std::vector<Entry> entries = EntriesOf(read);
  Names named;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    part = absl::StripAsciiWhitespace(part);
    const std::vector<absl::string_view> pair = absl::StrSplit(part, absl::ByAnyChar("=:"));
    const absl::string_view name = absl::StripAsciiWhitespace(pair[0]);
    const auto entry = std::find_if(entries.begin(), entries.end(),
                                    [&](const Entry& each) { return each.name == name; });
    if (entry == entries.end() || pair.size() != 2) return Unknown(part, name, entries);
    if (!Set(*entry, absl::StripAsciiWhitespace(pair[1]))) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", part, "\": ", name, " takes ", TakenBy(*entry)));
    }
    if (!named.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is there twice"));
    }
  }
  if (read.exchange.sync == "diloco") {  // the paper's
    if (!named.contains("rate")) read.exchange.rate = 0.7;
    if (!named.contains("momentum")) read.exchange.momentum = 0.9;
  }
  TUTTI_RETURN_IF_ERROR(CheckTogether(read, entries, named));
  value = read;
  return absl::OkStatus();
}

std::string ParallelismText(const Parallelism& value) {
  Parallelism own = value;
  const std::vector<Entry> entries = EntriesOf(own);
  Names named = {"pipeline"};
  if (own.mesh.data > 0) named.insert("data");
  if (own.exchange.is_local()) named.insert("sync");
  if (own.mesh.servers > 0) named.insert("servers");
  if (own.decoupling.is_on()) named.insert("gradients");
  std::vector<std::string> parts;
  for (const Entry& each : entries) {
    const bool is_there =
        named.contains(each.name) || (!each.of.empty() && Applies(each, entries, named));
    if (is_there) parts.push_back(absl::StrCat(each.name, "=", ValueOf(each)));
  }
  return absl::StrJoin(parts, ",");
}

const std::string& AboutParallelism() {
  static const std::string about =
      "pipeline=STAGES,data=REPLICAS: the model's layers lie on so many ranks one after the other, "
      "and so many of these pipelines share each batch; data alone is what is left of the ranks. "
      "sync=diloco,every=STEPS: every rank trains by itself, and an outer step (rate=0.7, "
      "momentum=0.9) takes the mean of what they have learnt; sync=local takes the mean alone; "
      "fragments=PARTS of the model go one after the other, delay=STEPS go on meanwhile, "
      "mix=SHARE of its own a rank keeps then, send=fp32, bf16 or int8. servers=RANKS,"
      "staleness=VERSIONS: the last ranks hold the parameters, and each other one updates them by "
      "gradients of its own, --batch images each, that are at most so many updates late (0: in "
      "rounds). pipeline=STAGES,gradients=synthetic: each stage updates at once by a predictor's "
      "guess (predictor=linear, convolutions, auxiliary, zero or random, of width=CHANNELS, "
      "labels=yes or no, "
      "predictor-rate=0.001); gradients=delayed: when the true gradient comes; waiting=BATCHES are "
      "under way for each stage behind, and with full=drop the oldest is let go of";
  return about;
}

}  // namespace tutti::train
