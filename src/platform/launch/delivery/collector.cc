#include "platform/launch/delivery/collector.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/launch/delivery/folder_exchange.h"
#include "platform/launch/delivery/launcher_calls.h"
#include "platform/launch/delivery/upload.h"
#include "platform/launch/node/node_folders.h"
#include "spec/json/gang_plan.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kStreamTurn = 1 << 20;  // bytes of one stream before the others have theirs
constexpr absl::Duration kRest = absl::Milliseconds(300);
constexpr absl::Duration kLongestRest = absl::Seconds(5);
constexpr int kRestPerWork = 9;
constexpr absl::Duration kNoDeadline = absl::Hours(24 * 365);  // who started it ends it

base::Deadline Never() { return base::Deadline::After(kNoDeadline); }

// For a call that is not repeated: its turn comes again, after what else there is to deliver.
base::Deadline Once() { return base::Deadline::After(absl::ZeroDuration()); }

// A file that another machine writes is opened anew each time: that is when a network disk looks.
absl::StatusOr<std::string> ReadPart(const fs::path& file, uint64_t offset, size_t size) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(file, O_RDONLY));
  std::string bytes(size, '\0');
  size_t filled = 0;
  while (filled < size) {
    const ssize_t n = ::pread(fd.get(), bytes.data() + filled, size - filled,
                              static_cast<off_t>(offset + filled));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", file.string()));
    if (n == 0) break;
    filled += static_cast<size_t>(n);
  }
  bytes.resize(filled);
  return bytes;
}

struct Node {
  Node(spec::LaunchPlan its_plan, spec::PlanNode its_place)
      : plan(std::move(its_plan)), place(std::move(its_place)), folders(plan.directory) {}
  spec::LaunchPlan plan;  // without the gang's nodes, which would be n times n
  spec::PlanNode place;
  NodeFolders folders;
  Written written;
  Acknowledged acknowledged;
  Acknowledged saved;   // as it lies there
  bool looked = false;  // at the events that were acknowledged before this collector came
  bool prepared = false;
  bool finished = false;         // its last event has been acknowledged
  int64_t results_begun = 0;     // which list of results is, or was, delivered last
  std::optional<int64_t> beats;  // as this collector has seen them last

  int index() const { return plan.node_index; }
  bool done() const { return finished || acknowledged.gone; }
};

// Delivers the results of one node after another, which may take hours, beside all else.
class ResultsQueue {
 public:
  explicit ResultsQueue(const spec::LaunchPlan& plan) : link_(plan), thread_([this] { Work(); }) {}
  ~ResultsQueue() {
    {
      absl::MutexLock lock(&mutex_);
      ending_ = true;
    }
    link_.Abandon();
    thread_.join();
  }

  // The plan outlives this object.
  void Add(const spec::LaunchPlan* plan) {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(plan);
  }
  // As ServiceLink::put_off.
  absl::Duration put_off() const { return link_.put_off(Urgency::kOutput); }
  // Returns which have been delivered since the last call, and how.
  std::vector<std::pair<int, absl::Status>> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(done_, {});
  }

 private:
  void Work() {
    while (true) {
      const spec::LaunchPlan* plan = nullptr;
      {
        absl::MutexLock lock(&mutex_);
        const auto news = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
          return ending_ || !waiting_.empty();
        };
        mutex_.Await(absl::Condition(&news));
        if (ending_) return;
        plan = waiting_.front();
        waiting_.pop_front();
      }
      const absl::Status status = Deliver(*plan);
      absl::MutexLock lock(&mutex_);
      done_.emplace_back(plan->node_index, status);
    }
  }

  absl::Status Deliver(const spec::LaunchPlan& plan) {
    const NodeFolders folders(plan.directory);
    const auto list = base::ReadFile(folders.results(), 1 << 30);
    // A launcher of an earlier version names none.
    if (!list.ok() && !absl::IsNotFound(list.status())) return list.status();
    const Results found =
        list.ok() ? Results{ResultsFromText(*list, folders.root), {}, {}} : ResultsOf(plan);
    TUTTI_RETURN_IF_ERROR(UploadResults(found.files, plan.node_index, &link_, Never()));
    return found.failure;
  }

  ServiceLink link_;
  absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<const spec::LaunchPlan*> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<int, absl::Status>> done_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

class Collector {
 public:
  Collector(std::vector<Node> nodes, absl::Duration word_every)
      : nodes_(std::move(nodes)),
        word_every_(word_every),
        link_(nodes_.front().plan),
        results_(nodes_.front().plan) {}

