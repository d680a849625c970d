#include <map>
#include <thread>
#include <utility>

#include "base/status.h"
#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/lap.h"
#include "runtime/parallel/servers/clerk.h"
#include "runtime/parallel/servers/served.h"

namespace tutti::parallel {
namespace {

// What the clerk's server tells the others to do, in the order in which it does it: fp64, the
// action, the version, and workers.
enum class Command { kGive, kTakeUp, kMeet };

class Server final : public Served {
 public:
  Server(ParameterServersOptions options, models::Model model, Buckets all,
         std::unique_ptr<comm::Communicator> communicator, std::vector<Pair> workers,
         std::vector<std::unique_ptr<Mailbox>> orders, std::shared_ptr<Arrivals> arrivals)
      : Served(std::move(options), all, std::move(communicator)),
        model_(std::move(model)),
        workers_(std::move(workers)),
        orders_(std::move(orders)),
        arrivals_(std::move(arrivals)),
        clerk_(this->workers(), options_.staleness) {
    for (const size_t i : BucketsOf(rank() - this->workers())) {
      buckets_.push_back(std::move(all[i]));
    }
    for (const auto& bucket : all) LetGo(bucket.get());
    if (options_.inner.optimizer) optimizer_ = options_.inner.optimizer(buckets_, model_);
  }
  ~Server() override {
    std::vector<std::unique_ptr<Mailbox>> all = std::move(orders_);
    for (Pair& each : workers_) {
      all.push_back(std::move(each.push));
      all.push_back(std::move(each.pull));
    }
    Mailbox::CloseAll(std::move(all), /*sends=*/!failed_);
  }

  const models::Model& model() const override { return model_; }
  const Buckets& buckets() const override { return buckets_; }
  State state() override {
    State all = Unserved();
    for (const auto& bucket : buckets_) {
      for (const Bucket::Slot& slot : bucket->slots()) {
        all.push_back({.name = slot.name, .tensor = Bucket::View(bucket->values(), slot)});
      }
    }
    if (optimizer_ == nullptr) return all;
    for (StateTensor& each : optimizer_->state()) {
      each.writes = !each.common || leads();
      all.push_back(std::move(each));
    }
    return all;
  }
  absl::Status Synchronize(base::Deadline deadline) override;
  absl::StatusOr<Turn> NextTurn(int64_t step, int64_t end, base::Deadline deadline) override {
    // Of each wait in it: several steps may come before the turn.
    const absl::Duration limit = deadline.Remaining();
    const bool was_meeting = pace_.Begin();
    if (leads() && was_meeting) {
      clerk_.Begin(step, end);
      for (const Pair& each : workers_) each.push->Expect(1, base::Deadline::After(limit));
    }
    auto turn = leads() ? Decide(limit) : Obey(limit);
    failed_ |= !turn.ok();
    if (turn.ok() && turn->last) pace_.End();
    return turn;
  }
  absl::StatusOr<StepResult> Step(const Batch& batch, double learning_rate,
                                  base::Deadline deadline) override {
    auto result = TakeUp(learning_rate);
    failed_ |= !result.ok();
    return result;
  }
  absl::StatusOr<StepResult> Settle(base::Deadline deadline) override;
  absl::StatusOr<torch::Tensor> Predict(const std::vector<torch::Tensor>& inputs,
                                        base::Deadline deadline) override {
    return torch::Tensor();
  }
  std::vector<Figure> Figures() override {
    return {{"staleness", 0},
            {"staleness_most", 0},
            {"steps_per_second", pace_.Take()},
            {"exchange_bytes", std::exchange(bytes_, 0)}};
  }

 private:
  using Gradients = std::vector<std::pair<int, Message>>;  // of workers

  bool leads() const { return rank() == clerk(); }
  Pair& With(int worker) { return workers_[static_cast<size_t>(worker)]; }

  // Another server's memory is not needed here.
  static void LetGo(Bucket* bucket) {
    if (bucket == nullptr) return;
    for (const Bucket::Slot& slot : bucket->slots()) {
      torch::Tensor parameter = slot.parameter;
      parameter.mutable_grad() = torch::Tensor();
      parameter.set_data(torch::empty({0}, parameter.options()));
    }
  }

  absl::Status GiveValues(int worker, Message before, base::Deadline deadline) {
    for (const auto& bucket : buckets_) {
      if (snapshot_.size() < buckets_.size()) snapshot_.push_back(bucket->values().clone());
    }
    for (const torch::Tensor& each : snapshot_) {
      bytes_ += static_cast<double>(each.nbytes());
      before.push_back(each);
    }
    return With(worker).pull->Send(std::move(before), deadline);
  }
  absl::Status Order(Command command, const std::vector<int>& workers, base::Deadline deadline) {
    std::vector<double> order = {static_cast<double>(command),
                                 static_cast<double>(clerk_.version())};
    order.insert(order.end(), workers.begin(), workers.end());
    for (const auto& box : orders_) {
      TUTTI_RETURN_IF_ERROR(box->Send({torch::tensor(order, torch::kFloat64)}, deadline));
    }
    return absl::OkStatus();
  }

