#include "runtime/train/whole_state.h"

#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/status.h"
#include "runtime/device/cpu/kept_memory.h"

namespace tutti::train {
namespace {

using checkpoint::TensorMap;
using checkpoint::TensorSource;
using checkpoint::TensorSources;

// Messages between rank 0 and one other rank.
class Exchange {
 public:
  Exchange(parallel::Strategy& strategy, absl::Duration timeout)
      : strategy_(strategy), timeout_(timeout) {}

  absl::Status Send(const void* data, size_t bytes, int to) {
    return strategy_.Run([=, this](comm::Communicator& ranks) {
      return ranks.Send(data, bytes, to, base::Deadline::After(timeout_));
    });
  }
  absl::Status Receive(void* data, size_t bytes, int from) {
    return strategy_.Run([=, this](comm::Communicator& ranks) {
      return ranks.Receive(data, bytes, from, base::Deadline::After(timeout_));
    });
  }
  absl::Status Send(const std::string& text, int to) {
    const uint64_t size = text.size();
    TUTTI_RETURN_IF_ERROR(Send(&size, sizeof(size), to));
    return Send(text.data(), text.size(), to);
  }
  absl::StatusOr<std::string> ReceiveText(int from) {
    uint64_t size = 0;
    TUTTI_RETURN_IF_ERROR(Receive(&size, sizeof(size), from));
    std::string text(size, '\0');
    TUTTI_RETURN_IF_ERROR(Receive(text.data(), text.size(), from));
    return text;
  }
  absl::Status Send(const torch::Tensor& tensor, int to) {
    const torch::Tensor dense = tensor.detach().cpu().contiguous();
    return Send(dense.const_data_ptr(), dense.nbytes(), to);
  }
  // Into the tensor, whatever its strides and device.
  absl::Status Receive(torch::Tensor tensor, int from) {
    if (tensor.is_cpu() && tensor.is_contiguous()) {
      return Receive(tensor.mutable_data_ptr(), tensor.nbytes(), from);
    }
    torch::Tensor dense = torch::empty(tensor.sizes(), tensor.scalar_type());
    TUTTI_RETURN_IF_ERROR(Receive(dense.mutable_data_ptr(), dense.nbytes(), from));
    torch::NoGradGuard no_grad;
    tensor.copy_(dense);
    return absl::OkStatus();
  }

 private:
  parallel::Strategy& strategy_;
  const absl::Duration timeout_;
};

// Ranks other than 0 that write what they hold.
std::vector<int> OtherWriters(const parallel::Layout& layout) {
  std::vector<int> writers;
  for (int stage = 1; stage < layout.stages; ++stage) writers.push_back(layout.RankOf(stage, 0));
  return writers;
}

std::string ListOf(const TensorMap& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, tensor] : tensors) {
    list.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  }
  return list.dump();
}

absl::StatusOr<TensorMap> ReadList(const std::string& text) {
  try {
    TensorMap tensors;
    for (const nlohmann::json& entry : nlohmann::json::parse(text)) {
      const auto type = static_cast<torch::ScalarType>(entry.at(1).get<int>());
      tensors[entry.at(0)] = torch::empty(entry.at(2).get<std::vector<int64_t>>(),
                                          torch::dtype(type).device(torch::kMeta));
    }
    return tensors;
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("a rank sent no list of tensors: ", error.what()));
  }
}

// What each other writer holds, by rank, on rank 0.
absl::StatusOr<std::map<int, TensorMap>> GatherLists(Exchange& exchange,
                                                     const parallel::Layout& layout,
                                                     const TensorMap& own) {
  std::map<int, TensorMap> lists;
  if (layout.reports()) {
    for (const int writer : OtherWriters(layout)) {
      TUTTI_ASSIGN_OR_RETURN(const std::string text, exchange.ReceiveText(writer));
      TUTTI_ASSIGN_OR_RETURN(lists[writer], ReadList(text));
    }
  } else if (layout.writes_state()) {
    TUTTI_RETURN_IF_ERROR(exchange.Send(ListOf(own), 0));
  }
  return lists;
}

// The tensors that a writer sends, in its order, of which rank 0 takes one after the other.
class Sender {
 public:
  Sender(Exchange& exchange, int rank) : exchange_(exchange), rank_(rank) {}

  // `name` is empty where nobody wants it: another rank's counts.
  void Announce(std::string name, const torch::Tensor& like) {
    queue_.push_back({std::move(name), like});
  }
  absl::StatusOr<torch::Tensor> Take(const std::string& name) {
    while (!queue_.empty()) {
      const bool is_it = queue_.front().name == name;
      TUTTI_ASSIGN_OR_RETURN(torch::Tensor tensor, TakeNext());
      if (is_it) return tensor;
    }
    return absl::InternalError(absl::StrCat("rank ", rank_, " has already sent ", name));
  }
  absl::Status TakeTheRest() {
    while (!queue_.empty()) TUTTI_RETURN_IF_ERROR(TakeNext().status());
    return absl::OkStatus();
  }

