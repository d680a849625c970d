// N launchers of one gang, played from one process over TLS connections to a real service: how long
// they take to connect, to fetch their code and to assemble, what the service needs while they
// wait, while they only give signs of life and while they print, how long they take to come back to
// another service after that one was killed, and how long a user's call takes beside it. A line of
// JSON a phase.
//
//   swarm [NODES [SECONDS]]            1000 launchers; 10 s a phase, at most 50: two of them rest,
//   and
//                                      the service ends connections that are idle for 120 s
//   swarm --plans NODES                what their launch plans take, and nothing else
//   swarm --beside HOME LOCAL NODES    rests when all have started, until standard input ends: a
//                                      service in HOME that has LOCAL virtual nodes too, for others
//                                      to measure
//
// Ends with 1 if a connection broke while the service was there, an answer was no success, all had
// not go within 10 s of work, or the service had more than 160 threads.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "http/client/client.h"
#include "http/url.h"
#include "launcher.h"
#include "watched_service.h"

namespace tutti::swarm {
namespace {

using nlohmann::json;

constexpr absl::Duration kAssemble = absl::Seconds(10);  // from the first connection to go
// Of handlers those of all lanes that launchers and one user use, and the service's own.
constexpr int kMostThreads = 160;
constexpr size_t kCodeBytes = 256 << 10;
constexpr absl::Duration kOutage = absl::Seconds(1);

double Seconds(absl::Duration duration) { return absl::ToDoubleSeconds(duration); }

// Returns whether who started this program has closed its standard input.
bool HasInputEnded() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
  char byte;
  return ::poll(&input, 1, 0) > 0 && ::read(STDIN_FILENO, &byte, 1) <= 0;
}

// Calls that a user makes, one after the other, from construction to Take.
class UserBeside {
 public:
  explicit UserBeside(const spec::Endpoint& service) : thread_([this, service] { Run(service); }) {}
  json Take() {
    over_ = true;
    thread_.join();
    std::sort(times_.begin(), times_.end());
    const auto at = [&](double part) {
      return times_.empty() ? 0 : times_[static_cast<size_t>(part * (times_.size() - 1))];
    };
    return {
        {"calls", times_.size()}, {"failed", failed_}, {"p50_ms", at(0.5)}, {"p99_ms", at(0.99)}};
  }

 private:
  void Run(const spec::Endpoint& service) {
    http::Client client(service.address, service.token, service.certificate);
    while (!over_) {
      const absl::Duration began = base::SteadyNow();
      const auto answer = client.Send({.target = "/v1/job-summaries?limit=10"});
      failed_ += answer.ok() && answer->ok() ? 0 : 1;
      times_.push_back(1000 * Seconds(base::SteadyNow() - began));
      absl::SleepFor(absl::Milliseconds(10));
    }
  }

  std::atomic<bool> over_ = false;
  std::vector<double> times_;
  int failed_ = 0;
  std::thread thread_;
};

class Swarm {
 public:
  Swarm(const WatchedService::Options& options, absl::Duration phase)
      : nodes_(options.nodes), phase_(phase), service_(options) {}

  // Whether all went well.
  bool Run() {
    Begin();
    Phase("no launcher", [&] { return Rest(); });
    Start();
    Phase("idle", [&] { return Rest(); });
    Phase(
        "idle, nobody calls", [&] { return Rest(); }, /*with_user=*/false);
    Phase(
        "signs of life, nobody calls", [&] { return GiveSignsOfLife(); }, /*with_user=*/false);
    Phase("print a line a second each", [&] { return Print(); });
    ComeBack();
    Phase("print, after the restart", [&] { return Print(); });
    return Close();
  }

  // What the plans take; Begin says it.
  bool Plan() {
    Begin();
    return true;
  }

  // The same, without what is measured.
  bool RestUntilInputEnds() {
    Begin();
    if (!AwaitNodes()) return false;
    Start();
    while (!HasInputEnded()) RunFor(absl::Milliseconds(100));
    return Close();
  }

 private:
  static std::string Event(const char* kind, const std::string& more = "") {
    return absl::StrCat(R"({"kind":")", kind, R"(","time":1)", more, "}\n");
  }