  void Run() {
    FetchCode();
    while (true) {
      const absl::Duration began = base::SteadyNow();
      for (Node& node : nodes_) node.written = WrittenOf(node);
      for (Node& node : nodes_) Note(node, SendEvents(node));
      PassGoOn();
      bool more = false;
      SendOutput(more);
      for (Node& node : nodes_) Note(node, PassBeatOn(node));
      SendResults();
      PassWordOn();
      for (Node& node : nodes_) Save(node);
      if (std::all_of(nodes_.begin(), nodes_.end(), [](const Node& n) { return n.done(); })) return;
      const absl::Duration work = base::SteadyNow() - began;
      if (!more) link_.Pause(std::clamp(work * kRestPerWork, kRest, kLongestRest));
    }
  }

 private:
  static Written WrittenOf(const Node& node) {
    const auto text = base::ReadFile(node.folders.written(), 64 << 20);
    return text.ok() && IsWhole(*text) ? WrittenFromJson(*text) : node.written;
  }

  void Note(Node& node, const absl::Status& status) {
    if (absl::IsAborted(status)) {
      node.acknowledged.gone = true;
    } else if (!status.ok() && !absl::IsDeadlineExceeded(status)) {  // which the link has said
      link_.SayOnce(base::Annotate(status, absl::StrCat("node ", node.place.name)));
    }
  }

  // For all nodes: beside their folders.
  void FetchCode() {
    const Node& first = nodes_.front();
    const fs::path code = first.folders.code();
    const fs::path part = code.native() + ".part";
    std::error_code error;
    absl::Status fetched;
    if (!first.plan.snapshot.empty() && !fs::exists(code, error)) {
      fetched = Download(link_, first.plan.snapshot, part);
      if (fetched.ok()) fs::rename(part, code, error);
      if (error) fetched = base::ErrnoStatus(code.native(), error.value());
    }
    for (Node& node : nodes_) {
      node.acknowledged.code = std::string(fetched.message());
      if (absl::IsAborted(fetched)) node.acknowledged.gone = true;
    }
  }

