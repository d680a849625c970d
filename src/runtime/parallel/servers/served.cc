#include "runtime/parallel/servers/served.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/models/state.h"
#include "runtime/parallel/collectives.h"

namespace tutti::parallel {
namespace {

std::vector<int64_t> BytesOf(const Buckets& buckets) {
  std::vector<int64_t> bytes;
  for (const auto& bucket : buckets) {
    bytes.push_back(static_cast<int64_t>(bucket->values().nbytes()));
  }
  return bytes;
}

std::vector<torch::Tensor> Statistics(const models::Model& model) {
  std::vector<torch::Tensor> floating;
  for (const torch::Tensor& buffer : model->buffers()) {
    if (buffer.is_floating_point()) floating.push_back(buffer);
  }
  return floating;
}

}  // namespace

std::vector<int> OwnersOf(const std::vector<int64_t>& bytes, int servers) {
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::vector<int64_t> loads(static_cast<size_t>(servers));
  std::vector<int> owners(bytes.size());
  for (const size_t i : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += bytes[i];
    owners[i] = static_cast<int>(least - loads.begin());
  }
  return owners;
}

size_t PartBytes(const models::ModelImpl& model, const ParameterServersOptions& options) {
  if (options.inner.bucket_bytes > 0) return options.inner.bucket_bytes;
  const int servers = options.layout.world_size - options.layout.replicas();
  size_t bytes = 0;
  for (const torch::Tensor& parameter : model.parameters()) bytes += parameter.nbytes();
  return std::clamp<size_t>(bytes / static_cast<size_t>(8 * servers), size_t{16} << 10,
                            size_t{25} << 20);
}

absl::Status CheckShares(const Buckets& buckets, int servers) {
  if (buckets.size() >= static_cast<size_t>(servers)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--parallel: ", servers,
                                                 " servers, and the model has only ",
                                                 buckets.size(), " parts to share out"));
}

Served::Served(ParameterServersOptions options, const Buckets& buckets,
               std::unique_ptr<comm::Communicator> communicator)
    : options_(std::move(options)),
      held_(static_cast<size_t>(servers())),
      stream_(std::move(communicator)) {
  const std::vector<int> owners = OwnersOf(BytesOf(buckets), servers());
  for (size_t i = 0; i < owners.size(); ++i) held_[static_cast<size_t>(owners[i])].push_back(i);
  for (const auto& bucket : buckets) {
    for (const Bucket::Slot& slot : bucket->slots()) trained_.insert(slot.name);
  }
}

absl::StatusOr<std::vector<Pair>> OpenPairs(comm::Communicator& ranks, const Layout& layout,
                                            base::Deadline deadline,
                                            const std::shared_ptr<Arrivals>& arrivals) {
  std::vector<Pair> own;
  for (int worker = 0; worker < layout.replicas(); ++worker) {
    for (int server = layout.replicas(); server < layout.world_size; ++server) {
      if (layout.rank != worker && layout.rank != server) continue;
      MailboxOptions push{.from = worker, .to = server, .waiting = 2};
      if (arrivals != nullptr) push.on_arrival = [arrivals] { arrivals->Add(); };
      const MailboxOptions pull{.from = server, .to = worker, .waiting = 2};
      Pair pair;
      TUTTI_ASSIGN_OR_RETURN(pair.push, Mailbox::Open(ranks, push, deadline));
      TUTTI_ASSIGN_OR_RETURN(pair.pull, Mailbox::Open(ranks, pull, deadline));
      own.push_back(std::move(pair));
    }
  }
  return own;
}

State Served::Unserved() const {
  State all;
  for (const auto& [name, tensor] : models::StateOf(*model())) {
    if (trained_.contains(name)) continue;
    all.push_back({.name = name, .tensor = tensor, .writes = rank() == 0});
  }
  return all;
}

absl::Status Served::SynchronizeUnserved(base::Deadline deadline) {
  for (const StateTensor& each : Unserved()) {
    TUTTI_RETURN_IF_ERROR(stream_.Run(BroadcastOf(each.tensor, deadline)));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepResult> Served::Meet(const Counts& own, const Counts& told,
                                        base::Deadline deadline) {
  std::array<double, 4> values = {own[0], own[1], own[2], stop_requested_ ? 1.0 : 0.0};
  const double share = layout().trains() ? 1.0 / workers() : 0;
  TUTTI_RETURN_IF_ERROR(SumOverRanks(values, Statistics(model()), share, deadline));
  const double count = values[1] - own[1] - told[1];
  StepResult result{.stop = values[3] > 0};
  if (count > 0) {
    result.loss = (values[0] - own[0] - told[0]) / count;
    result.count = static_cast<int64_t>(count);
    result.correct = static_cast<int64_t>(values[2] - own[2] - told[2]);
  }
  return result;
}

absl::StatusOr<std::unique_ptr<Strategy>> MakeParameterServers(
    const models::Model& model, std::unique_ptr<comm::Communicator> communicator,
    ParameterServersOptions options, base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(CheckTrainable(*model, options.inner));
  const bool trains = options.layout.trains();
  return trains ? MakeWorker(model, std::move(communicator), std::move(options), deadline)
                : MakeServer(model, std::move(communicator), std::move(options), deadline);
}

}  // namespace tutti::parallel
