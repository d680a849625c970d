#include "runtime/train/whole_state.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
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
using parallel::State;
using parallel::StateTensor;

using Part = StateTensor::Part;

// What one rank writes, in the order of the files: the model's before the run's, and each as
// checkpoint::FileOrder has it.
State Written(const State& own) {
  State written;
  for (const StateTensor& each : own) {
    if (each.writes) written.push_back(each);
  }
  std::sort(written.begin(), written.end(), [](const StateTensor& a, const StateTensor& b) {
    if (a.part != b.part) return a.part == Part::kModel;
    const auto size_a = a.tensor.element_size(), size_b = b.tensor.element_size();
    return size_a != size_b ? size_a > size_b : a.name < b.name;
  });
  return written;
}

// Returns the part of a whole tensor that `piece` is.
torch::Tensor PieceOf(torch::Tensor whole, const StateTensor& piece) {
  for (size_t i = 0; i < piece.begin.size(); ++i) {
    const auto dimension = static_cast<int64_t>(i);
    whole = whole.narrow(dimension, piece.begin[i], piece.tensor.size(dimension));
  }
  return whole;
}

torch::Tensor WithoutMemory(const std::vector<int64_t>& shape, torch::ScalarType type) {
  return torch::empty(shape, torch::dtype(type).device(torch::kMeta));
}

nlohmann::json AsJson(const State& written) {
  nlohmann::json list = nlohmann::json::array();
  for (const StateTensor& each : written) {
    list.push_back({each.name, static_cast<int>(each.tensor.scalar_type()),
                    each.tensor.sizes().vec(), each.part == Part::kModel, each.shape, each.begin,
                    each.may_lack});
  }
  return list;
}

// Its tensors have no memory.
absl::StatusOr<State> ReadList(const torch::Tensor& text) {
  try {
    State list;
    const auto* begin = reinterpret_cast<const char*>(text.const_data_ptr<uint8_t>());
    for (const nlohmann::json& entry : nlohmann::json::parse(begin, begin + text.numel())) {
      const auto type = static_cast<torch::ScalarType>(entry.at(1).get<int>());
      list.push_back({.name = entry.at(0),
                      .tensor = WithoutMemory(entry.at(2).get<std::vector<int64_t>>(), type),
                      .part = entry.at(3).get<bool>() ? Part::kModel : Part::kRun,
                      .shape = entry.at(4),
                      .begin = entry.at(5),
                      .may_lack = entry.at(6)});
    }
    return list;
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("a rank sent no list of tensors: ", error.what()));
  }
}

// Each tensor is written whole, and once.
absl::Status CheckPieces(const std::map<int, State>& lists) {
  std::map<std::pair<Part, std::string>, std::pair<const StateTensor*, int64_t>> seen;
  for (const auto& [rank, list] : lists) {
    for (const StateTensor& each : list) {
      auto& [first, elements] = seen[{each.part, each.name}];
      if (first == nullptr) first = &each;
      elements += each.tensor.numel();
      if (each.tensor.scalar_type() != first->tensor.scalar_type() ||
          each.WholeShape() != first->WholeShape()) {
        return absl::InternalError(
            absl::StrCat("rank ", rank, " has ", each.name, " of another type or shape"));
      }
    }
  }
  for (const auto& [key, value] : seen) {
    const int64_t whole = c10::multiply_integers(value.first->WholeShape());
    if (value.second == whole) continue;
    return absl::InternalError(absl::StrCat("of ", key.second, " ranks write ", value.second,
                                            " elements, and it has ", whole));
  }
  return absl::OkStatus();
}

