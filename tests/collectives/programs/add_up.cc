// A user's program on tutti's collectives: adds numbers up over all ranks.
//   add_up TIMES
#include <cstdlib>
#include <iostream>

#include "runtime/comm/communicator.h"

int main(int argc, char** argv) {
  using tutti::base::Deadline;
  const int times = argc > 1 ? std::atoi(argv[1]) : 1;
  const auto options = tutti::comm::GroupOptionsFromEnvironment();
  if (!options.ok()) {
    std::cerr << "error: " << options.status().message() << "\n";
    return 2;
  }
  const auto group = tutti::comm::JoinGroup(*options);
  if (!group.ok()) {
    std::cerr << "error: " << group.status().message() << "\n";
    return 1;
  }
  for (int i = 0; i < times; ++i) {
    int64_t number = (*group)->rank() + 1;
    const absl::Status status =
        (*group)->AllReduce(&number, 1, tutti::comm::DataType::kInt64, tutti::comm::ReduceOp::kSum,
                            Deadline::After(absl::Seconds(60)));
    if (!status.ok()) {
      std::cerr << "error: " << status.message() << "\n";
      return 1;
    }
    std::cout << "round " << i << ": " << number << std::endl;
  }
  return 0;
}
