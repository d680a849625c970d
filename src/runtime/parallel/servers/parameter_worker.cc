#include <utility>

#include "base/status.h"
#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/lap.h"
#include "runtime/parallel/servers/served.h"

namespace tutti::parallel {
namespace {

class Worker final : public Served {
 public:
  Worker(ParameterServersOptions options, std::unique_ptr<DataParallel> inner,
         std::unique_ptr<comm::Communicator> communicator, std::vector<Pair> servers)
      : Served(std::move(options), inner->buckets(), std::move(communicator)),
        inner_(std::move(inner)),
        servers_(std::move(servers)) {}
  ~Worker() override {
    std::vector<std::unique_ptr<Mailbox>> all;
    for (Pair& each : servers_) {
      all.push_back(std::move(each.push));
      all.push_back(std::move(each.pull));
    }
    Mailbox::CloseAll(std::move(all), /*sends=*/!failed_);
  }

  const models::Model& model() const override { return inner_->model(); }
  const Buckets& buckets() const override { return inner_->buckets(); }
  State state() override { return Unserved(); }
  absl::Status Synchronize(base::Deadline deadline) override {
    TUTTI_RETURN_IF_ERROR(SynchronizeUnserved(deadline));
    return TakeAll(deadline);
  }
  absl::StatusOr<torch::Tensor> Predict(const std::vector<torch::Tensor>& inputs,
                                        base::Deadline deadline) override {
    return inner_->Predict(inputs, deadline);
  }

  absl::StatusOr<Turn> NextTurn(int64_t step, int64_t end, base::Deadline deadline) override {
    return Noted(AwaitTurn(WhileOthersCompute(deadline)));
  }
  absl::StatusOr<StepResult> Step(const Batch& batch, double learning_rate,
                                  base::Deadline deadline) override {
    return Noted(Compute(batch, deadline));
  }
  absl::StatusOr<StepResult> Settle(base::Deadline deadline) override {
    return Noted(MeetOthers(deadline));
  }
  std::vector<Figure> Figures() override {
    const double mean = gradients_ > 0 ? staleness_ / gradients_ : 0;
    gradients_ = staleness_ = 0;
    return {{"staleness", mean},
            {"staleness_most", std::exchange(most_, 0)},
            {"steps_per_second", pace_.Take()},
            {"exchange_bytes", std::exchange(bytes_, 0)}};
  }

 private:
  template <typename Result>
  absl::StatusOr<Result> Noted(absl::StatusOr<Result> result) {
    failed_ |= !result.ok();
    return result;
  }

  absl::StatusOr<Turn> AwaitTurn(base::Deadline deadline) {
    if (pace_.Begin()) {
      const PushHead hello{.stop = stop_requested() ? 1.0 : 0.0};
      TUTTI_RETURN_IF_ERROR(servers_[0].push->Send({TensorOf(hello)}, deadline));
    }
    TUTTI_ASSIGN_OR_RETURN(const Message first, Next(0, deadline));
    const PullHead head = ReadHead<PullHead>(first.at(0));
    if (std::exchange(is_sent_, false)) {
      ++gradients_;
      staleness_ += head.staleness;
      most_ = std::max(most_, head.staleness);
    }
    others_ = {head.loss, head.count, head.correct};
    for (size_t i = 0; i < told_.size(); ++i) told_[i] += others_[i];
    Turn turn{.done = static_cast<int64_t>(head.done), .works = head.begins != 0};
    for (size_t i = 0; i < static_cast<size_t>(head.told); ++i) {
      turn.steps.push_back(static_cast<int64_t>(head.steps.at(i)));
    }
    turn.last = !turn.works;
    if (turn.last) {
      pace_.End();
    } else {
      TUTTI_RETURN_IF_ERROR(TakeValues(0, first, /*behind=*/1));
      for (int server = 1; server < servers(); ++server) {
        TUTTI_ASSIGN_OR_RETURN(const Message values, Next(server, deadline));
        TUTTI_RETURN_IF_ERROR(TakeValues(server, values, /*behind=*/0));
      }
    }
    return turn;
  }

  absl::StatusOr<Message> Next(int server, base::Deadline deadline) {
    Mailbox& box = *servers_[static_cast<size_t>(server)].pull;
    box.Expect(1, deadline);
    return box.Receive();
  }

