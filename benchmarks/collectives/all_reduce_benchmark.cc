// How fast all-reduce is between processes of this machine, beside what memory itself can do in the
// same run.
//
//   all_reduce_benchmark [RANKS] [LARGEST_BYTES]
//
// Prints for every transport and size the median time of an fp32 sum, the algorithm bandwidth
// (bytes / time), and its ratio to memcpy's bandwidth, measured by all ranks at once between the
// repetitions (bytes copied / time). A ring moves 2 (n-1)/n of the bytes over each link.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/comm/communicator.h"

namespace {

using tutti::base::Deadline;
using tutti::comm::Communicator;
using tutti::comm::GroupOptions;

Deadline Soon() { return Deadline::After(absl::Seconds(60)); }

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename Body>
double SecondsOf(const Body& body) {
  const absl::Time start = absl::Now();
  body();
  return absl::ToDoubleSeconds(absl::Now() - start);
}

struct Result {
  double seconds;
  double memcpy_rate;
};

// Interleaved: one all-reduce batch, one memcpy, and again.
Result Measure(Communicator& group, size_t bytes) {
  std::vector<float> data(bytes / sizeof(float), 1.0f);
  std::vector<float> source(std::max<size_t>(data.size(), 1 << 20), 1.0f), target(source.size());
  const int batch = static_cast<int>(std::clamp<size_t>((1 << 20) / bytes, 1, 200));
  const int repetitions = bytes > (8 << 20) ? 9 : 15;
  std::vector<double> times, copies;
  for (int i = 0; i < repetitions + 2; ++i) {
    Check(group.Barrier(Soon()));
    const double time = SecondsOf([&] {
      for (int k = 0; k < batch; ++k) {
        Check(group.AllReduce(data.data(), data.size(), tutti::comm::DataType::kFloat32,
                              tutti::comm::ReduceOp::kMean, Soon()));
      }
    });
    Check(group.Barrier(Soon()));
    const double copy = SecondsOf([&] {
      std::memcpy(target.data(), source.data(), source.size() * sizeof(float));
      asm volatile("" : : "g"(target.data()) : "memory");
    });
    if (i < 2) continue;
    times.push_back(time / batch);
    copies.push_back(static_cast<double>(source.size() * sizeof(float)) / copy);
  }
  return {Median(times), Median(copies)};
}

void Run(GroupOptions options, size_t largest) {
  auto group = tutti::comm::JoinGroup(options);
  Check(group.status());
  const bool tcp = options.transport == GroupOptions::Transport::kTcp;
  for (size_t bytes = 1024; bytes <= largest; bytes *= 4) {
    const Result result = Measure(**group, bytes);
    if (options.rank != 0) continue;
    const double rate = static_cast<double>(bytes) / result.seconds;
    std::printf("%10zu  %-9s  %10.1f us  %7.2f GB/s  %8.2f GB/s  %5.2f\n", bytes,
                tcp ? "tcp" : "shm", result.seconds * 1e6, rate / 1e9, result.memcpy_rate / 1e9,
                rate / result.memcpy_rate);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const size_t largest = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : size_t{64} << 20;
  std::printf("all-reduce, fp32 mean, %d ranks\n%10s  %-9s  %13s  %12s  %13s  %5s\n", ranks,
              "bytes", "transport", "median time", "algorithm", "memcpy", "ratio");
  std::fflush(stdout);
  GroupOptions options;
  options.size = ranks;
  for (const auto transport :
       {GroupOptions::Transport::kSharedMemory, GroupOptions::Transport::kTcp}) {
    options.transport = transport;
    options.master_port = 6200 + static_cast<int>(transport);
    for (options.rank = 0; options.rank < ranks; ++options.rank) {
      if (::fork() == 0) {
        Run(options, largest);
        return 0;
      }
    }
    int status = 0;
    while (::wait(&status) > 0) {
      if (status != 0) return 1;
    }
  }
  return 0;
}
