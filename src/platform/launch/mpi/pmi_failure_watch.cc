#include "platform/launch/mpi/pmi_failure_watch.h"

#include "absl/strings/str_cat.h"

namespace tutti::launch {

std::optional<MpiFailure> PmiFailureWatch::Look(std::optional<PmiFailure> failure,
                                                absl::Duration now) {
  const int rank = failure ? failure->rank : -1;
  if (rank != rank_) since_ = now;
  rank_ = rank;
  if (rank < 0) return std::nullopt;
  const bool aborts = failure->abort_code.has_value();
  if (!aborts && now - since_ < kPatience) return std::nullopt;
  return MpiFailure{.rank = rank, .error = WordsOf(*failure), .abort = aborts, .left = true};
}

std::string WordsOf(const PmiFailure& failure) {
  if (failure.abort_code) {
    return absl::StrCat("called MPI_Abort with exit code ", *failure.abort_code);
  }
  return "left MPI without MPI_Finalize, while others waited for it";
}

}  // namespace tutti::launch
