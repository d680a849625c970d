#include "platform/service/attempt/gang.h"

#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/utf8.h"
#include "platform/service/diagnosis/faulty_node.h"
#include "platform/service/diagnosis/remedies.h"

namespace tutti::service {
namespace {

using nlohmann::json;

constexpr char kKilled[] = "its launcher did not end when it was told to, and was killed";

constexpr double kLongestBeat = 3600;  // seconds

// Nodes, of which a gang may have thousands, say much of their inputs and outputs: so much is kept.
constexpr size_t kLongestNodeText = 1000;
constexpr size_t kMostNodeTexts = 3;

json Parse(absl::string_view line) {
  return json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
}

// The field of that type, or what stands in for it.
template <typename T>
T Field(const json& event, const char* name, T otherwise) {
  const auto found = event.find(name);
  if (found == event.end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>) {
    return found->is_string() ? found->get<T>() : otherwise;
  } else if constexpr (std::is_same_v<T, bool>) {
    return found->is_boolean() ? found->get<T>() : otherwise;
  } else {
    return found->is_number() ? found->get<T>() : otherwise;
  }
}

absl::Time TimeOf(const json& event) {
  return absl::UnixEpoch() + absl::Seconds(Field(event, "time", 0.0));
}

// Returns "nodes wrote different files of one name, all of which are kept: outputs/final.json (of
// n1), outputs/final.n2.json (of n2)".
std::string OwnersNote(const std::map<std::string, std::string>& owners) {
  constexpr size_t kMostNamed = 6;
  std::vector<std::string> named;
  for (const auto& [path, node] : owners) {
    if (named.size() == kMostNamed) break;
    named.push_back(absl::StrCat(path, " (of ", node, ")"));
  }
  return absl::StrCat("nodes wrote different files of one name, all of which are kept: ",
                      base::BoundedUtf8(absl::StrJoin(named, ", "), kLongestNodeText),
                      owners.size() > named.size()
                          ? absl::StrCat(" and ", owners.size() - named.size(), " more")
                          : "");
}

}  // namespace

absl::string_view Name(RankState::Kind kind) {
  switch (kind) {
    case RankState::Kind::kNotStarted:
      return "not_started";
    case RankState::Kind::kRunning:
      return "running";
    case RankState::Kind::kEnded:
      return "ended";
    case RankState::Kind::kUnknown:
      break;
  }
  return "unknown";
}

Gang::Gang(const Placement& placement) {
  for (const PlacedNode& placed : placement.nodes) {
    Node node{.placed = placed};
    node.end.node = placed.name;
    node.end.memory_bytes = placed.memory_bytes;
    node.end.is_part = !placed.cores.empty();
    nodes_.push_back(std::move(node));
  }
}

absl::Status Gang::Check(int node, absl::string_view line) const {
  const json event = Parse(line);
  const auto wrong = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("no event of a launcher: ", why, ": ", line.substr(0, 200)));
  };
  if (!event.is_object()) return wrong("not a JSON object");
  const std::string kind = Field<std::string>(event, "kind", "");
  if (kind.empty()) return wrong("\"kind\" is missing");
  if (event.contains("time") && !event["time"].is_number()) return wrong("\"time\" is no number");
  if (kind != "started" && kind != "exited") return absl::OkStatus();
  const int64_t rank = Field<int64_t>(event, "rank", -1);
  const PlacedNode& placed = nodes_.at(node).placed;
  if (rank >= placed.first_rank && rank < placed.first_rank + placed.process_count) {
    return absl::OkStatus();
  }
  return wrong(absl::StrCat("rank ", rank, " does not run on ", placed.name));
}