  absl::Status ShareUpdates(base::Deadline deadline);
  absl::Status GiveAll(base::Deadline deadline);
  absl::StatusOr<Turn> Decide(absl::Duration limit);
  absl::Status Give(const Clerk::Grant& grant, base::Deadline deadline);
  absl::StatusOr<std::pair<int, Message>> NextPush();
  void Note(int worker, const PushHead& head);
  absl::StatusOr<Turn> Obey(absl::Duration limit);
  absl::StatusOr<StepResult> TakeUp(double learning_rate);

  const models::Model model_;
  Buckets buckets_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Pair> workers_;
  std::vector<std::unique_ptr<Mailbox>> orders_;  // to all other servers, or from the clerk's
  const std::shared_ptr<Arrivals> arrivals_;
  bool failed_ = false;
  double bytes_ = 0;
  Gradients to_take_up_;
  Message snapshot_;  // of this version's values, for all who fetch it; empty: none has yet
  // The clerk's server alone has what follows.
  Clerk clerk_;
  std::map<int, Message> come_;       // gradients of a round that is not complete
  std::map<int, int64_t> staleness_;  // of each worker's last gradient
  std::vector<Counts> others_ = std::vector<Counts>(static_cast<size_t>(workers()));
};

// How often the optimizer has updated is the same on all servers.
absl::Status Server::Synchronize(base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(SynchronizeUnserved(deadline));
  TUTTI_RETURN_IF_ERROR(ShareUpdates(deadline));
  return GiveAll(deadline);
}

absl::Status Server::GiveAll(base::Deadline deadline) {
  for (int worker = 0; worker < workers(); ++worker) {
    const absl::Status given = GiveValues(worker, {}, deadline);
    failed_ |= !given.ok();
    TUTTI_RETURN_IF_ERROR(given);
  }
  return absl::OkStatus();
}

absl::Status Server::ShareUpdates(base::Deadline deadline) {
  Message common;
  for (const StateTensor& each : optimizer_ == nullptr ? State() : optimizer_->state()) {
    if (each.common) common.push_back(each.tensor);
  }
  if (common.empty()) return absl::OkStatus();
  if (leads()) {
    for (const auto& box : orders_) TUTTI_RETURN_IF_ERROR(box->Send(common, deadline));
    return absl::OkStatus();
  }
  orders_[0]->Expect(1, deadline);
  TUTTI_ASSIGN_OR_RETURN(const Message told, orders_[0]->Receive());
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < common.size(); ++i) common[i].copy_(told.at(i));
  return absl::OkStatus();
}

absl::StatusOr<Turn> Server::Decide(absl::Duration limit) {
  const auto soon = [limit] { return base::Deadline::After(limit); };
  while (true) {
    if (stop_requested()) clerk_.Stop();
    while (const auto grant = clerk_.NextGrant()) TUTTI_RETURN_IF_ERROR(Give(*grant, soon()));
    if (clerk_.over()) {
      TUTTI_RETURN_IF_ERROR(Order(Command::kMeet, {}, soon()));
      return Turn{.done = clerk_.version(), .works = false, .last = true};
    }
    TUTTI_ASSIGN_OR_RETURN(auto push, NextPush());
    const int worker = push.first;
    const PushHead head = ReadHead<PushHead>(push.second.at(0));
    if (head.stop != 0) clerk_.Stop();
    if (head.is_gradient == 0) {
      clerk_.Ready(worker);
      continue;
    }
    Note(worker, head);
    come_[worker] = std::move(push.second);
    const int64_t version = clerk_.version();
    std::vector<int> taken;
    for (const Clerk::Gradient& each : clerk_.Came(worker)) {
      staleness_[each.worker] = each.staleness;
      taken.push_back(each.worker);
      to_take_up_.emplace_back(each.worker, std::move(come_.at(each.worker)));
      come_.erase(each.worker);
    }
    if (taken.empty()) continue;
    TUTTI_RETURN_IF_ERROR(Order(Command::kTakeUp, taken, soon()));
    return Turn{.done = version};
  }
}

absl::Status Server::Give(const Clerk::Grant& grant, base::Deadline deadline) {
  const Counts others = std::exchange(others_[static_cast<size_t>(grant.worker)], Counts{});
  PullHead head{.begins = grant.begins ? 1.0 : 0.0,
                .done = static_cast<double>(grant.begins ? clerk_.version() : clerk_.end()),
                .staleness = static_cast<double>(staleness_[grant.worker]),
                .loss = others[0],
                .count = others[1],
                .correct = others[2],
                .told = static_cast<double>(grant.steps.size())};
  for (size_t i = 0; i < grant.steps.size(); ++i) {
    head.steps.at(i) = static_cast<double>(grant.steps[i]);
  }
  if (!grant.begins) return With(grant.worker).pull->Send({TensorOf(head)}, deadline);
  TUTTI_RETURN_IF_ERROR(Order(Command::kGive, {grant.worker}, deadline));
  TUTTI_RETURN_IF_ERROR(GiveValues(grant.worker, {TensorOf(head)}, deadline));
  With(grant.worker).push->Expect(1, deadline);
  return absl::OkStatus();
}

absl::StatusOr<std::pair<int, Message>> Server::NextPush() {
  arrivals_->Await();
  while (true) {
    for (int worker = 0; worker < workers(); ++worker) {
      TUTTI_ASSIGN_OR_RETURN(auto message, With(worker).push->TryReceive());
      if (message) return std::pair(worker, *std::move(message));
    }
    std::this_thread::yield();  // the mailbox that told of it is about to have it
  }
}

// Rank 0 tells the user of all.
void Server::Note(int worker, const PushHead& head) {
  if (worker == 0) return;
  Counts& others = others_[0];
  others[0] += head.loss;
  others[1] += head.count;
  others[2] += head.correct;
}

// The next order may be several workers' steps away.
absl::StatusOr<Turn> Server::Obey(absl::Duration limit) {
  while (true) {
    orders_[0]->Expect(1, WhileOthersCompute(base::Deadline::After(limit)));
    TUTTI_ASSIGN_OR_RETURN(const Message message, orders_[0]->Receive());
    const torch::Tensor& order = message.at(0);
    const auto* said = order.const_data_ptr<double>();
    const auto command = static_cast<Command>(static_cast<int>(said[0]));
    const auto version = static_cast<int64_t>(said[1]);
    if (command == Command::kMeet) return Turn{.done = version, .works = false, .last = true};
    for (int64_t i = 2; i < order.numel(); ++i) {
      const int worker = static_cast<int>(said[i]);
      if (command == Command::kGive) {
        const auto soon = base::Deadline::After(limit);
        TUTTI_RETURN_IF_ERROR(GiveValues(worker, {}, soon));
        With(worker).push->Expect(1, soon);
        continue;
      }
      TUTTI_ASSIGN_OR_RETURN(Message gradient, With(worker).push->Receive());
      to_take_up_.emplace_back(worker, std::move(gradient));
    }
    if (command == Command::kTakeUp) {
      return Turn{.done = version - static_cast<int64_t>(to_take_up_.size())};
    }
  }
}

absl::StatusOr<StepResult> Server::TakeUp(double learning_rate) {
  torch::NoGradGuard no_grad;
  LapTimer timer;
  const Gradients gradients = std::exchange(to_take_up_, {});
  pace_.Add(static_cast<int64_t>(gradients.size()));
  snapshot_.clear();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    torch::Tensor sum = buckets_[i]->gradients();
    for (size_t g = 0; g < gradients.size(); ++g) {
      const torch::Tensor& one = gradients[g].second.at(i + 1);
      if (g == 0) {
        sum.copy_(one);
      } else {
        sum.add_(one);
      }
    }
    if (gradients.size() > 1) sum.div_(static_cast<double>(gradients.size()));
  }
  if (optimizer_ != nullptr) optimizer_->Step(learning_rate);
  if (leads()) {
    for (const auto& [worker, message] : gradients) clerk_.Ready(worker);
  }
  StepResult result;
  result.times.update = timer.Lap();
  return result;
}

