// What every contender's rank process is to benchmarks/collectives/compare: it joins its group,
// then does nothing (it is blocked in a read) until told what to do, so that contenders can be
// measured in turn on the same machine without disturbing each other. Lines over a Unix socket:
//
//   rank -> driver   rank R                          once, when the group is complete
//   driver -> rank   check BYTES                     one all-reduce of known values
//   rank -> driver   ok | wrong VALUE at INDEX
//   driver -> rank   all-reduce BYTES BATCH REPEATS  all ranks get it at the same time
//   rank -> driver   SECONDS ...                     of one call, for each repeat of BATCH calls
//   driver -> rank   quit
//
// gloo_rank.py speaks the same. A rank that fails says why on standard error and exits.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

namespace tutti::benchmark {

[[noreturn]] inline void Fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

// A rank's end of the lines that it and the driver say to each other.
class Driver {
 public:
  explicit Driver(const char* path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      Fail(std::string("no driver at ") + path);
    }
  }

  void Say(const std::string& line) {
    const std::string text = line + "\n";
    if (::write(socket_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      Fail("the driver has gone");
    }
  }

  // Waits for it; "quit" where the driver has gone.
  std::string ReadLine() {
    std::string line;
    for (char c = 0;;) {
      if (::read(socket_, &c, 1) != 1) return "quit";
      if (c == '\n') return line;
      line += c;
    }
  }

 private:
  int socket_;
};

class Contender {
 public:
  virtual ~Contender() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Memory for `count` values; the same memory while the count is the same.
  virtual float* Buffer(size_t count) = 0;
  virtual void Barrier() = 0;
  // The sum over the ranks, in place in Buffer(count).
  virtual void AllReduce(size_t count) = 0;
  // Proves AllReduce(count) with known values: "ok", or what is wrong. Leaves zeros, whose sums
  // stay zeros.
  virtual std::string Prove(size_t count) {
    // Whole numbers, whose sum is exact in whatever order.
    const std::span<float> values(Buffer(count), count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 7 + rank());
    Barrier();
    AllReduce(count);
    Barrier();
    const int n = size();
    std::string answer = "ok";
    for (size_t i = 0; i < count && answer == "ok"; ++i) {
      const float sum = static_cast<float>(static_cast<int>(i % 7) * n + n * (n - 1) / 2);
      if (values[i] != sum) answer = Wrong(values[i], i);
    }
    Barrier();
    std::fill(values.begin(), values.end(), 0.0f);
    return answer;
  }

 protected:
  static std::string Wrong(float value, size_t at) {
    return "wrong " + std::to_string(value) + " at " + std::to_string(at);
  }
};

class RankProgram {
 public:
  RankProgram(const char* path, Contender& contender) : driver_(path), contender_(contender) {
    driver_.Say("rank " + std::to_string(contender.rank()));
  }

  void ServeUntilQuit() {
    for (std::string line = driver_.ReadLine(); line != "quit"; line = driver_.ReadLine()) {
      size_t bytes = 0, batch = 0, repeats = 0;
      if (std::sscanf(line.c_str(), "check %zu", &bytes) == 1) {
        driver_.Say(contender_.Prove(bytes / sizeof(float)));
      } else if (std::sscanf(line.c_str(), "all-reduce %zu %zu %zu", &bytes, &batch, &repeats) ==
                 3) {
        driver_.Say(Measure(bytes / sizeof(float), batch, repeats));
      } else {
        Fail("told \"" + line + "\"");
      }
    }
  }

 private:
  std::string Measure(size_t count, size_t batch, size_t repeats) {
    using Clock = std::chrono::steady_clock;
    contender_.Buffer(count);
    std::string answer;
    for (size_t i = 0; i < repeats; ++i) {
      contender_.Barrier();
      const auto start = Clock::now();
      for (size_t k = 0; k < batch; ++k) contender_.AllReduce(count);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      char text[32];
      std::snprintf(text, sizeof(text), " %.9g", seconds / static_cast<double>(batch));
      answer += text;
    }
    return answer;
  }

  Driver driver_;
  Contender& contender_;
};

}  // namespace tutti::benchmark