  absl::Status SendEvents(Node& node) {
    const bool news = node.acknowledged.events < node.written.events;
    if (node.done() || (!news && node.looked) || node.written.events == 0) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(node.folders.events()));
    std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    lines.resize(std::min<size_t>(lines.size(), node.written.events));
    const size_t known = std::min<size_t>(lines.size(), node.acknowledged.events);
    if (known < lines.size()) {
      TUTTI_ASSIGN_OR_RETURN(
          const EventsAnswer answer,
          PostEvents(link_, node.index(), static_cast<int64_t>(known) + 1,
                     absl::StrJoin(lines.begin() + static_cast<int64_t>(known), lines.end(), "\n"),
                     Once()));
      node.acknowledged.events = answer.acknowledged;
      node.acknowledged.served = answer.served;
    }
    for (size_t i = 0; i < std::min<size_t>(lines.size(), node.acknowledged.events); ++i) {
      const auto event = nlohmann::json::parse(lines[i], nullptr, false);
      const std::string kind = event.is_object() ? event.value("kind", "") : "";
      node.prepared |= kind == "prepared";
      node.finished = kind == "finished";
    }
    node.looked = true;
    return absl::OkStatus();
  }

  void PassGoOn() {
    const auto waits = std::find_if(nodes_.begin(), nodes_.end(), [](const Node& node) {
      return node.prepared && !node.done() && !node.acknowledged.go;
    });
    if (waits == nodes_.end()) return;
    const auto go = AskForGo(link_, waits->index(), absl::ZeroDuration(), Never());
    Note(*waits, go.status());
    if (!go.ok() || !*go) return;
    for (Node& node : nodes_) node.acknowledged.go = true;
  }

  // Tells the launchers that the service takes later what it is sent.
  void PassWordOn() {
    const absl::Duration word = std::max(
        {link_.put_off(Urgency::kEvents), link_.put_off(Urgency::kOutput), results_.put_off()});
    if (word - passed_on_ < word_every_) return;
    passed_on_ = word;
    for (Node& node : nodes_) {
      if (!node.done()) ++node.acknowledged.words;
    }
  }

  // What a dead launcher's file says does not change any more.
  absl::Status PassBeatOn(Node& node) {
    const bool is_news = node.beats && *node.beats != node.written.beats;
    node.beats = node.written.beats;
    if (!is_news || node.done()) return absl::OkStatus();
    return AskForGo(link_, node.index(), absl::ZeroDuration(), Never()).status();
  }

  // A turn of each node. Where the service takes none, as its folder hangs or is full, those behind
  // have theirs the next time, and what else there is does not wait.
  void SendOutput(bool& more) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const size_t turn = (first_turn_ + i) % nodes_.size();
      const absl::Status sent = SendOutputOf(nodes_[turn], more);
      Note(nodes_[turn], sent);
      if (!absl::IsDeadlineExceeded(sent)) continue;
      first_turn_ = turn + 1;
      return;
    }
  }

  // A turn of each stream; `more`: one has bytes left.
  absl::Status SendOutputOf(Node& node, bool& more) {
    if (node.done()) return absl::OkStatus();
    const spec::PlanNode& place = node.place;
    for (int rank = place.first_rank; rank < place.first_rank + place.process_count; ++rank) {
      for (const char* const stream : kRankStreams) {
        TUTTI_RETURN_IF_ERROR(SendStream(node, rank, stream, more));
      }
    }
    return SendStream(node, place.first_rank, "mpirun", more);
  }

  absl::Status SendStream(Node& node, int rank, const char* stream, bool& more) {
    const std::string name = absl::StrCat("rank-", rank, ".", stream);
    const uint64_t size = node.written.streams[name];
    const uint64_t from = node.acknowledged.streams[name];
    if (size <= from) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(std::string bytes,
                           ReadPart(node.folders.stream(rank, stream), from,
                                    std::min<uint64_t>(kStreamTurn, size - from)));
    if (bytes.empty()) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const uint64_t now, PostOutput(link_, node.index(), rank, stream, from,
                                                          std::move(bytes), Once()));
    node.acknowledged.streams[name] = std::min(now, size);
    if (now == from) return absl::InternalError("the service took none of the output");
    more |= now < size;
    return absl::OkStatus();
  }

  void SendResults() {
    for (auto& [index, status] : results_.Take()) {
      Node& node = nodes_[index];
      if (absl::IsAborted(status)) node.acknowledged.gone = true;
      node.acknowledged.results = std::string(status.message());
      node.acknowledged.results_lists = node.results_begun;
    }
    for (Node& node : nodes_) {
      // A launcher of before there were several has one.
      const int64_t lists =
          node.written.results ? std::max<int64_t>(node.written.results_lists, 1) : 0;
      const int64_t delivered =
          std::max<int64_t>(node.acknowledged.results_lists, node.acknowledged.results ? 1 : 0);
      const bool is_due = lists > std::max(node.results_begun, delivered);
      if (!is_due || node.done()) continue;
      node.results_begun = lists;
      results_.Add(&node.plan);
    }
  }

  static void Save(Node& node) {
    if (node.saved == node.acknowledged) return;
    const absl::Status saved =
        base::ReplaceOrOverwrite(node.folders.acknowledged(), ToJson(node.acknowledged));
    if (saved.ok()) node.saved = node.acknowledged;
    if (!saved.ok()) spdlog::error("{}", saved.ToString());
  }

  std::vector<Node> nodes_;  // stays as long as it is
  const absl::Duration word_every_;
  absl::Duration passed_on_ = base::SteadyNow();
  size_t first_turn_ = 0;  // of the nodes' output
  ServiceLink link_;
  ResultsQueue results_;
};

absl::StatusOr<std::vector<Node>> ReadNodes(const fs::path& folder, const fs::path& service_file) {
  TUTTI_ASSIGN_OR_RETURN(spec::LaunchPlan plan,
                         spec::ReadLaunchPlan(NodeFolders(folder / "0").plan()));
  plan.service_file = service_file;
  const std::vector<spec::PlanNode> places = std::exchange(plan.nodes, {});
  std::vector<Node> nodes;
  for (const spec::PlanNode& place : places) {
    plan.node_index = static_cast<int>(nodes.size());
    plan.directory = folder / absl::StrCat(plan.node_index);
    Node& node = nodes.emplace_back(plan, place);
    const auto before = base::ReadFile(node.folders.acknowledged(), 64 << 20);
    if (before.ok()) node.saved = AcknowledgedFromJson(*before);
    node.acknowledged = node.saved;
    // The service may be another than then, and know it.
    node.acknowledged.gone = false;
  }
  return nodes;
}

}  // namespace

absl::Status RunCollector(const fs::path& folder, const fs::path& service_file,
                          absl::Duration word_every) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         base::Open(folder / kCollectorLock, O_RDWR | O_CREAT));
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return base::ErrnoStatus("lock " + (folder / kCollectorLock).native());
  }
  TUTTI_ASSIGN_OR_RETURN(std::vector<Node> nodes, ReadNodes(folder, service_file));
  Collector(std::move(nodes), word_every).Run();
  return absl::OkStatus();
}

}  // namespace tutti::launch
