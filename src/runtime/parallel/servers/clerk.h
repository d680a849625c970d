// Clerk decides which worker of a parameter server begins a step and when, and in which order the
// gradients that come are taken up. Pure; it knows no time.
//
// A worker begins with the parameters of a version, which counts the steps that they have seen; its
// gradient's staleness is how many versions later it is taken up. With a bound S of 1 and more a
// worker begins when neither its gradient nor one that is being computed could become staler than
// S, whoever comes next (stale synchronous parallel: Ho et al. 2013). So at most S + 1 workers
// compute at a time. With a bound of 0 they work in rounds: all begin with one version, and when
// the last gradient has come the round's are taken up as one.
//
// Workers are told the steps that are theirs one ahead of the one that they begin, so that they can
// load its batch meanwhile. Each step is told once.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace tutti::parallel {

class Clerk {
 public:
  Clerk(int workers, int64_t staleness);

  // What a worker that was ready gets.
  struct Grant {
    int worker = 0;
    bool begins = false;         // a step that it was told; false: none is left before all meet
    std::vector<int64_t> steps;  // what it is told now
  };
  // A gradient, and how many versions it was late.
  struct Gradient {
    int worker = 0;
    int64_t staleness = 0;
  };

  // Hands out the steps from `step` up to `end`, after which all meet; `step` is the version.
  void Begin(int64_t step, int64_t end);
  // Hands out no more than was told already.
  void Stop();
  // Says that a worker is there, or that its gradient was taken up, and waits for its turn.
  void Ready(int worker);
  // Returns a grant that may be given now; the caller gives it at once.
  std::optional<Grant> NextGrant();
  // Says that a worker's gradient has come; returns those to be taken up now, in this order: none
  // before a round is complete. The caller takes them up and says Ready for each.
  std::vector<Gradient> Came(int worker);
  // Tells whether every worker was told that none is left: then all gradients were taken up.
  bool over() const { return over_ == static_cast<int64_t>(workers_.size()); }
  int64_t version() const { return version_; }
  int64_t end() const { return end_; }

 private:
  static constexpr int64_t kTold = 2;  // the step that a worker begins, and the next one

  struct Worker {
    int64_t told = 0;  // steps that it has not begun
    std::vector<int64_t> to_tell;
    std::optional<int64_t> version;  // with which it computes
    bool has_come = false;           // its gradient waits for the round's others
  };
  Worker& At(int worker) { return workers_[static_cast<size_t>(worker)]; }
  int64_t computing() const;
  bool MayBegin() const;
  void HandOut(int worker);
  void FormRound();

  const int64_t staleness_;
  std::vector<Worker> workers_;
  std::deque<int> ready_, round_;  // those of a round that have not begun
  int64_t version_ = 0, next_ = 0, end_ = 0;
  int64_t over_ = 0;  // workers for which nothing is left
};

}  // namespace tutti::parallel
