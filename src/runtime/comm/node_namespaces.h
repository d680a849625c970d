// NodeNamespaces makes nodes on one machine, for this room's tests: a network namespace each,
// joined by a bridge in another. Needs root. Everything is removed with the object.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"

namespace tutti::comm {

class NodeNamespaces {
 public:
  explicit NodeNamespaces(int count) : count_(count) {
    good_ = Ip("netns add ", Switch()) && Ip("-n ", Switch(), " link add br0 type bridge") &&
            Ip("-n ", Switch(), " link set br0 up");
    for (int node = 0; node < count && good_; ++node) {
      const std::string port = absl::StrCat("port", node);
      good_ =
          Ip("netns add ", Name(node)) && Ip("-n ", Name(node), " link set lo up") &&
          Ip("-n ", Switch(), " link add ", port, " type veth peer name eth0 netns ", Name(node)) &&
          Ip("-n ", Switch(), " link set ", port, " master br0 up") &&
          Ip("-n ", Name(node), " addr add ", Address(node), "/24 dev eth0") &&
          Ip("-n ", Name(node), " link set eth0 up");
    }
  }
  ~NodeNamespaces() {
    for (int node = 0; node < count_; ++node) Ip("netns del ", Name(node));
    Ip("netns del ", Switch());
  }
  NodeNamespaces(const NodeNamespaces&) = delete;
  NodeNamespaces& operator=(const NodeNamespaces&) = delete;

  // Returns whether it works: false where namespaces cannot be made.
  bool good() const { return good_; }
  std::string Address(int node) const { return absl::StrCat("10.79.0.", node + 1); }
  // Puts the calling thread, and what it starts from now on, on that node.
  bool Enter(int node) const {
    const base::UniqueFd fd(::open(absl::StrCat("/run/netns/", Name(node)).c_str(), O_RDONLY));
    return ::setns(fd.get(), CLONE_NEWNET) == 0;
  }
  // Drops packets from and to that node, without a word to either side.
  bool Cut(int node) { return Ip("-n ", Switch(), " link set port", node, " down"); }
  bool Restore(int node) { return Ip("-n ", Switch(), " link set port", node, " up"); }

 private:
  std::string Name(int node) const { return absl::StrCat("tutti-test-", maker_, "-", node); }
  std::string Switch() const { return absl::StrCat("tutti-test-", maker_, "-switch"); }
  template <typename... Parts>
  static bool Ip(const Parts&... parts) {
    return std::system(absl::StrCat("ip ", parts..., " 2>/dev/null").c_str()) == 0;
  }

  const int count_;
  const int maker_ = ::getpid();  // its children use the names too
  bool good_ = false;
};

}  // namespace tutti::comm
