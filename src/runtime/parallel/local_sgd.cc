#include "runtime/parallel/local_sgd.h"

#include <set>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "runtime/models/state.h"
#include "runtime/parallel/collectives.h"
#include "runtime/parallel/flat_model.h"
#include "runtime/parallel/lap.h"

namespace tutti::parallel {
namespace {

void Swap(torch::Tensor a, torch::Tensor b) {
  const torch::Tensor kept = a.clone();
  a.copy_(b);
  b.copy_(kept);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalSgd>> LocalSgd::Create(
    const models::Model& model, std::unique_ptr<comm::Communicator> communicator,
    LocalSgdOptions options) {
  DataParallelOptions inner = options.inner;
  inner.compression = options.encoding;  // whether the model's type allows it
  TUTTI_RETURN_IF_ERROR(CheckTrainable(*model, inner));
  TUTTI_ASSIGN_OR_RETURN(auto alone, comm::JoinGroup({}));
  options.inner.first_rank = communicator->rank();
  TUTTI_ASSIGN_OR_RETURN(auto own, DataParallel::Create(model, std::move(alone), options.inner));
  const auto buckets = static_cast<int64_t>(own->buckets().size());
  if (options.exchange.fragments > buckets) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parallel: ", options.exchange.fragments, " fragments, and the model has ",
                     buckets, " parts that are exchanged as wholes: ask for at most ", buckets));
  }
  return std::unique_ptr<LocalSgd>(
      new LocalSgd(std::move(own), std::move(communicator), std::move(options)));
}

LocalSgd::LocalSgd(std::unique_ptr<DataParallel> inner,
                   std::unique_ptr<comm::Communicator> communicator, LocalSgdOptions options)
    : options_(std::move(options)),
      layout_(DataLayout(*communicator)),
      inner_(std::move(inner)),
      fragments_(static_cast<size_t>(options_.exchange.fragments)),
      feedback_(inner_->buckets().size()),
      stream_(std::move(communicator)) {
  torch::NoGradGuard no_grad;
  for (const auto& bucket : inner_->buckets()) {
    outer_.push_back(bucket->values().clone());
    velocities_.push_back(torch::zeros_like(bucket->values()));
    differences_.push_back(torch::zeros_like(bucket->values()));
    if (options_.encoding) residual_.push_back(torch::zeros_like(bucket->values()));
  }
  for (const auto& buffer : model()->named_buffers()) {
    if (buffer.value().is_floating_point()) {
      outer_buffers_[buffer.key()] = buffer.value().clone();
    }
  }
  if (options_.encoding) {
    compressed_ = std::make_unique<comm::CompressedAllReduce>(*options_.encoding);
  }
  for (size_t i = 0; i < outer_.size(); ++i) fragments_[i % fragments_.size()].buckets.push_back(i);
  for (size_t f = 0; f < fragments_.size(); ++f) {
    fragments_[f].offset =
        static_cast<int64_t>(f) * options_.exchange.every / options_.exchange.fragments;
  }
}

State LocalSgd::state() {
  State all;
  std::set<std::string> trained;
  const bool writes = rank() == 0;
  for (size_t i = 0; i < outer_.size(); ++i) {
    const torch::Tensor& lying = swapped_ ? buckets()[i]->values() : outer_[i];
    for (const Bucket::Slot& slot : buckets()[i]->slots()) {
      all.push_back({.name = slot.name, .tensor = Bucket::View(lying, slot), .writes = writes});
      trained.insert(slot.name);
    }
  }
  for (const auto& [name, tensor] : models::StateOf(*model())) {
    if (trained.contains(name)) continue;
    const auto outer = outer_buffers_.find(name);
    const bool is_outer = outer != outer_buffers_.end() && !swapped_;
    all.push_back({.name = name, .tensor = is_outer ? outer->second : tensor, .writes = writes});
  }
  State run;
  AddByName("outer_momentum.", buckets(), velocities_, run);
  if (!residual_.empty()) AddByName("owed.", buckets(), residual_, run);
  run.push_back({.name = "outer_steps", .tensor = steps_});
  for (StateTensor& each : run) each.writes = writes;
  const std::string own = absl::StrCat("rank", rank(), ".");
  for (const StateTensor& each : inner_->state()) {
    run.push_back({.name = own + each.name, .tensor = each.tensor});
  }
  run.push_back({.name = own + "begun", .tensor = has_own_});
  for (StateTensor& each : run) {
    each.part = StateTensor::Part::kRun;
    each.may_lack = true;
    all.push_back(std::move(each));
  }
  return all;
}