// What each rank that writes anything holds of it, rank 0 first; elsewhere none.
absl::StatusOr<std::map<int, State>> GatherLists(parallel::Strategy& strategy, const State& written,
                                                 absl::Duration timeout) {
  const auto soon = [&] { return base::Deadline::After(timeout); };
  const std::string text = written.empty() ? "" : AsJson(written).dump();
  std::vector<double> sizes(static_cast<size_t>(strategy.world_size()));
  sizes[static_cast<size_t>(strategy.rank())] = static_cast<double>(text.size());
  TUTTI_RETURN_IF_ERROR(strategy.SumOverRanks(sizes, soon()));
  std::map<int, State> lists;
  if (!strategy.layout().reports()) {
    if (text.empty()) return lists;
    const torch::Tensor bytes = torch::from_blob(
        const_cast<char*>(text.data()), {static_cast<int64_t>(text.size())}, torch::kUInt8);
    TUTTI_RETURN_IF_ERROR(strategy.Send(bytes, 0, soon()));
    return lists;
  }
  lists[0] = written;
  for (int rank = 1; rank < strategy.world_size(); ++rank) {
    const auto size = static_cast<int64_t>(sizes[static_cast<size_t>(rank)]);
    if (size == 0) continue;
    const torch::Tensor bytes = torch::empty({size}, torch::kUInt8);
    TUTTI_RETURN_IF_ERROR(strategy.Receive(bytes, rank, soon()));
    TUTTI_ASSIGN_OR_RETURN(lists[rank], ReadList(bytes));
  }
  TUTTI_RETURN_IF_ERROR(CheckPieces(lists));
  return lists;
}

// The tensors of a writer, which come in its order; rank 0's own are there.
class Writer {
 public:
  Writer(parallel::Strategy& strategy, int rank, const State& list, absl::Duration timeout)
      : strategy_(strategy), rank_(rank), left_(list.begin(), list.end()), timeout_(timeout) {}

  absl::StatusOr<torch::Tensor> Take(const StateTensor& wanted) {
    while (!left_.empty()) {
      const bool is_it = left_.front().name == wanted.name && left_.front().part == wanted.part;
      TUTTI_ASSIGN_OR_RETURN(torch::Tensor tensor, TakeNext());
      if (is_it) return tensor;
    }
    return absl::InternalError(absl::StrCat("rank ", rank_, " has already sent ", wanted.name));
  }
  absl::Status TakeTheRest() {
    while (!left_.empty()) TUTTI_RETURN_IF_ERROR(TakeNext().status());
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<torch::Tensor> TakeNext() {
    torch::Tensor tensor = left_.front().tensor;
    left_.pop_front();
    if (rank_ == strategy_.rank()) return tensor;
    tensor = torch::empty(tensor.sizes(), tensor.scalar_type());
    TUTTI_RETURN_IF_ERROR(strategy_.Receive(tensor, rank_, base::Deadline::After(timeout_)));
    return tensor;
  }

  parallel::Strategy& strategy_;
  const int rank_;
  std::deque<StateTensor> left_;
  const absl::Duration timeout_;
};

// A tensor of the whole state, and where it comes from.
struct Whole {
  struct Piece {
    std::shared_ptr<Writer> writer;
    StateTensor tensor;
  };
  std::vector<Piece> pieces;

  absl::StatusOr<torch::Tensor> Get() const {
    const StateTensor& first = pieces[0].tensor;
    if (pieces.size() == 1 && first.shape.empty()) return pieces[0].writer->Take(first);
    const torch::Tensor whole = torch::empty(first.WholeShape(), first.tensor.scalar_type());
    for (const Piece& piece : pieces) {
      TUTTI_ASSIGN_OR_RETURN(const torch::Tensor taken, piece.writer->Take(piece.tensor));
      PieceOf(whole, piece.tensor).copy_(taken);
    }
    return whole;
  }
};

TensorSources SourcesOf(const std::map<int, State>& lists,
                        const std::map<int, std::shared_ptr<Writer>>& writers, Part part) {
  std::map<std::string, Whole> all;
  for (const auto& [rank, list] : lists) {
    for (const StateTensor& each : list) {
      if (each.part == part) all[each.name].pieces.push_back({writers.at(rank), each});
    }
  }
  TensorSources sources;
  for (auto& [name, whole] : all) {
    const StateTensor& first = whole.pieces[0].tensor;
    sources.emplace(name, TensorSource{first.tensor.scalar_type(), first.WholeShape(),
                                       [whole = std::move(whole)] { return whole.Get(); }});
  }
  return sources;
}

}  // namespace

