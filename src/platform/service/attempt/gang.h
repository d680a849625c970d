// Gang holds what the launchers of one allocation have reported: which nodes are prepared, which
// processes run, how they ended. Fed with the events of docs/formats/launch-plan.md, each once and
// in the order of its node; rebuilt from the store after a restart. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/service/attempt/job_placement.h"
#include "platform/service/diagnosis/diagnosis.h"
#include "platform/service/diagnosis/left_out_note.h"
#include "platform/service/diagnosis/unkept_note.h"

namespace tutti::service {

// What is known of one of a job's processes.
struct RankState {
  // kUnknown: its node is gone, or the job is over, and nobody has told how it ended.
  enum class Kind { kNotStarted, kRunning, kEnded, kUnknown };

  int rank = 0;
  std::string node;  // its name; "": it has none yet
  Kind kind = Kind::kNotStarted;
  // Since when it runs, or when it ended, by its node's clock; nothing of the other two kinds.
  std::optional<absl::Time> since = std::nullopt;
  int code = 0, signal = 0;  // of one that has ended; `signal` is 0 where none ended it
};
absl::string_view Name(RankState::Kind kind);  // "not_started", "running", "ended", "unknown"

class Gang {
 public:
  explicit Gang(const Placement& placement);

  // Checks a line; InvalidArgument if it is no event of that node. Kinds that are not known are
  // fine.
  absl::Status Check(int node, absl::string_view line) const;
  // Applies the next event of the node; it has passed Check. What follows a node's `finished` is
  // counted and changes nothing: a second launcher may repeat it. `heard` is when it came, since
  // boot.
  void Apply(int node, absl::string_view line, absl::Duration heard);
  // Returns how many events of the node were applied.
  int size() const { return static_cast<int>(nodes_.size()); }
  int64_t count(int node) const { return nodes_.at(node).events; }

  // Notes that the engine says that the launcher is dead and it had not finished. Nothing follows
  // from that yet: a second launcher tells whether the first had done its work (`finished`) or not
  // (`lost`).
  void NoteDeath(int node, absl::Time now);
  // Notes that no word has come from the node, or none any more, so that it counts as lost. It may
  // be at work all the same, so the gang is not over before it has finished or is given up.
  void NoteSilence(int node, absl::string_view reason, absl::Time now);
  // Notes that the node's launcher was told to end, did not, and is killed for it: its death is no
  // loss of the node.
  void NoteKill(int node);
  // Notes that nothing more will come from the node.
  void GiveUp(int node, absl::string_view reason, absl::Time now);

  // Returns whether anything has been told of an end: of a process, in MPI, or of a node that did
  // not do its work.
  bool AnyEnd() const;
  bool AnyPreparing() const;
  bool AllPrepared() const;
  bool AllStarted() const;  // every process has been started, and may have ended
  bool AllExited() const;   // every process has ended, or its node is done
  bool AllExited(int node) const { return HasExited(nodes_.at(node)); }
  bool AllDone() const;  // every node has finished or was given up
  bool done(int node) const { return nodes_.at(node).done; }
  // Returns the longest time between two signs of life that the node's launcher has promised; zero:
  // it has promised none.
  absl::Duration beat(int node) const { return nodes_.at(node).beat; }
  bool killed(int node) const { return nodes_.at(node).killed; }  // by NoteKill
  // Returns what the nodes have to say to the user of how they prepared; each thing once.
  const std::set<std::string>& notes() const { return notes_; }
  // Returns the notes on what they leave when all has ended.
  std::set<std::string> end_notes() const;
  // Notes what the user is to know once all has ended.
  void NoteAtEnd(const std::string& note) { end_notes_.insert(note); }
  // Notes whose a result is of which another node has sent a different one under the same path.
  void NoteOwner(const std::string& path, const std::string& node) { owners_[path] = node; }
  // Returns what nodes whose processes have ended are still doing, for the job's user; "": nothing
  // to tell.
  std::string storing() const;
  // Returns what holds nodes, or their processes, up; "": nothing that is known.
  std::string held() const;
  // Returns how everything has ended so far, for Diagnose.
  GangEnd End() const;
  // Returns the state of each rank, by its number. `is_over`: the job has ended, so that none runs.
  std::vector<RankState> Ranks(bool is_over) const;

 private:
  struct Node {
    PlacedNode placed;
    int64_t events = 0;
    bool preparing = false, prepared = false, done = false, killed = false;
    absl::Time death = absl::InfiniteFuture();  // when it was noticed
    absl::Duration beat;
    std::map<int, absl::Time> started;  // by rank, by the node's clock
    std::set<int> exited;               // ranks
    std::string storing;                // outputs into stores: how far, or why not
    std::string held;                   // what it, or its processes, wait for
    NodeEnd end;
  };
  static bool HasExited(const Node& node) {
    return node.done || static_cast<int>(node.exited.size()) == node.placed.process_count;
  }
  bool Every(bool (*holds)(const Node&)) const;
  std::string FirstTexts(std::string Node::*text) const;
  void ApplyExit(Node& node, const nlohmann::json& event, absl::Duration heard);
  void AddMpiFailure(RankExit& exit) const;
  void MarkRankThatLeft(GangEnd& end) const;

  std::vector<Node> nodes_;
  std::vector<RankExit> exits_;
  struct MpiFailure {
    std::string error;
    bool abort = false;
    bool left = false;
  };
  std::string NodeOf(int rank) const;
  std::string WordsOf(int rank, const MpiFailure& failure) const;
  std::map<int, MpiFailure> mpi_failures_;  // by rank, as mpirun or PMI tells them
  std::set<std::string> notes_, end_notes_;
  std::set<std::string> storing_notes_;        // the first ones
  int more_storing_notes_ = 0;                 // than those
  std::map<std::string, std::string> owners_;  // nodes, by the path of a result
  std::string read_only_note_;  // of the first rank whose write to what is read-only failed
  LeftOutNote left_out_;
  UnkeptNote unkept_;
};

}  // namespace tutti::service