  absl::Status TakeValues(int server, const Message& message, size_t behind) {
    torch::NoGradGuard no_grad;
    const std::vector<size_t>& held = BucketsOf(server);
    if (message.size() != behind + held.size()) {
      return absl::InternalError("a server sent another number of parts than it holds");
    }
    for (size_t i = 0; i < held.size(); ++i) {
      buckets()[held[i]]->values().copy_(message[behind + i]);
    }
    return absl::OkStatus();
  }

  // What is sent stays as it is until the servers have taken it up, and the next turn comes.
  absl::StatusOr<StepResult> Compute(const Batch& batch, base::Deadline deadline) {
    TUTTI_ASSIGN_OR_RETURN(StepResult result, inner_->Step(batch, 0, deadline));
    if (options_.inner.clip_norm > 0) {
      ScaleToNorm(buckets(), SquaredNorms(*model()), options_.inner.clip_norm);
    }
    LapTimer timer;
    const auto count = static_cast<double>(result.count);
    const PushHead head{.is_gradient = 1,
                        .stop = stop_requested() ? 1.0 : 0.0,
                        .loss = result.loss * count,
                        .count = count,
                        .correct = static_cast<double>(result.correct)};
    for (int server = servers() - 1; server >= 0; --server) {
      Message message = {TensorOf(head)};
      for (const size_t i : BucketsOf(server)) {
        message.push_back(buckets()[i]->gradients());
        bytes_ += static_cast<double>(message.back().nbytes());
      }
      Mailbox& box = *servers_[static_cast<size_t>(server)].push;
      TUTTI_RETURN_IF_ERROR(box.Send(std::move(message), deadline));
    }
    is_sent_ = true;
    pace_.Add(1);
    own_[0] += head.loss;
    own_[1] += head.count;
    own_[2] += head.correct;
    const double all = count + others_[1];
    if (all > 0) result.loss = (head.loss + others_[0]) / all;
    result.count += static_cast<int64_t>(others_[1]);
    result.correct += static_cast<int64_t>(others_[2]);
    others_ = {};
    result.times.communication += timer.Lap();
    return result;
  }

  absl::Status TakeAll(base::Deadline deadline) {
    for (int server = 0; server < servers(); ++server) {
      TUTTI_ASSIGN_OR_RETURN(const Message values, Next(server, deadline));
      TUTTI_RETURN_IF_ERROR(TakeValues(server, values, /*behind=*/0));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<StepResult> MeetOthers(base::Deadline deadline) {
    TUTTI_RETURN_IF_ERROR(TakeAll(WhileOthersCompute(deadline)));
    // What came with a leg's last word was not told in a step's result.
    for (size_t i = 0; i < told_.size(); ++i) told_[i] -= std::exchange(others_[i], 0);
    return Meet(std::exchange(own_, Counts{}), std::exchange(told_, Counts{}), deadline);
  }

  const std::unique_ptr<DataParallel> inner_;  // over a group of this rank alone
  std::vector<Pair> servers_;
  bool is_sent_ = false, failed_ = false;
  Counts own_ = {}, told_ = {};  // since the last meeting: of this rank, of others
  Counts others_ = {};           // of others, to be told with the next step's result
  double gradients_ = 0, staleness_ = 0, most_ = 0, bytes_ = 0;  // since Figures
};

}  // namespace

absl::StatusOr<std::unique_ptr<Strategy>> MakeWorker(
    const models::Model& model, std::unique_ptr<comm::Communicator> communicator,
    ParameterServersOptions options, base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup({}));
  DataParallelOptions inner = options.inner;
  inner.optimizer = nullptr;
  inner.bucket_bytes = PartBytes(*model, options);
  inner.first_rank = communicator->rank();
  TUTTI_ASSIGN_OR_RETURN(auto own, DataParallel::Create(model, std::move(alone), inner));
  TUTTI_RETURN_IF_ERROR(
      CheckShares(own->buckets(), communicator->size() - options.layout.replicas()));
  TUTTI_ASSIGN_OR_RETURN(std::vector<Pair> pairs,
                         OpenPairs(*communicator, options.layout, deadline));
  return std::make_unique<Worker>(std::move(options), std::move(own), std::move(communicator),
                                  std::move(pairs));
}

}  // namespace tutti::parallel