 private:
  struct Entry {
    std::string name;
    torch::Tensor like;  // without memory
  };
  absl::StatusOr<torch::Tensor> TakeNext() {
    const torch::Tensor like = queue_.front().like;
    queue_.pop_front();
    torch::Tensor tensor = torch::empty(like.sizes(), like.scalar_type());
    TUTTI_RETURN_IF_ERROR(exchange_.Receive(tensor, rank_));
    return tensor;
  }

  Exchange& exchange_;
  const int rank_;
  std::deque<Entry> queue_;
};

absl::Status SendAll(Exchange& exchange, const std::vector<TensorMap>& own) {
  for (const TensorMap& file : own) {
    for (const std::string& name : checkpoint::FileOrder(checkpoint::SourcesOf(file))) {
      TUTTI_RETURN_IF_ERROR(exchange.Send(file.at(name), 0));
    }
  }
  return absl::OkStatus();
}

// Adds what the sender holds of a file; what is there already is another rank's, and stays.
void AddSources(const TensorMap& list, const std::shared_ptr<Sender>& sender,
                TensorSources& sources) {
  for (const std::string& name : checkpoint::FileOrder(checkpoint::SourcesOf(list))) {
    const torch::Tensor& like = list.at(name);
    const auto take = [sender, name] { return sender->Take(name); };
    const bool added =
        sources.emplace(name, TensorSource{like.dtype().toScalarType(), like.sizes().vec(), take})
            .second;
    sender->Announce(added ? name : "", like);
  }
}

}  // namespace

absl::StatusOr<TensorMap> Catalogue(parallel::Strategy& strategy, const TensorMap& own,
                                    absl::Duration timeout) {
  Exchange exchange(strategy, timeout);
  TUTTI_ASSIGN_OR_RETURN(const auto lists, GatherLists(exchange, strategy.layout(), own));
  TensorMap whole = own;
  for (const auto& [writer, list] : lists) whole.insert(list.begin(), list.end());
  return whole;
}

absl::Status WriteWhole(parallel::Strategy& strategy, const std::vector<TensorMap>& own,
                        absl::Duration timeout, const WriteSources& write) {
  const parallel::Layout& layout = strategy.layout();
  Exchange exchange(strategy, timeout);
  std::vector<TensorSources> files;
  for (const TensorMap& file : own) files.push_back(checkpoint::SourcesOf(file));
  std::map<int, std::shared_ptr<Sender>> senders;
  for (size_t i = 0; i < own.size(); ++i) {
    TUTTI_ASSIGN_OR_RETURN(const auto lists, GatherLists(exchange, layout, own[i]));
    for (const auto& [writer, list] : lists) {
      auto& sender = senders[writer];
      if (sender == nullptr) sender = std::make_shared<Sender>(exchange, writer);
      AddSources(list, sender, files[i]);
    }
  }
  if (!layout.reports()) {
    return layout.writes_state() ? SendAll(exchange, own) : absl::OkStatus();
  }
  const absl::Status written = write(std::move(files));
  for (const auto& [writer, sender] : senders) TUTTI_RETURN_IF_ERROR(sender->TakeTheRest());
  if (layout.stages > 1) device::ReturnKeptBlocks();  // of the other stages' tensors
  return written;
}

absl::Status ReadWhole(parallel::Strategy& strategy, const TensorMap& whole, const TensorMap& own,
                       absl::Duration timeout) {
  const parallel::Layout& layout = strategy.layout();
  Exchange exchange(strategy, timeout);
  TUTTI_ASSIGN_OR_RETURN(const auto lists, GatherLists(exchange, layout, own));
  torch::NoGradGuard no_grad;
  if (layout.reports()) {
    for (const auto& [name, tensor] : own) tensor.copy_(whole.at(name));
    for (const auto& [writer, list] : lists) {
      for (const auto& [name, like] : list) {
        const torch::Tensor& tensor = whole.at(name);
        TUTTI_RETURN_IF_ERROR(exchange.Send(tensor.to(like.scalar_type()), writer));
      }
    }
  } else if (layout.writes_state()) {
    for (const auto& [name, tensor] : own) TUTTI_RETURN_IF_ERROR(exchange.Receive(tensor, 0));
  }
  return absl::OkStatus();
}

}  // namespace tutti::train