  // Until its job is placed.
  void Begin() {
    Submit();
    const absl::Duration submitted = base::SteadyNow();
    gang_.find_service = [this] {
      const auto authority = *http::ParseBaseUrl(service_.for_launchers().address);
      return Gang::Endpoint{boost::asio::ip::make_address(authority.host),
                            static_cast<unsigned short>(authority.port)};
    };
    gang_.service = gang_.find_service();
    const WatchedService::Allocation placed = service_.AwaitAllocation();
    gang_.allocation = placed.id;
    gang_.token = placed.launcher_token;
    std::cout << json({{"plan_bytes", placed.plan_bytes},
                       {"plan_seconds", placed.plan_seconds},
                       {"placed_after", Seconds(base::SteadyNow() - submitted)}})
              << std::endl;
    for (int i = 0; i < nodes_; ++i) launchers_.push_back(std::make_unique<Launcher>(gang_, i));
  }

  // A compute that schedules for itself tells its nodes a moment after it was given the job; until
  // then launchers are told to come again.
  bool AwaitNodes() {
    const spec::Endpoint user = service_.for_users();
    http::Client client(user.address, user.token, user.certificate);
    return Until([&] {
      const auto job = client.Send({.target = "/v1/jobs/gang"});
      return job.ok() && job->ok() && json::parse(job->body).value("state", "Queued") != "Queued";
    });
  }

  // Until all launchers have started their ranks.
  void Start() {
    absl::Duration assembled = Phase("connect", [&] {
      return Together(0, [&](Launcher& l, const Launcher::Done& done) { l.Connect(done); });
    });
    assembled += Phase("report", [&] {
      return Together(0, [&](Launcher& l, const Launcher::Done& done) {
        l.Report(Event("preparing", R"(,"beat":60)"), 1, done);
      });
    });
    Phase("fetch code", [&] { return FetchCode(); });
    // All but the first, so that nobody may go.
    assembled += Phase("prepare", [&] {
      return Together(1, [&](Launcher& l, const Launcher::Done& done) {
        l.Report(Event("prepared"), 2, done);
      });
    });
    if (phase_ > absl::ZeroDuration()) {
      Phase("polls of a second end and begin again", [&] { return EndPolls(); });
    }
    size_t gone = 0;
    for (size_t i = 1; i < launchers_.size(); ++i) launchers_[i]->AwaitGo([&] { ++gone; });
    if (phase_ > absl::ZeroDuration()) {
      Phase("wait", [&] { return Rest(); });
      Phase(
          "wait, nobody calls", [&] { return Rest(); }, /*with_user=*/false);
    }
    assembled += Phase("assemble", [&] {
      launchers_[0]->Report(Event("prepared"), 2, [&] { launchers_[0]->AwaitGo([&] { ++gone; }); });
      return Until([&] { return gone == launchers_.size(); });
    });
    std::cout << json({{"assembled_seconds", Seconds(assembled)}}) << std::endl;
    is_late_ = assembled > kAssemble;
    Phase("start", [&] {
      int rank = 0;
      return Together(0, [&](Launcher& l, const Launcher::Done& done) {
        l.Report(Event("started", absl::StrCat(R"(,"rank":)", rank++, R"(,"pid":1)")), 3, done);
      });
    });
  }

  bool Close() {
    const int broken = gang_.broken - broken_by_restart_;
    std::cout << json({{"connections", Connections()},
                       {"broken", broken},
                       {"failures", gang_.failures},
                       {"most_threads", most_threads_}})
              << std::endl;
    return broken == 0 && gang_.failures == 0 && user_failures_ == 0 && !is_late_ &&
           most_threads_ <= kMostThreads;
  }

  // Each over a connection of its own, as launchers do.
  bool FetchCode() {
    std::vector<std::unique_ptr<Launcher>> fetching;
    for (int i = 0; i < nodes_; ++i) fetching.push_back(std::make_unique<Launcher>(gang_, i));
    int done = 0;
    for (const auto& one : fetching) {
      one->Connect([&done, this, raw = one.get()] { raw->Fetch(snapshot_, [&] { ++done; }); });
    }
    return Until([&] { return done == nodes_; });
  }

  // Twice: all that began together end together, and each asks at once again.
  bool EndPolls() {
    return Together(1, [](Launcher& l, const Launcher::Done& done) {
      l.Poll(1, [&l, done] { l.Poll(1, done); });
    });
  }