void Gang::Apply(int number, absl::string_view line, absl::Duration heard) {
  Node& node = nodes_.at(number);
  ++node.events;
  const json event = Parse(line);
  if (node.done || !event.is_object()) return;
  const std::string kind = Field<std::string>(event, "kind", "");
  if (kind == "preparing") {
    node.preparing = true;
    const double beat = Field(event, "beat", 0.0);
    if (beat > 0 && beat <= kLongestBeat) node.beat = absl::Seconds(beat);
  }
  if (kind == "prepared") {
    node.preparing = node.prepared = true;
    if (const auto note = Field<std::string>(event, "note", ""); !note.empty()) notes_.insert(note);
  }
  if (kind == "finalizing" || kind == "lost") {
    if (const auto note = Field<std::string>(event, "note", ""); !note.empty()) {
      end_notes_.insert(note);
    }
    left_out_.Add(event);
    unkept_.Add(event);
    node.end.ill = Field<std::string>(event, "ill", "");
  }
  if (kind == "storing") {
    node.storing = base::BoundedUtf8(Field<std::string>(event, "reason", ""), kLongestNodeText);
    const auto note = base::BoundedUtf8(Field<std::string>(event, "note", ""), kLongestNodeText);
    if (!note.empty() && !storing_notes_.contains(note)) {
      storing_notes_.size() < kMostNodeTexts ? static_cast<void>(storing_notes_.insert(note))
                                             : static_cast<void>(++more_storing_notes_);
    }
  }
  if (kind == "held") {
    node.held = base::BoundedUtf8(Field<std::string>(event, "note", ""), kLongestNodeText);
  }
  if (kind == "started") node.started.emplace(Field(event, "rank", 0), TimeOf(event));
  if (kind == "exited") ApplyExit(node, event, heard);
  if (kind == "mpi_failure") {
    mpi_failures_[Field(event, "rank", -1)] = {.error = Field<std::string>(event, "error", ""),
                                               .abort = Field(event, "abort", false),
                                               .left = Field(event, "left", false)};
  }
  if (kind == "unlaunched") node.end.unlaunched = true;
  if (kind == "lost") {
    node.end.lost = !node.killed;
    node.end.ok = false;
    // That it was not heard of is more than that it died.
    if (node.end.silent && !node.killed && !Field(event, "explained", true)) return;
    node.end.silent = false;
    node.end.unexplained = !node.killed && !Field(event, "explained", true);
    node.end.reason = node.killed            ? kKilled
                      : node.end.unexplained ? ""
                                             : Field<std::string>(event, "reason", "");
    node.end.time = std::min(node.death, TimeOf(event));
  }
  if (kind == "finished") {
    node.done = true;
    if (Field(event, "ok", true) || !node.end.ok) return;
    node.end.ok = false;
    node.end.told = Field(event, "told", false);
    node.end.reason = Field<std::string>(event, "reason", "it failed without saying why");
    // Launchers of before this field say it in their reason alone: "wall time limit of 60 s
    // reached".
    node.end.timed_out =
        Field(event, "timed_out", absl::StrContains(node.end.reason, "time limit"));
    node.end.rank = Field(event, "rank", -1);
    if (node.end.rank >= 0) node.end.rank_node = NodeOf(node.end.rank);
    if (auto ill = Field<std::string>(event, "ill", ""); !ill.empty()) {
      node.end.ill = std::move(ill);
      node.end.refused = !node.prepared;
    }
    node.end.shared_disk_full = Field(event, "shared_disk_full", false);
    node.end.filled_by_job = Field(event, "filled_by_job", false);
    node.end.refused |= node.end.shared_disk_full && node.started.empty();
    node.end.disk_fault =
        !node.prepared && !node.end.shared_disk_full && SpeaksOfABrokenDisk(node.end.reason);
    node.end.time = TimeOf(event);
  }
}

