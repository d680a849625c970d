// What memory itself allows an all-reduce between ranks of one node, for
// benchmarks/collectives/compare: the ranks (processes forked here) move the bytes that any
// algorithm has to move, at once, and do nothing else.
//
//   memory_rank CONTROL_SOCKET RANKS LARGEST_BYTES copy|stream|exchange
//
// copy: every rank copies its buffer with memcpy. exchange: every rank writes its values, which lie
// in memory of its own, where the others can read them, and adds those of the others to its own;
// nobody waits for anybody, so that what is left is bringing every value from one core to the
// others, which any all-reduce of such memory has to (in halves and back it is as many bytes).
// stream: what the best all-reduce must do at least, since each of the n buffers has to be read and
// written once: rank r reads its n-th of all the n buffers, adds, and writes the sum into all of
// them past the cache.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <new>
#include <thread>
#include <vector>

#include "rank_program.h"
#include "values.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using tutti::benchmark::Fail;

void StoreUncached(float* to, const float* from) {  // 16 values
#if defined(__AVX512F__)
  _mm512_stream_ps(to, _mm512_load_ps(from));
#elif defined(__x86_64__)
  for (int i = 0; i < 16; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
#else
  std::memcpy(to, from, 64);
#endif
}

void Fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Lies before the buffers, in memory that the ranks share.
struct SharedBarrier {
  std::atomic<int> arrived{0};
  std::atomic<int> round{0};
};

enum class Kind { kCopy, kStream, kExchange };

class Memory final : public tutti::benchmark::Contender {
 public:
  Memory(int rank, int size, std::byte* shared, size_t stride, Kind kind)
      : rank_(rank), size_(size), shared_(shared), stride_(stride), kind_(kind) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  float* Buffer(size_t count) override {
    if (4 * count > stride_) Fail("more than LARGEST_BYTES");
    if (count % kBlock != 0) Fail("no multiple of 256 bytes");
    if (own_.size() != count) {
      own_ = Values(count);
      std::fill_n(BufferOf(rank_), count, 0.0f);
    }
    return kind_ == Kind::kExchange ? own_.data() : BufferOf(rank_);
  }
  // Only `stream` makes the sum: a copy is none, and who waits for nobody may add what is old.
  std::string Prove(size_t count) override {
    if (kind_ == Kind::kStream) {
      const std::string answer = Contender::Prove(count);
      ChooseStore(count);  // of the zeros that it leaves
      return answer;
    }
    float* const values = Buffer(count);
    std::fill_n(values, count, 1.0f);
    Barrier();
    AllReduce(count);
    Barrier();
    const float* const copy = kind_ == Kind::kCopy ? own_.data() : BufferOf(rank_);
    std::string answer = "ok";
    for (size_t i = 0; i < count && answer == "ok"; ++i) {
      if (copy[i] != 1.0f) answer = Wrong(copy[i], i);
    }
    std::fill_n(values, count, 0.0f);
    std::fill_n(BufferOf(rank_), count, 0.0f);
    Barrier();
    return answer;
  }
  void Barrier() override {
    auto* const barrier = reinterpret_cast<SharedBarrier*>(shared_);
    const int round = barrier->round.load();
    if (barrier->arrived.fetch_add(1) + 1 == size_) {
      barrier->arrived = 0;
      barrier->round = round + 1;
    }
    while (barrier->round.load() == round) std::this_thread::yield();
  }
  void AllReduce(size_t count) override {
    if (kind_ == Kind::kCopy) {
      std::memcpy(own_.data(), BufferOf(rank_), 4 * count);
      asm volatile("" : : "g"(own_.data()) : "memory");
      return;
    }
    if (kind_ == Kind::kExchange) return Exchange(count);
    const size_t blocks = count / kBlock;
    AddBlocks(blocks * rank_ / size_, blocks * (rank_ + 1) / size_);
  }

 private:
  float* BufferOf(int rank) const {
    return reinterpret_cast<float*>(shared_ + 4096 + rank * stride_);
  }
  void Exchange(size_t count) {
    std::memcpy(BufferOf(rank_), own_.data(), 4 * count);
    for (int other = 0; other < size_; ++other) {
      const float* const values = BufferOf(other);
      if (other == rank_) continue;
      for (size_t i = 0; i < count; i += 16) {
        for (size_t k = i; k < i + 16; ++k) own_[k] += values[k];
      }
    }
    asm volatile("" : : "g"(own_.data()) : "memory");
  }
  void AddBlocks(size_t first, size_t end) const {
    for (size_t block = first; block < end; ++block) {
      for (int other = 0; other < size_ && block + 1 < end; ++other) {
        for (size_t i = 0; i < kBlock; i += 16) {
          __builtin_prefetch(BufferOf(other) + (block + 1) * kBlock + i, 1);
        }
      }
      for (size_t i = 0; i < kBlock; i += 16) AddLine(block * kBlock + i);
    }
    Fence();
  }
  void AddLine(size_t at) const {
    alignas(64) float sum[16];
    std::memcpy(sum, BufferOf(0) + at, 64);
    for (int other = 1; other < size_; ++other) {
      const float* const values = BufferOf(other) + at;
      for (int i = 0; i < 16; ++i) sum[i] += values[i];
    }
    for (int other = 0; other < size_; ++other) {
      uncached_ ? StoreUncached(BufferOf(other) + at, sum)
                : static_cast<void>(std::memcpy(BufferOf(other) + at, sum, 64));
    }
  }
  double Best(size_t count) {
    double best = INFINITY;
    for (int i = 0; i < 7; ++i) {
      Barrier();
      const auto start = std::chrono::steady_clock::now();
      AllReduce(count);
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
      best = std::min(best, time.count());
    }
    return best;
  }
  void ChooseStore(size_t count) {
    uncached_ = true;
    const double uncached = Best(count);
    uncached_ = false;
    uncached_ = uncached < Best(count);
  }

  static constexpr size_t kBlock = 64;  // values: as many bytes are asked for ahead
  const int rank_, size_;
  std::byte* const shared_;
  const size_t stride_;
  const Kind kind_;
  bool uncached_ = true;
  Values own_;
};

std::byte* ShareMemory(size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) Fail("no memory");
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  new (memory) SharedBarrier;
  return static_cast<std::byte*>(memory);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 5 ? argv[4] : "";
  const bool copy = name == "copy", exchange = name == "exchange";
  if (!copy && !exchange && name != "stream") {
    Fail("usage: memory_rank CONTROL_SOCKET RANKS LARGEST_BYTES copy|stream|exchange");
  }
  const Kind kind = copy ? Kind::kCopy : exchange ? Kind::kExchange : Kind::kStream;
  const int ranks = std::atoi(argv[2]);
  const size_t stride = (std::strtoull(argv[3], nullptr, 10) + 4095) / 4096 * 4096;
  std::byte* const shared = ShareMemory(4096 + ranks * stride);
  for (int rank = 0; rank < ranks; ++rank) {
    if (::fork() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Memory contender(rank, ranks, shared, stride, kind);
    tutti::benchmark::RankProgram(argv[1], contender).ServeUntilQuit();
    return 0;
  }
  int status = 0;
  while (::wait(&status) > 0) {
    if (status != 0) return 1;
  }
  return 0;
}