  // The service is killed under all of them while each has something to say, and another one begins
  // after a while. Nobody calls meanwhile, as this process forks.
  void ComeBack() {
    const int broken = gang_.broken;
    std::vector<absl::Duration> back;
    absl::Duration began;
    service_.Kill();
    for (const auto& launcher : launchers_) {
      launcher->Print("x\n", [&] { back.push_back(base::SteadyNow() - began); });
    }
    RunFor(kOutage);
    const int refused = gang_.broken - broken;
    began = base::SteadyNow();
    service_.Begin();
    if (!Until([&] { return service_.HasBegun(); })) Stop("restart");
    const absl::Duration answers = base::SteadyNow() - began;
    if (!Until([&] { return back.size() == launchers_.size(); })) Stop("restart");
    broken_by_restart_ = gang_.broken - broken;
    NoteThreads();
    std::cout << json({{"phase", "the service is killed and begins again"},
                       {"away_seconds", Seconds(kOutage)},
                       {"refused_meanwhile", refused},
                       {"answers_after", Seconds(answers)},
                       {"refused_until_all_are_back", broken_by_restart_ - refused},
                       {"first_back", Seconds(back.front())},
                       {"half_back", Seconds(back[back.size() / 2])},
                       {"all_back", Seconds(back.back())},
                       {"threads", service_.Threads()},
                       {"resident_mb", service_.ResidentMegabytes()}})
              << std::endl;
  }

  // Has the service keep code for the gang.
  void SendCode(http::Client& client) {
    std::string code(kCodeBytes, '\0');
    for (char& byte : code) byte = static_cast<char>(gang_.random());
    snapshot_ = absl::StrCat("sha256:", base::Hex(base::Sha256Of(code)));
    const auto sent = client.Send({.method = "PUT",
                                   .target = absl::StrCat("/v1/snapshots/", snapshot_),
                                   .content_type = "application/zstd",
                                   .body = std::move(code)});
    if (sent.ok() && sent->ok()) return;
    std::cerr << (sent.ok() ? sent->body : sent.status().ToString()) << std::endl;
    std::exit(1);
  }

  void Submit() {
    const spec::Endpoint user = service_.for_users();
    http::Client client(user.address, user.token, user.certificate);
    SendCode(client);
    const std::string text =
        absl::StrCat("type: command\nname: gang\ncommand: sleep 1\ncompute: ", service_.compute(),
                     "\nresources:\n  instance_count: ", nodes_,
                     "\ndistribution:\n  type: pytorch\n  process_count_per_instance: 1\n");
    const json job = {{"text", text}, {"base_directory", "/"}, {"snapshot", snapshot_}};
    const auto answer = client.Send({.method = "POST", .target = "/v1/jobs", .body = job.dump()});
    if (answer.ok() && answer->ok()) return;
    std::cerr << (answer.ok() ? answer->body : answer.status().ToString()) << std::endl;
    std::exit(1);
  }

  // Says what the service needs while `act` runs, and a user beside it gets, as a line; returns how
  // long it took.
  template <class Act>
  absl::Duration Phase(const char* name, const Act& act, bool with_user = true) {
    std::optional<UserBeside> user;
    if (with_user) user.emplace(service_.for_users());
    const absl::Duration processor = service_.ProcessorTime();
    const absl::Duration began = base::SteadyNow();
    const bool whole = act();
    const absl::Duration took = base::SteadyNow() - began;
    json got;
    if (user) {
      got = user->Take();
      user_failures_ += got.at("failed").get<int>();
    }
    NoteThreads();
    std::cout << json({{"phase", name},
                       {"seconds", Seconds(took)},
                       {"cores", Seconds(service_.ProcessorTime() - processor) / Seconds(took)},
                       {"asked", std::exchange(asked_, 0)},
                       {"threads", service_.Threads()},
                       {"resident_mb", service_.ResidentMegabytes()},
                       {"user", got}})
              << std::endl;
    if (!whole) Stop(name);
    return took;
  }

  void NoteThreads() {
    threads_noted_ = base::SteadyNow();
    most_threads_ = std::max(most_threads_, service_.Threads());
  }

  [[noreturn]] void Stop(const char* phase) {
    const spec::Endpoint user_of = service_.for_users();
    const auto job = http::Client(user_of.address, user_of.token, user_of.certificate)
                         .Send({.target = "/v1/job-summaries"});
    std::cerr << phase << ": not all launchers came through; " << gang_.broken << " attempts and "
              << gang_.failures << " calls failed; "
              << (job.ok() ? job->body : job.status().ToString()) << std::endl;
    std::exit(1);
  }

  // All launchers from `first` on at once; until each is done.
  template <class Act>
  bool Together(size_t first, const Act& act) {
    size_t done = 0;
    for (size_t i = first; i < launchers_.size(); ++i) act(*launchers_[i], [&] { ++done; });
    return Until([&] { return done == launchers_.size() - first; });
  }

