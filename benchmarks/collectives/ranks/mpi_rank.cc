// A rank of MPI's all-reduce for benchmarks/collectives/compare.
//   mpirun -n RANKS mpi_rank CONTROL_SOCKET
#include <mpi.h>

#include "rank_program.h"
#include "values.h"

namespace {

class Mpi final : public tutti::benchmark::Contender {
 public:
  Mpi() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  float* Buffer(size_t count) override {
    if (data_.size() != count) data_ = Values(count);
    return data_.data();
  }
  void Barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void AllReduce(size_t count) override {
    // An error ends the job: MPI_ERRORS_ARE_FATAL is the default.
    MPI_Allreduce(MPI_IN_PLACE, data_.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }

 private:
  int rank_ = 0, size_ = 1;
  Values data_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 2) tutti::benchmark::Fail("usage: mpi_rank CONTROL_SOCKET");
  {
    Mpi contender;
    tutti::benchmark::RankProgram(argv[1], contender).ServeUntilQuit();
  }
  MPI_Finalize();
  return 0;
}