absl::StatusOr<Catalogue> CatalogueOf(parallel::Strategy& strategy, const State& own,
                                      absl::Duration timeout) {
  TUTTI_ASSIGN_OR_RETURN(const auto lists, GatherLists(strategy, Written(own), timeout));
  Catalogue catalogue;
  for (const auto& [rank, list] : lists) {
    for (const StateTensor& each : list) {
      auto& part = each.part == Part::kModel ? catalogue.model : catalogue.run;
      part[each.name] = WithoutMemory(each.WholeShape(), each.tensor.scalar_type());
      catalogue.may_lack[each.name] = each.may_lack;
    }
  }
  return catalogue;
}

absl::Status WriteWhole(parallel::Strategy& strategy, const State& own, absl::Duration timeout,
                        const WriteSources& write) {
  const State written = Written(own);
  TUTTI_ASSIGN_OR_RETURN(const auto lists, GatherLists(strategy, written, timeout));
  if (!strategy.layout().reports()) {
    for (const StateTensor& each : written) {
      TUTTI_RETURN_IF_ERROR(strategy.Send(each.tensor, 0, base::Deadline::After(timeout)));
    }
    return absl::OkStatus();
  }
  std::map<int, std::shared_ptr<Writer>> writers;
  for (const auto& [rank, list] : lists) {
    writers[rank] = std::make_shared<Writer>(strategy, rank, list, timeout);
  }
  const absl::Status status =
      write({SourcesOf(lists, writers, Part::kModel), SourcesOf(lists, writers, Part::kRun)});
  for (const auto& [rank, writer] : writers) TUTTI_RETURN_IF_ERROR(writer->TakeTheRest());
  if (writers.size() > 1) device::ReturnKeptBlocks();  // of the others' tensors
  return status;
}

absl::Status ReadWhole(parallel::Strategy& strategy, const TensorMap& model, const TensorMap& run,
                       const State& own, absl::Duration timeout) {
  const auto soon = [&] { return base::Deadline::After(timeout); };
  const State written = Written(own);
  TUTTI_ASSIGN_OR_RETURN(const auto lists, GatherLists(strategy, written, timeout));
  torch::NoGradGuard no_grad;
  const auto found = [&](const StateTensor& each) {
    const TensorMap& part = each.part == Part::kModel ? model : run;
    const auto at = part.find(each.name);
    const bool fits = at != part.end() && at->second.sizes() == each.WholeShape();
    return fits ? PieceOf(at->second, each) : torch::Tensor();
  };
  // A writer hears first which of its tensors there are.
  for (const auto& [rank, list] : lists) {
    torch::Tensor there = torch::zeros({static_cast<int64_t>(list.size())}, torch::kUInt8);
    for (size_t i = 0; i < list.size(); ++i) {
      there[static_cast<int64_t>(i)] = found(list[i]).defined() ? 1 : 0;
    }
    if (rank > 0) TUTTI_RETURN_IF_ERROR(strategy.Send(there, rank, soon()));
    for (size_t i = 0; i < list.size(); ++i) {
      const torch::Tensor from = found(list[i]);
      if (!from.defined()) continue;
      if (rank == 0) {
        torch::Tensor(list[i].tensor).copy_(from);
      } else {
        TUTTI_RETURN_IF_ERROR(strategy.Send(from.to(list[i].tensor.scalar_type()), rank, soon()));
      }
    }
  }
  if (strategy.layout().reports() || written.empty()) return absl::OkStatus();
  const torch::Tensor there = torch::empty({static_cast<int64_t>(written.size())}, torch::kUInt8);
  TUTTI_RETURN_IF_ERROR(strategy.Receive(there, 0, soon()));
  for (size_t i = 0; i < written.size(); ++i) {
    if (there[static_cast<int64_t>(i)].item<uint8_t>() == 0) continue;
    TUTTI_RETURN_IF_ERROR(strategy.Receive(written[i].tensor, 0, soon()));
  }
  return absl::OkStatus();
}

}  // namespace tutti::train