// What is a rank's own goes nowhere.
absl::Status LocalSgd::Synchronize(base::Deadline deadline) {
  const std::string own = absl::StrCat("rank", rank(), ".");
  for (const StateTensor& each : state()) {
    if (each.name.starts_with(own) && each.part == StateTensor::Part::kRun) continue;
    TUTTI_RETURN_IF_ERROR(stream_.Run(BroadcastOf(each.tensor, deadline)));
  }
  if (has_own_.item<int64_t>() == 0) {
    if (steps_.item<int64_t>() > 0) {
      base::Warn(absl::StrCat("rank ", rank(), " is new in this run: it begins from the outer ",
                              "parameters, with an empty optimizer"));
    }
    BeginAtOuter();
  }
  for (size_t i = 0; i < residual_.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(stream_.Run([&](comm::Communicator& group) {
      return compressed_->Restore(group, feedback_[i], FloatsOf(residual_[i]), deadline);
    }));
  }
  return absl::OkStatus();
}

void LocalSgd::BeginAtOuter() {
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < outer_.size(); ++i) buckets()[i]->values().copy_(outer_[i]);
  for (const auto& buffer : model()->named_buffers()) {
    const auto outer = outer_buffers_.find(buffer.key());
    if (outer != outer_buffers_.end()) torch::Tensor(buffer.value()).copy_(outer->second);
  }
  has_own_.fill_(1);
}

absl::StatusOr<StepResult> LocalSgd::Step(const Batch& batch, double learning_rate,
                                          base::Deadline deadline) {
  TUTTI_ASSIGN_OR_RETURN(StepResult result, inner_->Step(batch, learning_rate, deadline));
  const auto count = static_cast<double>(result.count);
  told_[0] += result.loss * count;
  told_[1] += count;
  told_[2] += static_cast<double>(result.correct);
  const int64_t step = steps_.item<int64_t>() + 1;
  steps_.fill_(step);
  const auto exchanged = base::Deadline::After(deadline.Remaining() * options_.exchange.every);
  const bool is_last = step == options_.last_step;
  for (Fragment& fragment : fragments_) {
    if (fragment.since_begun >= 0) ++fragment.since_begun;
    if (is_last && fragment.since_begun >= 0) TUTTI_RETURN_IF_ERROR(End(fragment, result));
    LapTimer timer;
    if (is_last || step % options_.exchange.every == fragment.offset) Begin(fragment, exchanged);
    result.times.update += timer.Lap();
    if (fragment.since_begun >= 0 && (is_last || fragment.since_begun == options_.exchange.delay)) {
      TUTTI_RETURN_IF_ERROR(End(fragment, result));
    }
  }
  return result;
}

void LocalSgd::Begin(Fragment& fragment, base::Deadline deadline) {
  torch::NoGradGuard no_grad;
  fragment.since_begun = 0;
  for (const size_t i : fragment.buckets) {
    const torch::Tensor& difference = differences_[i];
    difference.copy_(outer_[i]).sub_(buckets()[i]->values());
    if (compressed_ == nullptr) {
      stream_.Issue(SumOf(difference.mutable_data_ptr(), static_cast<size_t>(difference.numel()),
                          DataTypeOf(difference), deadline));
      bytes_ += static_cast<double>(difference.nbytes());
      continue;
    }
    stream_.Issue([this, i, deadline](comm::Communicator& group) {
      return compressed_->Run(group, FloatsOf(differences_[i]), comm::ReduceOp::kSum, &feedback_[i],
                              deadline);
    });
    bytes_ += static_cast<double>(
        comm::EncodedBytes(*options_.encoding, static_cast<size_t>(difference.numel())));
  }
  fragment.own = std::exchange(told_, Told{});
  fragment.own[3] = stop_requested_ ? 1 : 0;
  fragment.all = fragment.own;
  fragment.ticket = stream_.Issue(
      SumOf(fragment.all.data(), fragment.all.size(), comm::DataType::kFloat64, deadline));
}