void Gang::ApplyExit(Node& node, const json& event, absl::Duration heard) {
  const int rank = Field(event, "rank", 0);
  node.started.emplace(rank, TimeOf(event));
  if (!node.exited.insert(rank).second) return;
  if (const auto line = Field<std::string>(event, "read_only", "");
      !line.empty() && read_only_note_.empty()) {
    read_only_note_ = absl::StrCat("rank ", rank, " printed: ", base::BoundedUtf8(line, 200), " (",
                                   RemedyOf({.code = 1}, line), ")");
  }
  exits_.push_back({.rank = rank,
                    .node = node.placed.name,
                    .time = TimeOf(event),
                    .heard = heard,
                    .code = Field(event, "code", 0),
                    .signal = Field(event, "signal", 0),
                    .out_of_memory = Field(event, "out_of_memory", false),
                    .not_for_memory = Field(event, "not_for_memory", false),
                    .stopped = Field(event, "stopped", false),
                    .last_error = Field<std::string>(event, "last_error", ""),
                    .error_before_stop = Field<std::string>(event, "error_before_stop", ""),
                    .error_was_last = Field(event, "error_was_last", false),
                    .python_ended = Field(event, "python_ended", false)});
}

void Gang::NoteDeath(int number, absl::Time now) {
  Node& node = nodes_.at(number);
  node.death = std::min(node.death, now);
}

void Gang::NoteSilence(int number, absl::string_view reason, absl::Time now) {
  Node& node = nodes_.at(number);
  if (node.done || !node.end.ok) return;
  node.end.ok = false;
  node.end.lost = node.end.silent = true;  // also if it says then that it was stopped
  node.end.reason = std::string(reason);
  node.end.time = now;
}

void Gang::NoteKill(int node) { nodes_.at(node).killed = true; }

void Gang::GiveUp(int number, absl::string_view reason, absl::Time now) {
  Node& node = nodes_.at(number);
  if (node.done) return;
  node.done = true;
  node.end.ok = false;
  node.end.lost = node.end.lost || (node.death < absl::InfiniteFuture() && !node.killed);
  if (node.end.time == absl::Time()) node.end.time = std::min(node.death, now);
  if (node.end.reason.empty()) {
    node.end.reason = std::string(reason);
    node.end.unexplained = true;
  }
  // An engine that could not start the gang says on which node.
  node.end.disk_fault |=
      absl::StrContains(reason, absl::StrCat("starting on ", node.placed.name, ":")) &&
      SpeaksOfABrokenDisk(reason);
}

bool Gang::Every(bool (*holds)(const Node&)) const {
  return std::all_of(nodes_.begin(), nodes_.end(), holds);
}

bool Gang::AnyEnd() const {
  return !exits_.empty() || !mpi_failures_.empty() ||
         !Every([](const Node& node) { return node.end.ok && !node.end.unlaunched && !node.done; });
}

bool Gang::AnyPreparing() const {
  return !Every([](const Node& node) { return !node.preparing; });
}

bool Gang::AllPrepared() const {
  return Every([](const Node& node) { return node.prepared; });
}

bool Gang::AllStarted() const {
  return Every([](const Node& node) {
    return static_cast<int>(node.started.size()) == node.placed.process_count;
  });
}

bool Gang::AllExited() const { return Every(HasExited); }

bool Gang::AllDone() const {
  return Every([](const Node& node) { return node.done; });
}

// Returns each text of nodes that are not done once, and how many more such nodes there are.
std::string Gang::FirstTexts(std::string Node::*text) const {
  std::set<std::string> all;
  int more = 0;  // nodes
  for (const Node& node : nodes_) {
    if (node.done || (node.*text).empty() || all.contains(node.*text)) continue;
    all.size() < kMostNodeTexts ? static_cast<void>(all.insert(node.*text))
                                : static_cast<void>(++more);
  }
  const std::string texts = absl::StrJoin(all, "; ");
  return more == 0 ? texts : absl::StrCat(texts, "; and ", more, " more nodes likewise");
}

std::string Gang::storing() const { return FirstTexts(&Node::storing); }

std::string Gang::held() const { return FirstTexts(&Node::held); }