  template <class Condition>
  bool Until(const Condition& condition) {
    const base::Deadline deadline = base::Deadline::After(absl::Minutes(1));
    while (!condition() && !deadline.Expired()) {
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(100));
      if (base::SteadyNow() - threads_noted_ > absl::Milliseconds(10)) NoteThreads();
    }
    return condition();
  }

  bool Rest() {
    RunFor(phase_);
    return true;
  }

  void RunFor(absl::Duration duration) {
    const base::Deadline end = base::Deadline::After(duration);
    loop_.restart();
    loop_.run_for(absl::ToChronoMilliseconds(duration));
    absl::SleepFor(end.Remaining());  // it ends before where nobody waits for anything
  }

  // Returns what is left of a pause of 30 to 60 s for who comes at any time: more often to a long
  // one.
  double RestOfAPause() {
    std::uniform_real_distribution<double> part(0, 1);
    double whole = 0;
    do {
      whole = 30 + 30 * part(gang_.random);
    } while (part(gang_.random) * 60 > whole);
    return whole * part(gang_.random);
  }

  // Each asks for go 30 to 60 s after it did so last, as a launcher does that has nothing to say.
  bool GiveSignsOfLife() {
    std::uniform_real_distribution<double> pause(30, 60);
    std::vector<boost::asio::steady_timer> timers;
    for (size_t i = 0; i < launchers_.size(); ++i) timers.emplace_back(loop_);
    size_t asking = 0;
    bool over = false;
    const std::function<void(size_t, double)> ask_after = [&](size_t i, double seconds) {
      timers[i].expires_after(absl::ToChronoMicroseconds(absl::Seconds(seconds)));
      timers[i].async_wait([&, i](const boost::system::error_code& code) {
        if (code || over) return;
        ++asking;
        launchers_[i]->Poll(0, [&, i] {
          --asking;
          ++asked_;
          if (!over) ask_after(i, pause(gang_.random));
        });
      });
    };
    for (size_t i = 0; i < launchers_.size(); ++i) ask_after(i, RestOfAPause());
    RunFor(phase_);
    over = true;
    for (boost::asio::steady_timer& timer : timers) timer.cancel();
    const bool all = Until([&] { return asking == 0; });
    loop_.restart();
    loop_.poll();  // what was cancelled
    return all;
  }

  bool Print() {
    for (absl::Duration second; second < phase_; second += absl::Seconds(1)) {
      const base::Deadline next = base::Deadline::After(absl::Seconds(1));
      const std::string line(99, 'x');
      if (!Together(0,
                    [&](Launcher& l, const Launcher::Done& done) { l.Print(line + "\n", done); })) {
        return false;
      }
      RunFor(next.Remaining());
    }
    return true;
  }

  int Connections() const {
    int count = 0;
    for (const auto& launcher : launchers_) count += launcher->connections();
    return count;
  }

  const int nodes_;
  const absl::Duration phase_;
  WatchedService service_;  // before any thread
  boost::asio::io_context loop_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_client};
  Gang gang_{loop_, tls_, {}, {}, "", ""};
  std::vector<std::unique_ptr<Launcher>> launchers_;
  std::string snapshot_;  // the name of the gang's code
  int user_failures_ = 0;
  int asked_ = 0;              // signs of life, in this phase
  int broken_by_restart_ = 0;  // of Gang::broken
  int most_threads_ = 0;
  absl::Duration threads_noted_;  // when, last
  bool is_late_ = false;
};

}  // namespace
}  // namespace tutti::swarm

int main(int argc, char** argv) {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const tutti::base::TemporaryDirectory folder;
  using Options = tutti::swarm::WatchedService::Options;
  if (argc == 5 && std::string_view(argv[1]) == "--beside") {
    const Options options{folder.path(), argv[2], std::atoi(argv[4]), std::atoi(argv[3])};
    return tutti::swarm::Swarm(options, absl::ZeroDuration()).RestUntilInputEnds() ? 0 : 1;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--plans") {
    const Options options{folder.path(), folder.path() / "home", std::atoi(argv[2]), 0};
    return tutti::swarm::Swarm(options, absl::ZeroDuration()).Plan() ? 0 : 1;
  }
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
  const Options options{folder.path(), folder.path() / "home", nodes, 0};
  return tutti::swarm::Swarm(options, absl::Seconds(seconds)).Run() ? 0 : 1;
}
