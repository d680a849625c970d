// A rank of tutti's all-reduce for benchmarks/collectives/compare.
//
//   RANK=… WORLD_SIZE=… MASTER_ADDR=… MASTER_PORT=… [NODE_RANK=…] tutti_rank CONTROL_SOCKET
#include <memory>
#include <vector>

#include "rank_program.h"
#include "runtime/comm/communicator.h"

namespace {

using tutti::base::Deadline;
using tutti::benchmark::Fail;
using tutti::comm::Communicator;

Deadline Soon() { return Deadline::After(absl::Seconds(120)); }

void Check(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

std::unique_ptr<Communicator> Join() {
  const auto options = tutti::comm::GroupOptionsFromEnvironment();
  Check(options.status());
  auto group = tutti::comm::JoinGroup(*options);
  Check(group.status());
  return *std::move(group);
}

class Tutti : public tutti::benchmark::Contender {
 public:
  explicit Tutti(std::unique_ptr<Communicator> group) : group_(std::move(group)) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  float* Buffer(size_t count) override {
    if (data_.size() != count) data_ = std::vector<float>(count);
    return data_.data();
  }
  void Barrier() override { Check(group_->Barrier(Soon())); }
  void AllReduce(size_t count) override {
    Check(group_->AllReduce(data_.data(), count, tutti::comm::DataType::kFloat32,
                            tutti::comm::ReduceOp::kSum, Soon()));
  }

 private:
  std::unique_ptr<Communicator> group_;
  std::vector<float> data_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) Fail("usage: tutti_rank CONTROL_SOCKET");
  Tutti contender(Join());
  tutti::benchmark::RankProgram(argv[1], contender).ServeUntilQuit();
  return 0;
}