std::set<std::string> Gang::end_notes() const {
  std::set<std::string> notes = end_notes_;
  notes.insert(storing_notes_.begin(), storing_notes_.end());
  if (more_storing_notes_ > 0) {
    notes.insert(
        absl::StrCat(more_storing_notes_, " more nodes have not stored all of their outputs"));
  }
  if (!owners_.empty()) notes.insert(OwnersNote(owners_));
  if (!read_only_note_.empty()) notes.insert(read_only_note_);
  if (std::string left_out = left_out_.Text(); !left_out.empty()) notes.insert(std::move(left_out));
  if (std::string unkept = unkept_.Text(); !unkept.empty()) notes.insert(std::move(unkept));
  return notes;
}

// A failed call is what ended the rank, whatever it had printed; of an abort its own words say
// more.
void Gang::AddMpiFailure(RankExit& exit) const {
  const auto told = mpi_failures_.find(exit.rank);
  if (told == mpi_failures_.end() || exit.ok() || exit.stopped) return;
  const bool is_less = told->second.abort || told->second.left;
  if (exit.last_error.empty() || !is_less) exit.last_error = told->second.error;
}

// mpirun, or the first node's launcher, has ended the others for one that may say it is well.
void Gang::MarkRankThatLeft(GangEnd& end) const {
  for (const auto& [rank, failure] : mpi_failures_) {
    if (!failure.left) continue;
    for (RankExit& exit : end.exits) exit.stopped |= exit.signal == SIGTERM;
    end.left = {.rank = rank, .node = NodeOf(rank), .what = failure.error + WordsOf(rank, failure)};
  }
}

// ": " and what it said before its abort, for which it waits to be ended; or "".
std::string Gang::WordsOf(int rank, const MpiFailure& failure) const {
  const auto exit = std::find_if(exits_.begin(), exits_.end(),
                                 [rank](const RankExit& one) { return one.rank == rank; });
  const bool has_words = failure.abort && exit != exits_.end() && !exit->last_error.empty();
  return has_words ? absl::StrCat(": ", exit->last_error) : "";
}

std::string Gang::NodeOf(int rank) const {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [rank](const Node& node) {
    const int local = rank - node.placed.first_rank;
    return local >= 0 && local < node.placed.process_count;
  });
  return found == nodes_.end() ? "an unknown node" : found->placed.name;
}

GangEnd Gang::End() const {
  GangEnd end{.exits = exits_};
  for (RankExit& exit : end.exits) AddMpiFailure(exit);
  for (const Node& node : nodes_) end.nodes.push_back(node.end);
  MarkRankThatLeft(end);
  std::stable_sort(end.nodes.begin(), end.nodes.end(),
                   [](const NodeEnd& a, const NodeEnd& b) { return a.time < b.time; });
  return end;
}

std::vector<RankState> Gang::Ranks(bool is_over) const {
  std::map<int, const RankExit*> exits;
  for (const RankExit& exit : exits_) exits.emplace(exit.rank, &exit);
  std::vector<RankState> ranks;
  for (const Node& node : nodes_) {
    const bool is_gone = is_over || node.done || node.end.lost;
    for (int local = 0; local < node.placed.process_count; ++local) {
      RankState& rank = ranks.emplace_back(
          RankState{.rank = node.placed.first_rank + local, .node = node.placed.name});
      const auto started = node.started.find(rank.rank);
      if (const auto exit = exits.find(rank.rank); exit != exits.end()) {
        rank.kind = RankState::Kind::kEnded;
        rank.since = exit->second->time;
        rank.code = exit->second->code;
        rank.signal = exit->second->signal;
      } else if (started != node.started.end()) {
        rank.kind = is_gone ? RankState::Kind::kUnknown : RankState::Kind::kRunning;
        if (!is_gone) rank.since = started->second;
      }
    }
  }
  std::sort(ranks.begin(), ranks.end(),
            [](const RankState& a, const RankState& b) { return a.rank < b.rank; });
  return ranks;
}

}  // namespace tutti::service
