#include "runtime/parallel/layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::parallel {

namespace {

absl::StatusOr<Layout> LayOutTraining(const Mesh& mesh, int rank, int world_size) {
  const int64_t data = mesh.data == 0 ? world_size / mesh.pipeline : mesh.data;
  if (data * mesh.pipeline != world_size) {
    const std::string asked =
        mesh.data == 0
            ? absl::StrCat(mesh.pipeline, " stages of a pipeline")
            : absl::StrCat(mesh.pipeline, mesh.pipeline == 1 ? " stage x " : " stages x ",
                           mesh.data, mesh.data == 1 ? " replica" : " replicas");
    const bool divides = world_size % mesh.pipeline == 0 && world_size >= mesh.pipeline;
    return absl::InvalidArgumentError(absl::StrCat(
        "--parallel: ", asked, " do not fit ", world_size, world_size == 1 ? " rank" : " ranks",
        ": start ", mesh.pipeline * std::max<int64_t>(data, 1), " ranks",
        divides ? absl::StrCat(", or ask for data=", world_size / mesh.pipeline) : ""));
  }
  return Layout{.rank = rank,
                .world_size = world_size,
                .axes = {{std::string(kStageAxis), static_cast<int>(mesh.pipeline)},
                         {std::string(kDataAxis), static_cast<int>(data)}}};
}

}  // namespace

absl::StatusOr<Layout> LayOut(const Mesh& mesh, int rank, int world_size) {
  if (mesh.servers == 0) return LayOutTraining(mesh, rank, world_size);
  const int workers = world_size - static_cast<int>(mesh.servers);
  if (workers < 1 || (mesh.data > 0 && mesh.data != workers)) {
    const int64_t wanted = std::max<int64_t>(mesh.data, 1);
    return absl::InvalidArgumentError(absl::StrCat(
        "--parallel: ", wanted, wanted == 1 ? " worker" : " workers", " and ", mesh.servers,
        mesh.servers == 1 ? " server" : " servers", " do not fit ", world_size,
        world_size == 1 ? " rank" : " ranks", ": start ", wanted + mesh.servers,
        mesh.data == 0 ? " or more, one for each worker, or ask for fewer servers" : ""));
  }
  TUTTI_ASSIGN_OR_RETURN(Layout layout, LayOutTraining({.data = workers}, rank, workers));
  layout.world_size = world_size;
  layout.takes_turns = true;
  if (rank >= workers) layout.role = Layout::Role::kServes;
  return layout;
}

Layout DataLayout(const comm::Communicator& group) {
  return {.rank = group.rank(),
          .world_size = group.size(),
          .axes = {{std::string(kDataAxis), group.size()}}};
}

namespace {

// How far apart in rank two neighbours along the axis are; 0: there is no such axis.
int StrideOf(const Layout& layout, absl::string_view axis) {
  int stride = 1;
  for (auto each = layout.axes.rbegin(); each != layout.axes.rend(); ++each) {
    if (each->name == axis) return stride;
    stride *= each->size;
  }
  return 0;
}

}  // namespace

int Layout::SizeOf(absl::string_view axis) const {
  for (const Axis& each : axes) {
    if (each.name == axis) return each.size;
  }
  return 1;
}

int Layout::IndexOf(absl::string_view axis, int other) const {
  int training = 1;
  for (const Axis& each : axes) training *= each.size;
  if (other >= training) return -1;
  const int stride = StrideOf(*this, axis);
  return stride == 0 ? 0 : other / stride % SizeOf(axis);
}

int Layout::RankAt(absl::string_view axis, int index) const {
  return rank + (index - IndexOf(axis)) * StrideOf(*this, axis);
}

std::vector<int> Layout::Along(absl::string_view axis) const {
  std::vector<int> ranks;
  for (int i = 0; i < SizeOf(axis); ++i) ranks.push_back(RankAt(axis, i));
  return ranks;
}

absl::StatusOr<std::unique_ptr<comm::Communicator>> GroupAlong(absl::string_view axis,
                                                               const Layout& layout,
                                                               comm::Communicator& ranks,
                                                               base::Deadline deadline) {
  return ranks.NewGroup(layout.Along(axis), deadline);
}

}  // namespace tutti::parallel