absl::Status LocalSgd::End(Fragment& fragment, StepResult& result) {
  LapTimer timer;
  TUTTI_RETURN_IF_ERROR(stream_.Wait(fragment.ticket));
  const double waited = timer.Lap();
  result.times.communication += waited;
  waited_ += waited;
  for (const size_t i : fragment.buckets) TakeOuterStep(i);
  const bool was_late = std::exchange(fragment.since_begun, -1) > 0;
  torch::NoGradGuard no_grad;
  for (const size_t i : fragment.buckets) {
    torch::Tensor& own = buckets()[i]->values();
    if (was_late) {
      own.mul_(options_.exchange.mix).add_(outer_[i], /*alpha=*/1 - options_.exchange.mix);
    } else {
      own.copy_(outer_[i]);
    }
  }
  AddOthers(fragment.all, fragment.own, result);
  result.times.update += timer.Lap();
  return absl::OkStatus();
}

void LocalSgd::TakeOuterStep(size_t bucket) {
  torch::NoGradGuard no_grad;
  torch::Tensor& mean = differences_[bucket].div_(world_size());
  torch::Tensor& velocity = velocities_[bucket].mul_(options_.exchange.momentum).add_(mean);
  mean.add_(velocity, /*alpha=*/options_.exchange.momentum);
  outer_[bucket].sub_(mean, /*alpha=*/options_.exchange.rate);
}

void LocalSgd::AddOthers(const Told& all, const Told& own, StepResult& result) {
  const double count = all[1] - own[1], before = static_cast<double>(result.count);
  if (count > 0) {
    result.loss = (result.loss * before + all[0] - own[0]) / (before + count);
    result.count += static_cast<int64_t>(count);
    result.correct += static_cast<int64_t>(all[2] - own[2]);
  }
  result.stop |= all[3] > 0;
}

absl::StatusOr<StepResult> LocalSgd::Settle(base::Deadline deadline) {
  torch::NoGradGuard no_grad;
  StepResult result;
  for (Fragment& fragment : fragments_) {
    if (fragment.since_begun >= 0) TUTTI_RETURN_IF_ERROR(End(fragment, result));
  }
  Told own = std::exchange(told_, Told{});
  own[3] = stop_requested_ ? 1 : 0;
  Told all = own;
  std::vector<torch::Tensor> statistics;
  for (const auto& buffer : model()->named_buffers()) {
    const auto outer = outer_buffers_.find(buffer.key());
    if (outer == outer_buffers_.end()) continue;
    statistics.push_back(outer->second.copy_(buffer.value()));
  }
  TUTTI_RETURN_IF_ERROR(
      SumOverRanks(all, statistics, 1.0 / world_size(),
                   base::Deadline::After(deadline.Remaining() * options_.exchange.every)));
  AddOthers(all, own, result);
  for (size_t i = 0; i < residual_.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(stream_.Run([&](comm::Communicator& group) {
      return compressed_->Settle(group, feedback_[i], FloatsOf(residual_[i]), deadline);
    }));
  }
  return result;
}

void LocalSgd::SwapWeights() {
  torch::NoGradGuard no_grad;
  swapped_ = !swapped_;
  for (size_t i = 0; i < outer_.size(); ++i) Swap(buckets()[i]->values(), outer_[i]);
  for (const auto& buffer : model()->named_buffers()) {
    const auto outer = outer_buffers_.find(buffer.key());
    if (outer != outer_buffers_.end()) Swap(buffer.value(), outer->second);
  }
}

std::vector<Figure> LocalSgd::Figures() {
  return {{"exchange_bytes", std::exchange(bytes_, 0)},
          {"exchange_seconds", std::exchange(waited_, 0)}};
}

}  // namespace tutti::parallel
