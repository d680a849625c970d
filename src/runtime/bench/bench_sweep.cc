#include "runtime/bench/bench_sweep.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/device/device.h"

namespace tutti::bench {
namespace {

using Transport = comm::GroupOptions::Transport;

absl::StatusOr<Transport> TransportOf(const std::string& name) {
  if (name == "auto") return Transport::kAuto;
  if (name == "shm") return Transport::kSharedMemory;
  if (name == "tcp") return Transport::kTcp;
  if (name == "ucx") return Transport::kUcx;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no transport: auto, shm, tcp, ucx"));
}

// Ranks on GPUs add up by NCCL or through host memory (parallel/gpu_sum.h), when backward has
// ended: no transport of theirs is measured, and no link that the model of the step could do with.
absl::StatusOr<bool> OnGpus(const Sweep& sweep) {
  TUTTI_ASSIGN_OR_RETURN(const torch::Device device, device::Open(sweep.setup.device));
  return device.is_cuda();
}

absl::Status Check(const Sweep& sweep, int size) {
  TUTTI_ASSIGN_OR_RETURN(const bool on_gpus, OnGpus(sweep));
  for (const std::string& name : sweep.transports) {
    TUTTI_RETURN_IF_ERROR(TransportOf(name).status());
    if (on_gpus && name != "auto") {
      return absl::InvalidArgumentError(
          absl::StrCat("--transports ", name,
                       ": ranks on GPUs use NCCL where they can; leave the transport out"));
    }
  }
  for (const int ranks : sweep.ranks) {
    if (ranks < 1 || ranks > size) {
      return absl::InvalidArgumentError(
          absl::StrCat(ranks, " ranks are asked for, and there are ", size));
    }
  }
  return absl::OkStatus();
}

// One point in `group`, of which this rank is a member. `alone`: what a rank does without others.
absl::StatusOr<Point> MeasurePoint(const Sweep& sweep, const std::string& model,
                                   std::unique_ptr<comm::Communicator> group, const Work* alone) {
  StepSetup setup = sweep.setup;
  setup.model = model;
  Point point;
  point.model = model;
  point.ranks = group->size();
  point.batch = setup.batch;
  const int here = group->placement().local_size;
  TUTTI_ASSIGN_OR_RETURN(const bool on_gpus, OnGpus(sweep));
  std::vector<AllReduceTime> link;
  if (!on_gpus) {
    TUTTI_ASSIGN_OR_RETURN(link, MeasureLink(*group, setup.timeout));
  }
  TUTTI_ASSIGN_OR_RETURN(const MeasuredStep step, MeasureStep(setup, std::move(group)));
  point.parts = step.parts;
  point.link = FitLink(link);
  const Work work = alone != nullptr ? *alone : Work{step.parts, step.bucket_bytes};
  point.alone = static_cast<double>(point.batch) / work.alone.Sum();
  if (on_gpus && point.ranks > 1) return point;
  point.predicted =
      PredictStep({work.alone, point.ranks == 1 ? std::vector<double>() : step.bucket_bytes},
                  point.link, Slowdown(here, sweep.threads, sweep.cores));
  return point;
}

class SweepRun {
 public:
  SweepRun(const Sweep& sweep, const std::function<void(const Point&)>& measured)
      : sweep_(sweep), measured_(measured) {}

  absl::Status Over(const std::string& transport, comm::Communicator& group) {
    for (const std::string& model : sweep_.models) {
      if (alone_.count(model) == 0) TUTTI_RETURN_IF_ERROR(Alone(model, transport, group));
      for (const int ranks : sweep_.ranks) {
        if (ranks > 1) TUTTI_RETURN_IF_ERROR(Together(model, transport, ranks, group));
      }
    }
    return absl::OkStatus();
  }

  std::vector<Point> Points() {
    const auto place = [&](const Point& point) {
      const auto of = [](const auto& list, const auto& name) {
        return std::find(list.begin(), list.end(), name) - list.begin();
      };
      return std::tuple(of(sweep_.models, point.model), of(sweep_.transports, point.transport),
                        point.ranks);
    };
    std::stable_sort(points_.begin(), points_.end(),
                     [&](const Point& a, const Point& b) { return place(a) < place(b); });
    return std::move(points_);
  }

 private:
  // A point for each transport: there is nobody to talk to.
  absl::Status Alone(const std::string& model, const std::string& transport,
                     comm::Communicator& group) {
    TUTTI_ASSIGN_OR_RETURN(const std::optional<Point> point, InGroupOf(1, model, nullptr, group));
    alone_[model] = {};
    if (!point) return absl::OkStatus();
    alone_[model] = Work{point->parts, {}};
    const bool wanted = std::count(sweep_.ranks.begin(), sweep_.ranks.end(), 1) > 0;
    for (const std::string& name : sweep_.transports) {
      if (wanted) Keep(*point, name, /*tell=*/name == transport);
    }
    return absl::OkStatus();
  }

  absl::Status Together(const std::string& model, const std::string& transport, int ranks,
                        comm::Communicator& group) {
    TUTTI_ASSIGN_OR_RETURN(const std::optional<Point> point,
                           InGroupOf(ranks, model, &alone_[model], group));
    if (point && group.rank() == 0) Keep(*point, transport, /*tell=*/true);
    return absl::OkStatus();
  }

  // Nothing on ranks that are not among the first `ranks`, which wait for the others.
  absl::StatusOr<std::optional<Point>> InGroupOf(int ranks, const std::string& model,
                                                 const Work* alone, comm::Communicator& group) {
    const auto deadline = [&] { return base::Deadline::After(sweep_.setup.timeout); };
    std::optional<Point> point;
    if (group.rank() < ranks) {
      std::vector<int> first(static_cast<size_t>(ranks));
      std::iota(first.begin(), first.end(), 0);
      TUTTI_ASSIGN_OR_RETURN(auto members, group.NewGroup(first, deadline()));
      TUTTI_ASSIGN_OR_RETURN(
          point, MeasurePoint(sweep_, model, std::move(members),
                              alone != nullptr && alone->alone.Sum() > 0 ? alone : nullptr));
    }
    TUTTI_RETURN_IF_ERROR(group.Barrier(deadline()));
    return point;
  }

  void Keep(Point point, const std::string& transport, bool tell) {
    point.transport = transport;
    points_.push_back(point);
    if (tell && measured_) measured_(point);
  }

  const Sweep& sweep_;
  const std::function<void(const Point&)>& measured_;
  std::map<std::string, Work> alone_;  // by model; empty on ranks other than 0
  std::vector<Point> points_;
};

}  // namespace

absl::StatusOr<std::vector<Point>> RunSweep(const Sweep& sweep, comm::GroupOptions options,
                                            const std::function<void(const Point&)>& measured) {
  TUTTI_RETURN_IF_ERROR(Check(sweep, options.size));
  SweepRun run(sweep, measured);
  for (const std::string& transport : sweep.transports) {
    TUTTI_ASSIGN_OR_RETURN(options.transport, TransportOf(transport));
    TUTTI_ASSIGN_OR_RETURN(const auto group, comm::JoinGroup(options));
    TUTTI_RETURN_IF_ERROR(run.Over(transport, *group));
  }
  return run.Points();
}

std::vector<int> RanksUpTo(int most) {
  std::vector<int> ranks;
  for (int n = 1; n < most; n *= 2) ranks.push_back(n);
  ranks.push_back(most);
  return ranks;
}

}  // namespace tutti::bench
