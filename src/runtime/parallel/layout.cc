#include "runtime/parallel/layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tutti::parallel {

absl::StatusOr<Layout> LayOut(const Mesh& mesh, int rank, int world_size) {
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
  Layout layout{.rank = rank, .world_size = world_size};
  layout.replicas = static_cast<int>(data);
  layout.stages = static_cast<int>(mesh.pipeline);
  layout.stage = rank / layout.replicas;
  layout.replica = rank % layout.replicas;
  return layout;
}

Layout DataLayout(const comm::Communicator& group) {
  Layout layout{.rank = group.rank(), .world_size = group.size()};
  layout.replica = layout.rank;
  layout.replicas = layout.world_size;
  return layout;
}

}  // namespace tutti::parallel