absl::StatusOr<StepResult> Server::Settle(base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(GiveAll(deadline));
  auto met = Meet({}, {}, deadline);
  failed_ |= !met.ok();
  if (met.ok()) *met = {.stop = met->stop};  // others tell the samples
  others_.assign(others_.size(), Counts{});
  return met;
}

absl::StatusOr<std::vector<std::unique_ptr<Mailbox>>> OpenOrders(comm::Communicator& ranks,
                                                                 const Layout& layout,
                                                                 base::Deadline deadline) {
  const int clerk = layout.replicas();
  std::vector<std::unique_ptr<Mailbox>> own;
  for (int server = clerk + 1; server < layout.world_size; ++server) {
    if (layout.rank != clerk && layout.rank != server) continue;
    // A server that is behind holds the clerk's up, and nothing else.
    TUTTI_ASSIGN_OR_RETURN(
        auto box,
        Mailbox::Open(ranks, {.from = clerk, .to = server, .waiting = 16, .ahead = 1}, deadline));
    own.push_back(std::move(box));
  }
  return own;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Strategy>> MakeServer(
    const models::Model& model, std::unique_ptr<comm::Communicator> communicator,
    ParameterServersOptions options, base::Deadline deadline) {
  const int servers = communicator->size() - options.layout.replicas();
  Buckets buckets = FlattenParameters(model, PartBytes(*model, options), 0, OwnMemory);
  TUTTI_RETURN_IF_ERROR(CheckShares(buckets, servers));
  const bool leads = options.layout.rank == options.layout.replicas();
  auto arrivals = leads ? std::make_shared<Arrivals>() : nullptr;
  TUTTI_ASSIGN_OR_RETURN(std::vector<Pair> pairs,
                         OpenPairs(*communicator, options.layout, deadline, arrivals));
  TUTTI_ASSIGN_OR_RETURN(auto orders, OpenOrders(*communicator, options.layout, deadline));
  return std::make_unique<Server>(std::move(options), model, std::move(buckets),
                                  std::move(communicator), std::move(pairs), std::move(orders),
                                  std::move(arrivals));
}

}  // namespace tutti::parallel
